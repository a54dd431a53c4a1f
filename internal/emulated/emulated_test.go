package emulated

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/internal/suitetest"
)

// TestGo checks that Env.Go runs a function with a context that ends when the server is closed, and that Close waits for
// the function.
func TestGo(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	s.Env().Go(func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	s.Close()
	if !ended {
		t.Error("Close returned before the function did")
	}
}

// TestLacks checks that code is not judged if it uses a command, or a library in a script, that the emulation does not have.
func TestLacks(t *testing.T) {
	wrong := errors.New("it is wrong")
	for name, tt := range map[string]struct {
		do   func(context.Context, redis.UniversalClient) error
		says string
	}{
		"a command": {func(ctx context.Context, c redis.UniversalClient) error { return c.Do(ctx, "VADD", "k", "1").Err() }, "unknown command"},
		"a library": {func(ctx context.Context, c redis.UniversalClient) error {
			return c.Eval(ctx, "return cmsgpack.pack(1)", nil).Err()
		}, "cmsgpack"},
		"a pipeline": {func(ctx context.Context, c redis.UniversalClient) error {
			p := c.Pipeline()
			p.Do(ctx, "VADD", "k", "1")
			_, err := p.Exec(ctx)
			return err
		}, "unknown command"},
		"a wrong use": {func(ctx context.Context, c redis.UniversalClient) error { return c.Do(ctx, "INCR").Err() }, ""},
	} {
		at, err := Judge(func(s *Server) error {
			if tt.do(t.Context(), s.Env().Redis[0]) == nil {
				t.Errorf("%s: no error", name)
			}
			return wrong
		})
		remarked := errors.As(err, new(*suitetest.Remark))
		if at != "" || remarked != (tt.says != "") || !remarked && err != wrong || remarked && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v; want a remark that says %q, or the error of the check", name, at, err, tt.says)
		}
	}
}

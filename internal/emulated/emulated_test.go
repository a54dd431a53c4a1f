package emulated

import (
	"context"
	"testing"
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

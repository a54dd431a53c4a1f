package interrupt

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/variant"
)

// TestWrites checks that a client without the right to write reads and runs scripts, that its writes fail outside and
// inside of them, and that nobody else notices.
func TestWrites(t *testing.T) {
	addr, _ := servertest.Start(t)
	plain := redis.NewClient(&redis.Options{Addr: addr})
	defer plain.Close()
	ctx := t.Context()
	env, w, err := WithUser(ctx, variant.Env{Redis: []redis.UniversalClient{plain}})
	if err != nil {
		t.Fatal(err)
	}
	c := env.Redis[0]
	if err := c.Set(ctx, "k", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.During(ctx, func() {
		if err := c.Set(ctx, "k", "2", 0).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("SET answered %v; want NOPERM", err)
		}
		if got, err := c.Get(ctx, "k").Result(); got != "1" || err != nil {
			t.Errorf("GET answered %q and %v; want 1", got, err)
		}
		if got, err := c.Eval(ctx, `local e = redis.pcall("SET", KEYS[1], 3); if type(e) == "table" and e.err then return "caught" end; return e`, []string{"k"}).Result(); got != "caught" || err != nil {
			t.Errorf("a script that catches the error of SET answered %v and %v", got, err)
		}
		if err := c.Eval(ctx, `return redis.call("SET", KEYS[1], 4)`, []string{"k"}).Err(); err == nil {
			t.Error("a script that calls SET was answered with success")
		}
		if err := plain.Set(ctx, "other", "1", 0).Err(); err != nil {
			t.Errorf("another client's SET: %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(ctx, "k", "5", 0).Err(); err != nil {
		t.Errorf("with the right returned: %v", err)
	}
	w.Close()
	if users, err := plain.Do(ctx, "ACL", "USERS").StringSlice(); err != nil || len(users) != 1 {
		t.Errorf("users %q and %v; want the default one", users, err)
	}
}

// TestNoUsers checks that a server without users is told from one that has them.
func TestNoUsers(t *testing.T) {
	s := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer c.Close()
	if _, _, err := WithUser(t.Context(), variant.Env{Redis: []redis.UniversalClient{c}}); err == nil || !strings.Contains(err.Error(), "cannot create a user") {
		t.Errorf("the emulation is said to have users: %v", err)
	}
}

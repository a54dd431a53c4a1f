package load

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/server"
	"oversell/variant"
)

// TestAStopSendsAwayWhoHasSentNothing checks that, when the run is stopped, a client gives up if it waits for a
// shared connection with the first command of a try, or with the first after a wait. Later commands are sent.
func TestAStopSendsAwayWhoHasSentNothing(t *testing.T) {
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	e, err := New(t.Context(), Config{
		Pool: 1, Waiting: Poll,
		Dial: func(_ int32, n int) []redis.UniversalClient { return tg.Clients(server.ConnOptions{PoolSize: n}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context) error { return c.Env.Redis[0].Get(ctx, "a").Err() }
	ctx := context.Background() // unlike the test's context it never ends
	first, second, again, plain := c.Trying(ctx), c.Trying(ctx), c.Trying(ctx), ctx
	for _, ctx := range []context.Context{second, again} {
		if err := get(ctx); !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	if err := c.Env.Wait(again, "a", 1); err != nil {
		t.Fatal(err)
	}

	only := e.shared[0].(*redis.Client).Conn() // takes the only connection of the pool
	if err := only.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	sentAway, sent := make(chan error), make(chan error)
	derived := PauseAfterFirst(c.Trying(ctx), func(context.Context) {})
	for _, ctx := range []context.Context{first, again, derived} {
		go func() { sentAway <- get(ctx) }()
	}
	for _, ctx := range []context.Context{second, plain} {
		go func() { sent <- get(ctx) }()
	}
	e.Stop()
	for range 3 {
		if err := <-sentAway; !errors.Is(err, variant.ErrStopped) {
			t.Errorf("who had sent nothing: %v", err)
		}
	}
	only.Close()
	for range 2 {
		if err := <-sent; !errors.Is(err, redis.Nil) {
			t.Errorf("who had sent something, or says nothing of a try: %v", err)
		}
	}
}

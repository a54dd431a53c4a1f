package load

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/server"
	"oversell/variant"
)

// counting counts the commands that pass through it.
type counting struct{ n *int }

func (counting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" { // the driver opens a connection with HELLO
			*c.n++
		}
		return next(ctx, cmd)
	}
}

func (c counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestEveryClientHasItsOwnHook checks that clients that share connections still have a hook each, and that a fault
// can hold up a section in the middle in both cases.
func TestEveryClientHasItsOwnHook(t *testing.T) {
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	for _, pool := range []int{0, 1} {
		counts := map[int32]*int{}
		e, err := New(t.Context(), Config{
			Pool: pool, Waiting: Poll,
			Dial: func(_ int32, n int) []redis.UniversalClient { return tg.Clients(server.ConnOptions{PoolSize: n}) },
			Inject: func(id int32, _ *variant.Env) redis.Hook {
				counts[id] = new(int)
				return counting{counts[id]}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			c, err := e.Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			paused := 0
			ctx := PauseAfterFirst(t.Context(), func(context.Context) { paused++ })
			for range n + 1 {
				c.Env.Redis[0].Get(ctx, "a")
			}
			if paused != 1 {
				t.Errorf("pool %d: held up %d times", pool, paused)
			}
			heir := c.Successor()
			heir.Env.Redis[0].Get(t.Context(), "a")
			if *counts[c.ID] != n+1 || *counts[heir.ID] != 1 {
				t.Errorf("pool %d: %d commands of client %d, %d of its successor", pool, *counts[c.ID], c.ID, *counts[heir.ID])
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		clear(counts)
	}
}

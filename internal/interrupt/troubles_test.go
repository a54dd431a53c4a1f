package interrupt

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// TestTroubles checks that calls through an Interceptor meet each trouble, that calls past it meet only those that need no command,
// and that a client works again afterwards.
func TestTroubles(t *testing.T) {
	addr := miniredis.RunT(t).Addr()
	plain := redis.NewClient(&redis.Options{Addr: addr})
	defer plain.Close()
	for _, trouble := range Troubles {
		env, line := Intercept(variant.Env{Redis: []redis.UniversalClient{redis.NewClient(&redis.Options{Addr: addr})}})
		c := env.Redis[0]
		calls, failed := 0, 0
		met := trouble.Makes(t.Context(), line, rand.IntN, func(ctx context.Context) {
			calls++
			if c.Incr(ctx, "n").Err() != nil {
				failed++
			}
		})
		byContext := calls > InARow // which the driver looks at before a command only
		if !met || !byContext && failed == 0 {
			t.Errorf("%s: %d of %d calls failed; met: %t", trouble.What, failed, calls, met)
		}
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("after %s: %v", trouble.What, err)
		}
		met = trouble.Makes(t.Context(), line, rand.IntN, func(ctx context.Context) { plain.Incr(context.WithoutCancel(ctx), "n") })
		if met && !byContext {
			t.Errorf("%s: calls that do not pass the Interceptor met it", trouble.What)
		}
		c.Close()
	}
}

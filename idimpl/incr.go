package idimpl

import (
	"context"
	"fmt"

	"oversell/lockimpl"
	"oversell/variant"
)

// incr lets the server count.
type incr struct {
	env variant.Env
	key string
}

func newIncr(env variant.Env, counter string) Generator { return incr{env, keyOf(counter)} }

func (g incr) Next(ctx context.Context, _ string, _ lockimpl.Lock) (int64, error) {
	n, err := g.env.Redis[0].Incr(ctx, g.key).Result()
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}

func (g incr) Last(ctx context.Context) (int64, error) { return last(ctx, g.env.Redis[0], g.key) }

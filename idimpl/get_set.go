package idimpl

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// getSet reads the last number and writes the next. It relies entirely on the lock.
type getSet struct {
	env variant.Env
	key string
}

func newGetSet(env variant.Env, counter string) Generator { return getSet{env, keyOf(counter)} }

func (g getSet) Next(ctx context.Context, _ string, _ lockimpl.Lock) (int64, error) {
	n, err := last(ctx, g.env.Redis[0], g.key)
	if err != nil {
		return 0, err
	}
	n++
	if err := g.env.Redis[0].Set(ctx, g.key, n, 0).Err(); err != nil {
		return 0, fmt.Errorf("write number %d: %w", n, err)
	}
	return n, nil
}

func (g getSet) Last(ctx context.Context) (int64, error) { return last(ctx, g.env.Redis[0], g.key) }

// last returns the number under key, 0 where there is none.
func last(ctx context.Context, c redis.UniversalClient, key string) (int64, error) {
	n, err := c.Get(ctx, key).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last number: %w", err)
	}
	return n, nil
}

package mutants

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// longMutants have calls of many commands, and go wrong at a late one.
func longMutants() []Lock {
	settings := func(ctx context.Context, c *client, name string) error {
		for n := range 5 {
			if err := c.redis().HGet(ctx, c.key(name)+":settings", fmt.Sprint(n)).Err(); err != nil && err != redis.Nil {
				return err
			}
		}
		return nil
	}
	return []Lock{
		{Entry: entry.New("acquire-after-settings", "an acquire reads five settings, looks whether the lock is there, and then takes it without a condition", entry.Breaks(variant.MutualExclusion), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if err := settings(ctx, c, l.Key); err != nil {
					return false, err
				}
				if n, err := c.redis().Exists(ctx, c.key(l.Key)).Result(); n > 0 || err != nil {
					return false, err
				}
				return set(ctx, c, l, "", o.TTL)
			}})},
		{Entry: entry.New("release-after-settings", "a release reads five settings and the value, and then deletes", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				if err := settings(ctx, c, l.Key); err != nil {
					return false, err
				}
				return getDel(ctx, c, l)
			}})},
		{Entry: entry.New("release-in-transactions", "a release reads the value, and the settings, each in a transaction, and then deletes in a third", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				var value *redis.StringCmd
				if _, err := c.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Time(ctx)
					value = p.Get(ctx, c.key(l.Key))
					return nil
				}); err != nil && err != redis.Nil {
					return false, err
				}
				if value.Val() != l.Token {
					return false, nil
				}
				if _, err := c.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Time(ctx)
					p.HGetAll(ctx, c.key(l.Key)+":settings")
					return nil
				}); err != nil {
					return false, err
				}
				_, err := c.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Del(ctx, c.key(l.Key))
					p.HSet(ctx, c.key(l.Key)+":settings", "released", 1)
					return nil
				})
				return err == nil, err
			}})},
		{Entry: entry.New("acquire-with-count-last", "an acquire takes the lock without an expiry, increments four counters, and then sets the expiry", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := set(ctx, c, l, "NX", 0)
				if !ok || err != nil {
					return ok, err
				}
				for _, what := range []string{"minute", "hour", "day", "week"} {
					if err := c.redis().Incr(ctx, c.key(l.Key)+":"+what).Err(); err != nil {
						return false, err
					}
				}
				return c.redis().PExpire(ctx, c.key(l.Key), o.TTL).Result()
			}})},
		{Entry: entry.New("extend-after-settings", "an extend reads five settings and the value, and then sets the expiry of whatever is there", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				if err := settings(ctx, c, l.Key); err != nil {
					return false, err
				}
				if value, err := c.redis().Get(ctx, c.key(l.Key)).Result(); value != l.Token {
					return did(err)
				}
				return c.redis().PExpire(ctx, c.key(l.Key), ttl).Result()
			}})},
	}
}

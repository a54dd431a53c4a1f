package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// incr gives the lock to the first client to count. With maxTimes > 0, a client that counts that far and finds no
// expiry forces the lock open. The document's comment says this takes more than maxTimes tries; its code compares with
// >=: at least maxTimes. This follows the code.
type incr struct {
	blind
	maxTimes int64
}

// forceAfter is maxTimes of incr-max. The source document gives no value.
const forceAfter = 5

func newIncr(env variant.Env) Locker    { return incr{blind: blind{env}} }
func newIncrMax(env variant.Env) Locker { return incr{blind: blind{env}, maxTimes: forceAfter} }

func (i incr) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, i.env, name, o, func(start time.Time) (Lock, error) {
		c, key := i.env.Redis[0], Key(name)
		n, err := c.Incr(ctx, key).Result()
		if err != nil {
			return Lock{}, err
		}
		if n == 1 {
			if err := c.Expire(ctx, key, o.TTL).Err(); err != nil {
				return Lock{}, err
			}
			return granted(name, "1", "INCR", start, o.TTL), nil
		}
		if i.maxTimes > 0 && n >= i.maxTimes {
			ttl, err := c.TTL(ctx, key).Result()
			if err != nil {
				return Lock{}, err
			}
			if ttl == -1 {
				if err := c.Del(ctx, key).Err(); err != nil {
					return Lock{}, err
				}
			}
		}
		return Lock{}, ErrHeld
	})
}

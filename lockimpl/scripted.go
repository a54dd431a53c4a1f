package lockimpl

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// scripted is a lock that takes each step by one script over one key. The acquiring script takes the token and the
// lease in milliseconds; via names its positive replies.
type scripted struct {
	env                            variant.Env
	onAcquire, onExtend, onRelease *redis.Script
	via                            map[int64]string
}

func (s scripted) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, s.env, name, o, func(start time.Time) (Lock, error) {
		token := s.env.Token()
		n, err := s.onAcquire.Run(ctx, s.env.Redis[0], []string{Key(name)}, token, ms(o.TTL)).Int64()
		if err != nil {
			return Lock{}, err
		}
		via, won := s.via[n]
		if !won {
			return Lock{}, ErrHeld
		}
		return granted(name, token, via, start, o.TTL), nil
	})
}

func (s scripted) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	return scriptExtend(ctx, s.env, s.onExtend, l, ttl)
}

func (s scripted) Release(ctx context.Context, l Lock) error {
	return scriptRelease(ctx, s.env, s.onRelease, l)
}

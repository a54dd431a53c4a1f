package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// setNXEX sets the key and its expiry by one command. The value does not name the owner.
type setNXEX struct{ env variant.Env }

func newSetNXEX(env variant.Env) Locker { return setNXEX{env} }

func (s setNXEX) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, s.env, name, o, func(start time.Time) (Lock, error) {
		set, err := setNX(ctx, s.env.Redis[0], keyOf(name), "1", o.TTL)
		if err != nil {
			return Lock{}, err
		}
		if !set {
			return Lock{}, ErrHeld
		}
		return granted(name, "1", "SET NX EX", start, o.TTL), nil
	})
}

func (s setNXEX) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	return blindExpire(ctx, s.env, l, ttl)
}

func (s setNXEX) Release(ctx context.Context, l Lock) error { return blindDelete(ctx, s.env, l) }

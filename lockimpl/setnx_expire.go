package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// setnxExpire sends SETNX, and then EXPIRE, as two commands. The value does not name the owner.
type setnxExpire struct{ blind }

func newSetnxExpire(env variant.Env) Locker { return setnxExpire{blind{env}} }

func (s setnxExpire) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, s.env, name, o, func(start time.Time) (Lock, error) {
		set, err := sendSETNX(ctx, s.env.Redis[0], Key(name), 1)
		if err != nil {
			return Lock{}, err
		}
		if !set {
			return Lock{}, ErrHeld
		}
		if err := s.env.Redis[0].Expire(ctx, Key(name), o.TTL).Err(); err != nil {
			return Lock{}, err
		}
		return granted(name, "1", "SETNX", start, o.TTL), nil
	})
}

package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// setNXEX sets the key and its expiry by one command. The value does not name the owner.
type setNXEX struct{ blind }

func newSetNXEX(env variant.Env) Locker { return setNXEX{blind{env}} }

func (s setNXEX) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, s.env, name, o, func(start time.Time) (Lock, error) {
		return setToken(ctx, s.env, name, "1", start, o.TTL)
	})
}

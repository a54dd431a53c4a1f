package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// fenced is luaRelease that grants a fencing token with the lock: a number
// higher than that of every earlier grant, for the protected resource to check.
type fenced struct{ luaRelease }

func newFenced(env variant.Env) Locker { return fenced{luaRelease{token{env}}} }

func (f fenced) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	keys := []string{Key(name), "Fence:" + Key(name)}
	return acquire(ctx, f.env, name, o, func(start time.Time) (Lock, error) {
		token := f.env.Token()
		fence, err := fencedScript.Run(ctx, f.env.Redis[0], keys, token, ms(o.TTL)).Int64()
		if err != nil {
			return Lock{}, err
		}
		if fence == 0 {
			return Lock{}, ErrHeld
		}
		l := granted(name, token, "script (SET NX PX, INCR)", start, o.TTL)
		l.Fence = fence
		return l, nil
	})
}

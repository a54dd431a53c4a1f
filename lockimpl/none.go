package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// none grants every request: it shows what happens without protection.
type none struct{ env variant.Env }

func newNone(env variant.Env) Locker { return none{env} }

func (n none) Acquire(_ context.Context, name string, o Options) (Lock, error) {
	return granted(name, "", "nothing at all", n.env.Clock.Now(), o.TTL), nil
}

func (n none) Extend(_ context.Context, l Lock, ttl time.Duration) (Lock, error) {
	l.Until = n.env.Clock.Now().Add(ttl)
	return l, nil
}

func (none) Release(context.Context, Lock) error { return nil }

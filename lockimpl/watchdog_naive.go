package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// watchdogNaive is a control: its renewal neither compares the token nor ends
// with the release, so it keeps prolonging any lock under the name, even that of a client that has died; and it does
// not report a loss.
type watchdogNaive struct{ luaRelease }

func newWatchdogNaive(env variant.Env) Locker { return watchdogNaive{luaRelease{token{env}}} }

func (w watchdogNaive) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	l, err := w.luaRelease.Acquire(ctx, name, o)
	if err != nil {
		return l, err
	}
	w.env.Go(func(ctx context.Context) {
		for w.env.Clock.Sleep(ctx, o.TTL/3) == nil {
			w.env.Redis[0].PExpire(ctx, Key(name), o.TTL) // its error is ignored: loss is silent
		}
	})
	return l, nil
}

// Extend does not compare the token either.
func (w watchdogNaive) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	return blind{w.env}.Extend(ctx, l, ttl)
}

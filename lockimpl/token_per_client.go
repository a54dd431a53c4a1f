package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// tokenPerClient is a control: luaRelease with one token for all the client's attempts, so that a late release fits the
// client's own next lock.
type tokenPerClient struct {
	luaRelease
	own string
}

func newTokenPerClient(env variant.Env) Locker {
	return tokenPerClient{luaRelease{token{env}}, env.Token()}
}

func (t tokenPerClient) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, t.env, name, o, func(start time.Time) (Lock, error) {
		return setToken(ctx, t.env, name, t.own, start, o.TTL)
	})
}

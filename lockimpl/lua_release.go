package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// luaRelease is the corrected lock of [variant.TextScripts]: one script compares the token and
// deletes the key.
type luaRelease struct{ token }

func newLuaRelease(env variant.Env) Locker { return luaRelease{token{env}} }

func (t luaRelease) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	return scriptExtend(ctx, t.env, extendScript, l, ttl)
}

func (t luaRelease) Release(ctx context.Context, l Lock) error {
	return scriptRelease(ctx, t.env, releaseScript, l)
}

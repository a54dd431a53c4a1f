package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// tokenDel is L6, the first mistake in [variant.TextScripts]: a unique token, released by DEL without reading it. Extending, which the
// document does not print, does not read it either.
type tokenDel struct{ token }

func newTokenDel(env variant.Env) Locker { return tokenDel{token{env}} }

func (t tokenDel) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	return blindExpire(ctx, t.env, l, ttl)
}

func (t tokenDel) Release(ctx context.Context, l Lock) error { return blindDelete(ctx, t.env, l) }

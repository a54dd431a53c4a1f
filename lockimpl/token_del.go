package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// tokenDel is the first mistake in [variant.TextScripts]: a unique token, and a release by DEL that does not read it.
// Extending, which the text does not print, does not read it either.
type tokenDel struct{ token }

func newTokenDel(env variant.Env) Locker { return tokenDel{token{env}} }

func (t tokenDel) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	return blindExpire(ctx, t.env, l, ttl)
}

func (t tokenDel) Release(ctx context.Context, l Lock) error { return blindDelete(ctx, t.env, l) }

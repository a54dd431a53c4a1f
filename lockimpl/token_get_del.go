package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// tokenGetDel is the second mistake in [variant.TextScripts]: the token is compared in the
// client, and the DEL comes a round trip later. Extending, which the document
// does not print, has the same gap.
type tokenGetDel struct{ token }

func newTokenGetDel(env variant.Env) Locker { return tokenGetDel{token{env}} }

// check sends GET and compares: it returns ErrLost if the lock is not l's.
func (t tokenGetDel) check(ctx context.Context, what string, l Lock) error {
	current, err := t.env.Redis[0].Get(ctx, Key(l.Key)).Result()
	ours, err := did(err)
	n, err := count(ours && current == l.Token, err)
	return changed(what, l.Key, n, err)
}

func (t tokenGetDel) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	if err := t.check(ctx, "extend", l); err != nil {
		return l, err
	}
	return blind{t.env}.Extend(ctx, l, ttl)
}

func (t tokenGetDel) Release(ctx context.Context, l Lock) error {
	if err := t.check(ctx, "release", l); err != nil {
		return err
	}
	return blind{t.env}.Release(ctx, l)
}

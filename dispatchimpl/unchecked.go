package dispatchimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// unchecked hands over the first candidate without locking it or reading it again: other users that found the same
// candidate get it, too, even if they found it before it was done.
type unchecked struct{ table }

func newUnchecked(env variant.Env, pool string, locker lockimpl.Locker, o Options) Pool {
	p := &unchecked{newTable(env, pool, locker, o)}
	p.acquire = func(_ context.Context, h *Hold) error {
		h.Until = env.Clock.Now().Add(o.Limit)
		return nil
	}
	p.claim = func(h Hold) (string, []any) { return "id = ?", []any{h.Task} }
	return p
}

func (p *unchecked) Submit(ctx context.Context, h Hold) error {
	return p.submit(ctx, h, "id = ?", h.Task)
}

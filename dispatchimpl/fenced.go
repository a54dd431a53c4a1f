package dispatchimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// fenced is locked with the lock's fencing token in both UPDATEs. A handover needs a newer token than the last one; a
// submit needs the token of the last handover, while its user still holds the task. So if the user's lease ended before
// the handover or before the submit, the UPDATE finds no row, and the user gets an error.
type fenced struct{ table }

func newFenced(env variant.Env, pool string, locker lockimpl.Locker, o Options) Pool {
	p := &fenced{newTable(env, pool, locker, o)}
	p.acquire = func(ctx context.Context, h *Hold) error {
		if err := p.lock(ctx, h); err != nil {
			return err
		}
		if h.Lock.Fence <= 0 {
			p.unlock(ctx, *h)
			return errNoToken
		}
		return nil
	}
	p.claim = func(h Hold) (string, []any) {
		return "id = ? AND commits = 0 AND fence < ?", []any{h.Task, h.Lock.Fence}
	}
	return p
}

func (p *fenced) Submit(ctx context.Context, h Hold) error {
	return p.submit(ctx, h, "id = ? AND commits = 0 AND holder = ? AND fence = ?", h.Task, h.User, h.Lock.Fence)
}

package dispatchimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// locked is the document's dispatch. The holder of a task's lock has the task: neither the handover nor the submit
// checks the holder in the database. The handover only checks that the task is not done yet, because the list of
// candidates is older than the lock: an earlier holder may have submitted the task and released the lock in between.
//
// This has two consequences. A lock that lets two users in hands the task to both. And a user who is slower than the
// limit still commits:
//
//	A takes task 1; the limit passes, the task returns; B takes task 1;
//	A submits: the task is done while B holds it.
type locked struct{ table }

func newLocked(env variant.Env, pool string, locker lockimpl.Locker, o Options) Pool {
	p := &locked{newTable(env, pool, locker, o)}
	p.acquire = p.lock
	p.claim = func(h Hold) (string, []any) { return "id = ? AND commits = 0", []any{h.Task} }
	return p
}

func (p *locked) Submit(ctx context.Context, h Hold) error {
	return p.submit(ctx, h, "id = ?", h.Task)
}

package dispatchimpl

import (
	"context"
	"database/sql"
	"fmt"
)

// submit commits the work on a task if the condition allows it, frees the user, and releases the lock. It does not
// touch the lock of a lost hold, which another user may hold by now.
func (p *table) submit(ctx context.Context, h Hold, where string, args ...any) error {
	err := p.unfit
	if err == nil {
		err = p.inTx(ctx, func(tx *sql.Tx) error { return p.commit(ctx, tx, h, where, args) })
	}
	if err != nil {
		return p.failed(fmt.Sprintf("submit task %d by user %d", h.Task, h.User), err)
	}
	p.unlock(ctx, h)
	return nil
}

func (p *table) commit(ctx context.Context, tx *sql.Tx, h Hold, where string, args []any) error {
	ok, err := p.change(ctx, tx, "UPDATE "+p.tasks+" SET commits = commits + 1, holder = 0, until = 0 WHERE "+where, args...)
	if err != nil {
		return err
	}
	if !ok {
		return ErrLost
	}
	_, err = p.change(ctx, tx, "UPDATE "+p.users+" SET task = 0 WHERE id = ? AND task = ?", h.User, h.Task)
	return err
}

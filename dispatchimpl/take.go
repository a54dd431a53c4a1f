package dispatchimpl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"oversell/database"
	"oversell/lockimpl"
)

// candidates is how many are found at once. If all are taken by the time they are tried, take looks for more.
const candidates = 16

// errTaken: another user has the candidate by now.
var errTaken = errors.New("taken")

func (p *table) Take(ctx context.Context, user int64) (Hold, error) {
	h, err := p.take(ctx, user)
	return h, p.failed(fmt.Sprintf("take for user %d", user), err)
}

func (p *table) take(ctx context.Context, user int64) (Hold, error) {
	if p.unfit != nil {
		return Hold{}, p.unfit
	}
	before, err := p.inHand(ctx, user)
	if err != nil {
		return Hold{}, err
	}
	for last := int64(0); ; {
		found, err := p.find(ctx, user, last)
		if err != nil {
			return Hold{}, err
		}
		if len(found) == 0 {
			return Hold{}, ErrEmpty
		}
		for _, task := range found {
			h, err := p.try(ctx, Hold{Task: task, User: user}, before)
			if !errors.Is(err, errTaken) {
				return h, err
			}
			last = task
		}
	}
}

// inHand returns the task in the user's row. If the user still holds it, the user is busy; otherwise the row is out of
// date, which does no harm.
func (p *table) inHand(ctx context.Context, user int64) (task int64, err error) {
	held := 0
	err = p.db.QueryRowContext(ctx, p.dialect.Bind("SELECT u.task, (SELECT COUNT(*) FROM "+p.tasks+" t WHERE t.id = u.task AND t.holder = u.id) FROM "+
		p.users+" u WHERE u.id = ?"), user).Scan(&task, &held)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, errors.New("there is no such user")
	case err == nil && held > 0:
		return 0, ErrBusy
	}
	return task, err
}

// find lists candidates in order: free tasks of the categories that the user
// likes, beyond the last one that was tried.
func (p *table) find(ctx context.Context, user, last int64) ([]int64, error) {
	rows, err := p.db.QueryContext(ctx, p.dialect.Bind("SELECT id FROM "+p.tasks+" WHERE commits = 0 AND holder = 0 AND id > ? AND ("+
		"category IN (SELECT category FROM "+p.likes+" WHERE id = ?) OR NOT EXISTS (SELECT 1 FROM "+p.likes+" WHERE id = ?)"+
		") ORDER BY id LIMIT ?"), last, user, user, candidates)
	if err != nil {
		return nil, err
	}
	return database.Column[int64](rows)
}

// try locks a candidate and has it handed over, or returns errTaken. After an error it does not release the lock: the
// handover may have happened, and an unneeded lock ends with its lease.
func (p *table) try(ctx context.Context, h Hold, before int64) (Hold, error) {
	err := p.acquire(ctx, &h)
	if errors.Is(err, lockimpl.ErrHeld) {
		return Hold{}, errTaken
	}
	if err != nil {
		return Hold{}, err
	}
	err = p.inTx(ctx, func(tx *sql.Tx) error { return p.handOver(ctx, tx, h, before) })
	if errors.Is(err, errTaken) || errors.Is(err, ErrBusy) {
		p.unlock(ctx, h)
	}
	if err != nil {
		return Hold{}, err
	}
	return h, nil
}

// handOver stores that the user holds the task.
func (p *table) handOver(ctx context.Context, tx *sql.Tx, h Hold, before int64) error {
	where, args := p.claim(h)
	args = append([]any{h.User, h.Until.UnixNano(), h.Lock.Fence}, args...)
	ok, err := p.change(ctx, tx, "UPDATE "+p.tasks+" SET holder = ?, until = ?, fence = ? WHERE "+where, args...)
	if err != nil {
		return err
	}
	if !ok {
		return errTaken
	}
	// Another session of the same user may have taken a task meanwhile.
	ok, err = p.change(ctx, tx, "UPDATE "+p.users+" SET task = ? WHERE id = ? AND task = ?", h.Task, h.User, before)
	if err == nil && !ok {
		err = ErrBusy
	}
	return err
}

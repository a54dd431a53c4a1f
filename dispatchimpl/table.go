package dispatchimpl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"oversell/database"
	"oversell/lockimpl"
	"oversell/variant"
)

// errNoToken reports a lock without a fencing token, under a dispatch that needs one.
var errNoToken = errors.New("the lock grants no fencing token, and this dispatch needs one")

// table is the common part of all dispatches: the pool's tables, and the steps of the document. Dispatches differ in
// acquire, in claim and in how they submit.
//
// A user's hold is stored twice: as the task's holder, which counts, and as the user's task, which says where to look.
// Every transaction changes the task first and the user second, so that no deadlock is possible.
type table struct {
	env    variant.Env
	locker lockimpl.Locker
	o      Options

	pool                string
	db                  *sql.DB
	dialect             database.Dialect
	tasks, users, likes string // quoted
	index               string
	unfit               error // why such tables are impossible; every use reports it

	// acquire makes the candidate h the caller's and sets h.Lock and h.Until, or
	// returns lockimpl.ErrHeld.
	acquire func(ctx context.Context, h *Hold) error
	// claim is the condition under which the database hands h over.
	claim func(h Hold) (where string, args []any)
}

func newTable(env variant.Env, pool string, locker lockimpl.Locker, o Options) table {
	p := table{env: env, locker: locker, o: o, pool: pool, db: env.SQL}
	p.dialect, p.unfit = database.DialectOf(env.SQL)
	for of, name := range map[string]*string{"Tasks": &p.tasks, "Users": &p.users, "Likes": &p.likes, "Ready": &p.index} {
		if p.unfit == nil {
			*name, p.unfit = p.dialect.Name(of, pool)
		}
	}
	if p.unfit == nil && o.Limit <= 0 {
		p.unfit = fmt.Errorf("a limit of %v: it must be positive", o.Limit)
	}
	return p
}

// failed wraps an error with what was attempted. It returns declared answers unchanged.
func (p *table) failed(what string, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrEmpty), errors.Is(err, ErrBusy), errors.Is(err, ErrLost):
		return err
	case p.dialect.NoTable(err):
		err = errors.New("the pool was not opened: it has no tables")
	}
	return fmt.Errorf("%s of pool %q: %w", what, p.pool, err)
}

// inTx runs do in a transaction, which takes effect if do returns nil.
func (p *table) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a Commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// execer is a transaction, or the database itself.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// change runs a statement and reports whether it found anything to change.
func (p *table) change(ctx context.Context, on execer, statement string, args ...any) (bool, error) {
	result, err := on.ExecContext(ctx, p.dialect.Bind(statement), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// lock tries once to lock the candidate: if another client holds it, there are other candidates.
func (p *table) lock(ctx context.Context, h *Hold) (err error) {
	h.Lock, err = p.locker.Acquire(ctx, p.lockName(h.Task), lockimpl.Options{TTL: p.o.Limit})
	h.Until = h.Lock.Until
	return err
}

// lockName returns the name of a task's lock.
func (p *table) lockName(task int64) string { return p.pool + ":" + strconv.FormatInt(task, 10) }

// unlock releases the lock, if lock has acquired it. Errors are ignored: they do not affect the task, and the lease
// ends the lock in any case.
func (p *table) unlock(ctx context.Context, h Hold) {
	if h.Lock != (lockimpl.Lock{}) {
		_ = p.locker.Release(ctx, h.Lock)
	}
}

// Package dispatchimpl holds the task dispatch of [variant.TextDispatch]: a pool of editing tasks in an SQL database,
// from which users get tasks of the categories they like, one at a time.
//
// A client that wants a task for its user finds candidates, picks the first, and tries to lock it. If it obtains the
// lock, the task is handed over: the task's and the user's state in the database are updated. Otherwise another user
// has the task, and it tries the next one. The lock is held as long as the task, up to the limit, which is the lock's
// lease; submitting releases it. A task held longer than the limit returns to the pool; see [Pool.Expire].
//
// The locking takes any lock of package lockimpl, and the dispatch is only as good as the lock. The variants differ in
// their checks: none ([Variants] lists that one as a control), only the lock (the document's), or the lock's fencing
// token in the database.
package dispatchimpl

import (
	"context"
	"errors"
	"time"

	"oversell/lockimpl"
	"oversell/variant"
)

// ErrEmpty refuses a Take: there is no free task that the user likes. Nothing changed.
var ErrEmpty = errors.New("no task to hand out")

// ErrBusy refuses a Take: the user holds a task. Nothing changed.
var ErrBusy = errors.New("the user holds a task already")

// ErrLost refuses a Submit: the task was not, or no longer, the user's. Nothing
// changed.
var ErrLost = errors.New("task is lost")

// Task is one piece of work. IDs are positive.
type Task struct {
	ID       int64
	Category string
}

// User is a user who works on tasks. IDs are positive.
type User struct {
	ID int64
	// Likes are the categories of tasks for this user; none means all.
	Likes []string
}

// Hold is a task that a user holds. It is a plain value: a stale one can be submitted again, and should then be
// refused.
type Hold struct {
	Task, User int64
	// Until is when the hold ends unless it is submitted.
	Until time.Time
	// Lock is the lock on the task; the zero Lock under a variant that takes none.
	Lock lockimpl.Lock
}

// Options say how to dispatch.
type Options struct {
	// Limit is how long a user may hold a task; positive.
	Limit time.Duration
}

// Pool is one client's view of a pool of tasks. It is used by one goroutine at a time. An error other than ErrEmpty,
// ErrBusy and ErrLost leaves the outcome open: the change may have happened, or may yet happen.
type Pool interface {
	// Open fills the pool. It is called once, before any client starts.
	Open(ctx context.Context, tasks []Task, users []User) error
	// Take hands a task to the user, or returns ErrEmpty or ErrBusy. After a submit the user takes the next task at
	// once.
	Take(ctx context.Context, user int64) (Hold, error)
	// Submit commits the work on a task and ends the hold, or returns ErrLost.
	Submit(ctx context.Context, h Hold) error
	// Expire takes back every task that is held past the limit, by this client's
	// clock, and returns their number. The pool has no timer: its operator calls Expire regularly. It does not touch
	// the locks, which end by themselves.
	Expire(ctx context.Context) (int, error)
	// State reads what the database holds now.
	State(ctx context.Context) (State, error)
}

// State is the pool as the database holds it.
type State struct {
	// Free, Held and Done are numbers of tasks; each task is one of them.
	Free, Held, Done int64
	// Commits counts the submits that were accepted; more than Done means that
	// tasks were done more than once.
	Commits int64
}

// Variant describes a dispatch under test.
type Variant struct {
	Name, Source, Summary string
	// Promises are what its authors claim; a broken one fails a run.
	Promises []variant.Property
	// Flaws are its known ways to break promises; checks must catch them.
	Flaws []variant.Flaw
	Needs variant.Needs
	// Control marks a dispatch that is wrong on purpose.
	Control bool
	// New makes one client's Pool with this name. The Pool locks tasks with locker, which is the client's own. New must
	// not use the network.
	New func(env variant.Env, pool string, locker lockimpl.Locker, o Options) Pool
}

// Described returns what is known of the variant.
func (v Variant) Described() variant.Described {
	return variant.Described{Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control, Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs}
}

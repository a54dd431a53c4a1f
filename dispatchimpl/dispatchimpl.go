// Package dispatchimpl holds document 4's task dispatch: a pool of editing tasks
// in an SQL database, from which users are given tasks of the categories they
// like, one at a time.
//
// Whoever wants a task finds candidates, picks one in order, and tries to lock
// it. If it is locked, it is handed over: the task's and the user's state in the
// database are updated. If it is not, somebody else has it, and the next one is
// tried. The lock stays with the hold, whose limit is the lock's lease; submitting
// releases it. A task held longer than the limit returns to the pool; see
// [Pool.Expire].
//
// Any lock of package lockimpl will do for the locking, and the result is no
// better than it. What the variants here differ in is what the database checks
// itself: nothing ([Variants] lists that one as a control), nothing but the lock
// (the document's), or the lock's fencing token.
package dispatchimpl

import (
	"context"
	"errors"
	"time"

	"oversell/lockimpl"
	"oversell/variant"
)

// ErrEmpty refuses a Take: there is no task that the user likes and nobody has.
// Nothing changed.
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

// User is somebody who works. IDs are positive.
type User struct {
	ID int64
	// Likes are the categories of the tasks to be given to this user; none means
	// all.
	Likes []string
}

// Hold is a task in a user's hands. It is a plain value: a stale one can be
// submitted again, and should then be refused.
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

// Pool is one client's view of a pool of tasks. It is used by one goroutine at a
// time. An error that is none of this package's leaves the outcome open: what was
// asked for may have happened, or may yet happen.
type Pool interface {
	// Open fills the pool. It is called once, before any client starts.
	Open(ctx context.Context, tasks []Task, users []User) error
	// Take hands a task to the user, or returns ErrEmpty or ErrBusy. Somebody who
	// has submitted takes the next task at once.
	Take(ctx context.Context, user int64) (Hold, error)
	// Submit commits the work on a task and ends the hold, or returns ErrLost.
	Submit(ctx context.Context, h Hold) error
	// Expire takes back every task that is held past the limit, by this client's
	// clock, and returns their number. The pool has no timer: whoever runs it
	// calls Expire regularly. It leaves the locks alone, which end by themselves.
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
	// Flaws are the ways in which it must be caught.
	Flaws []variant.Flaw
	Needs variant.Needs
	// Control marks a dispatch that is wrong on purpose.
	Control bool
	// New makes one client's Pool with this name, whose tasks it locks with
	// locker, which is the client's own. It must not use the network.
	New func(env variant.Env, pool string, locker lockimpl.Locker, o Options) Pool
}

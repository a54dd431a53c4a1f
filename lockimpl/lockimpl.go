// Package lockimpl holds the locks under test: those of the source documents, with their flaws, the corrected forms,
// and the controls that every check must catch.
//
// One lock is one file, with its scripts as .lua files beside it. [Variants]
// lists them all; there is no other registration. A lock acts only through the [variant.Env] that it is given.
package lockimpl

import (
	"context"
	"errors"
	"time"

	"oversell/variant"
)

// ErrHeld refuses an Acquire: the lock was not granted before the waiting time or the attempts were used up, or before
// the client had to stop. The refused client holds nothing.
var ErrHeld = errors.New("lock is held")

// ErrLost refuses an Extend or a Release: the lock was not, or no longer, the
// caller's, and nothing was changed.
var ErrLost = errors.New("lock is lost")

// Lock is a granted lock. It is a plain value: a stale one can be used again, and must then be refused.
type Lock struct {
	// Key is what Extend and Release need to find the lock, usually the name that Acquire was called with.
	Key   string
	Token string
	// Fence is the fencing token; 0 when the lock grants none.
	Fence int64
	// Until is the end of the lease that was promised: the start of the
	// winning attempt plus the TTL, less what the lock allows for drift.
	Until time.Time
	// Via names the command or the script that granted the lock, for reports.
	Via string
	// Joined is when a lock with a wait line told the client that it had its place in it: clients that arrive later
	// must be served later. Zero for locks without a line.
	Joined time.Time
}

// Options say how to acquire.
type Options struct {
	// TTL is the lease.
	TTL time.Duration
	// Wait is how long to keep trying; 0 means one attempt.
	Wait time.Duration
	// RetryEvery is the longest pause between two attempts.
	RetryEvery time.Duration
	// MaxTries is the maximum number of attempts; 0 means no bound.
	MaxTries int
}

// Locker is one client's view of a lock. It is used by one goroutine at a time; some locks keep in it what the client
// holds, by name.
//
// Any error other than ErrHeld and ErrLost leaves the outcome open: the command
// may have been, or may yet be, executed.
type Locker interface {
	// Acquire obtains the lock or returns ErrHeld. If Env.Wait returns an error, because the run is stopped or ctx
	// ends, Acquire withdraws its request and returns ErrHeld with that error.
	Acquire(ctx context.Context, key string, o Options) (Lock, error)
	// Extend moves the end of the lease to ttl from now, also if it ended later before, and returns the lock with its new
	// Until, or ErrLost. After another error, Release takes l as it was, whether the lock was extended or not.
	Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error)
	// Release releases the lock, or returns ErrLost if the caller did not hold it.
	Release(ctx context.Context, l Lock) error
}

// Named is the documents' own interface, which takes only names: the lock remembers what it acquired.
type Named interface {
	// Unlock releases name if IsLocking, and reports whether anything was deleted.
	Unlock(ctx context.Context, name string) (bool, error)
	// UnlockAll unlocks every remembered name; true only if all were.
	UnlockAll(ctx context.Context) (bool, error)
	// Expire sets the time to live of name, at least one second, if IsLocking.
	Expire(ctx context.Context, name string, ttl time.Duration) (bool, error)
	// IsLocking reports whether this client holds name, as the lock believes.
	IsLocking(ctx context.Context, name string) (bool, error)
}

// LossNotifier is a lock that tells its holder that the holder has lost the lock.
type LossNotifier interface {
	// Lost is closed once the lock is known to be lost, also if that was before the call, and never for a lock
	// that was released in time.
	Lost(l Lock) <-chan struct{}
}

// Renewer is a lock that renews leases in the background.
type Renewer interface {
	// Renewed returns l with the end of the lease as last renewed.
	Renewed(l Lock) Lock
}

// Variant describes a lock under test.
type Variant struct {
	// Name is its name on the command line and in reports.
	Name string
	// Was lists its names in earlier versions. They are accepted as input and never printed.
	Was []string
	// Source says where the code comes from.
	Source string
	// Summary says in one line how it works.
	Summary string
	// Promises are what its authors claim. A broken promise fails a run.
	Promises []variant.Property
	// Flaws are its known ways to break promises; checks must catch them.
	Flaws []variant.Flaw
	Needs variant.Needs
	// Fences says that Acquire grants rising fencing tokens.
	Fences bool
	// Renews says that leases are renewed in the background, so that a long section does not outlive its lease.
	Renews bool
	// Control marks a lock that is wrong on purpose, to show that a check can fail.
	Control bool
	// New makes one client's Locker. It must not use the network.
	New func(variant.Env) Locker
}

// Described returns what is known of the variant.
func (v Variant) Described() variant.Described {
	return variant.Described{Name: v.Name, Was: v.Was, Source: v.Source, Summary: v.Summary, Control: v.Control, Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs, Fences: v.Fences}
}

// Package variant is the vocabulary that everything else speaks: what a
// variant (a lock, a sale, a queue) may touch ([Env]), what it can promise
// ([Property]), what can be done to it ([Fault]), where it is known to break
// ([Flaw]) and what it cannot run without ([Needs]).
//
// The idea behind Env: a client is ordinary Go code whose only contact with
// the world is handed to it. The same code then runs as a goroutine on real
// connections, as one of many coroutines on a shared pipeline, or under a
// search that tries every interleaving.
package variant

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
)

// Env is all the world a variant may touch. An Env belongs to one client.
type Env struct {
	// Redis is one client or, for algorithms over independent masters, one
	// client per master.
	Redis []redis.UniversalClient
	// Addr is, for each client in Redis, the address (host:port) of its server, or of a
	// proxy that injects faults on the way there. It is for code that brings its own
	// Redis client. It is empty where no such address is known.
	Addr []string
	// Clock tells the time. Variants use no other.
	Clock clock.Clock
	// Token returns a new unique text at each call: 128 random bits, from the
	// run's seed.
	Token func() string
	// Wait waits until it is worth trying for key again, and at most for
	// atMost. The engine chooses how: polling, exponential back-off, or a
	// notification of the release. An error means that the client is to stop
	// trying; a variant then takes back what it asked for and reports a refusal.
	Wait func(ctx context.Context, key string, atMost time.Duration) error
	// Go runs f beside the client, with a context that ends when the client
	// does. join waits until f has returned.
	Go func(f func(context.Context)) (join func(context.Context) error)
	// Step is, in a search, how code sends commands that has no use for Redis: what another
	// process sends. It is nil elsewhere.
	Step Stepper
	// SQL is a database for the variants that keep their state in one; nil
	// otherwise.
	SQL *sql.DB
}

// Join makes the join of [Env].Go for something that closes done when it has returned. Join
// returns the cause for which its context ended, if that comes first.
func Join(done <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Beside starts f in a group, and returns its join for [Env].Go.
func Beside(ctx context.Context, g *sync.WaitGroup, f func(context.Context)) func(context.Context) error {
	done := make(chan struct{})
	g.Go(func() {
		defer close(done)
		f(ctx)
	})
	return Join(done)
}

// Stepper lets a search step code outside of this program.
type Stepper interface {
	// Send has a server execute what a connection sent, when its turn comes, and returns the replies in
	// RESP2, of a transaction what EXEC answers. It is not answered if the connection breaks first.
	Send(s Sent) (replies string, answered bool)
	// Client is the client's number: no other client has it. It is a name, like a token: another one in its
	// place must make no difference.
	Client() int64
	// Await calls f, which waits for something outside of this program, and sees itself that it does not
	// wait for ever.
	Await(f func())
	// Fail ends the client, and the search, with an error. It does not return.
	Fail(err error)
	// AtEnd has f called once the client has ended, in whatever way.
	AtEnd(f func())
}

// Sent is what a connection sent: a command, or those between MULTI and EXEC.
type Sent struct {
	// Node is the number of the server.
	Node int
	// Conn tells connections apart. Equal values are one connection.
	Conn any
	// Commands are names, in lower case, and arguments.
	Commands [][]string
	Tx       bool
}

// Needs is what a variant cannot run without. An unmet need refuses the run
// before it starts.
type Needs struct {
	// Masters is the smallest number of independent masters; 0 and 1 mean that
	// one server will do.
	Masters int `json:"masters,omitempty"`
	// AllMasters says that the variant is given all independent masters there are, and may
	// use any of them.
	AllMasters bool `json:"all_masters,omitempty"`
	// WholeSeconds says that the variant can only express leases of whole
	// seconds.
	WholeSeconds bool `json:"whole_seconds,omitempty"`
	// Fence says that the variant needs a lock that grants fencing tokens.
	Fence bool `json:"fence,omitempty"`
	// SQL says that the variant keeps its state in an SQL database.
	SQL bool `json:"sql,omitempty"`
	// ServerClock says that the variant stores times of its server's clock as data, as in
	// the scores of a sorted set, and not only as the expiry of a key.
	ServerClock bool `json:"server_clock,omitempty"`
}

// Flaw is one way in which a variant is known to break, to be caught by the
// checkers. A flaw that no check has seen is a bug in this program.
type Flaw struct {
	// Property is what breaks.
	Property Property `json:"property"`
	// Fault is what it takes; [NoFault] means that load alone is enough.
	Fault Fault `json:"fault"`
	// Under narrows the flaw to one sale, queue or option by name, or to
	// [Unserialized] or [Stuck], or to several of them together, joined by [And].
	// Empty means everywhere.
	Under string `json:"under,omitempty"`
	// Why tells the mechanism in a sentence.
	Why string `json:"why"`
}

// Unserialized, as a flaw's Under, means: only when the lock round the
// operation fails to keep clients apart, because it promises no mutual
// exclusion or loses it in this very run.
const Unserialized = "unserialized"

// Stuck, as a flaw's Under, means: only when the lock round the operation loses its
// progress in this very run, so that what it guards is never free again.
const Stuck = "stuck"

// And joins conditions in a flaw's Under.
const And = "+"

// Options of a run that a flaw can name in Under.
const (
	WithQuantity  = "quantity" // orders for more than one piece
	WithRefunds   = "refund"   // buyers who give pieces back
	WithRepeats   = "repeats"  // ids that are enqueued again
	WithAbandoned = "abandon"  // tasks of a dispatch whose holders go away for good
)

// Options lists these options.
var Options = []string{WithQuantity, WithRefunds, WithRepeats, WithAbandoned}

// ErrStopped is what [Env.Wait] returns when the run is ending: the client is to
// stop trying, and this is nobody's fault.
var ErrStopped = errors.New("the run is ending")

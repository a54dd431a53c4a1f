// Package variant defines the terms of all other packages: what a variant (a lock, a sale, a queue) may use ([Env]),
// what it can promise ([Property]), what can happen to it ([Fault]), where it is known to break ([Flaw]) and what it
// needs to run ([Needs]).
//
// A client is ordinary Go code that acts only through its Env. So the same code runs as a goroutine on real
// connections, as one of many coroutines on a shared pipeline, or under a search that tries every interleaving.
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

// Env is everything that a variant may use. An Env belongs to one client.
type Env struct {
	// Redis is one client or, for algorithms over independent masters, one
	// client per master.
	Redis []redis.UniversalClient
	// Addr is, for each client in Redis, the address (host:port) of its server, or of a
	// proxy that injects faults on the way there. It is for code with its own Redis client. It is empty if no such
	// address is known.
	Addr []string
	// Clock is the only clock that variants use.
	Clock clock.Clock
	// Token returns a new unique text at each call: 128 random bits, from the run's seed. Suites and searches
	// return texts of other lengths and letters, too. Suites return texts that differ in one letter only, and searches texts
	// that differ in eight letters at one end: code must compare the whole text, as it is.
	Token func() string
	// Wait waits until the client should try for key again, for atMost at most. The engine chooses how: polling,
	// exponential back-off, or a notification of the release. An error means that the client must stop trying; a
	// variant then withdraws its request and reports a refusal.
	Wait func(ctx context.Context, key string, atMost time.Duration) error
	// Go runs f beside the client, with a context that ends when the client does. join waits until f has returned; if
	// the context of join ends first, it returns the cause.
	Go func(f func(context.Context)) (join func(context.Context) error)
	// Step, in a search, sends the commands of code that does not use Redis, such as another process. It is nil
	// elsewhere.
	Step Stepper
	// SQL is the database of variants that keep their state in one; nil otherwise.
	SQL *sql.DB
}

// Join makes the join of [Env].Go for a function that closes done when it has returned. The join returns the cause of
// its context's end, if that comes first.
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

// StartIn starts f in a group, and returns its join for [Env].Go.
func StartIn(ctx context.Context, g *sync.WaitGroup, f func(context.Context)) func(context.Context) error {
	done := make(chan struct{})
	g.Go(func() {
		defer close(done)
		f(ctx)
	})
	return Join(done)
}

// Stepper lets a search step code outside of this program.
type Stepper interface {
	// Send has a server execute what a connection sent, when its turn comes, and returns the replies in RESP2; for a
	// transaction, the reply to EXEC. There is no answer if the connection breaks first.
	Send(s Sent) (replies string, answered bool)
	// Client is the client's unique number. It is a name, like a token: replacing it by another must make no
	// difference.
	Client() int64
	// Await calls f, which waits for something outside of this program; f must limit its own wait.
	Await(f func())
	// Fail ends the client, and the search, with an error. It does not return.
	Fail(err error)
	// AtEnd has f called once the client has ended in any way.
	AtEnd(f func())
}

// Sent is what a connection sent: a command, or those between MULTI and EXEC.
type Sent struct {
	// Node is the number of the server.
	Node int
	// Conn identifies the connection.
	Conn any
	// Commands are names, in lower case, and arguments.
	Commands [][]string
	Tx       bool
}

// Needs are the requirements of a variant. A run with an unmet need is refused before it starts.
type Needs struct {
	// Masters is the smallest number of independent masters; 0 and 1 mean that
	// one server will do.
	Masters int `json:"masters,omitempty"`
	// AllMasters says that the variant gets all independent masters, and may use any of them.
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

// Flaw is one known way in which a variant breaks; the checkers must catch it. A declared flaw that no check catches is
// an error of this program.
type Flaw struct {
	// Property is what breaks.
	Property Property `json:"property"`
	// Fault is the fault that it takes; [NoFault] means that load alone is enough.
	Fault Fault `json:"fault"`
	// Under narrows the flaw to one lock, sale, queue or option by name, or to
	// [Unserialized] or [Stuck], or to several of them together, joined by [And].
	// Empty means everywhere.
	Under string `json:"under,omitempty"`
	// Why describes the mechanism in a sentence.
	Why string `json:"why"`
}

// Unserialized, as a flaw's Under, means: only if the lock around the operation does not exclude, because it promises
// no mutual exclusion or loses it in this run.
const Unserialized = "unserialized"

// Stuck, as a flaw's Under, means: only if the lock around the operation loses its progress in this run, so that it is
// never free again.
const Stuck = "stuck"

// And joins conditions in a flaw's Under.
const And = "+"

// Options of a run that a flaw can name in Under.
const (
	WithQuantity  = "quantity" // orders for more than one piece
	WithRefunds   = "refund"   // buyers who refund pieces
	WithRepeats   = "repeats"  // ids that are enqueued again
	WithAbandoned = "abandon"  // tasks of a dispatch whose holders go away for good
)

// Options lists these options.
var Options = []string{WithQuantity, WithRefunds, WithRepeats, WithAbandoned}

// ErrStopped is returned by [Env.Wait] when the run is ending: the client must stop trying. It is not a failure.
var ErrStopped = errors.New("the run is ending")

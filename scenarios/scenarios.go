// Package scenarios defines what clients do. A scenario is data plus a step that each client repeats; [Run] runs
// any of them, from opening the sale to reading the final state, into a history file.
//
// A step is ordinary code that uses the client's locker and sale. It is independent of engines, connections and
// files.
package scenarios

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oversell/dispatchimpl"
	"oversell/faults"
	"oversell/history"
	"oversell/idimpl"
	"oversell/load"
	"oversell/load/arrival"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Scenario describes what clients do.
type Scenario struct {
	Name    string
	Summary string
	// Source names the text that the scenario comes from; empty: this program.
	Source string
	// Objects are what the scenario exercises and the monitors judge.
	Objects []variant.Object
	// Promises are what the scenario demands of its objects, in addition to what their variants promise.
	Promises []history.Promise
	// Operations are the kinds of operations that clients carry out.
	Operations []history.Kind
	// NoLine means that clients try a lock once and go elsewhere if it is taken: they do not queue for it, so FIFO
	// does not apply.
	NoLine bool
	// Extends means that a section extends its lock every half lease, so that it may be longer than the lease.
	Extends bool
	// EndsByTime means that nothing but time ends a run, unless the number of steps is limited.
	EndsByTime bool
	// Lease is the default lease of a lock; 0: 10 s.
	Lease time.Duration
	// Defaults fills in settings that are zero in c.
	Defaults func(c *Config)
	// Takes estimates the duration of a run from its settings; nil: the sections of all clients, one after the
	// other.
	Takes func(c Config) time.Duration
	// Open prepares the server, with a client of its own, before any other client starts; nil if there is nothing
	// to prepare.
	Open func(ctx context.Context, c *Client) error
	// Step makes one round of one client; it reports whether the client is done.
	Step func(ctx context.Context, c *Client) (done bool)
	// Audit records the final state of the server after all clients have ended; nil if there is nothing to read.
	Audit func(ctx context.Context, c *Client) error
}

// Uses reports whether the scenario exercises an object.
func (s Scenario) Uses(o variant.Object) bool { return slices.Contains(s.Objects, o) }

// All lists every scenario.
var All = []Scenario{seckill, mutex, queue, seckillQueued, ids, floors, dispatch}

// Find returns the scenario with this name.
func Find(name string) (Scenario, bool) {
	return variant.First(All, func(s Scenario) bool { return s.Name == name })
}

// DefaultLease is the default lease of a lock.
func (s Scenario) DefaultLease() time.Duration { return cmp.Or(s.Lease, 10*time.Second) }

// Config holds all settings of one run.
type Config struct {
	Scenario Scenario
	Lock     lockimpl.Variant
	Sale     stockimpl.Variant // zero if the scenario does not sell
	IDs      idimpl.Variant    // zero if the scenario does not generate ids

	Dispatch dispatchimpl.Variant // zero if the scenario does not dispatch
	Queue    queueimpl.Variant    // zero if the scenario has no queue
	// QueueOptions are the queue's; its lock is Lock.
	QueueOptions queueimpl.Options
	// Delay is the maximum delay of a task; delays are random. Repeat is the probability that a producer enqueues
	// its last id again. 0 is the scenario's default, and [None] stands for 0.
	Delay  time.Duration
	Repeat float64
	// Batch is the maximum number of ids per enqueue and of tasks per pop; 0: one.
	Batch int
	// Withdraw is the probability that a producer dequeues the task that it has just enqueued, by its id and score;
	// Peek is the probability that a consumer peeks before it pops.
	Withdraw, Peek float64
	// Die is the probability that a client dies with the task or number that it was given, before it reported it;
	// in dispatch, that a user disappears with a task and returns too late.
	Die float64
	// Abandon is the number of abandoned tasks of a dispatch: the user that gets one never submits it, and its hold
	// ends by its limit. 0 is the scenario's default, and [None] stands for 0.
	Abandon int

	// Engine is one of load.Engines; empty: load.Goroutines. RTT is the mean of the virtual
	// round-trip time of load.Coroutines; 0: the default, and [None] stands for 0.
	Engine string
	RTT    time.Duration

	Clients int
	// Pool is the number of shared connections per node; 0: one per client.
	Pool    int
	Waiting load.Waiting
	Seed    uint64

	Stock int64
	// Quantity is the size of the largest order: orders are for 1 to Quantity pieces.
	Quantity int
	// Resend is the probability that a buyer sends an order twice concurrently or, behind a queue, that a worker
	// sends it again after its answer. 0 is the scenario's default, and [None] stands for 0.
	Resend float64
	// inTurn means that an order is sent again only after its answer: linearizability is hard to decide for orders
	// that are sent twice concurrently and refunded.
	inTurn bool
	// Refund is the probability that a buyer refunds a purchase.
	Refund float64
	// RefuseStale makes an optimistic sale refuse an order whose data is stale. The buyer then goes on to another
	// order.
	RefuseStale bool

	TTL   time.Duration // the lease
	Wait  time.Duration // how long one acquisition keeps trying
	Retry time.Duration // maximum pause between two attempts
	// MaxTries is the maximum number of attempts of one acquisition; 0: no limit.
	MaxTries int
	// Timeout is how long a client waits for an answer; 0: the target's default.
	Timeout time.Duration
	Hold    time.Duration // how long a section lasts beyond its own commands

	// Faults are the faults that the run injects.
	Faults []faults.Fault

	// Outside serves a variant whose code is outside of this program; may be nil.
	Outside ExternalSystem

	// Duration limits the run; 0: no limit.
	Duration time.Duration
	// capped means that Duration was not requested but set as a precaution; spreadOut means the same for Hold.
	capped, spreadOut bool
	leastHopeless     int64 // replaces the least result of hopeless in tests; 0: it is as usual
	// Ops limits the number of steps of all clients together; 0: the scenario's default, which may be no limit.
	Ops int64

	// Rate is how many steps begin each second, even if earlier steps have not ended, and Arrival their
	// distribution; nil: a client begins a step when the previous one has ended. In a queue it is the rate at which
	// producers enqueue.
	Rate    arrival.Rate
	Arrival arrival.Process
}

// ExternalSystem serves the clients of a variant whose code is outside of this program. It is safe for concurrent use.
type ExternalSystem interface {
	// Begin is called before a run.
	Begin()
	// Prepare prepares what a client needs before the load begins.
	Prepare(ctx context.Context, env variant.Env)
	// Err returns why it no longer serves the run; nil if it does.
	Err() error
	// Silent returns an error if no call of some operation had a definite answer. In a disturbed run, which may
	// have caused that, it does so only if the system reports that it lacks the operation.
	Silent(disturbed bool) error
	// Notes returns facts about the run that no operation shows.
	Notes() []string
	// End is called after a run. When it returns, all processes and connections of the run are gone.
	End()
}

// Takes estimates the duration of a run of c by its settings alone; it may take longer.
func (c Config) Takes() time.Duration {
	takes := time.Duration(0)
	switch {
	case c.Scenario.Takes != nil:
		takes = c.Scenario.Takes(c)
	case c.Ops > 0:
		takes = time.Duration(min(float64(c.Ops)*float64(c.Hold), float64(time.Hour)))
	case c.Scenario.Uses(variant.Sale):
		takes = time.Duration(min(float64(c.Stock)*float64(c.Hold), float64(time.Hour)))
	}
	if c.OpenLoad() {
		takes = max(takes, c.arriving())
		if c.Ops == 0 && !c.capped {
			takes = c.Duration
		}
	}
	if c.Duration > 0 && !c.capped {
		takes = min(takes, c.Duration)
	}
	return takes
}

// Capped returns the precautionary limit on the duration of a run; 0 if a limit was requested.
func (c Config) Capped() time.Duration {
	if c.capped {
		return c.Duration
	}
	return 0
}

// None sets a setting to zero instead of the scenario's default.
const None = -1

// orNone returns v, or zero for [None].
func orNone[T time.Duration | float64 | int](v T) T {
	if v == None {
		return 0
	}
	return v
}

// Grace is the minimum of [Config.Grace]: how long a healthy system may take to notice that a lock is free.
const Grace = time.Second

// Grace returns what the progress property adds to the lease. Clients that wait in a line may take several looks to
// notice that the one before them is dead.
func (c Config) Grace() time.Duration { return max(Grace, 10*c.Retry) }

// Patience returns how long a new client asks for a lock until progress is broken: for a lease and a grace.
func (c Config) Patience() time.Duration { return c.TTL + c.Grace() }

// NeedsSQL reports whether a variant of this run keeps its state in a database.
func (c Config) NeedsSQL() bool {
	return slices.ContainsFunc(c.Subjects(), func(s Subject) bool { return s.Needs.SQL })
}

// Locks reports whether clients exclude each other by a lock: one that promises nothing grants everything.
func (c Config) Locks() bool { return c.Lock.New != nil && len(c.Lock.Promises) > 0 }

// LockAlone reports whether the scenario exercises the lock alone.
func (c Config) LockAlone() bool {
	return len(c.Scenario.Objects) == 1 && c.Scenario.Uses(variant.Lock)
}

// Subject is a variant under test in a run, with its declarations.
type Subject struct {
	Of variant.Object
	variant.Described
}

// Subjects returns the variants under test in this run, the lock first, if there is one. Each promises what its
// variant does, and what the scenario demands of it.
func (c Config) Subjects() (subjects []Subject) {
	for _, s := range c.variants() {
		if s.Of == variant.Lock && c.Lock.New == nil || s.Of != variant.Lock && !c.Scenario.Uses(s.Of) {
			continue
		}
		for _, p := range c.Scenario.Promises {
			if p.Of == s.Of && !slices.Contains(s.Promises, p.Property) {
				s.Promises = append(slices.Clip(s.Promises), p.Property)
			}
		}
		subjects = append(subjects, s)
	}
	return subjects
}

// variants returns the variants of all kinds.
func (c Config) variants() []Subject {
	return []Subject{
		{variant.Lock, c.Lock.Described()}, {variant.Queue, c.Queue.Described()}, {variant.Sale, c.Sale.Described()},
		{variant.Dispatch, c.Dispatch.Described()}, {variant.IDs, c.IDs.Described()},
	}
}

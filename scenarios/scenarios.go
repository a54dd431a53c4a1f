// Package scenarios holds what clients do: a scenario is data plus a step that
// one client repeats, and [Run] is the one way to run any of them, from opening
// the sale to reading the final state, into a history file.
//
// A step is ordinary code over the client's locker and sale. It knows nothing
// of engines, connections or files.
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

// Scenario is one thing that clients do.
type Scenario struct {
	Name    string
	Summary string
	// Source is where the scenario comes from; empty: from this program.
	Source string
	// Objects are what the scenario exercises, and so what is judged.
	Objects []variant.Object
	// Promises are what the scenario asks of its objects, whatever their variants promise
	// by themselves.
	Promises []history.Promise
	// Operations are the kinds of operations that clients carry out.
	Operations []history.Kind
	// NoLine says that clients try a lock once and go elsewhere if it is taken: they do not queue
	// for it, so FIFO does not apply.
	NoLine bool
	// Lease is the default lease of a lock; 0: 10 s.
	Lease time.Duration
	// Defaults fills in the settings that are zero in c.
	Defaults func(c *Config)
	// Takes estimates from the settings how long a run takes; nil: the sections of all
	// clients, one after the other.
	Takes func(c Config) time.Duration
	// Open prepares the server, through a client of its own, before any other
	// client starts; nil when there is nothing to prepare.
	Open func(ctx context.Context, c *Client) error
	// Step is one round of one client; it reports when the client is done.
	Step func(ctx context.Context, c *Client) (done bool)
	// Audit records what the server holds when all clients have ended; nil when
	// there is nothing to read.
	Audit func(ctx context.Context, c *Client) error
}

// Uses tells whether the scenario exercises an object.
func (s Scenario) Uses(o variant.Object) bool { return slices.Contains(s.Objects, o) }

// All lists every scenario.
var All = []Scenario{seckill, mutex, queue, seckillQueued, ids, floors, dispatch}

// Find returns the scenario with this name.
func Find(name string) (Scenario, bool) {
	return variant.First(All, func(s Scenario) bool { return s.Name == name })
}

// DefaultLease is the default lease of a lock.
func (s Scenario) DefaultLease() time.Duration { return cmp.Or(s.Lease, 10*time.Second) }

// Config is everything that is chosen about one run.
type Config struct {
	Scenario Scenario
	Lock     lockimpl.Variant
	Sale     stockimpl.Variant // the zero value when the scenario does not sell
	IDs      idimpl.Variant    // the zero value when the scenario does not count

	Dispatch dispatchimpl.Variant // the zero value when the scenario does not dispatch
	Queue    queueimpl.Variant    // the zero value when the scenario does not queue
	// QueueOptions are the queue's; its lock is Lock.
	QueueOptions queueimpl.Options
	// Delay is the longest time after which a task is due: each is due after a
	// part of it, drawn by chance. Repeat is the probability that a producer enqueues its
	// last id again. 0 is the scenario's default, and [None] stands for 0.
	Delay  time.Duration
	Repeat float64
	// Batch is how many ids a producer enqueues in one call, and how many tasks a
	// consumer takes with one pop, at the most; 0: one.
	Batch int
	// Withdraw is the probability that a producer dequeues the task that it has just
	// enqueued, by its id and score; Peek that a consumer peeks before it pops.
	Withdraw, Peek float64
	// Die is the probability that a client dies with what it was given, a task or a
	// number, before it told anybody or, in dispatch, that a user goes away with a
	// task and comes back too late.
	Die float64
	// Abandon is how many tasks of a dispatch are abandoned: the user to whom one is given
	// never submits it, and its hold ends by its limit. 0 is the scenario's default, and
	// [None] stands for 0.
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
	// Quantity is the largest order: each is for 1 to Quantity pieces.
	Quantity int
	// Resend is the probability that a buyer sends an order twice at once or, behind a
	// queue, that a worker sends it again when it has its answer. 0 is the
	// scenario's default, and [None] stands for 0.
	Resend float64
	// inTurn says that an order is sent again only when it has its answer: of orders that
	// are sent twice at once and refunded, linearizability is hard to decide.
	inTurn bool
	// Refund is the probability that a buyer gives a purchase back.
	Refund float64
	// RefuseStale has an optimistic sale refuse an order whose data is stale. The buyer
	// then goes on to another order.
	RefuseStale bool

	TTL   time.Duration // the lease
	Wait  time.Duration // how long one acquire keeps trying
	Retry time.Duration // the longest pause between two tries
	// MaxTries is how often one acquire tries at most; 0: no bound.
	MaxTries int
	// Timeout is how long a client waits for an answer; 0: the target's default.
	Timeout time.Duration
	Hold    time.Duration // how long a section lasts beyond its own commands

	// Faults are the faults that the run injects.
	Faults []faults.Fault

	// Outside is what serves a variant whose code is outside of this program; nil if there is none.
	Outside Outside

	// Duration ends the run; 0 means no limit.
	Duration time.Duration
	// capped says that Duration was not asked for but set as a precaution, and spreadOut says the
	// same of Hold.
	capped, spreadOut bool
	// Ops ends the run after this many steps of all clients together; 0 means no limit.
	Ops int64

	// Rate is how many steps begin each second, even if the steps before have not ended, and
	// Arrival how they are spread; nil: a client begins a step when the one before has ended. In a
	// queue it is the rate at which producers enqueue.
	Rate    arrival.Rate
	Arrival arrival.Process
}

// Outside is what serves the clients of a variant whose code is outside of this program. It is
// safe for concurrent use.
type Outside interface {
	// Begin is called before a run.
	Begin()
	// Prepare has what a client needs ready before the load begins.
	Prepare(ctx context.Context, env variant.Env)
	// Err is why it serves the run no longer; nil if it does.
	Err() error
	// Silent is nil unless there is an operation of which no call had a definite answer. In a
	// disturbed run, that may be for its faults, unless it says that it does not have the operation.
	Silent(disturbed bool) error
	// End is called after a run. When it returns, nothing is left that served the run.
	End()
}

// Takes estimates how long a run of c takes, by its settings alone: it may take longer.
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
	if c.OpenLoop() {
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

// Capped is the limit on the duration of a run that was given none of its own; 0: it was given one.
func (c Config) Capped() time.Duration {
	if c.capped {
		return c.Duration
	}
	return 0
}

// None is a setting that is not to have the scenario's default, but to be zero.
const None = -1

// orNone is zero for [None].
func orNone[T time.Duration | float64 | int](v T) T {
	if v == None {
		return 0
	}
	return v
}

// Grace is what the progress property adds to the lease: how long a healthy
// system may take to notice that a lock is free.
const Grace = time.Second

// NeedsSQL tells whether a variant of this run keeps its state in a database.
func (c Config) NeedsSQL() bool {
	return slices.ContainsFunc(c.Subjects(), func(s Subject) bool { return s.Needs.SQL })
}

// Locks tells whether clients exclude each other by a lock: one that promises nothing grants everything.
func (c Config) Locks() bool { return c.Lock.New != nil && len(c.Lock.Promises) > 0 }

// LockAlone tells whether the scenario exercises the lock alone.
func (c Config) LockAlone() bool {
	return len(c.Scenario.Objects) == 1 && c.Scenario.Uses(variant.Lock)
}

// Subject is a variant under test in a run, with what it says of itself.
type Subject struct {
	Of       variant.Object
	Name     string
	Promises []variant.Property
	Flaws    []variant.Flaw
	Needs    variant.Needs
}

// Subjects are the variants under test in this run, the lock first, if there is one. Each
// promises what its variant does, and what the scenario asks of it.
func (c Config) Subjects() []Subject {
	var subjects []Subject
	add := func(s Subject) {
		for _, p := range c.Scenario.Promises {
			if p.Of == s.Of && !slices.Contains(s.Promises, p.Property) {
				s.Promises = append(slices.Clip(s.Promises), p.Property)
			}
		}
		subjects = append(subjects, s)
	}
	if c.Lock.New != nil {
		add(Subject{variant.Lock, c.Lock.Name, c.Lock.Promises, c.Lock.Flaws, c.Lock.Needs})
	}
	if c.Scenario.Uses(variant.Queue) {
		add(Subject{variant.Queue, c.Queue.Name, c.Queue.Promises, c.Queue.Flaws, c.Queue.Needs})
	}
	if c.Scenario.Uses(variant.Sale) {
		add(Subject{variant.Sale, c.Sale.Name, c.Sale.Promises, c.Sale.Flaws, c.Sale.Needs})
	}
	if c.Scenario.Uses(variant.Dispatch) {
		add(Subject{variant.Dispatch, c.Dispatch.Name, c.Dispatch.Promises, c.Dispatch.Flaws, c.Dispatch.Needs})
	}
	if c.Scenario.Uses(variant.IDs) {
		add(Subject{variant.IDs, c.IDs.Name, c.IDs.Promises, c.IDs.Flaws, c.IDs.Needs})
	}
	return subjects
}

// Package scenarios holds what clients do: a scenario is data plus a step that
// one client repeats, and [Run] is the one way to run any of them, from opening
// the sale to reading the final state, into a history file.
//
// A step is ordinary code over the client's locker and sale. It knows nothing
// of engines, connections or files.
package scenarios

import (
	"context"
	"slices"
	"time"

	"oversell/dispatchimpl"
	"oversell/faults"
	"oversell/idimpl"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Scenario is one thing that clients do.
type Scenario struct {
	Name    string
	Summary string
	// Objects are what the scenario exercises, and so what is judged.
	Objects []variant.Object
	// NoLine says that clients ask for a lock once and go elsewhere when it is taken:
	// nobody stands in line for it, and so nobody is promised a place.
	NoLine bool
	// Defaults fills in the settings that are zero in c.
	Defaults func(c *Config)
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
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

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
	// part of it, drawn by chance.
	Delay time.Duration
	// Repeat is the probability that a producer enqueues its last id again.
	Repeat float64
	// Die is the probability that a client dies with what it was given, a task or a
	// number, before it told anybody or, in dispatch, that a user goes away with a
	// task and comes back too late.
	Die float64

	Clients int
	// Pool is the number of shared connections per node; 0: one per client.
	Pool    int
	Waiting load.Waiting
	Seed    uint64

	Stock int64
	// Quantity is the largest order: each is for 1 to Quantity pieces.
	Quantity int
	// Resend is the probability that a buyer sends an order twice at once.
	Resend float64
	// Refund is the probability that a buyer gives a purchase back.
	Refund float64

	TTL   time.Duration // the lease
	Wait  time.Duration // how long one acquire keeps trying
	Retry time.Duration // the longest pause between two tries
	// MaxTries is how often one acquire tries at most; 0: no bound.
	MaxTries int
	// Timeout is how long a client waits for an answer; 0: the target's default.
	Timeout time.Duration
	Hold    time.Duration // how long a section lasts beyond its own commands

	// Faults are what is done to the run on purpose.
	Faults []faults.Fault

	// Duration ends the run; 0 means no limit.
	Duration time.Duration
	// capped says that Duration is a precaution that nobody asked for, and spreadOut
	// the same of Hold.
	capped, spreadOut bool
	// Ops ends the run after this many steps of all clients together; 0 means no limit.
	Ops int64
}

// Grace is what the progress property adds to the lease: how long a healthy
// system may take to notice that a lock is free.
const Grace = time.Second

// NeedsSQL tells whether a variant of this run keeps its state in a database.
func (c Config) NeedsSQL() bool {
	return slices.ContainsFunc(c.Subjects(), func(s Subject) bool { return s.Needs.SQL })
}

// Subject is a variant under test in a run, with what it says of itself.
type Subject struct {
	Of       variant.Object
	Name     string
	Promises []variant.Property
	Flaws    []variant.Flaw
	Needs    variant.Needs
}

// Subjects are the variants under test in this run, the lock first, if there is one.
func (c Config) Subjects() []Subject {
	var subjects []Subject
	if c.Lock.New != nil {
		subjects = append(subjects, Subject{variant.Lock, c.Lock.Name, c.Lock.Promises, c.Lock.Flaws, c.Lock.Needs})
	}
	if c.Scenario.Uses(variant.Queue) {
		subjects = append(subjects, Subject{variant.Queue, c.Queue.Name, c.Queue.Promises, c.Queue.Flaws, c.Queue.Needs})
	}
	if c.Scenario.Uses(variant.Sale) {
		subjects = append(subjects, Subject{variant.Sale, c.Sale.Name, c.Sale.Promises, c.Sale.Flaws, c.Sale.Needs})
	}
	if c.Scenario.Uses(variant.Dispatch) {
		subjects = append(subjects, Subject{variant.Dispatch, c.Dispatch.Name, c.Dispatch.Promises, c.Dispatch.Flaws, c.Dispatch.Needs})
	}
	if c.Scenario.Uses(variant.IDs) {
		subjects = append(subjects, Subject{variant.IDs, c.IDs.Name, c.IDs.Promises, c.IDs.Flaws, c.IDs.Needs})
	}
	return subjects
}

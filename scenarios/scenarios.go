// Package scenarios holds what clients do: a scenario is data plus a step that
// one client repeats, and [Run] is the one way to run any of them, from opening
// the sale to reading the final state, into a history file.
//
// A step is ordinary code over the client's locker and sale. It knows nothing
// of engines, connections or files.
package scenarios

import (
	"context"
	"time"

	"oversell/load"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Scenario is one thing that clients do.
type Scenario struct {
	Name    string
	Summary string
	// Objects are what the scenario exercises, and so what is judged.
	Objects []variant.Object
	// Defaults fills in the settings that are zero in c.
	Defaults func(c *Config)
	// Step is one round of one client; it reports when the client is done.
	Step func(ctx context.Context, c *Client) (done bool)
}

// Sells tells whether the scenario needs a sale.
func (s Scenario) Sells() bool {
	for _, o := range s.Objects {
		if o == variant.Sale {
			return true
		}
	}
	return false
}

// All lists every scenario.
var All = []Scenario{seckill, mutex}

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
	Hold  time.Duration // how long a section lasts beyond its own commands

	// Duration ends the run; 0 means no limit.
	Duration time.Duration
	// Ops ends the run after this many steps of all clients together; 0 means no limit.
	Ops int64
}

// Grace is what the progress property adds to the lease: how long a healthy
// system may take to notice that a lock is free.
const Grace = time.Second

package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"oversell/history"
	"oversell/load/arrival"
	"oversell/variant"
)

// OpenLoad reports whether steps begin when they are due, not when a client has finished the previous one.
func (c Config) OpenLoad() bool { return len(c.Rate) > 0 }

// endsWithStages ends a run with its last stage, unless its end was set.
func (c *Config) endsWithStages() {
	if c.OpenLoad() && c.Rate.Changes() && c.Ops == 0 {
		c.Duration = cmp.Or(c.Duration, c.Rate.Ends())
	}
}

// completeRate fills in what follows from the arrival rate, and refuses a rate that yields no arrivals.
func (c *Config) completeRate() error {
	if !c.OpenLoad() {
		return nil
	}
	c.Arrival = cmp.Or(c.Arrival, arrival.Constant)
	if at, comes := c.Rate.When(1); !comes || c.Duration > 0 && !c.capped && at > c.Duration {
		return fmt.Errorf("at %s fewer than one arrival is due in %v: use a higher rate, or a longer --duration", c.rateFlag(), c.Duration)
	}
	if c.capped {
		c.Duration += c.arriving()
	}
	if c.Duration > day {
		return fmt.Errorf("at %s the arrivals of this run take %v, and a run ends within a day: use a higher rate, or end it with --duration", c.rateFlag(), c.arriving().Round(time.Minute))
	}
	return nil
}

const day = 24 * time.Hour

// rateFlag returns the flag that chose the rate.
func (c Config) rateFlag() string {
	if c.Rate.Changes() {
		return "--stages " + c.Rate.String()
	}
	return "--rate " + c.Rate.String()
}

// arriving returns how long the arrivals take that a run without a time limit needs to do its work.
func (c Config) arriving() time.Duration {
	n := float64(c.Ops)
	switch {
	case c.Scenario.Uses(variant.Dispatch): // some find nothing to do
		n = 2*float64(c.Ops) + float64(c.Clients)
	case c.Ops == 0 && c.Scenario.Uses(variant.Sale):
		n = float64(c.Stock + int64(c.Clients))
	}
	if at, come := c.Rate.When(n); come {
		return at
	}
	return c.Rate.Ends()
}

// arrivals creates the arrival book of an open load; nil if the load is closed.
func (c Config) arrivals() *arrival.Book {
	if !c.OpenLoad() {
		return nil
	}
	ends, most := c.Duration, c.Ops
	if c.capped {
		ends = 0
	}
	if c.Scenario.Uses(variant.Dispatch) {
		most = 0 // the number of tasks is fixed, the number of steps is not
	}
	return arrival.NewBook(c.Rate, c.Arrival, c.Seed, ends, most)
}

// bounded reports whether the end of the load was set.
func (c Config) bounded() bool { return c.Duration > 0 && !c.capped || c.Ops > 0 }

// drain is how long an open load may take after its end to serve the arrivals that were due by then.
const drain = 10 * time.Second

// awaitServed waits until the due arrivals are served, or the time limit is reached.
func (r *run) awaitServed(ctx context.Context, over <-chan struct{}) {
	if r.book == nil {
		return
	}
	r.await(ctx, over, time.After(drain), r.book.Served)
}

// turn is a client's state in an open load. The zero value is that of a closed one.
type turn struct {
	arrival arrival.Arrival
	fresh   bool          // no operation of the step has begun
	begun   bool          // the book has recorded its begin
	late    time.Duration // how late it began
}

// comes waits until the client's next step is due, and reports whether one is left. In a closed load it is due at
// once.
func (s *runDriver) comes() bool {
	if s.book == nil {
		return true
	}
	a, left := s.book.Take(s.rec.Now(), s.lasting())
	if !left {
		return false
	}
	if !s.engine.SleepUntil(s.ctx, s.log.Start().Add(a.Due)) {
		s.book.Drop(a, s.rec.Now())
		return false
	}
	s.turn = turn{arrival: a, fresh: true}
	if s.twin != nil {
		s.twin.turn = s.turn
	}
	return true
}

// takeStep takes one of the limited or arriving steps, and reports whether one was left.
func (s *runDriver) takeStep() bool {
	if s.book == nil {
		return s.run.takeStep()
	}
	if !s.comes() {
		return false
	}
	s.live.Rounds.Add(1)
	return true
}

// due returns when an operation that is called now should have started. The first operation of a step is due with
// its arrival; later ones are as late as the first.
func (s *runDriver) due(call time.Duration) time.Duration {
	if s.turn.fresh {
		s.turn.fresh = false
		s.turn.late = max(0, call-s.turn.arrival.Due)
		if !s.isTwin {
			s.book.Begin(&s.turn.arrival, call)
			s.turn.begun = true
		}
	}
	return call - s.turn.late
}

// stepped ends a step.
func (s *runDriver) stepped() {
	if s.book == nil {
		return
	}
	switch now := s.rec.Now(); {
	case s.turn.begun:
		s.book.End(s.turn.arrival, now)
	case s.turn.fresh:
		s.book.Drop(s.turn.arrival, now)
	}
	s.turn = turn{}
}

// keepsComing reports whether buyers continue after the stock is gone: in an open load they do, until the given
// end.
func (s *runDriver) keepsComing() bool {
	return s.book != nil && s.config.bounded() && !s.book.Over()
}

// seatOf returns a client's seat in a run.
func seatOf(c *Client) *runDriver { return c.driver.(*runDriver) }

// arrived reports how the arrivals were begun; call it after all clients have ended.
func (r *run) arrived() *history.Arrivals {
	if r.book == nil {
		return nil
	}
	seen := r.book.Close(r.since(), r.engine.Stopping())
	return &seen
}

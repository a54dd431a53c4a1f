package scenarios

import (
	"cmp"
	"fmt"
	"time"

	"oversell/internal/limits"
	"oversell/load"
	"oversell/queueimpl"
	"oversell/variant"
)

// Complete fills in defaults, for this number of independent masters, and returns an error for invalid settings.
func (c *Config) Complete(masters int) error {
	if err := limits.Run.Check("clients", float64(c.Clients)); err != nil {
		return err // defaults depend on it
	}
	c.endsWithStages()
	ends := c.Duration
	if c.capped {
		ends = 0
	}
	c.TTL = cmp.Or(c.TTL, c.Scenario.DefaultLease())
	c.Scenario.Defaults(c)
	c.Resend, c.Delay, c.Repeat, c.Abandon = orNone(c.Resend), orNone(c.Delay), orNone(c.Repeat), orNone(c.Abandon)
	c.Waiting = cmp.Or(c.Waiting, load.Poll)
	c.Retry = cmp.Or(c.Retry, c.Waiting.DefaultRetry(c.Clients*max(masters, 1)))
	c.Quantity = cmp.Or(c.Quantity, 1)
	c.Batch = cmp.Or(c.Batch, 1)
	for _, number := range []struct { // a timeout of 0 is the target's default
		flag string
		is   float64
	}{
		{"stock", float64(c.Stock)}, {"quantity", float64(c.Quantity)}, {"ops", float64(c.Ops)}, {"pool", float64(c.Pool)},
		{"resend", c.Resend}, {"refund", c.Refund}, {"repeat", c.Repeat}, {"die", c.Die}, {"abandon", float64(c.Abandon)},
		{"ttl", float64(c.TTL)}, {"wait", float64(c.Wait)}, {"retry", float64(c.Retry)}, {"hold", float64(c.Hold)},
		{"timeout", float64(cmp.Or(c.Timeout, time.Second))}, {"duration", float64(c.Duration)}, {"delay", float64(c.Delay)},
		{"visibility", float64(c.QueueOptions.Visibility)}, {"attempts", float64(c.QueueOptions.MaxAttempts)},
		{"batch", float64(c.Batch)}, {"withdraw", c.Withdraw}, {"peek", c.Peek},
	} {
		if err := limits.Run.Check(number.flag, number.is); err != nil {
			return err
		}
	}
	if err := c.completeRate(); err != nil {
		return err
	}
	switch {
	case c.MaxTries < 0:
		return fmt.Errorf("%d tries: it must be 0 (no bound) or more", c.MaxTries)
	case c.Scenario.Uses(variant.Queue) && c.Clients < 2:
		return fmt.Errorf("--clients %d: a queue needs at least 2, one to enqueue and one to take", c.Clients)
	case c.Scenario.Uses(variant.Dispatch) && c.Ops > mostTasks:
		return fmt.Errorf("--ops %d: scenario %s puts a task for each into its database, at most %d", c.Ops, c.Scenario.Name, mostTasks)
	}
	if err := c.needs(masters); err != nil {
		return err
	}
	if err := c.engineFits(); err != nil {
		return err
	}
	return c.fits(ends)
}

// cap limits a run that would not end by itself. A run ended by this limit is inconclusive.
func (c *Config) cap() { c.Duration, c.capped = c.withFaults(time.Minute), true }

// mostTasks bounds the pool of a dispatch, which is filled before the run.
const mostTasks = 100_000

// Unmet reports a need of a variant that this run does not meet.
type Unmet struct{ what string }

// Error implements error.
func (u Unmet) Error() string { return u.what }

func unmet(format string, a ...any) error { return Unmet{fmt.Sprintf(format, a...)} }

// needs refuses what the variants do not support.
func (c *Config) needs(masters int) error {
	for _, s := range c.Subjects() {
		switch {
		case s.Needs.Masters > masters:
			return unmet("%s %s needs %d or more independent masters, and there %s: use --topology masters:5 or, for servers that run already, an address for each, separated by commas",
				s.Of, s.Name, s.Needs.Masters, areThere(masters))
		case s.Needs.WholeSeconds && c.TTL%time.Second != 0:
			return unmet("%s %s counts its lease in whole seconds: --ttl %v must be 1s, 2s, …", s.Of, s.Name, c.TTL)
		case s.Needs.Fence && !c.Lock.Fences:
			return unmet("%s %s needs a lock that grants fencing tokens, and %s grants none: use --lock fenced", s.Of, s.Name, c.Lock.Name)
		}
	}
	if err := c.saleNeeds(); err != nil {
		return err
	}
	return c.queueNeeds()
}

// saleNeeds refuses options that the sale would ignore.
func (c *Config) saleNeeds() error {
	if !c.RefuseStale || c.Sale.New == nil {
		return nil
	}
	if !c.Sale.Optimistic {
		return unmet("sale %s is not optimistic, so its data is never stale: leave out --refuse-stale", c.Sale.Name)
	}
	return nil
}

// queueNeeds refuses options that the queue would ignore.
func (c *Config) queueNeeds() error {
	if !c.Scenario.Uses(variant.Queue) {
		return nil
	}
	q := c.Queue.Sample()
	if c.QueueOptions.Visibility > 0 && !c.Queue.AtLeastOnce {
		return unmet("queue %s has no visibility timeout: leave out --visibility", c.Queue.Name)
	}
	if _, keeps := q.(queueimpl.DeadLetters); c.QueueOptions.MaxAttempts > 0 && !keeps {
		return unmet("queue %s has no dead letters: leave out --attempts", c.Queue.Name)
	}
	if _, dedupes := q.(queueimpl.Deduper); c.QueueOptions.Overwrite && !dedupes {
		return unmet("queue %s keeps several entries per id: leave out --overwrite", c.Queue.Name)
	}
	if err := c.Queue.Accepts(c.QueueOptions); err != nil {
		return unmet("%v", err)
	}
	if _, delays := q.(queueimpl.Delayer); c.Delay > 0 && !delays {
		return unmet("queue %s cannot delay: leave out --delay", c.Queue.Name)
	}
	if _, withdraws := q.(queueimpl.Dequeuer); c.Withdraw > 0 && !withdraws {
		return unmet("queue %s cannot withdraw tasks: leave out --withdraw", c.Queue.Name)
	}
	if _, peeks := q.(queueimpl.Peeker); c.Peek > 0 && !peeks {
		return unmet("queue %s cannot peek: leave out --peek", c.Queue.Name)
	}
	return nil
}

// areThere says how many masters there are.
func areThere(masters int) string {
	if masters == 1 {
		return "is one"
	}
	return fmt.Sprintf("are %d", masters)
}

package scenarios

import (
	"errors"
	"fmt"
	"time"

	"oversell/load"
	"oversell/queueimpl"
	"oversell/variant"
)

// Complete fills in what was left zero, for this many independent masters, and
// says in one line what is wrong with the rest.
func (c *Config) Complete(masters int) error {
	if c.Clients <= 0 {
		return fmt.Errorf("%d clients: there must be at least 1", c.Clients)
	}
	c.Scenario.Defaults(c)
	c.Waiting = orDefault(c.Waiting, load.Poll)
	c.Retry = orDefault(c.Retry, c.Waiting.DefaultRetry(c.Clients*max(masters, 1)))
	c.Quantity = orDefault(c.Quantity, 1)
	for _, check := range []struct {
		bad bool
		say string
	}{
		{c.Clients > maxClients, fmt.Sprintf("%d clients: at most %d", c.Clients, maxClients)},
		{c.Stock < 0, fmt.Sprintf("a stock of %d: it must be 0 or more", c.Stock)},
		{c.Quantity < 1, fmt.Sprintf("orders for %d pieces: it must be 1 or more", c.Quantity)},
		{c.Pool < 0, fmt.Sprintf("a pool of %d connections: it must be 1 or more, or 0 for a connection each", c.Pool)},
		{!probability(c.Resend), fmt.Sprintf("a resend probability of %v: it must be between 0 and 1", c.Resend)},
		{!probability(c.Refund), fmt.Sprintf("a refund probability of %v: it must be between 0 and 1", c.Refund)},
		{c.TTL < time.Millisecond, fmt.Sprintf("a lease (--ttl) of %v: Redis counts in milliseconds, so it must be 1ms or more", c.TTL)},
		{c.TTL%time.Millisecond != 0, fmt.Sprintf("a lease (--ttl) of %v: Redis counts in whole milliseconds", c.TTL)},
		{c.Wait < 0, fmt.Sprintf("a waiting time of %v: it must be 0 or more", c.Wait)},
		{c.Retry < 0, fmt.Sprintf("a retry interval of %v: it must be 0 (the default) or more", c.Retry)},
		{c.MaxTries < 0, fmt.Sprintf("%d tries: it must be 0 (no bound) or more", c.MaxTries)},
		{c.Timeout < 0, fmt.Sprintf("a timeout of %v: it must be 0 (the default) or more", c.Timeout)},
		{c.Hold < 0, fmt.Sprintf("a section of %v: it must be 0 or more", c.Hold)},
		{c.Duration < 0, fmt.Sprintf("a duration of %v: it must be 0 or more", c.Duration)},
		{c.Delay < 0, fmt.Sprintf("a delay of %v: it must be 0 or more", c.Delay)},
		{!probability(c.Repeat), fmt.Sprintf("a repeat probability of %v: it must be between 0 and 1", c.Repeat)},
		{!probability(c.Die) || c.Die == 1, fmt.Sprintf("a dying probability of %v: it must be from 0 to below 1", c.Die)},
		{c.Scenario.Uses(variant.Queue) && c.Clients < 2, fmt.Sprintf("%d client: a queue needs at least 2, one to enqueue and one to take", c.Clients)},
		{c.Ops < 0, fmt.Sprintf("%d operations: it must be 0 or more", c.Ops)},
	} {
		if check.bad {
			return errors.New(check.say)
		}
	}
	return c.needs(masters)
}

// cap ends a run that would not end by itself. A run that it ends is inconclusive.
func (c *Config) cap() { c.Duration, c.capped = c.withFaults(time.Minute), true }

// maxClients keeps identities, successors after errors included, within 31 bits.
const maxClients = 1_000_000

// probability tells whether p is one; not a number is none.
func probability(p float64) bool { return p >= 0 && p <= 1 }

// Unmet says that a variant needs what this run does not give it.
type Unmet struct{ what string }

func (u Unmet) Error() string { return u.what }

func unmet(format string, a ...any) error { return Unmet{fmt.Sprintf(format, a...)} }

// needs refuses what the variants cannot do.
func (c *Config) needs(masters int) error {
	for _, s := range c.Subjects() {
		switch {
		case s.Needs.Masters > masters:
			return unmet("%s %s needs %d or more independent masters, and there is %s: use --topology masters:5 or, for servers that run already, an address for each, separated by commas",
				s.Of, s.Name, s.Needs.Masters, count(masters))
		case s.Needs.WholeSeconds && c.TTL%time.Second != 0:
			return unmet("%s %s counts its lease in whole seconds: --ttl %v must be 1s, 2s, …", s.Of, s.Name, c.TTL)
		case s.Needs.Fence && !c.Lock.Fences:
			return unmet("%s %s needs a lock that grants fencing tokens, and %s grants none: use --lock fenced", s.Of, s.Name, c.Lock.Name)
		}
	}
	return c.queueNeeds()
}

// queueNeeds refuses options that the queue would have to ignore.
func (c *Config) queueNeeds() error {
	if !c.Scenario.Uses(variant.Queue) {
		return nil
	}
	if err := c.Queue.Accepts(c.QueueOptions); err != nil {
		return unmet("%v", err)
	}
	if _, delays := c.Queue.New(variant.Env{}, queueimpl.Options{}).(queueimpl.Delayer); c.Delay > 0 && !delays {
		return unmet("queue %s cannot delay: leave out --delay", c.Queue.Name)
	}
	return nil
}

func count(masters int) string {
	if masters == 1 {
		return "one"
	}
	return fmt.Sprint(masters)
}

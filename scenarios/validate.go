package scenarios

import (
	"errors"
	"fmt"
	"time"

	"oversell/load"
)

// Complete fills in what was left zero, for this many independent masters, and
// says in one line what is wrong with the rest.
func (c *Config) Complete(masters int) error {
	if c.Clients <= 0 {
		return fmt.Errorf("%d clients: there must be at least 1", c.Clients)
	}
	c.Scenario.Defaults(c)
	c.Waiting = orDefault(c.Waiting, load.Poll)
	c.Retry = orDefault(c.Retry, c.Waiting.DefaultRetry(c.Clients))
	c.Quantity = orDefault(c.Quantity, 1)
	for _, check := range []struct {
		bad bool
		say string
	}{
		{c.Clients > maxClients, fmt.Sprintf("%d clients: at most %d", c.Clients, maxClients)},
		{c.Stock < 0, fmt.Sprintf("a stock of %d: it must be 0 or more", c.Stock)},
		{c.Quantity < 1, fmt.Sprintf("orders for %d pieces: it must be 1 or more", c.Quantity)},
		{c.Pool < 0, fmt.Sprintf("a pool of %d connections: it must be 1 or more, or 0 for a connection each", c.Pool)},
		{c.Resend < 0 || c.Resend > 1, fmt.Sprintf("a resend probability of %v: it must be between 0 and 1", c.Resend)},
		{c.Refund < 0 || c.Refund > 1, fmt.Sprintf("a refund probability of %v: it must be between 0 and 1", c.Refund)},
		{c.TTL < time.Millisecond, fmt.Sprintf("a lease (--ttl) of %v: Redis counts in milliseconds, so it must be 1ms or more", c.TTL)},
		{c.TTL%time.Millisecond != 0, fmt.Sprintf("a lease (--ttl) of %v: Redis counts in whole milliseconds", c.TTL)},
		{c.Wait < 0, fmt.Sprintf("a waiting time of %v: it must be 0 or more", c.Wait)},
		{c.Retry < 0, fmt.Sprintf("a retry interval of %v: it must be 0 (the default) or more", c.Retry)},
		{c.Hold < 0, fmt.Sprintf("a section of %v: it must be 0 or more", c.Hold)},
		{c.Duration < 0, fmt.Sprintf("a duration of %v: it must be 0 or more", c.Duration)},
		{c.Ops < 0, fmt.Sprintf("%d operations: it must be 0 or more", c.Ops)},
	} {
		if check.bad {
			return errors.New(check.say)
		}
	}
	return c.needs(masters)
}

// maxClients keeps identities, successors after errors included, within 31 bits.
const maxClients = 1_000_000

// Unmet says that a variant needs what this run does not give it.
type Unmet struct{ what string }

func (u Unmet) Error() string { return u.what }

func unmet(format string, a ...any) error { return Unmet{fmt.Sprintf(format, a...)} }

// needs refuses what the variants cannot do.
func (c *Config) needs(masters int) error {
	lock := c.Lock
	switch {
	case lock.Needs.Masters > masters:
		return unmet("lock %s needs %d or more independent masters, and there is %s: use --topology masters:5",
			lock.Name, lock.Needs.Masters, count(masters))
	case lock.Needs.WholeSeconds && c.TTL%time.Second != 0:
		return unmet("lock %s counts its lease in whole seconds: --ttl %v must be 1s, 2s, …", lock.Name, c.TTL)
	case c.Scenario.Sells() && c.Sale.Needs.Fence && !lock.Fences:
		return unmet("sale %s needs a lock that grants fencing tokens, and %s grants none: use --lock fenced", c.Sale.Name, lock.Name)
	}
	return nil
}

func count(masters int) string {
	if masters == 1 {
		return "one"
	}
	return fmt.Sprint(masters)
}

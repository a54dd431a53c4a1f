package lockrules

import (
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// DeadMasters cuts a client off from a minority of the masters, the first ones or the last ones. The client must still be able to
// take a free lock, and to release it.
var DeadMasters = []Case{
	{"the first masters", func(b Bench) error { return b.deadMasters(true) }},
	{"the last masters", func(b Bench) error { return b.deadMasters(false) }},
}

// SlowMasters hold up the answer of each master a little. The lease of a client that was granted the lock lasts until its promised end, though
// the masters granted it one after the other.
var SlowMasters = []Case{{"each answer takes a while", func(b Bench) error {
	const lease, held = 3 * time.Second, 120 * time.Millisecond
	c, err := b.practised()
	if err != nil || b.Renews {
		return err
	}
	c.Plan(func(nth int, _ wire.Command) wire.Action {
		if nth > 1 {
			return wire.Action{}
		}
		return wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: held}
	})
	l, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: lease, RetryEvery: lockclient.Pace})
	if err != nil {
		return nil // it gave up before
	}
	l.Until = c.Until(l)
	c.Die()
	return b.next(l, lease, fmt.Sprintf("after a client, to which each master answered after %v, had been granted a lease of %v, and died", held, lease))
}}}

func (b Bench) deadMasters(first bool) error {
	c, err := b.practised()
	if err != nil {
		return err
	}
	masters := len(c.Links)
	dead := (masters - 1) / 2
	c.CutOffExcept(func(master int) bool {
		if first {
			return master >= dead
		}
		return master < masters-dead
	})
	l, err := c.TakeWithin(b.Name, 4*b.TTL, b.Patience)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a client that reaches %d of %d masters could not take a free lock: %v", masters-dead, masters, err)
	}
	if err := c.Release(l); err != nil {
		return nil // it may not have arrived
	}
	return b.free(fmt.Sprintf("a client that reaches %d of %d masters released a lock", masters-dead, masters))
}

package lockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// AsksAgain are cases in which a holder acquires its own lock again, and dies. If it is granted the lock, others must
// be refused until the later of the two leases ends. In some cases the holder asks late, for a lease that is not a
// whole number of seconds: only these show that a lock rounds such a lease down to whole seconds.
var AsksAgain = []Case{
	{"late in its lease", func(b Bench) error { return b.asksAgain(b.TTL, b.TTL/2, b.TTL) }},
	{"for a shorter lease", func(b Bench) error { return b.asksAgain(3*b.TTL, 0, b.TTL) }},
	{"for a longer lease", func(b Bench) error { return b.asksAgain(b.TTL, b.TTL/4, 2*b.TTL) }},
	{"late in a lease with a fraction of a second", func(b Bench) error {
		return b.asksAgainOdd(1500*time.Millisecond, 900*time.Millisecond, 1500*time.Millisecond)
	}},
	{"late in a lease of almost two seconds", func(b Bench) error {
		return b.asksAgainOdd(1900*time.Millisecond, 1500*time.Millisecond, 1900*time.Millisecond)
	}},
	{"for a lease with a fraction of a second", func(b Bench) error { return b.asksAgainOdd(b.TTL, b.TTL/2, 2700*time.Millisecond) }},
}

// asksAgainOdd is asksAgain with leases that are not whole seconds, unless the lock has no such leases.
func (b Bench) asksAgainOdd(lease, pause, then time.Duration) error {
	if !b.Brief {
		return nil
	}
	return b.asksAgain(lease, pause, then)
}

// asksAgain has the holder of a lease ask after a pause for another one.
func (b Bench) asksAgain(lease, pause, then time.Duration) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	l, err := c.Take(b.Name, lease, 0)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a free lock was not granted: %v", err)
	}
	if !b.pass(pause) {
		return nil
	}
	if m, err := c.Try(b.Name, then); err == nil && m.Until.After(l.Until) {
		l = m
	}
	l.Until = c.Until(l)
	c.Die()
	return b.next(l, lease+then, fmt.Sprintf("after its holder had asked again, %v after the grant of a lease of %v, for a lease of %v, and died", pause, lease, then))
}

// next expects that another client gets the lock within a time, and not before the end of its lease.
func (b Bench) next(l lockimpl.Lock, within time.Duration, what string) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	if _, err = c.Take(b.Name, b.TTL, within); err != nil {
		return lockfinding.Broken(variant.Progress, "%s, nobody could take the lock when the lease had run out: %v", what, err)
	}
	if left := time.Until(l.Until); left > 0 {
		return lockfinding.Broken(variant.MutualExclusion, "%s, another client got the lock %v before the end of the lease", what, left.Round(time.Millisecond))
	}
	return nil
}

// HeldUpAgain holds up a holder that asks once more, before its first command, until its lease is over and another client has
// the lock. Then it must be refused.
var HeldUpAgain = []Case{
	{"for a long lease", func(b Bench) error { return b.heldUpAgain(long) }},
	{"for a lease as before", func(b Bench) error { return b.heldUpAgain(4 * b.TTL) }},
}

func (b Bench) heldUpAgain(lease time.Duration) error {
	if b.Renews {
		return nil // its lease does not end while it lives
	}
	slow, other, err := b.two()
	if err != nil {
		return err
	}
	slow.Practise(b.Name, b.TTL, b.Extends)
	if _, err = slow.Take(b.Name, b.TTL, 0); err != nil {
		return nil // another rule's business
	}
	var l lockimpl.Lock
	err = errors.New("the call has not returned")
	s := slow.Stalled(1, func() {
		l, err = slow.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: lease, RetryEvery: lockclient.Pace})
	})
	if s == nil {
		return nil // it was answered without a command
	}
	m, e := other.TakeWithin(b.Name, long, b.TTL+soon)
	s.GoOn()
	if e == nil && err == nil && time.Until(slow.Until(l)) > 0 && time.Until(other.Until(m)) > 0 {
		return lockfinding.Broken(variant.MutualExclusion, "two clients were granted the lock: a holder that asked for its own lock again was held up before its first command, until its lease was over and another client was granted the lock")
	}
	return nil
}

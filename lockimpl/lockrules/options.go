package lockrules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/leases"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// Tries are cases about [lockimpl.Options].MaxTries: a free lock is granted at the first attempt. That a client which may make a
// few attempts waits for long is logged only: it may wait by its own means, in one attempt. [MostTries] counts attempts.
var Tries = []Case{
	{"a free lock at the only attempt", func(b Bench) error { return b.freeWithin(1) }},
	{"a free lock within two attempts", func(b Bench) error { return b.freeWithin(2) }},
	{"a held lock", func(b Bench) error {
		holder, waiter, err := b.two()
		if err != nil {
			return err
		}
		if _, err := holder.Take(b.Name, long, 0); err != nil {
			return nil // another rule's business
		}
		const tries = 2
		ctx, cancel := context.WithTimeout(b.Ctx, 2*b.TTL)
		defer cancel()
		_, err = waiter.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: lockclient.Pace, MaxTries: tries})
		if err == nil {
			return lockfinding.Broken(variant.MutualExclusion, "an acquire with MaxTries = %d was granted a lock that another client holds", tries)
		}
		if ctx.Err() != nil && b.Ctx.Err() == nil {
			b.Log("Options.MaxTries = %d was ignored: the client waited for longer", tries)
		}
		return nil
	}},
}

// freeWithin takes a lock that nobody holds, with a limit on the attempts.
func (b Bench) freeWithin(tries int) error {
	for n, wait := range []time.Duration{0, long} {
		c, err := b.client()
		if err != nil {
			return err
		}
		l, err := c.Acquire(b.Ctx, fmt.Sprint(b.Name, n), lockimpl.Options{TTL: b.TTL, Wait: wait, RetryEvery: lockclient.Pace, MaxTries: tries})
		if errors.Is(err, lockimpl.ErrHeld) && b.Ctx.Err() == nil {
			return lockfinding.Broken(variant.Progress, "a lock that nobody has held was refused to a client with MaxTries = %d, and a wait of %v: %v", tries, wait, err)
		}
		if err == nil {
			_ = c.Release(l)
		}
	}
	return nil
}

// ManyHeld are cases in which one client holds two locks, or more than its connection pool has connections.
var ManyHeld = []Case{{"two locks", func(b Bench) error {
	c, other, err := b.two()
	if err != nil {
		return err
	}
	first, err := c.Take(b.Name, long, 0)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a free lock was not granted: %v", err)
	}
	second, err := c.Take(b.Name+"-other", long, 0)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a client that holds a lock could not take one of another name, which nobody holds: %v", err)
	}
	if b.Extends {
		m, err := c.Extend(first, long)
		if errors.Is(err, lockimpl.ErrLost) {
			return lockfinding.Broken(variant.MutualExclusion, "a client that holds two locks was told that the first is lost")
		}
		if err == nil {
			first = m
		}
	}
	f := &failing{Client: c}
	if err := c.Release(second); errors.Is(err, lockimpl.ErrLost) {
		return lockfinding.Broken(b.FalseLoss, "a client that holds two locks released the second, and was told %q", err)
	}
	if _, err := other.Try(b.Name, b.TTL); err == nil {
		return lockfinding.Broken(variant.MutualExclusion, "a client released one of its two locks, and another client got the one that it still holds")
	}
	if err := c.Release(first); errors.Is(err, lockimpl.ErrLost) {
		return b.stands(f, first, "a client released one of its two locks, and then the other, which was answered with ErrLost")
	}
	return b.free("a client released both of its locks")
}}, {"twelve locks", func(b Bench) error {
	const locks = 12
	c, err := b.practised()
	if err != nil {
		return err
	}
	var held []lockimpl.Lock
	for n := range locks {
		l, err := c.Take(fmt.Sprint(b.Name, "-", n), long, 0)
		if err != nil {
			return lockfinding.Broken(variant.Progress, "a client that holds %d locks could not take another one, which nobody holds: %v", n, err)
		}
		held = append(held, l)
	}
	for _, l := range held {
		_ = c.Release(l)
	}
	return nil
}}}

// LateAnswers are acquires of a free lock in which the answer to one command arrives only when Options.Wait is over. If Acquire
// then returns ErrHeld, the client holds nothing.
var LateAnswers = func() (cases []Case) {
	for n := 1; n <= 3; n++ {
		cases = append(cases, Case{fmt.Sprintf("to command %d", n), func(b Bench) error { return b.lateAnswer(n) }})
	}
	return cases
}()

func (b Bench) lateAnswer(n int) error {
	const wait = 200 * time.Millisecond
	c, err := b.practised()
	if err != nil {
		return err
	}
	c.ArmAction(n, wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: 2 * wait})
	_, err = c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: long, Wait: wait, RetryEvery: lockclient.Pace})
	sent := c.Sent()
	c.Plan(nil)
	if sent < n || !errors.Is(err, lockimpl.ErrHeld) {
		return nil
	}
	return b.free(fmt.Sprintf("an acquire of a free lock with a wait of %v, in which the answer to command %d took %v, was answered with ErrHeld", wait, n, 2*wait))
}

// Fractions are leases with a fraction of a millisecond. A client asks for one and dies. Whether it was granted the lock or got an
// error, another client gets the lock when the lease is over.
var Fractions = func() (cases []Case) {
	for _, lease := range []time.Duration{time.Second / 3, 1000500 * time.Microsecond, 999999 * time.Microsecond, 500 * time.Microsecond} {
		cases = append(cases, Case{fmt.Sprint(lease), func(b Bench) error {
			c, err := b.practised()
			if err != nil {
				return err
			}
			if b.Renews || b.WholeSeconds {
				return nil
			}
			_, err = c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: lease, RetryEvery: lockclient.Pace})
			c.Die()
			b.pass(lease)
			return b.free(fmt.Sprintf("a client asked for a lease of %v, was answered %v, and died", lease, answer(err)))
		}})
	}
	return cases
}()

// answer names the answer to an acquire.
func answer(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q", err)
}

// OddLeases are leases with a fraction of a second, for locks that do not declare whole seconds (variant.Needs.WholeSeconds). A lease that is
// granted lasts.
var OddLeases = func() (cases []Case) {
	for _, lease := range slices.Concat(leases.Odd, []time.Duration{1900 * time.Millisecond, 2700 * time.Millisecond}) {
		for range 2 { // a machine that is busy may sleep through the time in which a flaw shows
			cases = append(cases, Case{fmt.Sprint(lease), func(b Bench) error {
				if b.WholeSeconds {
					return nil
				}
				c, err := b.practised()
				if err != nil {
					return err
				}
				l, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: lease, RetryEvery: lockclient.Pace})
				if err != nil {
					return nil // it has no such leases
				}
				l.Until = c.Until(l)
				c.Die()
				return b.next(l, lease, fmt.Sprintf("after a client had been granted a lease of %v, and died", lease))
			}})
		}
	}
	return cases
}()

// WaitedLong are cases in which a client waits for longer than the lease that it asks for.
var WaitedLong = []Case{{"the end of the lease", func(b Bench) error {
	const tries = 3 // on a busy machine a client may be granted the lock late
	for n := range tries {
		own := b
		own.Name = fmt.Sprint(b.Name, "-", n)
		if soon, err := own.waitedLong(); soon || err != nil {
			return err
		}
	}
	return nil
}}}

// waitedLong is one try. It reports whether the waiter was granted the lock soon after the release; if not, the try shows
// nothing.
func (b Bench) waitedLong() (soon bool, err error) {
	waiter, err := b.practised() // its first attempt must not take the time to connect
	if err != nil {
		return false, err
	}
	holder, err := b.client()
	if err != nil {
		return false, err
	}
	l, err := holder.Take(b.Name, long, 0)
	if err != nil {
		return true, nil // another rule's business
	}
	got := make(chan grant, 1)
	go func() {
		m, err := waiter.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: lockclient.Pace})
		got <- grant{waiter, m, err}
	}()
	if !b.pass(b.TTL+b.TTL/4) || len(got) > 0 {
		return true, nil // it was not kept out: another rule's business
	}
	released := time.Now()
	if holder.Release(l) != nil {
		return true, nil // another rule's business
	}
	g := <-got
	if g.err != nil {
		return true, nil // another rule's business
	}
	defer func() { _ = waiter.Release(g.l) }()
	took := time.Since(released)
	left := time.Until(g.l.Until)
	// The lease began after the release. A client that looks again soon has most of it left.
	if took < b.TTL/4 && left <= 0 && waiter.Ahead == 0 {
		return true, lockfinding.Broken(variant.Progress, "a client that had waited for %v was granted a lease of %v %v after the release, and by Lock.Until it was over %v before: want the start of the winning attempt and the lease",
			b.TTL+b.TTL/4, b.TTL, took.Round(time.Millisecond), -left.Round(time.Millisecond))
	}
	return took < b.TTL/4, nil
}

// RefusedOften are cases in which a client has been refused thousands of times, and then waits. It looks again as often as it
// was told, and is granted the lock when it is free.
var RefusedOften = []Case{{"a wait after thousands of refusals", func(b Bench) error {
	const refusals, most, late, wait = 3000, 4 * time.Second, 200 * lockclient.Pace, 5 * time.Second
	holder, waiter, err := b.two()
	if err != nil {
		return err
	}
	waiter.Direct()
	l, err := b.held(holder, long)
	if err != nil {
		return err
	}
	n := 0
	for start := time.Now(); n < refusals && time.Since(start) < most && b.Ctx.Err() == nil; n++ {
		if m, err := waiter.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace}); err == nil {
			_ = waiter.Release(m)
			return nil // another rule's business
		}
	}
	for try := 1; ; try++ { // a machine that is busy may hold up a client once
		got := make(chan grant, 1)
		go func() {
			m, err := waiter.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: wait, RetryEvery: lockclient.Pace})
			got <- grant{waiter, m, err}
		}()
		if !b.pass(20*lockclient.Pace) || holder.Release(l) != nil {
			return nil
		}
		start := b.Lasted()
		g := <-got
		over := b.Lasted() - start
		if g.err == nil {
			_ = waiter.Release(g.l)
		}
		if over <= late || g.err != nil && !errors.Is(g.err, lockimpl.ErrHeld) {
			return nil // it was soon granted the lock, or another rule's business
		}
		if g.err != nil {
			// If the earlier holder is refused, too, its release did not free the lock, which is another rule's business.
			if m, err := holder.Take(b.Name, b.TTL, 0); err != nil || holder.Release(m) != nil {
				return nil
			}
			if try == 2 {
				return lockfinding.Broken(variant.Progress, "a client that had been refused %d times was refused once more, after a wait that ended %v after the release, and the earlier holder was then granted the lock: want a free lock to be granted", n, over.Round(time.Millisecond))
			}
		} else if try == 2 {
			return lockfinding.Broken(variant.Progress, "a client that had been refused %d times, and was to try again every %v, was granted the lock %v after its release: want a pause between attempts of at most RetryEvery", n, lockclient.Pace, over.Round(time.Millisecond))
		}
		if l, err = holder.Take(b.Name, long, 0); err != nil {
			return nil
		}
	}
}}}

// FreeAtOnce has a client that was refused ask once more when the holder has released the lock: a lock that is linearizable
// is granted.
var FreeAtOnce = []Case{{"a lock that was released after a refusal", func(b Bench) error {
	holder, c, err := b.two()
	if err != nil {
		return err
	}
	for range 20 {
		l, err := holder.Take(b.Name, long, 0)
		if err != nil {
			return nil // another rule's business
		}
		once := lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace}
		_, refused := c.Acquire(b.Ctx, b.Name, once)
		if holder.Release(l) != nil || !errors.Is(refused, lockimpl.ErrHeld) {
			return nil
		}
		m, err := c.Acquire(b.Ctx, b.Name, once)
		if errors.Is(err, lockimpl.ErrHeld) && b.Ctx.Err() == nil {
			return lockfinding.Broken(variant.Linearizable, "a client was refused, the holder released the lock, nobody else asked for it, and then the same client was refused: %v", err)
		}
		if err != nil || c.Release(m) != nil {
			return nil
		}
	}
	return nil
}}}

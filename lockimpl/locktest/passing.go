package locktest

import (
	"fmt"
	"sync"
	"time"

	"oversell/internal/realtime"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockrules"
	"oversell/wire"
)

// The rules in this file let time pass unnoticed by a client, or keep some of its commands from the masters, and then
// check that the lease that the client was promised exists.

// timePasses: any time may pass between any two of a client's steps.
func timePasses(b *bench) error {
	if why := b.renews(); why != "" {
		b.run.logf("%s/time that passes within an acquire or an extend was not tried: %s", b.property, why)
		return nil
	}
	const lease = 20 * time.Second
	var cases []part
	for _, p := range lockrules.Passages(b.run.server.Nodes(), lease) {
		cases = append(cases, part{"acquire", func(b *bench) error {
			return b.onVirtualClock(func(w *virtualBench) error { return w.slowly(p, false) })
		}})
		if b.run.able.extends {
			cases = append(cases, part{"extend", func(b *bench) error {
				return b.onVirtualClock(func(w *virtualBench) error { return w.slowly(p, true) })
			}})
		}
	}
	if b.run.server.Nodes() == 1 {
		for n := 1; n <= 2; n++ {
			cases = append(cases, part{fmt.Sprintf("an acquire without an answer to command %d, and the next", n), func(b *bench) error {
				return b.onVirtualClock(func(w *virtualBench) error { return w.askedAgain(n, lease) })
			}})
		}
	}
	if b.run.server.Nodes() > 2 {
		cases = append(cases, part{"acquire in two attempts", func(b *bench) error {
			return b.onVirtualClock(func(w *virtualBench) error { return w.piecemeal(lease) })
		}})
	}
	return b.together(3, cases)
}

// askedAgain makes an acquire that ends without the answer to a command, and after a time another one by the same
// client. The lease of the first ends first.
func (w *virtualBench) askedAgain(n int, lease time.Duration) error {
	c := w.client()
	if l, _, err := w.take(c, w.ttl); err == nil { // scripts are loaded
		w.call(func() { _ = c.Release(l) })
	}
	acquire := func() (l lockimpl.Lock, err error) {
		w.call(func() { l, err = c.Acquire(w.ctx, w.name, lockimpl.Options{TTL: lease, RetryEvery: pace}) })
		return l, err
	}
	c.Arm(n, wire.DropReply)
	_, err := acquire()
	reach := c.Sent() >= n
	c.Plan(nil)
	if err == nil || !reach {
		return nil
	}
	w.clock.Advance(lease * 7 / 10)
	l, err := acquire()
	if err != nil || realtime.Of(l.Until) {
		return nil
	}
	until := w.promised(l)
	w.to(until.Add(-20 * time.Millisecond))
	return w.refused(w.client(), until, fmt.Sprintf("after an acquire without an answer, and another one by the same client %v later, which was granted", lease*7/10))
}

// piecemeal makes an acquire with a first attempt that reaches a minority of the masters, and a second, later
// one that reaches one more: the keys of the first attempt expire before the others.
func (w *virtualBench) piecemeal(lease time.Duration) error {
	c := w.client()
	minority := (len(c.Links) - 1) / 2
	var once sync.Once
	pass := func() { once.Do(func() { w.clock.Advance(lease * 7 / 10) }) }
	for i, link := range c.Links {
		link.Plan(func(nth int, _ wire.Command) wire.Action {
			if i == len(c.Links)-1 && nth == 1 {
				pass() // at the end of the first attempt
			}
			if i > minority || i == minority && nth == 1 {
				return wire.Action{Verb: wire.DropRequest}
			}
			return wire.Action{}
		}, nil)
	}
	var l lockimpl.Lock
	var err error
	w.call(func() {
		l, err = c.Acquire(w.ctx, w.name, lockimpl.Options{TTL: lease, Wait: 3 * lease, RetryEvery: pace, MaxTries: 2})
	})
	c.Plan(nil)
	if err != nil || realtime.Of(l.Until) {
		return nil
	}
	until := w.promised(l)
	w.to(until.Add(-20 * time.Millisecond))
	return w.refused(w.client(), until, fmt.Sprintf("after an acquire that got some masters %v later than the others", lease*7/10))
}

// slowly makes an acquire or an extend during which time passes. The promised lease must keep others out.
func (w *virtualBench) slowly(p lockrules.Passage, extends bool) error {
	c := w.client()
	if l, _, err := w.take(c, w.ttl); err == nil { // scripts are loaded
		w.call(func() { _ = c.Release(l) })
	}
	var l lockimpl.Lock
	var err error
	if extends {
		if l, _, err = w.take(c, 2*p.Lease); err != nil {
			return nil
		}
	}
	passed := w.pass(c, p)
	w.call(func() {
		if extends {
			l, err = c.Extend(l, p.Lease)
		} else {
			l, err = c.Acquire(w.ctx, w.name, lockimpl.Options{TTL: p.Lease, RetryEvery: pace})
		}
	})
	c.Plan(nil)
	if err != nil || !passed() || realtime.Of(l.Until) {
		return nil
	}
	until, call := w.promised(l), "an acquire"
	if extends {
		call = "an extend"
	}
	what := fmt.Sprintf("after %s in which %v", call, p)
	if err := w.refused(w.client(), until, what); err != nil {
		return err
	}
	w.to(until.Add(-20 * time.Millisecond))
	return w.refused(w.client(), until, what)
}

// pass has time pass at a command, and reports whether it did.
func (w *virtualBench) pass(c *client, p lockrules.Passage) (passed func() bool) {
	var once sync.Once
	did := false
	pass := func() { once.Do(func() { did = true; w.clock.Advance(p.Passes) }) }
	c.Links[p.Master].Plan(func(nth int, _ wire.Command) wire.Action {
		switch {
		case nth != p.Nth:
			return wire.Action{}
		case p.Lost:
			return wire.Action{Verb: wire.DropReply}
		}
		pass()
		return wire.Action{}
	}, pass)
	return func() bool { once.Do(func() {}); return did }
}

// someMasters keeps a client from the majority of the masters.
func someMasters(b *bench) error {
	var cases []part
	nodes := b.run.server.Nodes()
	minority := (nodes - 1) / 2
	for first := range nodes {
		reach := func(master int) bool { return (master-first+nodes)%nodes < minority }
		cases = append(cases, part{"acquire", func(b *bench) error {
			c := b.practised()
			c.CutOffExcept(reach)
			l, err := c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: long, RetryEvery: pace})
			if err != nil {
				return nil
			}
			return b.held(c, l, fmt.Sprintf("after an acquire that reached %d of %d masters", minority, nodes))
		}})
		if b.run.able.extends {
			cases = append(cases, part{"extend", func(b *bench) error {
				c, l, err := b.practisedHolder(b.ttl)
				if err != nil {
					return err
				}
				c.CutOffExcept(reach)
				if m, err := c.Extend(l, 3*b.ttl); err == nil {
					l = m
				}
				l.Until = c.Until(l)
				c.Die()
				_, _, err = b.next(c, l, 3*b.ttl, b.ttl, fmt.Sprintf("after an extend that reached %d of %d masters", minority, nodes))
				return err
			}})
		}
	}
	return b.together(6, cases)
}

// renewalsSuffer: a renewal that a lock reports is a promise, too.
func renewalsSuffer(b *bench) error {
	late := func(by time.Duration) func(*bench) error {
		return func(b *bench) error { return b.renewedLate(by) }
	}
	return b.together(4, []part{
		{"answered late", late(b.ttl / 2)},
		{"answered a little late", late(b.ttl / 5)}, // a renewal may have a time limit
		{"fails", func(b *bench) error {
			c, l, err := b.practisedHolder(b.ttl)
			if err != nil {
				return err
			}
			c.CutOffExcept(func(int) bool { return false })
			_, _, err = b.next(c, l, 2*b.ttl, b.ttl, "with renewals that fail")
			return err
		}},
	})
}

// renewedLate tests a holder that dies after a late answer to its renewal.
func (b *bench) renewedLate(by time.Duration) error {
	c, l, err := b.practisedHolder(b.ttl)
	if err != nil {
		return err
	}
	first := c.Until(l)
	c.ArmAction(1, wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: by})
	for end := first.Add(b.ttl); time.Now().Before(end) && !c.Until(l).After(first); {
		b.sleep(time.Millisecond)
	}
	l.Until = c.Until(l)
	c.Die()
	_, _, err = b.next(c, l, 2*b.ttl, b.ttl, "after a renewal that was answered late, and the death of the holder")
	return err
}

// grantsAtOneTime: two grants may be at one time, by clocks that were set back, or for a request that was held up: a
// time does not distinguish them.
func grantsAtOneTime(b *bench) error {
	late := func(act string) func(*bench) error {
		return func(b *bench) error {
			at := func(c *client) { c.Env.Clock = lockclient.FixedClock{At: time.Now()} }
			owner := b.client(at)
			clock := owner.Env.Clock
			owner.Practise(b.name, b.ttl, false)
			l, err := owner.Try(b.name, b.ttl)
			if err != nil {
				return nil // a lock that waits by its clock
			}
			b.sleepUntil(time.Now().Add(b.ttl + 50*time.Millisecond))
			next := b.client(func(c *client) { c.Env.Clock = clock })
			next.Practise(b.name, b.ttl, false)
			called := time.Now()
			m, err := next.Try(b.name, long)
			if err != nil {
				return nil
			}
			m.Until = called.Add(long) // its clock stands
			if err := b.lateCall(owner, l, act); err != nil {
				return err
			}
			return b.held(next, m, "after the late "+act+" of an earlier holder, which had been granted the lock at the same time by its clock")
		}
	}
	if b.run.lock.Renews {
		return nil // its lease does not run out while it lives
	}
	cases := []part{{"release", late("release")}}
	if b.run.able.extends {
		cases = append(cases, part{"extend", late("extend")})
	}
	return b.together(2, cases)
}

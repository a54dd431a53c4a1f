package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/lockimpl/lockrules"
	"oversell/variant"
	"oversell/wire"
)

// The rules in this file act on one command among those of a call: they hold it up until
// others have done something, lose its answer, or have the client die there.

// leastSteps and mostSteps are bounds of steps.
const (
	leastSteps = 4
	mostSteps  = 10
)

// steps returns the number of the last command of a call at which the rules act; the calls of most locks send fewer. If
// a call meets a server that knows no scripts, the rules act on its first commands only.
func (b *bench) steps() int {
	if !b.forgets {
		return max(leastSteps, b.commands())
	}
	return leastSteps - min(b.run.server.Nodes(), 2)
}

// commands is how many commands the longest call had when each was tried, but at most mostSteps.
func (b *bench) commands() int { return min(max(b.run.able.commands, 2), mostSteps) }

// stalled starts a call of c and holds it up before its n-th command. It is nil, and the
// call has returned, if the call has fewer. A fault may hit the command before.
func (b *bench) stalled(c *client, n int, call func(), before ...wire.Action) *lockclient.Stall {
	c.forget()
	return c.Stalled(n, call, before...)
}

// practised returns a client that has sent every kind of command once, so that scripts are loaded and set-up is
// complete.
func (b *bench) practised() *client {
	c := b.client()
	c.Practise(b.name, b.ttl, b.run.able.extends)
	c.Plan(nil)
	return c
}

// lostAndStalled: commands that a client repeats, or sends to clean up, may come late.
func lostAndStalled(b *bench) error {
	var cases []part
	acts := []string{"acquire", "release"}
	if b.run.able.extends {
		acts = append(acts, "extend")
	}
	for _, act := range acts {
		for n := 1; n <= b.commands(); n++ {
			cases = append(cases, part{fmt.Sprintf("%s (command %d)", act, n), func(b *bench) error {
				c := b.practised()
				var l lockimpl.Lock
				var err error
				if act != "acquire" {
					if l, err = c.Take(b.name, b.ttl, 0); err != nil {
						return broken(variant.Progress, "a free lock was not granted: %v", err)
					}
				}
				granted := errors.New("it did not acquire")
				s := b.stalled(c, n+1, func() {
					switch act {
					case "acquire":
						l, granted = c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, RetryEvery: pace})
					case "release":
						_ = c.Release(l)
					case "extend":
						_, _ = c.Extend(l, b.ttl)
					}
				}, wire.Action{Verb: wire.DropReply}) // executed, and not answered
				if s == nil {
					return nil
				}
				next := b.client()
				m, e := next.Take(b.name, long, 2*b.ttl)
				s.GoOn()
				if e != nil {
					return broken(variant.Progress, "after a client had been held up in its %s, nobody could take the lock: %v", act, e)
				}
				if granted == nil && time.Until(c.Until(l)) > 0 && time.Until(next.Until(m)) > 0 {
					return broken(variant.MutualExclusion, "two clients were granted the lock: one lost the answer to command %d of its acquire, and was held up before the next, while another was granted it", n)
				}
				return b.intact(next, m, fmt.Sprintf("after an earlier client's %s, of which the answer to command %d was lost, and the rest was held up", act, n))
			}})
		}
	}
	return b.together(8, b.alone(cases))
}

// tokensRiseBeside holds up an acquire before each of its commands.
func tokensRiseBeside(b *bench) error { return calling(lockrules.FencesBeside(b.steps()))(b) }

func stalledAcquire(b *bench) error {
	var cases []part
	for n := 2; n <= b.steps(); n++ {
		at := fmt.Sprintf(" (before command %d)", n)
		cases = append(cases,
			part{"a free lock, which another takes meanwhile" + at, func(b *bench) error {
				return b.beside(n, func() error { return nil })
			}},
			part{"a free lock, which others take, release and take meanwhile" + at, func(b *bench) error {
				return b.beside(n, func() error {
					err := b.free(b.name, b.ttl, "beside a client that was held up")
					var w *breach
					if errors.As(err, &w) && w.Property == variant.Progress && w.Refused {
						return nil // the lease of the one that was held up may have begun
					}
					return err
				})
			}},
			part{"a free lock, for a lease that runs out, and another takes the lock meanwhile" + at, func(b *bench) error {
				return b.besideOf(b.practised(), n, b.ttl, func() error { return nil })
			}},
			part{"a held lock, which is released and taken meanwhile" + at, func(b *bench) error {
				holder, l, err := b.holder(long)
				if err != nil {
					return err
				}
				return b.beside(n, func() error { return b.givesBack(holder, l, "with another client that was held up") })
			}},
			part{"a lease that runs out, and the lock is taken meanwhile" + at, func(b *bench) error {
				holder, l, err := b.abandoned(b.ttl)
				if err != nil {
					return err
				}
				return b.beside(n, func() error { b.sleepUntil(holder.Until(l)); return nil })
			}},
			part{"a dead holder's lock, of which the lease has run out, and another takes the lock meanwhile" + at, func(b *bench) error {
				holder, l, err := b.abandoned(b.ttl)
				if err != nil {
					return err
				}
				b.sleepUntil(holder.Until(l))
				return b.beside(n, func() error { return nil })
			}},
			part{"the client's own lock, of which the lease runs out, and the lock is taken meanwhile" + at, func(b *bench) error {
				slow, l, err := b.practisedHolder(b.ttl)
				if err != nil {
					return err
				}
				return b.besideOf(slow, n, long, func() error { b.sleepUntil(slow.Until(l)); return nil })
			}},
		)
	}
	return b.together(12, b.alone(cases))
}

// beside holds up an acquire before its n-th command, until meanwhile has run and another client has taken the lock.
func (b *bench) beside(n int, meanwhile func() error) error {
	return b.besideOf(b.practised(), n, long, meanwhile)
}

// besideOf is beside with a client that asks for a lease.
func (b *bench) besideOf(slow *client, n int, lease time.Duration, meanwhile func() error) error {
	var l lockimpl.Lock
	err := errors.New("the call has not returned")
	s := b.stalled(slow, n, func() { l, err = slow.Acquire(b.ctx, b.name, lockimpl.Options{TTL: lease}) })
	if s == nil {
		return nil
	}
	if e := meanwhile(); e != nil {
		s.GoOn()
		return e
	}
	other := b.client()
	m, e := other.TakeWithin(b.name, long, min(lease, b.ttl)+2*time.Second)
	s.GoOn()
	if e != nil {
		return nil // what the one that was held up had written by then keeps others out
	}
	if err == nil && time.Until(other.Until(m)) > 0 && time.Until(slow.Until(l)) > 0 {
		return broken(variant.MutualExclusion, "two clients were granted the lock: one was held up before command %d of its acquire, while another was granted it", n)
	}
	return b.intact(other, m, fmt.Sprintf("after another client had been held up before command %d of its acquire", n))
}

// scriptless is a check in which each call that is tried meets a server that knows no scripts.
func scriptless(check func(*bench) error) func(*bench) error {
	return func(b *bench) error {
		b.forgets = true
		return check(b)
	}
}

func stalledOwner(b *bench) error {
	var cases []part
	acts := []string{"release"}
	if b.run.able.extends {
		acts = append(acts, "extend")
	}
	for _, act := range acts {
		for n := 1; n <= b.steps(); n++ {
			cases = append(cases, part{fmt.Sprintf("%s (before command %d)", act, n), func(b *bench) error { return b.ownerHeldUp(act, n) }})
		}
	}
	return b.together(8, b.alone(cases))
}

// ownerHeldUp holds up a holder until its lease has run out and another has the lock.
func (b *bench) ownerHeldUp(act string, n int) error {
	owner, l, err := b.practisedHolder(b.ttl)
	if err != nil {
		return err
	}
	if b.run.lock.Renews {
		owner.End()
	}
	var extended lockimpl.Lock
	s := b.stalled(owner, n, func() {
		if act == "release" {
			err = owner.Release(l)
		} else {
			extended, err = owner.Extend(l, long)
		}
	})
	if s == nil {
		return nil
	}
	next := b.client()
	kept := false // the commands before have not released the lock
	if act == "release" {
		m, e := next.Try(b.name, b.ttl)
		if e == nil {
			_ = next.Release(m)
		}
		kept = errors.Is(e, lockimpl.ErrHeld) && time.Until(owner.Until(l)) > 0
	}
	m, e := next.Take(b.name, 3*b.ttl, b.ttl)
	early := time.Until(owner.Until(l))
	s.GoOn()
	switch {
	case e != nil && act == "extend":
		return nil // the commands before may have extended the lease
	case e != nil:
		return broken(variant.Progress, "nobody could take the lock after the lease of a holder had run out that was held up in its %s: %v", act, e)
	}
	if early > 0 && act == "extend" {
		return broken(variant.MutualExclusion, "a second client got the lock %v before the end of a lease that was being extended", early)
	}
	end := next.Until(m)
	if errors.Is(err, lockimpl.ErrHeld) {
		return lockfinding.BrokenInterface("lockimpl.Locker", b.property, "a holder's %s that was held up before command %d, until another client had the lock, was answered with %q; want an error that is %q", act, n, err, lockimpl.ErrLost)
	}
	both := err == nil && time.Until(end) > 0 && (act == "extend" && owner.Until(extended).After(time.Now()) ||
		kept && (b.run.able.tells || errors.Is(owner.Release(l), lockimpl.ErrLost)))
	if err := b.held(next, m, fmt.Sprintf("after the %s of a holder that was held up before command %d of it", act, n)); err != nil {
		return err
	}
	next.Die() // the effect of the late call on the lease shows when the lease is not renewed
	if err := b.prolonged(b.name, time.Until(end), fmt.Sprintf("after the %s of a holder that was held up before command %d of it, and the death of the next holder", act, n)); err != nil {
		return err
	}
	if both {
		p := map[string]variant.Property{"release": variant.OwnerOnlyRelease, "extend": variant.MutualExclusion}[act]
		return broken(p, "a holder's %s that was held up before command %d, until another client had the lock, was answered with success; want ErrLost", act, n)
	}
	return nil
}

// diesBetween has clients die before or after a command is executed.
func diesBetween(b *bench) error {
	var cases []part
	acts := []string{"an acquire", "a release", "a refused acquire"}
	if b.run.able.extends {
		acts = append(acts, "an extend")
	}
	for _, act := range acts {
		for n := 1; n <= b.steps(); n++ {
			for _, verb := range []wire.Verb{wire.DropRequest, wire.DropReply} {
				cases = append(cases, part{fmt.Sprintf("%s (command %d, %s)", act, n, verb), func(b *bench) error { return b.diesIn(act, n, verb) }})
			}
		}
	}
	return b.together(16, b.alone(cases))
}

func (b *bench) diesIn(act string, n int, verb wire.Verb) error {
	doomed := b.practised()
	var l, h lockimpl.Lock
	var holder *client
	var err error
	switch act {
	case "a release", "an extend":
		if l, err = doomed.Take(b.name, b.ttl, 0); err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
	case "a refused acquire":
		if holder, h, err = b.holder(long); err != nil {
			return err
		}
	}
	fired := make(chan struct{})
	var once sync.Once
	doomed.forget()
	doomed.Plan(func(nth int, _ wire.Command) wire.Action {
		switch {
		case nth < n:
			return wire.Action{}
		case nth == n:
			once.Do(func() { close(fired) })
			return wire.Action{Verb: verb}
		}
		return wire.Action{Verb: wire.DropRequest} // it is dead
	})
	go func() {
		switch act {
		case "a release":
			_ = doomed.Release(l)
		case "an extend":
			_, _ = doomed.Extend(l, 2*b.ttl)
		default:
			_, _ = doomed.Acquire(doomed.Ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: briefLease, RetryEvery: pace})
		}
	}()
	select {
	case <-fired:
		b.sleep(20 * time.Millisecond)
	case <-time.After(briefLease):
	}
	doomed.Die()
	if holder != nil {
		if err := b.intact(holder, h, "after another client that died"); err != nil {
			return err
		}
	}
	return b.free(b.name, 2*b.ttl, fmt.Sprintf("after the death of a client at command %d of %s", n, act))
}

// lostAnswers loses requests and answers of live clients: they try again, or clean up.
func lostAnswers(b *bench) error {
	var cases []part
	for n := 1; n <= max(3, b.commands()); n++ {
		for _, verb := range []wire.Verb{wire.DropReply, wire.DropRequest, wire.Reset} {
			if verb == wire.Reset && n > 1 {
				continue
			}
			how := fmt.Sprintf(" (command %d, %s)", n, verb)
			cases = append(cases,
				part{"acquire" + how, func(b *bench) error { return b.acquireLost(n, verb, false) }},
				part{"acquire of a held lock" + how, func(b *bench) error { return b.acquireLost(n, verb, true) }},
				part{"release" + how, func(b *bench) error { return b.releaseLost(n, verb) }})
			if b.run.able.extends {
				cases = append(cases, part{"extend" + how, func(b *bench) error { return b.extendLost(n, verb) }})
			}
		}
	}
	cases = append(cases, part{"a server that does not answer", func(b *bench) error {
		holder, l, err := b.holder(long)
		if err != nil {
			return err
		}
		c := b.practised()
		c.Freeze()
		defer c.Thaw()
		if _, err := c.Acquire(c.Ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: briefLease, RetryEvery: pace}); err == nil {
			return broken(variant.MutualExclusion, "a client that cannot reach the server was granted a lock that is held")
		}
		return b.givesBack(holder, l, "with another client cut off")
	}})
	return b.together(16, cases)
}

func (b *bench) acquireLost(n int, verb wire.Verb, isHeld bool) error {
	c := b.practised()
	var holder *client
	var h lockimpl.Lock
	if isHeld {
		var err error
		if holder, h, err = b.holder(long); err != nil {
			return err
		}
	}
	c.Arm(n, verb)
	l, err := c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, RetryEvery: pace})
	reach := c.Sent() >= n
	c.Plan(nil)
	after := fmt.Sprintf("after an acquire of which command %d suffered %s", n, verb)
	if isHeld {
		if err == nil && time.Until(holder.Until(h)) > 0 {
			return broken(variant.MutualExclusion, "a client was granted a lock that is held when command %d of its acquire suffered %s", n, verb)
		}
		return b.intact(holder, h, after)
	}
	if !reach {
		return nil
	}
	if err == nil {
		if err := b.intact(c, l, after); err != nil {
			return err
		}
	}
	m, err := c.Take(b.name, long, b.ttl)
	if err != nil {
		return broken(variant.Progress, "%s, the same client could not take the lock: %v", after, err)
	}
	return b.intact(c, m, after+" and was repeated")
}

// refusedHoldsNothing: a client that was refused does not hold the lock, even if an answer was lost before. A lock
// that no client holds can be taken.
func refusedHoldsNothing(b *bench) error {
	var cases []part
	for n := 1; n <= b.commands(); n++ {
		for _, h := range []struct {
			how  wire.Verb
			wait time.Duration
		}{{wire.DropReply, 0}, {wire.DropReply, briefLease}, {wire.ResetAfter, 0}, {wire.ResetAfter, briefLease}} {
			cases = append(cases, part{fmt.Sprintf("command %d, %s, with a wait of %v", n, h.how, h.wait), func(b *bench) error {
				c := b.practised()
				c.Arm(n, h.how)
				_, err := c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: long, Wait: h.wait, RetryEvery: pace})
				reach := c.Sent() >= n
				c.Plan(nil)
				if !reach || !errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					return nil
				}
				other := b.client()
				m, e := other.TakeWithin(b.name, b.ttl, 2*time.Second)
				if e != nil { // its own attempts without an answer may have left the lock held
					m, e = other.TakeWithin(b.name, 4*b.ttl, patience)
				}
				if e == nil {
					return b.givesBack(other, m, "after another client had been refused")
				}
				if !errors.Is(e, lockimpl.ErrHeld) {
					return nil
				}
				return broken(variant.Linearizable, "a client that lost the answer to command %d of its acquire was told %v, so nobody holds the lock, and others are refused: %v", n, err, e)
			}})
		}
	}
	return b.together(4, cases)
}

func (b *bench) releaseLost(n int, verb wire.Verb) error {
	c, l, err := b.practisedHolder(b.ttl)
	if err != nil {
		return err
	}
	c.Arm(n, verb)
	err = c.Release(l)
	reach := c.Sent() >= n
	c.Plan(nil)
	if !reach {
		return nil
	}
	after := fmt.Sprintf("after a release of which command %d suffered %s", n, verb)
	other := b.client()
	m, e := other.Take(b.name, long, b.ttl)
	if e != nil {
		return broken(variant.Progress, "%s, nobody could take the lock: %v", after, e)
	}
	if err != nil {
		for range 2 {
			_ = c.Release(l)
		}
	}
	b.property = variant.OwnerOnlyRelease
	return b.intact(other, m, after+", and a second one by the same client")
}

func (b *bench) extendLost(n int, verb wire.Verb) error {
	c, l, err := b.practisedHolder(b.ttl)
	if err != nil {
		return err
	}
	c.Arm(n, verb)
	m, err := c.Extend(l, 2*b.ttl)
	reach := c.Sent() >= n
	c.Plan(nil)
	if !reach {
		return nil
	}
	if err == nil {
		l = m
	}
	l.Until = c.Until(l)
	c.Die()
	_, _, err = b.next(c, l, 2*b.ttl, b.ttl, fmt.Sprintf("after an extend of which command %d suffered %s", n, verb))
	return err
}

// lateRequests has the server execute a command after its client has given up.
func lateRequests(b *bench) error {
	const late = 250 * time.Millisecond
	arrives := func(c *client, n int) { c.ArmAction(n, wire.Action{Verb: wire.Late, After: late}) }
	releases := func(c *client, l lockimpl.Lock, n int) {
		arrives(c, n)
		err := c.Release(l)
		c.Plan(nil)
		if err != nil {
			_ = c.Release(l)
		}
	}
	var cases []part
	for n := 1; n <= b.commands(); n++ {
		at := fmt.Sprintf(" (command %d)", n)
		cases = append(cases, part{"a release, and another holder" + at, func(b *bench) error {
			c, l, err := b.practisedHolder(long)
			if err != nil {
				return err
			}
			releases(c, l, n)
			other, m, err := b.holder(long)
			if err != nil {
				return nil
			}
			b.sleep(late + 100*time.Millisecond)
			return b.intact(other, m, "after a release by the earlier holder that arrived late")
		}})
		if !b.run.able.reenters {
			cases = append(cases, part{"a release, and the same holder again" + at, func(b *bench) error {
				c, l, err := b.practisedHolder(long)
				if err != nil {
					return err
				}
				releases(c, l, n)
				m, err := c.TakeWithin(b.name, long, time.Second)
				if err != nil {
					return nil
				}
				b.sleep(late + 100*time.Millisecond)
				return b.intact(c, m, "after a release of the client's earlier grant that arrived late")
			}})
		}
		if b.run.able.extends {
			cases = append(cases, part{"an extend, and another holder" + at, func(b *bench) error {
				c, l, err := b.practisedHolder(long)
				if err != nil {
					return err
				}
				arrives(c, n)
				_, _ = c.Extend(l, long)
				c.Plan(nil)
				_ = c.Release(l)
				next, m, err := b.abandoned(b.ttl)
				if err != nil {
					return nil
				}
				_, _, err = b.next(next, m, b.ttl, b.ttl, "with an extend by the earlier holder that arrived late")
				return b.itsOwn(err)
			}})
		}
	}
	return b.together(8, cases)
}

// leaseFromCall delays answers: a lease counts from the call or from its execution on the server, and the client does
// not know the time of execution.
func leaseFromCall(b *bench) error {
	cases := []part{{"acquire", func(b *bench) error {
		c := b.practised()
		c.ArmAction(1, wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: b.ttl * 7 / 10})
		l, err := c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, RetryEvery: pace})
		c.Plan(nil)
		if err != nil {
			return nil
		}
		l.Until = c.Until(l)
		c.Die()
		_, _, err = b.next(c, l, b.ttl, b.ttl, "after an acquire that was answered slowly")
		return err
	}}}
	if b.run.able.extends {
		cases = append(cases, part{"extend", func(b *bench) error {
			c, l, err := b.practisedHolder(b.ttl * 2)
			if err != nil {
				return err
			}
			c.ArmAction(1, wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: b.ttl * 7 / 10})
			m, err := c.Extend(l, b.ttl*2)
			c.Plan(nil)
			if err == nil {
				l = m
			}
			l.Until = c.Until(l)
			c.Die()
			_, _, err = b.next(c, l, 2*b.ttl, b.ttl, "after an extend that was answered slowly")
			return err
		}})
	}
	return b.together(4, cases)
}

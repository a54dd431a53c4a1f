package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/clock"
	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/lockimpl/leases"
	"oversell/variant"
)

// heldIsRefused tries as new clients, which may prepare the server first, and as another thread of the holder's
// program.
func heldIsRefused(b *bench) error {
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	ask := func(c *client, who string, ttl time.Duration) error {
		var err error
		for start := b.run.lasted(); ; {
			_, err = c.Try(b.name, ttl)
			switch {
			case err == nil:
				return broken(variant.MutualExclusion, "%s was granted the lock while the first client held it; want ErrHeld", who)
			case errors.Is(err, lockimpl.ErrHeld), ttl != long, b.ctx.Err() != nil:
				return nil // a lock may give the server a small part of the lease to answer, and refuse a long one
			case b.run.lasted()-start > patience:
				return broken(variant.MutualExclusion, "%s was answered %v while the first client held the lock; want ErrHeld", who, err)
			}
		}
	}
	for i := range 3 {
		c := b.client()
		for range 2 {
			if err := ask(c, fmt.Sprintf("client %d", i+2), []time.Duration{long, b.ttl, 2 * long}[i]); err != nil {
				return err
			}
		}
	}
	if err := ask(holder.thread(), "another thread of the holder's program", long); err != nil {
		return err
	}
	return b.intact(holder, l, "after others had been refused")
}

// refusalsChangeNothing has clients refused in many ways, each of which may clean up in its own way.
func refusalsChangeNothing(b *bench) error {
	under := func(act func(b *bench, c *client, name string)) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			c := b.client()
			act(b, c, holder.Name(l))
			if err := b.held(holder, l, "after another client had been refused"); err != nil {
				return err
			}
			// Leftovers of a refusal may also do harm later.
			b.sleep(2 * briefLease)
			return b.intact(holder, l, "after another client had been refused")
		}
	}
	brief := b.ttl
	if b.run.able.brief {
		brief = briefLease / 2
	}
	ask := func(b *bench, c *client, name string, d time.Duration, o lockimpl.Options) {
		ctx, cancel := context.WithTimeout(b.ctx, d)
		defer cancel()
		_, _ = c.Acquire(ctx, name, o)
	}
	return b.together(8, []part{
		{"one attempt", under(func(b *bench, c *client, name string) {
			ask(b, c, name, long, lockimpl.Options{TTL: long})
		})},
		{"attempts with a short lease", under(func(b *bench, c *client, name string) {
			for range 5 {
				ask(b, c, name, long, lockimpl.Options{TTL: brief})
			}
		})},
		{"a wait that ends", under(func(b *bench, c *client, name string) {
			ask(b, c, name, long, lockimpl.Options{TTL: b.ttl, Wait: 150 * time.Millisecond, RetryEvery: pace})
		})},
		{"a number of tries that ends", under(func(b *bench, c *client, name string) {
			ask(b, c, name, long, lockimpl.Options{TTL: b.ttl, Wait: time.Second, RetryEvery: pace, MaxTries: 3})
		})},
		{"a wait whose context ends", under(func(b *bench, c *client, name string) {
			ask(b, c, name, 100*time.Millisecond, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: pace})
		})},
		{"a context that has ended", under(func(b *bench, c *client, name string) {
			ask(b, c, name, 0, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: pace})
		})},
		{"a client that tries many times", under(func(b *bench, c *client, name string) {
			for range 60 {
				ask(b, c, name, long, lockimpl.Options{TTL: b.ttl})
			}
		})},
	})
}

// leaseKeepsOut lets holders die and measures when the next ones get in. There is no allowance: the grant is measured
// after it happened. The next clients ask for other leases than the holder.
func leaseKeepsOut(b *bench) error {
	keeps := func(ttl, next time.Duration) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.abandoned(ttl)
			if err != nil {
				return err
			}
			_, _, err = b.next(holder, l, ttl, next, fmt.Sprintf("with a lease of %v", ttl))
			return err
		}
	}
	cases := []part{
		{"the usual lease", keeps(b.ttl, b.ttl)}, {"a longer lease after it", keeps(b.ttl, long)},
		{"two seconds", keeps(2*time.Second, b.ttl)}, {"six seconds", keeps(6*time.Second, b.ttl)},
	}
	if b.run.able.brief {
		cases = append(cases, part{"a brief lease", keeps(briefLease, briefLease)}, part{"a brief lease after it", keeps(b.ttl, briefLease)})
	}
	return b.together(12, cases)
}

// leaseAfterWait: a waiter that looks seldom may have been granted the lock long before it notices. Its lease must
// still keep others out until the promised end.
func leaseAfterWait(b *bench) error {
	var cases []part
	for _, every := range []time.Duration{pace, b.ttl / 2, b.ttl * 9 / 10} {
		cases = append(cases, part{fmt.Sprintf("looking every %v", every), func(b *bench) error {
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			waiter := b.client()
			granted := make(chan error, 1)
			var m lockimpl.Lock
			go func() {
				var err error
				m, err = waiter.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: 10 * b.ttl, RetryEvery: every})
				granted <- err
			}()
			b.sleep(every/2 + 20*time.Millisecond)
			if err := b.givesBack(holder, l, "while another client waited"); err != nil {
				return err
			}
			if err := <-granted; err != nil {
				return nil // other rules are about that
			}
			m.Until = waiter.Until(m)
			waiter.Die()
			_, _, err = b.next(waiter, m, 2*b.ttl, b.ttl, fmt.Sprintf("when the lock was obtained after a wait with a look every %v", every))
			return b.itsOwn(err)
		}})
	}
	return b.together(len(cases), cases)
}

// renewalKeepsOut: the holder does nothing for several leases, alone or with other locks of its own beside.
func renewalKeepsOut(b *bench) error {
	const leases = 3
	keeps := func(ttl time.Duration, others int, lease time.Duration, back bool) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(ttl)
			if err != nil {
				return err
			}
			after := fmt.Sprintf("%v after its grant", leases*b.ttl)
			if others > 0 {
				after += fmt.Sprintf(", beside %s of the same client with a lease of %v", phrase.Count(others, "other lock"), lease)
			}
			kept := []lockimpl.Lock{l}
			for i := range others {
				m, err := holder.Take(fmt.Sprint(b.name, "-other-", i), lease, 0)
				if err != nil {
					return nil // other rules are about that
				}
				if kept = append(kept, m); back {
					kept = kept[:1]
					if err := b.givesBack(holder, m, "beside another lock"); err != nil {
						return err
					}
					after += ", which was released"
				}
			}
			start, answered := time.Now(), b.run.lasted()
			b.sleep(leases * b.ttl)
			busy := b.run.lasted()-answered < time.Since(start)*3/4
			for _, l := range kept {
				if time.Until(holder.Until(l)) > 0 {
					err = b.intact(holder, l, after)
				} else if _, e := b.client().Try(holder.Name(l), b.ttl); e == nil { // it says that its lease is over, or does not report renewals
					err = broken(variant.MutualExclusion, "%s, another client got the lock %q: the lease was not renewed, though its holder was alive and had not released it", after, holder.Name(l))
					if busy {
						err = unjudged("the lock was not renewed in time, perhaps because the machine is busy", err)
					}
				}
				if _ = holder.Release(l); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return b.together(4, []part{
		{"one lock", b.often(keeps(b.ttl, 0, 0, false))}, {"beside another", b.often(keeps(b.ttl, 1, b.ttl, false))}, {"when another was released", b.often(keeps(b.ttl, 1, b.ttl, true))},
		{"beside another with a short lease", b.often(keeps(4*b.ttl, 1, b.ttl, false))}, // shorter than the pause between two renewals
		{"beside many", b.often(keeps(b.ttl, 40, b.ttl, false))},
	})
}

func extendKeepsOut(b *bench) error {
	keeps := func(ttl, wait, by time.Duration, times int) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(ttl)
			if err != nil {
				return err
			}
			for range times {
				b.sleep(wait)
				m, err := b.extend(holder, l, by)
				switch {
				case errors.Is(err, lockimpl.ErrLost) && time.Until(holder.Until(l)) > 0:
					return broken(b.falseLoss(), "the holder was told that its lock is lost %v before the end of its lease", time.Until(holder.Until(l)))
				case err != nil:
					return nil // a machine so busy that the lease is over, or a time limit
				}
				l = m
			}
			l.Until = holder.Until(l)
			holder.Die()
			_, _, err = b.next(holder, l, by, b.ttl, fmt.Sprintf("with a lease of %v extended to %v", ttl, by))
			return err
		}
	}
	cases := []part{
		{"longer", keeps(b.ttl, 0, 2*b.ttl, 1)},
		{"at half of the lease", keeps(b.ttl, b.ttl/2, b.ttl, 2)},
	}
	if b.run.able.brief {
		cases = append(cases, part{"a brief lease", keeps(briefLease, 0, leases.Odd[0], 1)})
		for _, by := range leases.Odd {
			cases = append(cases, part{fmt.Sprintf("by %v", by), keeps(b.ttl, 0, by, 1)})
		}
	}
	return b.together(8, cases)
}

// extend tries a few times when the outcome is open.
func (b *bench) extend(c *client, l lockimpl.Lock, ttl time.Duration) (m lockimpl.Lock, err error) {
	for range 4 {
		if m, err = c.Extend(l, ttl); err == nil || errors.Is(err, lockimpl.ErrLost) {
			return m, err
		}
		b.sleep(pace)
	}
	return m, err
}

// asksAgain has a holder ask for its own lock: it may be refused, or be granted the lock
// once more, and then both grants count.
func asksAgain(b *bench) error {
	c, l, err := b.holder(long)
	if err != nil {
		return err
	}
	m, err := c.Try(b.name, long)
	if err != nil {
		return b.intact(c, l, "after the holder had asked again and been refused")
	}
	if err := b.held(c, m, "with two grants to one client"); err != nil {
		return err
	}
	_ = c.Release(m)
	if err := b.held(c, l, "after one of two grants to the same client had been released"); err != nil {
		return err
	}
	_ = c.Release(l)
	return b.free(b.name, 0, "after both of two grants to one client had been released")
}

// clocksDiffer: a client must not judge times written by another client's clock by its own clock.
func clocksDiffer(b *bench) error {
	var cases []part
	for _, holds := range []time.Duration{-time.Hour, -2 * b.ttl, 0, time.Hour} {
		for _, asks := range []time.Duration{-time.Hour, 0, 2 * b.ttl, time.Hour} {
			if holds == asks {
				continue
			}
			cases = append(cases, part{fmt.Sprintf("the holder's clock is %s, the other client's %s", phrase.Clock(holds), phrase.Clock(asks)), func(b *bench) error {
				holder, l, err := b.holder(min(long, b.ttl*10), clockAhead(holds))
				if err != nil {
					return err
				}
				if b.run.able.extends {
					if m, err := b.extend(holder, l, min(long, b.ttl*10)); err == nil {
						l = m
					}
				}
				c := b.client(clockAhead(asks))
				for range 3 {
					if _, err := c.Try(b.name, b.ttl); err == nil && time.Until(holder.Until(l)) > 0 {
						return broken(variant.MutualExclusion, "a client whose clock is %s was granted the lock %v before the end of the lease of a holder whose clock is %s",
							phrase.Clock(asks), time.Until(holder.Until(l)).Round(time.Millisecond), phrase.Clock(holds))
					}
				}
				return b.givesBack(holder, l, "after a client with another clock had asked")
			}})
		}
	}
	return b.together(4, append(cases, part{"the end of a lease by a clock that is behind", func(b *bench) error { return b.onVirtualClock(ownClock) }}))
}

// ownClock: Until is a time of the holder's clock, which is behind, and not of the server's. Both are far ahead of the real
// clock, so a lock that reads that one promises nothing here.
func ownClock(w *virtualBench) error {
	const behind = time.Hour
	c := w.client()
	c.Env.Clock = clock.Shifted{Clock: w.clock, By: -behind}
	c.Again()
	l, _, err := w.take(c, w.ttl)
	for _, call := range []string{"granted", "extended by"} {
		if err != nil {
			return fmt.Errorf("%w: it was answered %w", errUnfit, err)
		}
		if left := l.Until.Sub(c.Env.Clock.Now()); left > w.ttl+behind/2 {
			return broken(variant.MutualExclusion, "a holder whose clock is %v behind was %s a lease of %v, and by its own clock it has %v left: the end was told by the server's clock", behind, call, w.ttl, left.Round(time.Millisecond))
		}
		if !w.run.able.extends {
			break
		}
		l, _, err = w.extendBy(c, l, w.ttl)
	}
	return nil
}

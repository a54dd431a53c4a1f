package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/variant"
)

// deadWithWrongClock: a wrong clock of one client must not make others wait.
func deadWithWrongClock(b *bench) error {
	var cases []part
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		cases = append(cases, part{"a clock that is " + phrase.Clock(ahead), func(b *bench) error {
			c, _, err := b.holder(b.ttl, clockAhead(ahead))
			if err != nil {
				return err
			}
			c.Die()
			return b.free(b.name, b.ttl, fmt.Sprintf("after the end of the lease of a client that died, whose clock was %s", phrase.Clock(ahead)))
		}})
	}
	return b.together(4, cases)
}

func releasedCanBeTaken(b *bench) error {
	one, two := b.client(), b.client()
	for i, c := range []*client{one, two, one, one, two} {
		l, err := c.Take(b.name, long, 0)
		if err != nil {
			return broken(variant.Progress, "grant %d: a lock that was free was not granted: %v", i+1, err)
		}
		if err := b.givesBack(c, l, fmt.Sprintf("after grant %d", i+1)); err != nil {
			return err
		}
		if b.run.promises(variant.Linearizable) && !b.run.able.tells {
			if err := c.Release(l); err == nil {
				return broken(variant.Linearizable, "a second release of the same lock was answered with success; want ErrLost")
			}
		}
		if b.run.able.extends && !b.run.able.reenters {
			if _, err := c.Extend(l, long); err == nil {
				if _, err := two.TakeWithin(b.name, b.ttl, time.Second); err != nil {
					return broken(variant.Progress, "an extend after the release took the lock again: %v", err)
				}
				return broken(variant.OwnerOnlyRelease, "an extend of a lock that was released was answered with success; want ErrLost")
			}
		}
	}
	return nil
}

// waiterGetsIt releases the lock while another client begins to wait, at many moments.
func waiterGetsIt(b *bench) error {
	const rounds, limit = 40, 4 * time.Second
	holder, waiter := b.client(), b.client()
	for i := range rounds {
		l, err := holder.Take(b.name, long, 0)
		if err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
		type answer struct {
			m   lockimpl.Lock
			err error
		}
		got := make(chan answer, 1)
		go func() {
			m, err := waiter.TakeWithin(b.name, long, patience+limit)
			got <- answer{m, err}
		}()
		b.sleep(time.Duration(holder.IntN(1+i*100)) * time.Microsecond)
		if err := b.givesBack(holder, l, "while another client waited"); err != nil {
			return err
		}
		select {
		case a := <-got:
			if a.err != nil {
				return broken(variant.Progress, "a waiter did not get the lock after its release: %v", a.err)
			}
			if err := b.givesBack(waiter, a.m, "after a wait"); err != nil {
				return err
			}
		case <-b.after(limit):
			return broken(variant.Progress, "a waiter had not got the lock %v after its release (round %d): %v", limit, i+1, errStillHeld)
		}
	}
	return nil
}

// looksAgain: Options.RetryEvery is the longest pause between two attempts, however long a client has waited. A busy
// machine makes pauses seem long, so the rule fails only after two long pauses, and after two more when the other rules
// have ended.
func looksAgain(b *bench) error {
	found, err := b.latePauses()
	if len(found) == 1 && err == nil {
		var more []error
		more, err = b.latePauses()
		found = append(found, more...)
	}
	switch {
	case len(found) < 2:
		return err
	case !b.run.repeats.Load():
		return unjudged("the machine may be too busy", found[0])
	}
	return found[0]
}

// latePauses has clients wait for times of several lengths, and returns errors about the pauses before their grants.
func (b *bench) latePauses() (found []error, err error) {
	const late = 200 * pace // a lock may look at another pace than it was told, but not at one that grows without end
	var mu sync.Mutex       // guards found
	after := func(holds time.Duration) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			waiter := b.client(func(c *client) {
				c.Env.Wait = func(ctx context.Context, _ string, atMost time.Duration) error {
					return clock.Real{}.Sleep(ctx, atMost)
				}
			})
			type answer struct {
				m   lockimpl.Lock
				err error
			}
			got := make(chan answer, 1)
			go func() {
				m, err := waiter.Acquire(waiter.Ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: pace})
				got <- answer{m, err}
			}()
			b.sleep(holds)
			if err := b.givesBack(holder, l, "while another client waited"); err != nil {
				return err
			}
			start, sent := b.run.lasted(), waiter.Sent()
			a := <-got
			over := b.run.lasted() - start
			if a.err != nil {
				return nil // other rules are about that
			}
			want := "want a pause between attempts of at most RetryEvery"
			if asked := waiter.Sent() - sent; asked > 20 {
				want = fmt.Sprintf("the client had sent %d commands meanwhile: want a released lock to be free", asked)
			}
			_ = waiter.Release(a.m)
			if over > late {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, broken(variant.Progress, "a client that had waited for %v and was to try again every %v was granted the lock %v after its release: %s",
					holds, pace, over.Round(time.Millisecond), want))
			}
			return nil
		}
	}
	var cases []part
	for holds := 2 * time.Second; holds <= 5*time.Second; holds += 500 * time.Millisecond {
		cases = append(cases, part{fmt.Sprintf("after %v", holds), after(holds)})
	}
	err = b.together(len(cases), cases)
	return found, err
}

// severalWait: if several clients wait for a free lock at the same time, one gets it, and then the next.
func severalWait(b *bench) error {
	return b.together(4, []part{
		{"two", func(b *bench) error { return b.crowd(true, pace, pace) }},
		{"five", func(b *bench) error { return b.crowd(true, pace, pace, pace, pace, pace) }},
		{"two that ask at other intervals", func(b *bench) error { return b.crowd(true, pace, 60*time.Millisecond) }},
		{"three that come to a free lock", func(b *bench) error { return b.crowd(false, pace, 2*pace, 3*pace) }},
	})
}

// crowd has clients wait for one lock, each for as long as it takes, looking again at an interval. They must not stop
// before all have been served: if two block each other, one gets the lock when the other gives up.
func (b *bench) crowd(held bool, every ...time.Duration) error {
	var holder *client
	var l lockimpl.Lock
	if held {
		var err error
		if holder, l, err = b.holder(long); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	type answer struct {
		c *client
		m lockimpl.Lock
	}
	got := make(chan answer, len(every))
	for _, e := range every {
		c := b.client()
		go func() {
			for ctx.Err() == nil {
				if m, err := c.Acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: e}); err == nil {
					got <- answer{c, m}
					return
				}
				b.sleep(e)
			}
		}()
		if held {
			b.untilSent(c, 1)
		}
	}
	if held {
		b.sleep(20 * pace)
		if err := b.givesBack(holder, l, "while others waited"); err != nil {
			return err
		}
	}
	overrun := false // a release after the end of its lease may do what it likes to the next holder
	for waiting := len(every); waiting > 0; waiting-- {
		since, start := time.Now(), b.run.lasted()
		select {
		case a := <-got:
			err := b.givesBack(a.c, a.m, "while others waited")
			if err != nil && overrun {
				return unjudged("a lease ended before it was released", err)
			}
			if err != nil {
				return err
			}
			overrun = overrun || time.Until(a.c.Until(a.m)) <= 0
		case <-b.after(patience):
			none := &lockclient.Ungranted{Since: since, Limit: patience, Sure: b.run.lasted()-start >= patience, Last: lockimpl.ErrHeld}
			return broken(variant.Progress, "nobody held the lock, and no one of %d clients that waited for it at the same time was granted it: %v", waiting, none)
		}
	}
	return nil
}

// deadUnderTries: clients that ask for the lock of a dead holder must not keep the lock alive.
func deadUnderTries(b *bench) error {
	under := func(ttl time.Duration, o lockimpl.Options) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.abandoned(ttl)
			if err != nil {
				return err
			}
			c := b.client()
			for time.Until(holder.Until(l)) > 20*time.Millisecond {
				_, err := c.Acquire(b.ctx, b.name, o)
				if err != nil && !errors.Is(err, lockimpl.ErrHeld) {
					return nil // it may have been granted the lock
				}
				if err == nil {
					if left := time.Until(holder.Until(l)); left > 0 {
						return broken(variant.MutualExclusion, "the lock was granted %v before the end of a lease", left)
					}
					return nil
				}
				b.sleep(20 * time.Millisecond)
			}
			_, _, err = b.next(holder, l, 0, b.ttl, "with others asking all the time")
			return err
		}
	}
	return b.together(4, []part{
		{"for a long lease", under(b.ttl, lockimpl.Options{TTL: long})},
		{"for a short lease", under(b.ttl*2, lockimpl.Options{TTL: b.ttl})},
		{"with a wait", under(b.ttl, lockimpl.Options{TTL: long, Wait: 20 * time.Millisecond, RetryEvery: pace})},
		{"with one long wait", waitsOut},
	})
}

// waitsOut waits in one call for longer than the lease of a dead holder. No client announces the end of that lease.
func waitsOut(b *bench) error {
	const more = 5 * time.Second // after the end of the lease
	holder, l, err := b.abandoned(b.ttl)
	if err != nil || !b.run.able.waits {
		return err
	}
	c := b.client()
	left := max(time.Until(holder.Until(l)), 0)
	start := b.run.lasted()
	_, err = c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: left + more, RetryEvery: pace})
	if over := b.run.lasted() - start - left; errors.Is(err, lockimpl.ErrHeld) && over > more/4 {
		return broken(variant.Progress, "a client that had waited for %v was refused, though nobody had held the lock for %v: the lease of the last holder, which had died, was over", (left + more).Round(time.Millisecond), over.Round(time.Millisecond))
	}
	return nil
}

// renewalEnds: the renewal of a lease must end with the release, and not go on for the next holder.
func renewalEnds(b *bench) error {
	after := func(rounds int, hold time.Duration) func(*bench) error {
		return func(b *bench) error {
			c := b.client()
			for range rounds {
				l, err := c.Take(b.name, b.ttl, 0)
				if err != nil {
					return broken(variant.Progress, "a free lock was not granted: %v", err)
				}
				b.sleep(hold)
				if err := b.givesBack(c, l, "while its client was alive"); err != nil {
					return err
				}
			}
			next, l, err := b.abandoned(b.ttl)
			if err != nil {
				return err
			}
			_, _, err = b.next(next, l, b.ttl, b.ttl, "with an earlier holder that is alive")
			return err
		}
	}
	return b.together(4, []part{
		{"at once", after(20, 0)},
		{"at half of the lease", after(1, b.ttl/2)},
		{"at a third of the lease", after(3, b.ttl/3)},
		{"near the end of the lease", after(1, b.ttl*9/10)},
		{"many extensions", func(b *bench) error {
			c, l, err := b.holder(b.ttl)
			if err != nil || !b.run.able.extends {
				return err
			}
			end := time.Now().Add(3 * time.Second)
			for n := 0; n < 300 && time.Now().Before(end); n++ {
				if m, err := c.Extend(l, b.ttl); err == nil {
					l = m
				}
			}
			l.Until = c.Until(l)
			c.Die()
			_, _, err = b.next(c, l, b.ttl, b.ttl, "after many extends by a holder that died")
			return err
		}},
	})
}

// waitersDie kills clients that wait, while others go on waiting.
func waitersDie(b *bench) error {
	dies := func(kill, stay int, pause time.Duration) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			var doomed []*client
			for range kill {
				c := b.client()
				doomed = append(doomed, c)
				go func() {
					_, _ = c.Acquire(c.Ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: 20 * time.Millisecond})
				}()
				b.sleep(pause)
			}
			for _, c := range doomed {
				b.untilSent(c, 1)
			}
			got := make(chan error, stay)
			for range stay {
				c := b.client()
				go func() {
					got <- b.checked(func(b *bench) error {
						m, err := c.Take(b.name, b.ttl, patience)
						if err != nil {
							return broken(variant.Progress, "with waiters that had died before it in line, a client did not get the lock: %v", err)
						}
						return b.givesBack(c, m, "after a wait")
					})
				}()
			}
			b.sleep(2 * pause)
			for _, c := range doomed {
				c.Die()
			}
			if err := b.givesBack(holder, l, "while others waited"); err != nil {
				return err
			}
			for range stay {
				if err := <-got; err != nil {
					return err
				}
			}
			return nil
		}
	}
	return b.together(4, []part{
		{"one", dies(1, 1, 30*time.Millisecond)},
		{"several", dies(3, 2, 50*time.Millisecond)},
		{"at once", dies(2, 1, time.Millisecond)},
		{"many", dies(30, 1, 2*time.Millisecond)},
	})
}

// newServer checks locks that were taken, or extended, before the server knew any scripts.
func newServer(b *bench) error {
	for _, name := range b.run.first {
		if err := b.free(name, b.ttl, "after the death of a holder that was the first to use the server"); err != nil {
			return err
		}
	}
	return nil
}

// forgottenScripts runs SCRIPT FLUSH after the clients have used their scripts. A call may fail then, but not every later
// call of the client.
func forgottenScripts(b *bench) error {
	const attempts = 5
	return b.onVirtualClock(func(w *virtualBench) error {
		clients := []*client{w.client(), w.client()}
		for _, c := range clients {
			l, _, err := w.take(c, long)
			if err != nil {
				return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
			}
			w.call(func() { _ = c.Release(l) })
		}
		clients[0].forgetScripts()
		for _, c := range clients {
			var all, err error = nil, lockimpl.ErrHeld
			for n := 0; n < attempts && err != nil; n++ {
				w.clock.Advance(w.ttl + afterLease)
				_, _, err = w.take(c, w.ttl)
				all = errors.Join(all, err)
			}
			switch {
			case err != nil && strings.Contains(all.Error(), "NOSCRIPT"):
				return broken(variant.Progress, "the server forgot its scripts, as in a restart, and a client that had used them tried %d times for a free lock; the last answer was: %v", attempts, err)
			case err != nil:
				return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
			}
		}
		return nil
	})
}

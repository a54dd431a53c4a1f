package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/internal/interrupt"
	"oversell/internal/realtime"
	"oversell/lockimpl"
	"oversell/variant"
)

// serverRefuses has the server answer with errors that say nothing about the lock: that it is a replica, loads its data,
// is busy. It executed nothing, so no answer of that kind grants, extends or releases a lock.
func serverRefuses(b *bench) error {
	var cases []part
	for _, r := range interrupt.Refusals {
		cases = append(cases, part{"the server answered that " + r.What, func(b *bench) error {
			return b.onVirtualClock(func(w *virtualBench) error { return w.refusing(r.Err) })
		}})
	}
	return b.together(4, cases)
}

// during runs a call of a client, and tells whether a command was refused.
func (w *virtualBench) during(o interrupt.Outage, c *client, call func()) bool {
	o.On(c.line)
	w.callFor(call, 20*time.Millisecond)
	sent := c.line.Sent()
	c.line.Plan(nil)
	return sent >= o.Nth
}

func (w *virtualBench) refusing(answer error) error {
	base := w.name
	refusals := interrupt.Outages(answer)
	if w.run.server.Nodes() > 1 {
		refusals = refusals[:1] // what one of several masters answers says less
	}
	holder, asker, stranger := w.client(intercepted), w.client(intercepted), w.client()
	for i, r := range refusals {
		w.name = fmt.Sprintf("%s-held-%d", base, i)
		if err := w.refusesOthers(r, holder, asker, stranger); err != nil {
			return err
		}
		if w.run.lock.Renews {
			continue // its leases are renewed by the real clock
		}
		w.name = fmt.Sprintf("%s-free-%d", base, i)
		if err := w.refusesLease(r, stranger); err != nil {
			return err
		}
		if w.name = fmt.Sprintf("%s-extended-%d", base, i); !w.run.able.extends {
			continue
		}
		if err := w.refusesExtend(r, holder, stranger); err != nil {
			return err
		}
	}
	return nil
}

// refusesOthers is about an acquire of a held lock, and its release.
func (w *virtualBench) refusesOthers(r interrupt.Outage, holder, asker, stranger *client) error {
	l, until, err := w.take(holder, time.Hour)
	if err != nil {
		return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
	}
	for _, wait := range []time.Duration{0, long} {
		w.during(r, asker, func() {
			ctx, cancel := context.WithTimeout(w.ctx, max(10*pace, commandTimeout-wait)) // by its own clock, it might wait for ever
			defer cancel()
			_, err = asker.Acquire(ctx, w.name, lockimpl.Options{TTL: w.ttl, Wait: wait, RetryEvery: pace})
		})
		if err == nil && until.After(w.clock.Now()) {
			return broken(variant.MutualExclusion, "a client was granted a lock that another held: in its acquire %v", r)
		}
	}
	if err := w.refused(stranger, until, fmt.Sprintf("after an acquire in which %v", r)); err != nil {
		return err
	}
	if !w.during(r, holder, func() { err = holder.Release(l) }) || err != nil {
		return nil
	}
	for tries, start := 1, time.Now(); ; tries++ { // a release may go on beside the client
		_, _, err := w.take(stranger, w.ttl)
		if !errors.Is(err, lockimpl.ErrHeld) || w.ctx.Err() != nil || !until.After(w.clock.Now()) {
			return nil
		}
		if tries > 50 && time.Since(start) > 2*time.Second {
			return broken(variant.Progress, "a release in which %v was answered with success, and others are still refused", r)
		}
		w.sleep(pace)
	}
}

// refusesLease is about an acquire of a free lock. If it is granted, there is a lease, and it ends.
func (w *virtualBench) refusesLease(r interrupt.Outage, stranger *client) error {
	asker := w.client(intercepted) // that dies, if it is granted the lock
	var l lockimpl.Lock
	var err error
	refused := w.during(r, asker, func() {
		l, err = asker.Acquire(w.ctx, w.name, lockimpl.Options{TTL: w.ttl, RetryEvery: pace})
	})
	if err != nil || !refused || realtime.Of(l.Until) {
		return nil
	}
	until, what := w.promised(l), fmt.Sprintf("after an acquire that was granted, and in which %v", r)
	if err := w.refused(stranger, until, what); err != nil {
		return err
	}
	w.to(until.Add(-20 * time.Millisecond))
	if err := w.refused(stranger, until, what); err != nil {
		return err
	}
	asker.Die()
	w.to(until.Add(w.ttl + afterLease))
	return w.granted(w.ttl, what)
}

// refusesExtend is about an extend. If it is answered with success, the lease lasts for as long.
func (w *virtualBench) refusesExtend(r interrupt.Outage, holder, stranger *client) error {
	l, _, err := w.take(holder, 20*time.Second)
	if err != nil {
		return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
	}
	refused := w.during(r, holder, func() { l, err = holder.Extend(l, time.Minute) })
	if err != nil || !refused || realtime.Of(l.Until) {
		return nil
	}
	until := w.promised(l)
	w.to(until.Add(-20 * time.Millisecond))
	return w.refused(stranger, until, fmt.Sprintf("after an extend that was answered with success, and in which %v", r))
}

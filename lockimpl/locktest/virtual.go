package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"oversell/clock"
	"oversell/internal/phrase"
	"oversell/internal/realtime"
	"oversell/lockimpl"
	"oversell/lockimpl/leases"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockrules"
	"oversell/server"
	"oversell/variant"
	"oversell/wire"
)

// virtualBench is a bench with the lock on the emulation and a clock that the suite advances: a lease of a day is over at
// once. The clock is far ahead of the real one, to distinguish code that reads the real clock from code that reads
// Env.Clock.
type virtualBench struct {
	*bench
	clock *clock.Virtual
	own   *realtime.Seen // times of the real clock, which does not move, that the lock seems to have sent
}

// errUnfit says that a lock cannot be judged on a clock that is moved.
var errUnfit = lockrules.ErrUnfit

// openVirtual opens the emulation for one case of a rule.
func (b *bench) openVirtual(times *realtime.Seen) (*virtualBench, error) {
	clk := clock.NewVirtual(time.Now().Add(realtime.Ahead).Truncate(time.Second).Add(300 * time.Millisecond))
	own, err := b.elsewhere(clk)
	if err != nil {
		return nil, err
	}
	return &virtualBench{bench: own, clock: clk, own: times}, nil
}

// elsewhere returns the bench on an emulation of its own. Its clients read the real clock, unless told otherwise.
func (b *bench) elsewhere(clk clock.Clock) (*bench, error) {
	target, err := server.OpenEmbedded(clk, b.run.server.Nodes())
	if err != nil {
		return nil, err
	}
	r := &run{lock: b.run.lock, parent: b.run, server: target, seed: b.run.seed, able: b.run.able, logf: b.run.logf, began: b.run.began}
	r.clients.Store(b.run.clients.Add(16) - 16) // tokens of its own
	return &bench{ctx: b.ctx, run: r, name: b.name, ttl: b.ttl, title: b.title, faults: b.faults, property: b.property, forgets: b.forgets}, nil
}

func (w *virtualBench) close() { w.bench.leave() }

// leave ends all clients, and the emulation.
func (b *bench) leave() {
	b.close()
	b.run.server.Close()
}

// alone adds the same cases again, each on a server without other locks, if several locks may share a key. Some code
// treats a shared key that becomes empty differently, and the key is never empty while other rules hold locks.
func (b *bench) alone(cases []part) []part {
	if !b.run.able.shares {
		return cases
	}
	for _, c := range cases {
		cases = append(cases, part{c.name + ", on a server without other locks", func(b *bench) error {
			own, err := b.elsewhere(clock.Real{})
			if err != nil {
				return err
			}
			defer own.leave()
			return own.checked(c.check)
		}})
	}
	return cases
}

// client connects a client that reads the virtual clock. If that fails, it panics with the failure, which ends the rule.
func (w *virtualBench) client(changes ...change) *client {
	c, err := w.newVirtual(changes...)
	if err != nil {
		panic(failure{err})
	}
	return c
}

// newVirtual makes a client that reads the virtual clock.
func (w *virtualBench) newVirtual(changes ...change) (*client, error) {
	c, err := w.newClient(append(changes, func(c *client) { c.Env.Clock = w.clock })...)
	if err != nil {
		return nil, err
	}
	c.Plan(func(_ int, cmd wire.Command) wire.Action {
		for _, arg := range cmd.Args {
			w.own.Look(string(arg))
		}
		return wire.Action{}
	})
	return c, nil
}

// call runs a call that may sleep by the moved clock, and moves the clock on for it.
func (w *virtualBench) call(f func()) {
	w.callFor(f, 400*time.Millisecond) // a time limit must not pass because the machine is busy
}

// callFor is call for what sleeps when it has not returned after a while.
func (w *virtualBench) callFor(f func(), while time.Duration) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for {
		patience := time.NewTimer(while)
		select {
		case <-done:
			patience.Stop()
			return
		case <-patience.C:
			if in, sleeps := w.clock.Next(); sleeps {
				w.clock.Advance(in)
			}
		}
	}
}

// promised returns the end of a lease by the moved clock, whichever clock the lock reads. It is not later than the
// promised end.
func (w *virtualBench) promised(l lockimpl.Lock) time.Time {
	if realtime.Of(l.Until) {
		return w.clock.Now().Add(time.Until(l.Until))
	}
	return l.Until
}

// take makes an attempt, and returns the end of the lease by the moved clock.
func (w *virtualBench) take(c *client, ttl time.Duration) (l lockimpl.Lock, until time.Time, err error) {
	w.call(func() { l, err = c.Try(w.name, ttl) })
	if err == nil {
		until = w.promised(l)
	}
	return l, until, err
}

// extendBy extends a lease.
func (w *virtualBench) extendBy(c *client, l lockimpl.Lock, ttl time.Duration) (m lockimpl.Lock, until time.Time, err error) {
	w.call(func() { m, err = w.extend(c, l, ttl) })
	if err == nil {
		until = w.promised(m)
	}
	return m, until, err
}

// to moves the clock to a time that is not before now.
func (w *virtualBench) to(t time.Time) { w.clock.Advance(max(t.Sub(w.clock.Now()), 0)) }

// refused has a client try for the lock: until the end of a lease it must be refused.
func (w *virtualBench) refused(c *client, until time.Time, what string) error {
	l, _, err := w.take(c, w.ttl)
	left := until.Sub(w.clock.Now())
	switch {
	case err == nil && left > 0:
		w.call(func() { _ = c.Release(l) })
		return broken(variant.MutualExclusion, "%s, another client got the lock %v before the end of the lease", what, left.Round(time.Millisecond))
	case err != nil && !errors.Is(err, lockimpl.ErrHeld):
		return fmt.Errorf("%w: it was answered %w", errUnfit, err)
	}
	return nil
}

// granted expects that a new client obtains the lock after a lease is over.
func (w *virtualBench) granted(length time.Duration, what string) error {
	var err error
	for range 2 {
		c := w.client()
		var l lockimpl.Lock
		if l, _, err = w.take(c, w.ttl); err == nil {
			w.call(func() { _ = c.Release(l) })
			return nil
		}
		w.clock.Advance(w.ttl)
	}
	if !errors.Is(err, lockimpl.ErrHeld) {
		return fmt.Errorf("%w: it was answered %w", errUnfit, err)
	}
	return broken(variant.Progress, "%s: %v after its end nobody could take the lock, whose holder had died", what, (length + afterLease).Round(time.Second))
}

// afterLease is how long after the end of a lease, in addition to the length of the lease, a lock
// may still refuse every client.
const afterLease = 10 * time.Second

// leaseOf lets a lease run out, and checks repeatedly that it keeps others out.
func (w *virtualBench) leaseOf(ttl time.Duration, extensions ...leases.Extension) error {
	holder := w.client()
	what := fmt.Sprintf("a lease of %v", ttl)
	l, until, err := w.take(holder, ttl)
	if err != nil {
		return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
	}
	length := ttl // of the lease
	for i, x := range extensions {
		w.clock.Advance(x.After)
		m, then, err := w.extendBy(holder, l, x.By)
		switch {
		case errors.Is(err, lockimpl.ErrLost) && until.After(w.clock.Now()):
			return broken(w.falseLoss(), "%s, extended to %v after %v: the holder was told that its lock is lost %v before the end of its lease",
				what, x.By, x.After, until.Sub(w.clock.Now()).Round(time.Millisecond))
		case err != nil:
			return fmt.Errorf("%w: an extension was answered %w", errUnfit, err)
		}
		l, until, length = m, then, max(x.By, then.Sub(w.clock.Now())) // a library may extend by a length of its own
		if i == len(extensions)-1 {
			what = fmt.Sprintf("%s, extended %s, last to %v", what, phrase.Count(len(extensions), "time"), x.By)
		}
	}
	from := w.clock.Now()
	left := until.Sub(from)
	stranger := w.client()
	for _, at := range lockclient.Looks(left) {
		w.to(from.Add(at))
		if err := w.refused(stranger, until, fmt.Sprintf("%s, %v later", what, at.Round(time.Millisecond))); err != nil {
			return err
		}
	}
	holder.Die()
	w.to(until.Add(length + afterLease))
	if err := w.granted(length, what); err != nil {
		return err
	}
	return w.releasedLate(ttl)
}

// releasedLate releases a lock near the end of its lease.
func (w *virtualBench) releasedLate(ttl time.Duration) error {
	c := w.client()
	l, until, err := w.take(c, ttl)
	if err != nil {
		return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
	}
	w.to(until.Add(-ttl / 50))
	w.call(func() { err = c.Release(l) })
	if left := until.Sub(w.clock.Now()); errors.Is(err, lockimpl.ErrLost) && left > 0 {
		return broken(w.falseLoss(), "a lease of %v: its holder released the lock %v before the end of the lease, and was told that it is lost", ttl, left.Round(time.Millisecond))
	}
	if err != nil {
		return fmt.Errorf("%w: a release was answered %w", errUnfit, err)
	}
	_, _, err = w.take(w.client(), ttl)
	if left := until.Sub(w.clock.Now()); errors.Is(err, lockimpl.ErrHeld) && left > 0 {
		return broken(variant.Progress, "a lease of %v: the lock was released %v before the end of the lease, and the next client was refused", ttl, left.Round(time.Millisecond))
	}
	return nil
}

// longLeases lets leases run out that are too long for a test on the real clock.
func longLeases(b *bench) error {
	if why := b.renews(); why != "" {
		b.run.logf("%s/long leases was not tried: %s", b.property, why)
		return nil
	}
	if err := b.retryOnVirtualClock(func(w *virtualBench) error { return w.leaseOf(b.ttl) }); err != nil {
		return nil // by the real clock, other rules find out what is wrong with it
	}
	var parts []part
	for i, c := range leases.Long(b.run.able.brief, b.run.able.extends) {
		parts = append(parts, part{fmt.Sprintf("case %d", i+1), func(b *bench) error {
			return b.onVirtualClock(func(w *virtualBench) error { return w.leaseOf(c.TTL, c.Extensions...) })
		}})
	}
	return b.together(4, parts)
}

// rules is the bench as rules of package lockrules see it.
func (w *virtualBench) rules() lockrules.Virtual {
	return lockrules.Virtual{Bench: w.calls(), Clock: w.clock, Call: w.callFor, Promised: w.promised, Client: func() (*lockclient.Client, error) {
		c, err := w.newVirtual()
		if err != nil {
			return nil, err
		}
		return c.Client, nil
	}}
}

// onVirtualClock runs one case, and says so if the lock cannot be judged there.
func (b *bench) onVirtualClock(f func(*virtualBench) error) error {
	err := b.retryOnVirtualClock(f)
	if errors.Is(err, errUnfit) {
		b.run.logf("%s/%s was not judged: %v", b.property, b.title, err)
		return nil
	}
	return err
}

// retryOnVirtualClock runs one case, and again if a call met a time limit, as on a busy machine.
func (b *bench) retryOnVirtualClock(f func(*virtualBench) error) (err error) {
	for range 3 {
		err = b.onceOnVirtualClock(f)
		if !errors.Is(err, errUnfit) || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) || b.ctx.Err() != nil {
			break
		}
	}
	return err
}

// onceOnVirtualClock runs one case. A lock that mixes two clocks is not judged.
func (b *bench) onceOnVirtualClock(f func(*virtualBench) error) error {
	at, err := realtime.Confirmed(func(times *realtime.Seen) error {
		w, err := b.openVirtual(times)
		if err != nil {
			return err
		}
		defer w.close()
		return f(w)
	})
	if at != "" {
		return fmt.Errorf("%w: it sends times of the real clock, such as %s, and not of Env.Clock", errUnfit, at)
	}
	return err
}

// renews explains why a lock is held for longer than its lease, such as by a renewal that the lock does not report; ""
// if it is not.
func (b *bench) renews() string {
	if b.run.lock.Renews {
		return "leases are renewed in the background, by the real clock"
	}
	holder, l, err := b.holder(b.ttl)
	if err != nil {
		return "a free lock was not granted"
	}
	b.sleepUntil(holder.Until(l).Add(b.ttl / 2))
	c := b.client()
	m, err := c.Try(b.name, b.ttl)
	if err != nil {
		return "the lock outlives its lease while its holder lives"
	}
	_ = c.Release(m)
	return ""
}

// lateAfterQuiet has a client act on its earlier grants after a time in which nobody asked for the lock: what the
// servers forgot meanwhile must not make the next grants look like the earlier ones.
func lateAfterQuiet(b *bench) error {
	if b.run.lock.Renews {
		return nil // its leases are renewed by the real clock
	}
	var cases []part
	quiets := []time.Duration{25 * time.Hour, 70 * time.Minute, 70 * time.Second, 6 * time.Minute, 16 * time.Minute, 35 * time.Second, 12 * time.Second, 7 * time.Second, 3 * time.Second}
	if b.run.server.Nodes() > 1 {
		quiets = quiets[:3] // each takes its time
	}
	for _, quiet := range quiets {
		cases = append(cases, part{fmt.Sprintf("after %v", quiet), func(b *bench) error {
			return b.onVirtualClock(func(w *virtualBench) error { return w.lateAfter(quiet) })
		}})
	}
	return b.together(3, cases)
}

// lateAfter is one case. If the lock is granted twice without late calls as well, they are not the cause.
func (w *virtualBench) lateAfter(quiet time.Duration) error {
	err := w.grantsAfter(quiet, true)
	if errors.As(err, new(*breach)) {
		own := *w
		own.bench = w.with(w.name + "-alone")
		defer own.bench.close()
		if alone := own.grantsAfter(quiet, false); errors.As(alone, new(*breach)) {
			return alone
		}
	}
	return err
}

// grantsAfter has a client take the lock a few times, and other clients after a quiet time. If late is set, the first client then
// extends and releases its earlier grants.
func (w *virtualBench) grantsAfter(quiet time.Duration, late bool) error {
	const grants = 3
	earlier, stranger := w.client(), w.client()
	var old []lockimpl.Lock
	for n := range grants {
		l, _, err := w.take(earlier, w.ttl)
		if err != nil {
			return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
		}
		if late {
			old = append(old, l)
		}
		if n < grants-1 { // the lease of the last one runs out
			w.call(func() { _ = earlier.Release(l) })
		}
	}
	w.clock.Advance(w.ttl + quiet)
	for range grants {
		next := w.client()
		m, until, err := w.take(next, time.Hour)
		if err != nil {
			return fmt.Errorf("%w: a lock whose lease is over was answered %w", errUnfit, err)
		}
		for _, l := range old {
			if w.run.able.extends {
				if _, _, err := w.extendBy(earlier, l, w.ttl); err == nil {
					return broken(variant.OwnerOnlyRelease, "an extend of a grant that was over %v before was answered with success while another client held the lock; want ErrLost", quiet)
				}
			}
			w.call(func() { _ = earlier.Release(l) })
		}
		if _, _, err := w.take(stranger, w.ttl); err == nil && until.After(w.clock.Now()) {
			if left := until.Sub(w.clock.Now()); !late {
				return broken(variant.MutualExclusion, "a lock had been granted %d times, and again %v later, and another client got the lock %v before the end of that lease", grants, quiet, left)
			}
			return broken(variant.OwnerOnlyRelease, "after late calls by an earlier holder, whose grants were over %v before, another client got the lock %v before the end of the holder's lease", quiet, until.Sub(w.clock.Now()))
		}
		w.call(func() { _ = next.Release(m) })
	}
	return nil
}

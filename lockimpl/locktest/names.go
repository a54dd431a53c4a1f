package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/clock"
	"oversell/internal/alike"
	"oversell/internal/keyname"
	"oversell/lockimpl"
	"oversell/variant"
)

// namesAreIndependent takes locks with similar names, and many with different ones.
func namesAreIndependent(b *bench) error {
	return b.together(4, []part{
		{"similar names", similarNames},
		{"names beside a separator", namesApart(alike.Separated, "that differ from it beside a separator or in the separator only")},
		{"names spelled alike", namesApart(alike.Spelled, "that differ from it as paths, in escapes, in single bytes or at their ends only")},
		{"names with one checksum", namesApart(alike.SameChecksum, "that have the same checksum as another")},
		{"many names", manyNames},
	})
}

// twoLengths has a lease end, be extended, or be released, while a longer one of another name lasts. The server is the
// rule's own: other rules would hold locks beside these.
func twoLengths(b *bench) error {
	if b.renews() != "" {
		return nil
	}
	const short, length = 2 * time.Second, time.Hour
	var cases []part
	for _, same := range []bool{true, false} {
		for _, end := range []string{"ended", "been extended and ended", "been released"} {
			by := map[bool]string{true: "the same client", false: "another client"}[same]
			what := fmt.Sprintf("after a lease of %v of another name, taken by %s, had %s", short, by, end)
			cases = append(cases, part{by + ", " + end, func(b *bench) error {
				return b.onVirtualClock(func(w *virtualBench) error { return w.besideShort(same, end, short, length, what) })
			}})
		}
	}
	return b.together(2, append(cases, part{"the same before a separator", func(b *bench) error {
		return b.onVirtualClock(func(w *virtualBench) error { return w.besideNamesake(short, length) })
	}}))
}

// besideNamesake lets short leases end next to long ones whose names differ only behind a separator.
func (w *virtualBench) besideNamesake(short, length time.Duration) error {
	var ends []time.Time
	base := w.name
	for i, ttl := range []time.Duration{length, short} {
		for _, sep := range alike.Separators {
			w.name = fmt.Sprintf("%s%c%d", base, sep, i)
			_, end, err := w.take(w.client(), ttl)
			if err != nil {
				return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
			}
			ends = append(ends, end)
		}
	}
	w.clock.Advance(2*short + afterLease)
	for i, sep := range alike.Separators {
		w.name = fmt.Sprintf("%s%c0", base, sep)
		if err := w.refused(w.client(), ends[i], fmt.Sprintf("after a lease of %v of the name %s%c1 had ended", short, base, sep)); err != nil {
			return err
		}
	}
	return nil
}

// besideShort takes a long lease, and then a short one of another name, and expects that others are kept out when the short
// one is over.
func (w *virtualBench) besideShort(same bool, end string, short, length time.Duration, what string) error {
	long := w.client()
	_, until, err := w.take(long, length)
	if err != nil {
		return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
	}
	other := long
	if !same {
		other = w.client()
	}
	var l lockimpl.Lock
	w.call(func() { l, err = other.Try(w.name+"-short", short) })
	if err != nil {
		return fmt.Errorf("%w: an acquire of a free lock failed: %w", errUnfit, err)
	}
	switch {
	case end == "been released":
		w.call(func() { err = other.Release(l) })
	case end == "been extended and ended" && w.run.able.extends:
		_, _, err = w.extendBy(other, l, short)
	}
	if err != nil {
		return fmt.Errorf("%w: it was answered %w", errUnfit, err)
	}
	w.clock.Advance(2*short + afterLease)
	return w.refused(w.client(), until, what)
}

func similarNames(b *bench) error {
	n := b.name
	shared := b.collisions()
	if len(shared) > 0 {
		b.run.logf("%s/similar names: %s", b.property, keyname.Remark("lock", n, shared))
	}
	names := slices.DeleteFunc(alike.Names(n), func(name string) bool { return slices.Contains(shared, name) })
	var holders []*client
	var locks []lockimpl.Lock
	var taken []string
	for _, name := range names {
		c := b.client()
		l, err := c.Acquire(b.ctx, name, lockimpl.Options{TTL: long, RetryEvery: pace})
		if err != nil && name != n && c.declines(name, aMinute, err) {
			b.run.logf("%s/similar names: %q was left out, since the lock does not take such names: %v", b.property, name, err)
			continue
		}
		if err != nil {
			l, err = c.Take(name, long, 0)
		}
		if err != nil && len(taken) == 0 { // no other name is held
			return broken(variant.Progress, "a lock was released, while another client's wait for it was cancelled, and then it was not granted: %v", err)
		}
		if err != nil {
			return sameLock("with other names held%s, the free lock %+q was not granted: %v", b.partner(holders, locks, name), name, err)
		}
		holders, locks, taken = append(holders, c), append(locks, l), append(taken, name)
	}
	names = taken
	stranger := b.client()
	b.property = variant.OwnerOnlyRelease
	for i := range names {
		if err := b.givesBack(holders[i], locks[i], fmt.Sprintf("after locks with names like %q had been released", names[max(i-1, 0)])); err != nil {
			return err
		}
		for j := i + 1; j < len(names); j++ {
			if m, err := stranger.Acquire(b.ctx, names[j], lockimpl.Options{TTL: long}); err == nil && time.Until(holders[j].Until(locks[j])) > 0 {
				_ = stranger.Release(m)
				return broken(variant.OwnerOnlyRelease, "the release of %q opened %q, which another client holds", names[i], names[j])
			}
		}
	}
	return nil
}

// partner finds the name that has one lock with a name that was refused: when it is released, that one is granted. It returns words for a
// message; empty if there is no such name.
func (b *bench) partner(holders []*client, locks []lockimpl.Lock, refused string) string {
	c := b.client()
	for i, l := range locks {
		name := holders[i].Name(l)
		_ = holders[i].Release(l)
		if m, err := c.Acquire(b.ctx, refused, aMinute); err == nil {
			_ = c.Release(m)
			return fmt.Sprintf(" (%+.700q is the one that keeps it from being granted: when that was released, it was granted)", name)
		}
	}
	return ""
}

// namesApart takes names at once that careless code takes for the same.
func namesApart(names func(string) []string, what string) func(*bench) error {
	return func(b *bench) error {
		clients := []*client{b.client(), b.client(), b.client(), b.client()}
		var holders []*client
		var locks []lockimpl.Lock
		for i, name := range names(b.name) {
			c := clients[i%len(clients)]
			if b.run.able.reenters {
				c = b.client() // or it is granted what it holds
			}
			l, err := c.Acquire(b.ctx, name, lockimpl.Options{TTL: long, RetryEvery: pace})
			if err != nil && c.declines(name, aMinute, err) {
				b.run.logf("%s/names %s: %q was left out, since the lock does not take such names: %v", b.property, what, name, err)
				continue
			}
			if err != nil {
				l, err = c.Take(name, long, 0)
			}
			if err != nil {
				return sameLock("with other names held %s%s, the free lock %+.700q was not granted: %v", what, b.partner(holders, locks, name), name, err)
			}
			holders, locks = append(holders, c), append(locks, l)
		}
		b.property = variant.OwnerOnlyRelease
		for i, l := range locks {
			if err := b.givesBack(holders[i], l, "after locks with similar names had been released"); err != nil {
				return err
			}
		}
		return nil
	}
}

// shortNames holds names of one letter or two at once, on a server of their own.
func shortNames(b *bench) error {
	own, err := b.elsewhere(clock.Real{})
	if err != nil {
		return err
	}
	defer own.leave()
	if _, err := own.client().Try("practice", b.ttl); err != nil {
		b.run.logf("%s: short names were not tried: %v", b.property, err)
		return nil // the emulation does not know a command, or another rule says what is wrong
	}
	return own.checked(namesApart(func(string) []string {
		return []string{"a", "b", "c", "1", "2", "A", "ab", "ba", "aa", "12", "a1", "x", "x:", "abc", "abd", "1234", "1235"}
	}, "of a few letters"))
}

// aMinute is one attempt for a long lease.
var aMinute = lockimpl.Options{TTL: long, RetryEvery: pace}

// declines reports whether a failed Acquire says nothing about a free lock: a new client tries again and gets an error
// of the lock's own that is not a refusal, before any command is sent.
func (c *client) declines(name string, o lockimpl.Options, err error) bool {
	if errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, lockimpl.ErrLost) {
		return false
	}
	fresh := c.b.client()
	fresh.Plan(nil)
	fresh.Hooked.Store(0)
	_, err = fresh.Acquire(c.b.ctx, name, o)
	return err != nil && c.b.ctx.Err() == nil && !errors.Is(err, lockimpl.ErrHeld) && !errors.Is(err, lockimpl.ErrLost) &&
		fresh.Sent() == 0 && fresh.Hooked.Load() == 0
}

// collisions returns names for which the lock may use a key that it also uses for its own name.
func (b *bench) collisions() []string {
	c, l, err := b.holder(long)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Release(l) }()
	waiter := b.client() // a waiter may have keys, too
	ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
	defer cancel()
	_, _ = waiter.Acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: pace})
	found, err := keyname.Of(b.ctx, c.Env.Redis[0], b.name)
	if err != nil {
		return nil
	}
	return keyname.Collisions(found, b.name, b.name)
}

// manyNames holds many locks at once: on a machine that is fast enough, so many that some names collide if a lock maps
// them to a hundred thousand slots.
func manyNames(b *bench) error {
	const (
		least  = 200
		toTake = 1500 * time.Millisecond
		fewer  = 100 // with a lock on several masters
	)
	count := 2000 // half of them long; of each half, some seven pairs have the same checksum of 16 bits
	if b.run.lock.Needs.Masters > 1 {
		count = fewer
	}
	c := b.client()
	var locks []lockimpl.Lock
	declined := 0
	for start := time.Now(); len(locks) < count && (len(locks) < least || time.Since(start) < toTake); {
		i := len(locks) + declined
		filling := strings.Repeat("-", 1+i%2*130)                                      // long names may be kept by a checksum, and short ones as they are
		name := fmt.Sprintf("%s%s%x", b.name, filling, uint64(i+1)*0x9e3779b97f4a7c15) // these differ in all digits
		l, err := c.Acquire(b.ctx, name, lockimpl.Options{TTL: long, RetryEvery: pace})
		if err != nil && i%2 == 1 && c.declines(name, aMinute, err) {
			declined++
			continue
		}
		if err != nil {
			l, err = c.Take(name, long, 0)
		}
		if err != nil {
			return sameLock("a client that holds %d locks%s could not take %q, which nobody holds: %v", len(locks), b.partner(slices.Repeat([]*client{c}, len(locks)), locks, name), name, err)
		}
		locks = append(locks, l)
	}
	if declined > 0 {
		b.run.logf("%s/many names: long names were left out, since the lock does not take them", b.property)
	}
	for i, l := range locks {
		if i%20 == 0 {
			if err := b.held(c, l, "with many names held"); err != nil {
				return err
			}
		}
		if err := b.givesBack(c, l, "with many names held"); err != nil {
			return err
		}
	}
	return nil
}

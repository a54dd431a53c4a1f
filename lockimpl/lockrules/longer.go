package lockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// Longer are cases in which a holder acts on its lock when the lease that it was granted first is over, but the lease as
// extended, or renewed in the background, is not: it holds the lock. A flawed client goes by the end of the first lease,
// and takes the lock for lost.
var Longer = []Case{
	{"a release inside an extended lease", func(b Bench) error { return b.longer(1) }},
	{"a release inside a lease that was extended twice", func(b Bench) error { return b.longer(2) }},
	{"an extend, and a release, inside an extended lease", func(b Bench) error { return b.longer(1, long) }},
	{"an extend for less, and a release, inside an extended lease", func(b Bench) error { return b.longer(1, long/2) }},
	{"a release inside a renewed lease", Bench.renewedRelease},
}

// longer extends a lease several times, each time before it is over. When all leases but the last are over, it
// extends the lock for each of the durations in then, and releases it.
func (b Bench) longer(times int, then ...time.Duration) error {
	if !b.Extends || b.Renews {
		return nil
	}
	holder, l, err := b.holder(b.TTL)
	if err != nil {
		return err
	}
	for n := range times {
		by := b.TTL
		if n == times-1 {
			by = long
		}
		m, err := holder.Extend(l, by)
		if err != nil {
			return nil // another rule's business
		}
		// A library may know one length of lease only. Lock.Until then says when the lease ends.
		if end := holder.Until(m); !m.Until.Equal(l.Until) && time.Until(end) < by/2 {
			b.Log("leases that are extended for longer were not tried: an extend for %v promised %v", by, time.Until(end).Round(time.Millisecond))
			return nil
		}
		l = m
		if !b.pass(b.TTL / 2) {
			return nil
		}
	}
	if !b.pass(b.TTL * 3 / 4) {
		return nil
	}
	what := fmt.Sprintf("a lease of %v was extended %s, at last to %v, and the earlier leases were over", b.TTL, phrase.Count(times, "time"), long)
	for _, by := range then {
		m, err := holder.Extend(l, by)
		if errors.Is(err, lockimpl.ErrLost) {
			return lockfinding.Broken(variant.MutualExclusion, "%s: the holder extended it once more, and was told %q, though its lease was not over", what, err)
		}
		if err != nil {
			return nil
		}
		l = m
	}
	return b.releasedInTime(holder, l, what)
}

// renewedRelease releases a lock that was renewed in the background.
func (b Bench) renewedRelease() error {
	if !b.Renews {
		return nil
	}
	holder, err := b.client()
	if err != nil {
		return err
	}
	l, err := holder.Take(b.Name, 5*b.TTL, 0)
	if err != nil || !b.pass(6*b.TTL) {
		return nil
	}
	what := fmt.Sprintf("a lease of %v was renewed in the background for %v", 5*b.TTL, 6*b.TTL)
	other, err := b.client()
	if err != nil || len(other.Env.Redis) > 1 {
		return b.releasedInTime(holder, l, what)
	}
	if err := holder.Release(l); !errors.Is(err, lockimpl.ErrLost) {
		return b.releasedInTime(holder, l, what)
	}
	if _, err := other.Try(b.Name, b.TTL); errors.Is(err, lockimpl.ErrHeld) {
		return lockfinding.Broken(variant.Progress, "%s: its holder released it, as it was granted, and was told %q; another client was still refused", what, lockimpl.ErrLost)
	}
	return nil // the renewals may have been held up
}

// releasedInTime expects that a holder can release its lock. If the release is refused, the lock is either gone, or it is not
// free and its holder cannot free it.
func (b Bench) releasedInTime(holder *lockclient.Client, l lockimpl.Lock, what string) error {
	err := holder.Release(l)
	said := "success"
	switch {
	case errors.Is(err, lockimpl.ErrLost):
		said = fmt.Sprintf("%q", err)
	case err != nil:
		return nil // it may not have arrived
	}
	if e := b.free(fmt.Sprintf("%s: its holder released it, which was answered with %s", what, said)); e != nil {
		return e
	}
	if err == nil || b.Renews {
		return nil // a lock that renews may have been held up
	}
	return lockfinding.Broken(variant.MutualExclusion, "%s: its holder released it, and was told %q, though its lease was not over: another client can take the lock", what, err)
}

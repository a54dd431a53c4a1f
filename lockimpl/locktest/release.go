package locktest

import (
	"fmt"
	"strings"
	"time"

	"oversell/lockimpl"
	"oversell/variant"
)

// lateCalls lets a lease run out and another client take the lock before the first owner acts on it.
func lateCalls(b *bench) error {
	late := func(acts ...string) func(*bench) error {
		return func(b *bench) error {
			owner, l, err := b.lapsed()
			if err != nil {
				return err
			}
			next, m, err := b.next(owner, l, b.ttl, long, "for a late call")
			if err != nil {
				return err
			}
			for _, act := range acts {
				if err := b.lateCall(owner, l, act); err != nil {
					return err
				}
			}
			if err := b.intact(next, m, "after the first holder's late "+strings.Join(acts, " and ")); err != nil {
				return err
			}
			// Data left by the late holder must not affect later clients.
			third, m, err := b.holder(long)
			if err != nil {
				return err
			}
			for _, act := range acts {
				if err := b.lateCall(owner, l, act); err != nil {
					return err
				}
			}
			return b.intact(third, m, "after the first holder's second late "+strings.Join(acts, " and "))
		}
	}
	cases := []part{{"release", late("release")}, {"an extended lease that nobody took", extendsTooLate}}
	if b.run.able.extends {
		cases = append(cases, part{"extend", late("extend")}, part{"extend and release", late("extend", "release")}, part{"release and extend", late("release", "extend")},
			part{"a late extend gives the next holder no time", lateExtendLeavesTTL})
	}
	return b.together(8, cases)
}

// lapsed returns a lock with a holder that lives and lets the lease run out. Background renewal is stopped.
func (b *bench) lapsed() (*client, lockimpl.Lock, error) {
	c, l, err := b.holder(b.ttl)
	if err != nil {
		return c, l, err
	}
	l.Until = c.Until(l)
	c.End()
	if b.run.lock.Renews {
		c.Freeze() // a renewal that does not end with its client
		b.sleepUntil(l.Until.Add(b.ttl))
		c.Thaw()
	}
	return c, l, nil
}

// lateCall acts on a lock that another client holds.
func (b *bench) lateCall(owner *client, l lockimpl.Lock, act string) error {
	what := "the first holder's late " + act
	if act == "release" {
		return b.isLate(what, owner.Release(l))
	}
	m, err := owner.Extend(l, long)
	if err == nil {
		return broken(variant.MutualExclusion, "%s was answered with success, and a lease until %v, while another client held the lock; want ErrLost", what, m.Until.Format("15:04:05.000"))
	}
	return nil
}

// lateExtendLeavesTTL: the next holder dies, and a late extend must not prolong its lease.
func lateExtendLeavesTTL(b *bench) error {
	owner, l, err := b.lapsed()
	if err != nil {
		return err
	}
	next, m, err := b.next(owner, l, b.ttl, b.ttl, "for a late extend")
	if err != nil {
		return err
	}
	m.Until = next.Until(m)
	next.Die()
	if time.Until(m.Until) <= 0 {
		return nil
	}
	_, _ = owner.Extend(l, long)
	_, _, err = b.next(next, m, b.ttl, b.ttl, "after a late extend by an earlier holder")
	return b.itsOwn(err)
}

// extendsTooLate extends a lease that has expired, while no other client has taken the lock. The extension may
// fail; if it succeeds, the new lease must hold.
func extendsTooLate(b *bench) error {
	owner, l, err := b.lapsed()
	if err != nil || !b.run.able.extends {
		return err
	}
	b.property = variant.MutualExclusion // no other client acts on the lock
	b.sleepUntil(l.Until.Add(50 * time.Millisecond))
	m, err := owner.Extend(l, 10*b.ttl)
	if err != nil {
		return b.free(b.name, b.ttl, "after an extend that came too late")
	}
	return b.intact(owner, m, "after an extend that came late and was answered with success")
}

// staleCalls acts on locks that were given back.
func staleCalls(b *bench) error {
	return b.together(8, []part{
		{"by the same client", func(b *bench) error { return b.afterRelease(false) }},
		{"by a client that held another lock meanwhile", func(b *bench) error { return b.afterRelease(true) }},
		{"by one that never held it", func(b *bench) error {
			other := b.client()
			o, err := other.takesFree(b.name+"-other", long)
			if err != nil {
				return err
			}
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			if sameGrant(o, l) {
				return nil // only the name differs: the call would name the holder's own grant
			}
			forged := o
			forged.Key = b.name
			_ = other.Release(forged)
			if b.run.able.extends {
				_, _ = other.Extend(forged, b.ttl)
			}
			return b.intact(holder, l, "after a release by the holder of another lock")
		}},
	})
}

// sameGrant reports whether only the name distinguishes two grants, as with tokens that are counted for each name.
func sameGrant(one, two lockimpl.Lock) bool {
	if one.Token != "" || two.Token != "" {
		return one.Token == two.Token
	}
	return one.Fence == two.Fence && one.Fence != 0
}

func (b *bench) afterRelease(another bool) error {
	owner, old, err := b.holder(long)
	if err != nil {
		return err
	}
	if err := b.givesBack(owner, old, "at once"); err != nil {
		return err
	}
	if another {
		if _, err := owner.takesFree(b.name+"-other", long); err != nil {
			return err
		}
	}
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	if err := b.isLate("a release of a lock that was given back before and is another's now", owner.Release(old)); err != nil {
		return err
	}
	if b.run.able.extends {
		if _, err := owner.Extend(old, b.ttl); err == nil {
			return broken(variant.MutualExclusion, "an extend of a lock that was given back before and is another's now was answered with success; want ErrLost")
		}
	}
	b.sleep(50 * time.Millisecond)
	return b.intact(holder, l, "after a late release and extend by an earlier holder")
}

// ownNextLock: a client whose lease ran out takes the lock again, and the release of its
// first grant comes after that.
func ownNextLock(b *bench) error {
	return b.together(4, []part{
		{"after the lease", func(b *bench) error {
			c, l, err := b.holder(b.ttl)
			if err != nil {
				return err
			}
			l.Until = c.Until(l)
			if b.run.lock.Renews {
				return nil // its lease does not run out while it lives
			}
			m, err := c.Take(b.name, long, b.ttl)
			if err != nil {
				return broken(variant.Progress, "nobody could take the lock after the lease had run out: %v", err)
			}
			return b.outlasts(c, m, l, "after a late release of the client's earlier grant")
		}},
		{"after a release", func(b *bench) error {
			c, l, err := b.holder(long)
			if err != nil {
				return err
			}
			if err := c.Release(l); err != nil {
				return nil
			}
			m, err := c.Take(b.name, long, 0)
			if err != nil {
				return broken(variant.Progress, "a released lock could not be taken again by the same client: %v", err)
			}
			return b.outlasts(c, m, l, "after a second release of the client's earlier grant")
		}},
		{"after many grants", func(b *bench) error {
			count := 270 // more than a counter of one byte holds
			if b.run.lock.Needs.Masters > 1 {
				count = 40
			}
			c := b.client()
			var old []lockimpl.Lock
			for range count {
				l, err := c.takesFree(b.name, long)
				if err != nil {
					return err
				}
				if c.Release(l) == nil {
					old = append(old, l)
				}
			}
			m, err := c.takesFree(b.name, long)
			if err != nil {
				return err
			}
			for _, l := range old {
				_ = c.Release(l)
			}
			return b.intact(c, m, fmt.Sprintf("after second releases of %d earlier grants to the same client", len(old)))
		}},
	})
}

// outlasts: a grant stands though its client extends and releases an earlier one, which is over.
func (b *bench) outlasts(c *client, m, earlier lockimpl.Lock, after string) error {
	if err := b.staleExtend(c, earlier); err != nil {
		return err
	}
	_ = c.Release(earlier)
	return b.intact(c, m, after)
}

// staleExtend extends a grant that is over, while the same client has another.
func (b *bench) staleExtend(c *client, l lockimpl.Lock) error {
	if !b.run.able.extends {
		return nil
	}
	if _, err := c.Extend(l, b.ttl); err == nil {
		return broken(variant.OwnerOnlyRelease, "an extend of the client's earlier grant, which is over, was answered with success while the client held another; want ErrLost")
	}
	return nil
}

// similarTokens uses pairs of tokens that a careless comparison takes for equal.
func similarTokens(b *bench) error {
	base := "7f3a9c0e5b1d4826aa17c4e90f62d38b"
	digits := "12345678901234567890123456789012"
	pairs := [][2]string{
		{base, base[:len(base)-1] + "c"}, // one character at the end
		{base, "8" + base[1:]},           // one at the beginning
		{base, base[:16] + "d" + base[17:]},
		{base, strings.ToUpper(base)},
		{base, base + "0"},          // one begins with the other
		{base, "0" + base},          // one ends with the other
		{base, base[8:24]},          // one contains the other
		{digits, digits[:31] + "3"}, // the same as numbers of 53 bits
		{digits, "0" + digits},
		{"1e2", "100"},
		{base[:8] + "-" + base[8:], base},
		{base, base[16:] + base[:16]},
	}
	var cases []part
	for _, p := range pairs {
		for _, first := range []int{0, 1} {
			old, now := p[first], p[1-first]
			cases = append(cases, part{fmt.Sprintf("tokens %q and %q", old, now), func(b *bench) error {
				owner, l, err := b.holder(b.ttl, named(old))
				if err != nil {
					return err
				}
				l.Until = owner.Until(l)
				owner.End()
				if b.run.lock.Renews {
					owner.Freeze()
					defer owner.Thaw()
				}
				next, m, err := b.next(owner, l, b.ttl, long, "with a similar token", named(now))
				if err != nil && len(old) != len(now) {
					return nil // a lock may rely on tokens of equal length
				}
				if err != nil {
					return err
				}
				owner.Thaw()
				if b.run.able.extends {
					if err := b.lateCall(owner, l, "extend"); err != nil {
						return err
					}
				}
				if err := b.lateCall(owner, l, "release"); err != nil {
					return err
				}
				return b.intact(next, m, "after the late release of a holder with a similar token")
			}})
		}
	}
	return b.together(12, cases)
}

// frozenHolder cuts a holder off from the server until another client has the lock. Its requests in flight, including
// renewals, arrive then.
func frozenHolder(b *bench) error {
	case_ := func(act string) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(b.ttl)
			if err != nil {
				return err
			}
			b.sleep(b.ttl / 5)
			holder.Freeze()
			next, m, err := b.next(holder, l, 2*b.ttl, b.ttl*4, "with the holder cut off")
			if err != nil {
				return err
			}
			end := next.Until(m)
			holder.Thaw()
			b.sleep(b.ttl / 2) // the requests in flight arrive
			switch act {
			case "release":
				_ = holder.Release(l)
			case "extend":
				_, _ = holder.Extend(l, long)
			}
			if err := b.held(next, m, "after the first holder was back"); err != nil {
				return err
			}
			// The next holder dies now: the first one must not keep its lock alive.
			next.Die()
			return b.prolonged(b.name, time.Until(end)+b.ttl, "after a holder that had been cut off was back, and the next one had died")
		}
	}
	cases := []part{{"and does nothing", case_("")}, {"and releases", case_("release")}}
	if b.run.able.extends {
		cases = append(cases, part{"and extends", case_("extend")})
	}
	return b.together(4, cases)
}

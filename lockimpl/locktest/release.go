package locktest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"oversell/internal/alike"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
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
			if err := b.held(next, m, "before the first holder's late "+strings.Join(acts, " and ")); err != nil {
				return b.itsOwn(err) // the late calls have no part in it
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
	owner.forget()
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
	owner.forget()
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
	owner.forget()
	m, err := owner.Extend(l, 10*b.ttl)
	if err != nil {
		return b.free(b.name, b.ttl, "after an extend that came too late")
	}
	return b.intact(owner, m, "after an extend that came late and was answered with success")
}

// staleCalls acts on locks that were released.
func staleCalls(b *bench) error {
	return b.together(8, []part{
		{"by the same client", func(b *bench) error { return b.afterRelease(false, false) }},
		{"by the same client, which had extended it", func(b *bench) error { return b.afterRelease(false, b.run.able.extends) }},
		{"by a client that held another lock meanwhile", func(b *bench) error { return b.afterRelease(true, false) }},
		{"by one that never held it", func(b *bench) error {
			other := b.client()
			o, err := other.Take(b.name+"-other", long, 0)
			if err != nil {
				return broken(variant.Progress, "a free lock was not granted: %v", err)
			}
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			if lockclient.SameGrant(o, l) {
				return nil // no lock has issued what would be forged: it names the holder's own grant
			}
			forged := o
			forged.Key = l.Key
			_ = other.Release(forged)
			if b.run.able.extends {
				_, _ = other.Extend(forged, b.ttl)
			}
			return b.intact(holder, l, "after a release by the holder of another lock")
		}},
	})
}

// afterRelease makes calls with a lock that was released, perhaps after an extend, and is another client's now.
func (b *bench) afterRelease(another, extended bool) error {
	owner, old, err := b.holder(long)
	if err != nil {
		return err
	}
	if extended {
		if old, err = owner.Extend(old, long); err != nil {
			return nil // another rule's business
		}
	}
	if err := b.givesBack(owner, old, "at once"); err != nil {
		return err
	}
	if another {
		if _, err := owner.Take(b.name+"-other", long, 0); err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
	}
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	if err := b.isLate("a release of a lock that was released before and is another's now", owner.Release(old)); err != nil {
		return err
	}
	if b.run.able.extends {
		if _, err := owner.Extend(old, b.ttl); err == nil {
			return broken(variant.MutualExclusion, "an extend of a lock that was released before and is another's now was answered with success; want ErrLost")
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
			if err := b.staleExtend(c, l); err != nil {
				return err
			}
			_ = c.Release(l)
			return b.intact(c, m, "after a late release of the client's earlier grant")
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
			if err := b.staleExtend(c, l); err != nil {
				return err
			}
			_ = c.Release(l)
			return b.intact(c, m, "after a second release of the client's earlier grant")
		}},
		{"after many grants", func(b *bench) error {
			count := 270 // more than a counter of a byte
			if b.run.lock.Needs.Masters > 1 {
				count = 40
			}
			c := b.client()
			var old []lockimpl.Lock
			for range count {
				l, err := c.Take(b.name, long, 0)
				if err != nil {
					return broken(variant.Progress, "a free lock was not granted: %v", err)
				}
				if c.Release(l) == nil {
					old = append(old, l)
				}
			}
			m, err := c.Take(b.name, long, 0)
			if err != nil {
				return broken(variant.Progress, "a free lock was not granted: %v", err)
			}
			for _, l := range old {
				_ = c.Release(l)
			}
			return b.intact(c, m, fmt.Sprintf("after second releases of %d earlier grants to the same client", len(old)))
		}},
	})
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

// similarTokens draws tokens that a careless comparison takes for the same, in both orders.
func similarTokens(b *bench) error {
	var cases []part
	for _, kind := range alike.Tokens {
		for _, back := range []bool{false, true} {
			cases = append(cases, part{"tokens that " + kind.What, func(b *bench) error { return b.mistaken(kind, back) }})
		}
	}
	return b.together(12, cases)
}

// mistaken gives the next holder a token that resembles the token of an earlier holder, whose call comes late. All
// tokens differ, since a lock may rely on that. If back is true, the earlier holder's token is made to resemble the
// next holder's.
func (b *bench) mistaken(kind alike.Token, back bool) error {
	var mu sync.Mutex
	var drawn, bases []string // for the holder, and what they were made of
	owner, l, err := b.holder(b.ttl, drawing(func(fresh string) string {
		mu.Lock()
		defer mu.Unlock()
		base := kind.New(fresh)
		bases = append(bases, base)
		if back {
			base = kind.Like(base, 0)
		}
		drawn = append(drawn, base)
		return base
	}))
	if err != nil {
		return err
	}
	mu.Lock()
	nth := slices.Index(drawn, l.Token) // there may be others, such as a client's own
	if nth < 0 {
		nth = len(drawn) - 1
	}
	likes := slices.Clone(bases)
	mu.Unlock()
	if nth < 0 {
		return nil // it does not draw for each grant
	}
	calls, length := 0, 0
	next := b.client(drawing(func(fresh string) string {
		mu.Lock()
		defer mu.Unlock()
		of, n := likes[min(calls, nth)], max(calls-nth, 0)
		calls++
		token := of
		if !back || n > 0 {
			token = kind.Like(of, n)
		}
		length = len(cmp.Or(token, fresh))
		return cmp.Or(token, fresh)
	}))
	unequal := func() bool { // a lock may rely on it that its tokens are of one length
		mu.Lock()
		defer mu.Unlock()
		return length != len(drawn[nth])
	}
	if _, err := next.Try(b.name, b.ttl); err == nil {
		if left := time.Until(owner.Until(l)); left > 0 && !unequal() {
			return broken(variant.MutualExclusion, "with a token that is like the holder's, another client got the lock %v before the end of the lease", left)
		}
		return nil
	}
	l.Until = owner.Until(l)
	owner.End()
	if b.run.lock.Renews {
		owner.Freeze()
		defer owner.Thaw()
	}
	b.sleepUntil(l.Until.Add(2 * lockclient.Grain))
	m, err := next.Take(b.name, long, b.ttl)
	if err != nil && unequal() {
		return nil
	}
	if err != nil {
		return broken(variant.Progress, "with a token that is like the last holder's, nobody could take the lock after the lease had run out: %v", err)
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
}

// tokensOnce counts the tokens of many grants to two clients in turn. When one is granted a token that the other had
// before, that one's release comes late. Tokens that come from Env.Token as they are need not be counted.
func tokensOnce(b *bench) error {
	const (
		grants = 1500 // of two, some have the same one of 16 bits
		limit  = 9 * time.Second
	)
	count := func(b *bench) error {
		var mu sync.Mutex
		drawn := map[string]bool{}
		draws := drawing(func(fresh string) string {
			mu.Lock()
			defer mu.Unlock()
			drawn[fresh] = true
			return fresh
		})
		type grant struct {
			of int
			l  lockimpl.Lock
		}
		clients, before := []*client{b.client(draws), b.client(draws)}, map[string]grant{}
		for n, start := 0, time.Now(); n < grants && time.Since(start) < limit && b.ctx.Err() == nil; n++ {
			c := clients[n%2]
			l, err := c.Take(b.name, long, 0)
			if err != nil {
				return broken(variant.Progress, "a free lock was not granted: %v", err)
			}
			mu.Lock()
			given := l.Token == "" || drawn[l.Token]
			mu.Unlock()
			if given {
				return nil
			}
			if g, seen := before[l.Token]; seen && g.of != n%2 && g.l.Fence == l.Fence {
				_ = clients[g.of].Release(g.l)
				if err := b.held(c, l, fmt.Sprintf("after the late release of another client, which had been granted the lock with the same token %q, %d grants in all", l.Token, n+1)); err != nil {
					return err
				}
			}
			before[l.Token] = grant{n % 2, l}
			_ = c.Release(l)
		}
		return nil
	}
	return b.together(4, []part{{"one name", count}, {"another", count}, {"a third", count}, {"a fourth", count}})
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
			b.sleep(b.ttl / 2) // what was under way arrives
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

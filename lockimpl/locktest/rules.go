package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"oversell/internal/keyname"
	"oversell/lockimpl"
	"oversell/variant"
)

// Faults of rules that let a lease run out, and of rules that cut clients off.
var (
	overrun = []variant.Fault{variant.Overrun}
	crash   = []variant.Fault{variant.Crash}
	frozen  = []variant.Fault{variant.Overrun, variant.FreezeRenewal, variant.LateRequest}
	lost    = []variant.Fault{variant.DropReply, variant.LateRequest, variant.Overrun, variant.Crash}
	// noAnswer is an answer that is lost, and no more.
	noAnswer = []variant.Fault{variant.DropReply}
	stale    = []variant.Fault{variant.LateRequest, variant.Overrun}
	skew     = []variant.Fault{variant.ClockSkew, variant.Crash}
	// sameTime is a clock that was set back, or a request that was held up.
	sameTime = []variant.Fault{variant.ClockSkew, variant.Overrun}
)

var rules = []rule{
	{variant.MutualExclusion, nil, "a held lock is refused to others", nil, heldIsRefused},
	{variant.MutualExclusion, lost, "a refusal leaves the holder's lock as it is", nil, refusalsChangeNothing},
	{variant.MutualExclusion, overrun, "the lease keeps others out until its end", nil, leaseKeepsOut},
	{variant.MutualExclusion, overrun, "an extended lease keeps others out until its new end", canExtend, extendKeepsOut},
	{variant.MutualExclusion, overrun, "the lease counts from the call", reached, leaseFromCall},
	{variant.MutualExclusion, overrun, "the lease of a lock that was waited for", canWait, leaseAfterWait},
	{variant.MutualExclusion, nil, "a lock that renews keeps others out while its holder lives", renews, renewalKeepsOut},
	{variant.MutualExclusion, overrun, "long leases", nil, longLeases},
	{variant.MutualExclusion, nil, "a holder that asks again", nil, asksAgain},
	{variant.MutualExclusion, skew, "clients' clocks may differ", nil, clocksDiffer},
	{variant.MutualExclusion, overrun, "a client held up between two commands of an acquire", reached, stalledAcquire},
	{variant.MutualExclusion, lost, "answers that are lost", reached, lostAnswers},
	{variant.MutualExclusion, lost, "time that passes within an acquire or an extend", reached, timePasses},
	{variant.MutualExclusion, nil, "a server that refuses to write", nil, func(b *bench) error { return b.run.refused }},
	{variant.MutualExclusion, lost, "masters that do not answer", several, someMasters},
	{variant.MutualExclusion, frozen, "a renewal that is answered late, or fails", tellsRenewals, renewalsSuffer},
	{variant.OwnerOnlyRelease, lost, "an answer that is lost, and a client held up after it", reached, lostAndStalled},
	{variant.OwnerOnlyRelease, overrun, "a client held up between two commands of a release or an extend", reached, stalledOwner},
	{variant.OwnerOnlyRelease, overrun, "a late release or extend leaves the next holder alone", nil, lateCalls},
	{variant.OwnerOnlyRelease, stale, "a lock given back leaves the next holder alone", nil, staleCalls},
	{variant.OwnerOnlyRelease, stale, "a late release leaves the client's own next lock alone", distinct, ownNextLock},
	{variant.OwnerOnlyRelease, stale, "a late release on a server that knows no scripts", nil, func(b *bench) error { return b.run.scriptless }},
	{variant.OwnerOnlyRelease, overrun, "tokens that resemble each other", draws, similarTokens},
	{variant.OwnerOnlyRelease, sameTime, "two grants at one time by the clients' clocks", nil, grantsAtOneTime},
	{variant.OwnerOnlyRelease, frozen, "a holder cut off from the server until another has the lock", reached, frozenHolder},
	{variant.OwnerOnlyRelease, lost, "a request that arrives late", reached, lateRequests},
	{variant.Progress, nil, "a released lock can be taken", nil, releasedCanBeTaken},
	{variant.Progress, nil, "a waiter gets the lock when it is released", nil, waiterGetsIt},
	{variant.Progress, nil, "a free lock that several wait for", nil, severalWait},
	{variant.Progress, crash, "a dead holder's lease can be taken while others keep asking", nil, deadUnderTries},
	{variant.Progress, crash, "a renewal ends with the release", nil, renewalEnds},
	{variant.Progress, crash, "a client that dies between two commands", reached, diesBetween},
	{variant.Progress, crash, "a server that knows no scripts", nil, newServer},
	{variant.Progress, crash, "waiters that die", nil, waitersDie},
	{variant.Progress, crash, "a cancelled wait holds nothing", nil, cancelledWait}, // the request under way is like the request of a client that dies
	{variant.Progress, skew, "a client with a wrong clock that dies", nil, deadWithWrongClock},
	{variant.Progress, nil, "names are independent", nil, namesAreIndependent},
	{variant.Fencing, overrun, "tokens rise", nil, tokensRise},
	{variant.Fencing, skew, "tokens rise though clocks differ", nil, tokensRiseAcrossClocks},
	{variant.Fencing, nil, "tokens rise though a client is held up in its acquire", reached, tokensRiseBeside},
	{variant.Fencing, nil, "tokens of a lock that is old", nil, oldCounters},
	{variant.Linearizable, noAnswer, "a refusal after an answer that was lost", reached, refusedHoldsNothing},
	{variant.FIFO, nil, "served in the order of arrival", nil, servedInOrder},
}

func canWait(r *run) string {
	if !r.able.waits {
		return "the lock does not wait"
	}
	return ""
}

func renews(r *run) string {
	if !r.lock.Renews {
		return "the lock does not renew its leases"
	}
	return ""
}

func canExtend(r *run) string {
	if !r.able.extends {
		return "the lock does not extend"
	}
	return ""
}

func reached(r *run) string {
	if !r.able.reached {
		return "the lock's commands do not pass the suite's proxies"
	}
	return ""
}

func draws(r *run) string {
	if !r.able.draws {
		return "the lock draws its tokens by itself"
	}
	return ""
}

func distinct(r *run) string {
	if r.able.reenters {
		return "the lock is re-entrant, so that two grants of one client are one"
	}
	return ""
}

// heldIsRefused asks as new clients, which may prepare the server first, and as another thread of the holder's
// program.
func heldIsRefused(b *bench) error {
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	ask := func(c *client, who string, ttl time.Duration) error {
		var err error
		for start := b.run.lasted(); ; {
			_, err = c.try(b.name, ttl)
			switch {
			case err == nil:
				return broken(variant.MutualExclusion, "%s was granted the lock while the first client held it; want ErrHeld", who)
			case errors.Is(err, lockimpl.ErrHeld), ttl < long, b.ctx.Err() != nil:
				return nil // a lock may give the server a small part of the lease to answer
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

// refusalsChangeNothing refuses clients in many ways, each of which may have its own
// way to clean up.
func refusalsChangeNothing(b *bench) error {
	under := func(act func(b *bench, c *client, name string)) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			c := b.client()
			act(b, c, l.Key)
			if err := b.held(holder, l, "after another client had been refused"); err != nil {
				return err
			}
			// What the refusal left behind may also take time to do harm.
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
		_, _ = c.acquire(ctx, name, o)
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

// leaseKeepsOut lets holders die and measures when the next ones get in. There is no
// allowance: the grant is measured after it happened. The next ones ask for other leases
// than the holder did.
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
		for _, ttl := range oddLeases {
			for range 2 { // a machine that is busy may sleep through the time in which a flaw shows
				cases = append(cases, part{fmt.Sprintf("a lease of %v", ttl), keeps(ttl, b.ttl)})
			}
		}
	}
	return b.together(12, cases)
}

// leaseAfterWait: a waiter that looks seldom may have been granted the lock long before it notices. Its lease keeps
// others out until the end that it was told all the same.
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
				m, err = waiter.acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: 10 * b.ttl, RetryEvery: every})
				granted <- err
			}()
			b.sleep(every/2 + 20*time.Millisecond)
			if err := b.givesBack(holder, l, "while another client waited"); err != nil {
				return err
			}
			if err := <-granted; err != nil {
				return nil // other rules are about that
			}
			m.Until = waiter.until(m)
			waiter.die()
			_, _, err = b.next(waiter, m, 2*b.ttl, b.ttl, fmt.Sprintf("when the lock was obtained after a wait with a look every %v", every))
			return b.itsOwn(err)
		}})
	}
	return b.together(len(cases), cases)
}

// renewalKeepsOut: the holder does nothing for several leases, alone or with another lock of its own beside.
func renewalKeepsOut(b *bench) error {
	const leases = 3
	keeps := func(other, back bool) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(b.ttl)
			if err != nil {
				return err
			}
			after := fmt.Sprintf("%d leases after its grant", leases)
			if other {
				m, err := holder.take(b.name+"-other", b.ttl, 0)
				if err != nil {
					return nil // other rules are about that
				}
				after += ", with another lock of the same client beside it"
				if back {
					after += " that was given back"
					if err := b.givesBack(holder, m, "beside another lock"); err != nil {
						return err
					}
				}
			}
			b.sleep(leases * b.ttl)
			if time.Until(holder.until(l)) > 0 {
				return b.intact(holder, l, after)
			}
			// It says itself that its lease is over, or does not tell of renewals.
			stranger := b.client()
			if m, err := stranger.try(l.Key, b.ttl); err == nil {
				_ = stranger.release(m)
				return broken(variant.MutualExclusion, "%s, another client got the lock: the lease was not renewed, though its holder was alive and had not given it back", after)
			}
			_ = holder.release(l)
			return nil
		}
	}
	// A machine that is busy may keep a renewal from coming in time, but not each time.
	often := func(check func(*bench) error) func(*bench) error {
		return func(b *bench) (err error) {
			for n := range 3 {
				own := b.with(fmt.Sprintf("%s-renewed-%d", b.name, n))
				err = check(own)
				own.close()
				if err == nil {
					return nil
				}
			}
			return err
		}
	}
	return b.together(3, []part{
		{"one lock", often(keeps(false, false))}, {"beside another", often(keeps(true, false))}, {"when another was given back", often(keeps(true, true))},
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
				case errors.Is(err, lockimpl.ErrLost) && time.Until(holder.until(l)) > 0:
					return broken(variant.MutualExclusion, "the holder was told that its lock is lost %v before the end of its lease", time.Until(holder.until(l)))
				case err != nil:
					return nil // a machine so busy that the lease is over, or a time limit
				}
				l = m
			}
			l.Until = holder.until(l)
			holder.die()
			_, _, err = b.next(holder, l, by, b.ttl, fmt.Sprintf("with a lease of %v extended by %v", ttl, by))
			return err
		}
	}
	cases := []part{
		{"longer", keeps(b.ttl, 0, 2*b.ttl, 1)},
		{"at half of the lease", keeps(b.ttl, b.ttl/2, b.ttl, 2)},
	}
	if b.run.able.brief {
		cases = append(cases, part{"a brief lease", keeps(briefLease, 0, oddLeases[0], 1)})
		for _, by := range oddLeases {
			cases = append(cases, part{fmt.Sprintf("by %v", by), keeps(b.ttl, 0, by, 1)})
		}
	}
	return b.together(8, cases)
}

// extend tries a few times when the outcome is open.
func (b *bench) extend(c *client, l lockimpl.Lock, ttl time.Duration) (m lockimpl.Lock, err error) {
	for range 4 {
		if m, err = c.extend(l, ttl); err == nil || errors.Is(err, lockimpl.ErrLost) {
			return m, err
		}
		b.sleep(pace)
	}
	return m, err
}

// asksAgain has a holder ask for its own lock: it may be refused, or be granted the lock
// once more, and then both grants count.
func asksAgain(b *bench) error {
	again := func(ttl, pause, then time.Duration) func(*bench) error {
		return func(b *bench) error {
			c, l, err := b.holder(ttl)
			if err != nil {
				return err
			}
			b.sleep(pause)
			m, err := c.try(b.name, then)
			if err == nil && m.Until.After(l.Until) {
				l = m
			}
			l.Until = c.until(l)
			c.die()
			_, _, err = b.next(c, l, ttl+then, b.ttl, "after the holder had asked again")
			return err
		}
	}
	return b.together(4, []part{
		{"within its lease", func(b *bench) error {
			c, l, err := b.holder(long)
			if err != nil {
				return err
			}
			m, err := c.try(b.name, long)
			if err != nil {
				return b.intact(c, l, "after the holder had asked again and been refused")
			}
			if err := b.held(c, m, "with two grants to one client"); err != nil {
				return err
			}
			_ = c.release(m)
			if err := b.held(c, l, "after one of two grants to the same client had been given back"); err != nil {
				return err
			}
			_ = c.release(l)
			return b.free(b.name, 0, "after both of two grants to one client had been given back")
		}},
		{"late in its lease", again(b.ttl, b.ttl/2, b.ttl)},
		{"for a shorter lease", again(3*b.ttl, 0, b.ttl)},
		{"for a longer lease", again(b.ttl, b.ttl/4, 2*b.ttl)},
	})
}

// clocksDiffer: what a client writes by its own clock, another must not judge by its own.
func clocksDiffer(b *bench) error {
	var cases []part
	for _, holds := range []time.Duration{-time.Hour, -2 * b.ttl, 0, time.Hour} {
		for _, asks := range []time.Duration{-time.Hour, 0, 2 * b.ttl, time.Hour} {
			if holds >= asks {
				continue // the other way round, a lease looks longer than it is
			}
			cases = append(cases, part{fmt.Sprintf("holder %v, contender %v ahead", holds, asks), func(b *bench) error {
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
					if _, err := c.try(b.name, b.ttl); err == nil && time.Until(holder.until(l)) > 0 {
						return broken(variant.MutualExclusion, "a client with its clock %v ahead was granted the lock %v before the end of the lease of a holder with its clock %v ahead",
							asks, time.Until(holder.until(l)).Round(time.Millisecond), holds)
					}
				}
				return b.givesBack(holder, l, "after a client with another clock had asked")
			}})
		}
	}
	return b.together(4, cases)
}

// deadWithWrongClock: a wrong clock of one client must not make others wait.
func deadWithWrongClock(b *bench) error {
	var cases []part
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		cases = append(cases, part{fmt.Sprintf("%v ahead", ahead), func(b *bench) error {
			c, _, err := b.holder(b.ttl, clockAhead(ahead))
			if err != nil {
				return err
			}
			c.die()
			return b.free(b.name, b.ttl, fmt.Sprintf("after the end of the lease of a client that died with its clock %v ahead", ahead))
		}})
	}
	return b.together(4, cases)
}

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
			// The state that the late holder still has must not affect later clients.
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

// lapsed returns a lock with a holder that lets the lease run out and lives. The background work of one that renews
// by itself is stopped.
func (b *bench) lapsed() (*client, lockimpl.Lock, error) {
	c, l, err := b.holder(b.ttl)
	if err != nil {
		return c, l, err
	}
	l.Until = c.until(l)
	c.end()
	if b.run.lock.Renews {
		c.freeze() // a renewal that does not end with its client
		b.sleepUntil(l.Until.Add(b.ttl))
		c.thaw()
	}
	return c, l, nil
}

// lateCall acts on a lock that another client holds.
func (b *bench) lateCall(owner *client, l lockimpl.Lock, act string) error {
	what := "the first holder's late " + act
	if act == "release" {
		return b.isLate(what, owner.release(l))
	}
	m, err := owner.extend(l, long)
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
	m.Until = next.until(m)
	next.die()
	if time.Until(m.Until) <= 0 {
		return nil
	}
	_, _ = owner.extend(l, long)
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
	m, err := owner.extend(l, 10*b.ttl)
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
			o, err := other.take(b.name+"-other", long, 0)
			if err != nil {
				return broken(variant.Progress, "a free lock was not granted: %v", err)
			}
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			if sameGrant(o, l) {
				return nil // no lock has issued what would be forged: it names the holder's own grant
			}
			forged := o
			forged.Key = b.name
			_ = other.release(forged)
			if b.run.able.extends {
				_, _ = other.extend(forged, b.ttl)
			}
			return b.intact(holder, l, "after a release by the holder of another lock")
		}},
	})
}

// sameGrant tells whether nothing but the name tells two grants apart, as with tokens that are counted
// for each name.
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
		if _, err := owner.take(b.name+"-other", long, 0); err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
	}
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	if err := b.isLate("a release of a lock that was given back before and is another's now", owner.release(old)); err != nil {
		return err
	}
	if b.run.able.extends {
		if _, err := owner.extend(old, b.ttl); err == nil {
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
			l.Until = c.until(l)
			if b.run.lock.Renews {
				return nil // its lease does not run out while it lives
			}
			m, err := c.take(b.name, long, b.ttl)
			if err != nil {
				return broken(variant.Progress, "nobody could take the lock after the lease had run out: %v", err)
			}
			if err := b.staleExtend(c, l); err != nil {
				return err
			}
			_ = c.release(l)
			return b.intact(c, m, "after a late release of the client's earlier grant")
		}},
		{"after a release", func(b *bench) error {
			c, l, err := b.holder(long)
			if err != nil {
				return err
			}
			if err := c.release(l); err != nil {
				return nil
			}
			m, err := c.take(b.name, long, 0)
			if err != nil {
				return broken(variant.Progress, "a released lock could not be taken again by the same client: %v", err)
			}
			if err := b.staleExtend(c, l); err != nil {
				return err
			}
			_ = c.release(l)
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
				l, err := c.take(b.name, long, 0)
				if err != nil {
					return broken(variant.Progress, "a free lock was not granted: %v", err)
				}
				if c.release(l) == nil {
					old = append(old, l)
				}
			}
			m, err := c.take(b.name, long, 0)
			if err != nil {
				return broken(variant.Progress, "a free lock was not granted: %v", err)
			}
			for _, l := range old {
				_ = c.release(l)
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
	if _, err := c.extend(l, b.ttl); err == nil {
		return broken(variant.OwnerOnlyRelease, "an extend of the client's earlier grant, which is over, was answered with success while the client held another; want ErrLost")
	}
	return nil
}

// similarTokens are pairs of tokens that a careless comparison takes for the same.
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
				l.Until = owner.until(l)
				owner.end()
				if b.run.lock.Renews {
					owner.freeze()
					defer owner.thaw()
				}
				next, m, err := b.next(owner, l, b.ttl, long, "with a similar token", named(now))
				if err != nil && len(old) != len(now) {
					return nil // a lock may rely on it that its tokens are of one length
				}
				if err != nil {
					return err
				}
				owner.thaw()
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

// frozenHolder cuts a holder off from the server until another client has the lock. What
// it had under way, renewals included, arrives then.
func frozenHolder(b *bench) error {
	case_ := func(act string) func(*bench) error {
		return func(b *bench) error {
			holder, l, err := b.holder(b.ttl)
			if err != nil {
				return err
			}
			b.sleep(b.ttl / 5)
			holder.freeze()
			next, m, err := b.next(holder, l, 2*b.ttl, b.ttl*4, "with the holder cut off")
			if err != nil {
				return err
			}
			end := next.until(m)
			holder.thaw()
			b.sleep(b.ttl / 2) // what was under way arrives
			switch act {
			case "release":
				_ = holder.release(l)
			case "extend":
				_, _ = holder.extend(l, long)
			}
			if err := b.held(next, m, "after the first holder was back"); err != nil {
				return err
			}
			// The next holder dies now: the first one must not keep its lock alive.
			next.die()
			return b.prolonged(b.name, time.Until(end)+b.ttl, "after a holder that had been cut off was back, and the next one had died")
		}
	}
	cases := []part{{"and does nothing", case_("")}, {"and releases", case_("release")}}
	if b.run.able.extends {
		cases = append(cases, part{"and extends", case_("extend")})
	}
	return b.together(4, cases)
}

func releasedCanBeTaken(b *bench) error {
	one, two := b.client(), b.client()
	for i, c := range []*client{one, two, one, one, two} {
		l, err := c.take(b.name, long, 0)
		if err != nil {
			return broken(variant.Progress, "grant %d: a lock that was free was not granted: %v", i+1, err)
		}
		if err := b.givesBack(c, l, fmt.Sprintf("after grant %d", i+1)); err != nil {
			return err
		}
		if b.run.promises(variant.Linearizable) && !b.run.able.tells {
			if err := c.release(l); err == nil {
				return broken(variant.Linearizable, "a second release of the same lock was answered with success; want ErrLost")
			}
		}
		if b.run.able.extends && !b.run.able.reenters {
			if _, err := c.extend(l, long); err == nil {
				if _, err := two.takeWithin(b.name, b.ttl, time.Second); err != nil {
					return broken(variant.Progress, "an extend after the release took the lock again: %v", err)
				}
				return broken(variant.OwnerOnlyRelease, "an extend of a lock that was given back was answered with success; want ErrLost")
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
		l, err := holder.take(b.name, long, 0)
		if err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
		type answer struct {
			m   lockimpl.Lock
			err error
		}
		got := make(chan answer, 1)
		go func() {
			m, err := waiter.takeWithin(b.name, long, patience+limit)
			got <- answer{m, err}
		}()
		b.sleep(time.Duration(holder.chance(1+i*100)) * time.Microsecond)
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

// severalWait: if several clients wait for a free lock at the same time, one gets it, and then the next.
func severalWait(b *bench) error {
	return b.together(4, []part{
		{"two", func(b *bench) error { return b.crowd(true, pace, pace) }},
		{"five", func(b *bench) error { return b.crowd(true, pace, pace, pace, pace, pace) }},
		{"two that ask at other intervals", func(b *bench) error { return b.crowd(true, pace, 60*time.Millisecond) }},
		{"three that come to a free lock", func(b *bench) error { return b.crowd(false, pace, 2*pace, 3*pace) }},
	})
}

// crowd has clients wait for one lock, each for as long as it takes, and looking again at an interval. They are not
// to stop before all have been served: of two that are in each other's way, one gets the lock when the other gives up.
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
				if m, err := c.acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: e}); err == nil {
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
				return &unjudged{"a lease ended before it was given back", err}
			}
			if err != nil {
				return err
			}
			overrun = overrun || time.Until(a.c.until(a.m)) <= 0
		case <-b.after(patience):
			none := &ungranted{since, patience, b.run.lasted()-start >= patience, errStillHeld}
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
			for time.Until(holder.until(l)) > 20*time.Millisecond {
				_, err := c.acquire(b.ctx, b.name, o)
				if err != nil && !errors.Is(err, lockimpl.ErrHeld) {
					return nil // it may have been granted the lock
				}
				if err == nil {
					if left := time.Until(holder.until(l)); left > 0 {
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

// waitsOut waits in one call for longer than the lease of a dead holder lasts. No client announces the end of that
// lease.
func waitsOut(b *bench) error {
	const more = 5 * time.Second // after the end of the lease
	holder, l, err := b.abandoned(b.ttl)
	if err != nil || !b.run.able.waits {
		return err
	}
	c := b.client()
	left := max(time.Until(holder.until(l)), 0)
	start := b.run.lasted()
	_, err = c.acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: left + more, RetryEvery: pace})
	if over := b.run.lasted() - start - left; errors.Is(err, lockimpl.ErrHeld) && over > more/4 {
		return broken(variant.Progress, "a client that had waited for %v was refused, though nobody had held the lock for %v: the lease of the last holder, which had died, was over", (left + more).Round(time.Millisecond), over.Round(time.Millisecond))
	}
	return nil
}

// renewalEnds: what keeps a lease alive must end with the release, and not go on for
// the next holder.
func renewalEnds(b *bench) error {
	after := func(rounds int, hold time.Duration) func(*bench) error {
		return func(b *bench) error {
			c := b.client()
			for range rounds {
				l, err := c.take(b.name, b.ttl, 0)
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
				if m, err := c.extend(l, b.ttl); err == nil {
					l = m
				}
			}
			l.Until = c.until(l)
			c.die()
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
					_, _ = c.acquire(c.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: 20 * time.Millisecond})
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
					m, err := c.take(b.name, b.ttl, patience)
					if err == nil {
						err = b.givesBack(c, m, "after a wait")
					} else {
						err = broken(variant.Progress, "with waiters that had died before it in line, a client did not get the lock: %v", err)
					}
					got <- err
				}()
			}
			b.sleep(2 * pause)
			for _, c := range doomed {
				c.die()
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

func cancelledWait(b *bench) error {
	return b.together(4, []part{
		{"long before the release", func(b *bench) error {
			holder, l, err := b.holder(long)
			if err != nil {
				return err
			}
			waiter := b.client()
			ctx, cancel := context.WithTimeout(b.ctx, 20*time.Millisecond)
			defer cancel()
			if _, err := waiter.acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: time.Millisecond}); err == nil {
				return broken(variant.MutualExclusion, "a wait under a cancelled context was granted a lock that is held")
			}
			if err := b.givesBack(holder, l, "after a cancelled wait"); err != nil {
				return err
			}
			return b.free(b.name, b.ttl, "after a cancelled wait")
		}},
		{"as the lock is released", func(b *bench) error {
			holder, waiter := b.client(), b.client()
			for range 15 {
				l, err := holder.take(b.name, long, b.ttl)
				if err != nil {
					return broken(variant.Progress, "after a cancelled wait nobody could take the lock: %v", err)
				}
				ctx, cancel := context.WithCancel(b.ctx)
				got := make(chan error, 1)
				var m lockimpl.Lock
				go func() {
					var err error
					m, err = waiter.acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: time.Millisecond})
					got <- err
				}()
				b.sleep(time.Duration(waiter.chance(3000)) * time.Microsecond)
				var both sync.WaitGroup
				both.Go(func() { b.sleep(time.Duration(waiter.chance(500)) * time.Microsecond); cancel() })
				err = holder.release(l)
				both.Wait()
				select {
				case e := <-got:
					if e == nil {
						_ = waiter.release(m)
					}
				case <-b.after(patience):
					return broken(variant.Progress, "a wait had not returned %v after its context was cancelled", patience)
				}
				_ = err
			}
			return nil
		}},
	})
}

func tokensRise(b *bench) error {
	var last int64
	rises := func(l lockimpl.Lock, after string) error {
		if l.Fence <= last {
			return broken(variant.Fencing, "token %d was granted after token %d, %s", l.Fence, last, after)
		}
		last = l.Fence
		return nil
	}
	c := b.client()
	for range 20 {
		l, err := c.take(b.name, long, 0)
		if err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
		if err := rises(l, "by the same client"); err != nil {
			return err
		}
		if err := b.givesBack(c, l, "at once"); err != nil {
			return err
		}
	}
	for range 3 {
		c, l, err := b.holder(long)
		if err != nil {
			return err
		}
		if err := rises(l, "by a new client"); err != nil {
			return err
		}
		stranger := b.client()
		_, _ = stranger.try(b.name, b.ttl) // a refusal is no grant, and may take a number
		if err := b.givesBack(c, l, "at once"); err != nil {
			return err
		}
	}
	holder, l, err := b.abandoned(b.ttl)
	if err != nil {
		return err
	}
	if err := rises(l, "by a client that died"); err != nil {
		return err
	}
	c, l, err = b.next(holder, l, b.ttl, long, "with a dead holder")
	if err != nil {
		return err
	}
	if err := rises(l, "after the end of a lease"); err != nil {
		return err
	}
	if err := b.givesBack(c, l, "at once"); err != nil {
		return err
	}
	if err := b.laterOn(); err != nil {
		return err
	}
	if c, l, err = b.holder(long); err != nil {
		return err
	}
	if err := rises(l, "after a time in which everything that expires had expired"); err != nil {
		return err
	}
	return b.givesBack(c, l, "at once")
}

// laterOn lets a long time pass for the server: each key of this lock that expires, does.
func (b *bench) laterOn() error {
	for _, rdb := range b.client().env.Redis {
		if err := keyname.Expire(b.ctx, rdb, b.name, 1000*time.Hour); err != nil {
			return err
		}
	}
	return nil
}

func tokensRiseAcrossClocks(b *bench) error {
	var last int64
	for _, ahead := range []time.Duration{time.Hour, 0, -time.Hour, time.Minute, 0} {
		c, l, err := b.holder(long, clockAhead(ahead))
		if err != nil {
			return err
		}
		if l.Fence <= last {
			return broken(variant.Fencing, "token %d was granted to a client with its clock %v ahead, after token %d", l.Fence, ahead, last)
		}
		last = l.Fence
		if err := b.givesBack(c, l, "at once"); err != nil {
			return err
		}
	}
	return nil
}

// servedInOrder lets three clients join the line one after the other, each only
// when the one before is known to stand in it, and then frees the lock.
//
// A waiter that a busy machine holds up for too long may lose its place: the order must be
// wrong each time.
func servedInOrder(b *bench) (err error) {
	return b.together(2, []part{
		{"soon", func(b *bench) error { return b.line(3, 0, 0) }},
		// Each has waited for another time, and none for less than most waiters stay silent.
		{"after a long wait", func(b *bench) error { return b.line(6, 370*time.Millisecond, 2500*time.Millisecond) }},
	})
}

// line lets clients join with pauses in between, and goes on for a time.
func (b *bench) line(clients int, pause, wait time.Duration) (err error) {
	for n := range 3 {
		own := b.with(fmt.Sprint(b.name, n))
		err = own.lineUp(clients, pause, wait)
		own.close()
		var w *breach
		if err == nil || errors.As(err, &w) && w.sure {
			return err
		}
	}
	return err
}

func (b *bench) lineUp(clients int, pause, wait time.Duration) error {
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	type turn struct {
		client int
		err    error
	}
	served := make(chan turn, clients)
	for i := range clients {
		joined := make(chan struct{})
		var once sync.Once
		waiter := b.client(func(c *client) {
			wait := c.env.Wait
			c.env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
				once.Do(func() { close(joined) }) // it waits: the first attempt has put it in line
				return wait(ctx, key, atMost)
			}
		})
		go func() {
			m, err := waiter.take(b.name, b.ttl, patience+wait)
			served <- turn{i, err}
			if err == nil {
				_ = waiter.release(m) // if it is not, the next one says so
			}
		}()
		select {
		case <-joined:
		case <-time.After(2 * time.Second): // a lock that waits by its own means
		}
		b.sleep(pause)
	}
	b.sleep(wait)
	if err := b.givesBack(holder, l, "with others in line"); err != nil {
		return err
	}
	for want := range clients {
		switch got := <-served; {
		case got.err != nil:
			return broken(variant.Progress, "client %d of a line of %d did not get the lock, which its holder had given back: %v", got.client+1, clients, got.err)
		case got.client != want:
			return broken(variant.FIFO, "client %d of the line was served as number %d", got.client+1, want+1)
		}
	}
	return nil
}

// namesAreIndependent takes locks with names that resemble each other, and many that
// do not.
func namesAreIndependent(b *bench) error {
	return b.together(4, []part{
		{"similar names", similarNames},
		{"names beside a separator", separatedNames},
		{"many names", manyNames},
		{"two locks of one client", twoOfOne},
	})
}

func similarNames(b *bench) error {
	n := b.name
	names := []string{
		n, n + "2", n + "-", n[:len(n)-1], strings.ToUpper(n), n + " ", n + ":", n + ":1", n + "/1", n + "*", n + "?", n[:len(n)-1] + "?", n[:len(n)-1] + "*", "*" + n,
		n + "[a]", n + "\\", n + "\n", n + "\x00", n + "%", n + "é", n + ":lock", n + ":fence", n + ":queue", n + ":owner", n + ":token", n + ":counter", "Lock:" + n, "lock:" + n, n + strings.Repeat("x", 300), n + strings.Repeat("x", 300) + "y",
		"cart:" + n, "order:" + n, n + "{a}", n + "{b}", // the same hash tag, or another one after it
		n + "Aa", n + "BB", n + "12", n + "21", n + "1", n + "01", // the same under simple hashes, and as numbers
		" " + n, n + "\t", n + "e\u0301",
	}
	names = append(names, b.collisions()...)
	var holders []*client
	var locks []lockimpl.Lock
	var taken []string
	for _, name := range names {
		c := b.client()
		l, err := c.acquire(b.ctx, name, lockimpl.Options{TTL: long, RetryEvery: pace})
		if err != nil && name != n && c.declines(name, err) {
			b.run.logf("%s/similar names: %q was left out, since the lock does not take such names: %v", b.property, name, err)
			continue
		}
		if err != nil {
			l, err = c.takeWithin(name, long, 2*time.Second)
		}
		if err != nil {
			return sameLock("with other names held, such as %q, the free lock %q was not granted: %v", n, name, err)
		}
		holders, locks, taken = append(holders, c), append(locks, l), append(taken, name)
	}
	names = taken
	stranger := b.client()
	b.property = variant.OwnerOnlyRelease
	for i := range names {
		if err := b.givesBack(holders[i], locks[i], fmt.Sprintf("after locks with names like %q had been given back", names[max(i-1, 0)])); err != nil {
			return err
		}
		for j := i + 1; j < len(names); j++ {
			if m, err := stranger.acquire(b.ctx, names[j], lockimpl.Options{TTL: long}); err == nil && time.Until(holders[j].until(locks[j])) > 0 {
				_ = stranger.release(m)
				return broken(variant.OwnerOnlyRelease, "the release of %q opened %q, which another client holds", names[i], names[j])
			}
		}
	}
	return nil
}

// separators are what names are put together with, which a lock may cut them at or replace.
const separators = ":/.-_@#&|;,+=~$!"

// separatedNames takes names that differ only on one side of a separator, or in the separator.
func separatedNames(b *bench) error {
	var names []string
	for _, sep := range separators {
		s := string(sep)
		names = append(names, b.name+s+"a", b.name+s+"b", "x"+s+b.name, "y"+s+b.name)
	}
	var holders []*client
	var locks []lockimpl.Lock
	for _, name := range names {
		c := b.client()
		l, err := c.acquire(b.ctx, name, lockimpl.Options{TTL: long, RetryEvery: pace})
		if err != nil && c.declines(name, err) {
			b.run.logf("%s/names beside a separator: %q was left out, since the lock does not take such names: %v", b.property, name, err)
			continue
		}
		if err != nil {
			l, err = c.takeWithin(name, long, 2*time.Second)
		}
		if err != nil {
			return sameLock("with other names held that differ from it beside a separator or in the separator only, the free lock %q was not granted: %v", name, err)
		}
		holders, locks = append(holders, c), append(locks, l)
	}
	b.property = variant.OwnerOnlyRelease
	for i, l := range locks {
		if err := b.givesBack(holders[i], l, "after locks with similar names had been given back"); err != nil {
			return err
		}
	}
	return nil
}

// declines reports whether an Acquire that ended in an error says nothing about a free lock: a new client asks
// again, and gets an error of the lock's own that is not a refusal, before any command is sent.
func (c *client) declines(name string, err error) bool {
	if errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, lockimpl.ErrLost) {
		return false
	}
	fresh := c.b.client()
	fresh.plan(nil)
	fresh.hooked.Store(0)
	_, err = fresh.acquire(c.b.ctx, name, lockimpl.Options{TTL: long, RetryEvery: pace})
	return err != nil && c.b.ctx.Err() == nil && !errors.Is(err, lockimpl.ErrHeld) && !errors.Is(err, lockimpl.ErrLost) &&
		fresh.sent() == 0 && fresh.hooked.Load() == 0
}

// collisions are names for which the lock may use a key that it uses for its own name, too.
func (b *bench) collisions() []string {
	c, l, err := b.holder(long)
	if err != nil {
		return nil
	}
	defer func() { _ = c.release(l) }()
	waiter := b.client() // a waiter may have keys, too
	ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
	defer cancel()
	_, _ = waiter.acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: long, RetryEvery: pace})
	found, err := keyname.Of(b.ctx, c.env.Redis[0], b.name)
	if err != nil {
		return nil
	}
	return keyname.Collisions(found, b.name)
}

// newServer looks at locks that were taken, or extended, before the server knew any scripts.
func newServer(b *bench) error {
	for _, name := range b.run.first {
		if err := b.free(name, b.ttl, "after the death of a holder that was the first to use the server"); err != nil {
			return err
		}
	}
	return nil
}

// manyNames holds many locks at once, more than a table of a few ten thousand slots
// takes without two in one.
func manyNames(b *bench) error {
	count := 600
	if b.run.lock.Needs.Masters > 1 {
		count = 100
	}
	c, stranger := b.client(), b.client()
	locks := make([]lockimpl.Lock, count)
	for i := range locks {
		name := fmt.Sprintf("%s-%x", b.name, i*7919+stranger.chance(1000))
		l, err := c.takeWithin(name, long, 2*time.Second)
		if err != nil {
			return sameLock("a client that holds %d locks could not take %q, which nobody holds: %v", i, name, err)
		}
		locks[i] = l
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

func twoOfOne(b *bench) error {
	c, first, err := b.holder(long)
	if err != nil {
		return err
	}
	second, err := c.take(b.name+"-other", long, 0)
	if err != nil {
		return sameLock("a client that holds %q could not take %q: %v", first.Key, b.name+"-other", err)
	}
	if err := b.held(c, first, "after the same client had taken another name"); err != nil {
		return err
	}
	if b.run.able.extends {
		if _, err := b.extend(c, first, long); errors.Is(err, lockimpl.ErrLost) {
			return broken(variant.MutualExclusion, "a client that holds two locks was told that the first is lost")
		}
	}
	if err := b.givesBack(c, second, "with two locks"); err != nil {
		return err
	}
	if err := b.intact(c, first, "after the same client had given another name back"); err != nil {
		return err
	}
	if err := b.free(first.Key, 0, "after its release"); err != nil {
		return err
	}
	return b.free(second.Key, 0, "after its release")
}

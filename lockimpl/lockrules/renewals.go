package lockrules

import (
	"fmt"
	"sync"
	"time"

	"oversell/internal/interrupt"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// Renewals are cases in which a client holds a lock that is renewed in the background for longer than its lease. Others must
// not get it, whatever the client has done with other locks, or with this one before.
var Renewals = []Case{
	{"after a late release of its earlier lock", func(b Bench) error {
		return b.renewed(3, "after a late release of an earlier lock of the same name", func(c *lockclient.Client, name string) (lockimpl.Lock, error) {
			first, err := c.Take(name, b.TTL, 0)
			if err != nil {
				return first, err
			}
			_ = c.Release(first)
			l, err := c.Take(name, b.TTL, 0)
			if err == nil {
				_ = c.Release(first) // it is lost
			}
			return l, err
		})
	}},
	{"after the release of a lock that it took before", func(b Bench) error {
		return b.renewed(3, "after the release of another lock that its client had taken before", func(c *lockclient.Client, name string) (lockimpl.Lock, error) {
			other, err := c.Take(name+"-other", b.TTL, 0)
			if err != nil {
				return other, err
			}
			l, err := c.Take(name, b.TTL, 0)
			_ = c.Release(other)
			return l, err
		})
	}},
	{"for many leases", func(b Bench) error {
		if b.Brief { // renewals are as frequent as the lease is short
			err := b.renewedOften(250*time.Millisecond, 9*time.Second)
			if lockfinding.IsUnjudged(err) {
				own := b
				own.Name += "-again"
				err = own.renewedOften(250*time.Millisecond, 9*time.Second)
			}
			if lockfinding.IsUnjudged(err) {
				b.Log("a lock that is renewed many times was not tried: %v", err)
				return nil // there is no time for more
			}
			return err
		}
		return b.renewed(8, "since it was granted", func(c *lockclient.Client, name string) (lockimpl.Lock, error) { return c.Take(name, b.TTL, 0) })
	}},
	{"after an extend", func(b Bench) error {
		if !b.Extends {
			return nil
		}
		return b.renewed(4, "after its holder had extended it", func(c *lockclient.Client, name string) (lockimpl.Lock, error) {
			l, err := c.Take(name, b.TTL, 0)
			if err != nil {
				return l, err
			}
			return c.Extend(l, b.TTL)
		})
	}},
	{"a renewal after an extend for longer", func(b Bench) error {
		if !b.Extends {
			return nil
		}
		holder, l, err := b.holder(b.TTL)
		if err != nil {
			return err
		}
		if l, err = holder.Extend(l, 6*b.TTL); err != nil || l.Until.IsZero() {
			return nil
		}
		if !b.pass(b.TTL + b.TTL/4) { // a renewal, and an answer
			return nil
		}
		holder.Die()
		f := &failing{Client: holder}
		return b.kept(f, l, "a lease was extended for longer, and renewed in the background before its client died", 6*b.TTL)
	}},
}

// LostRenewal loses the answer to one renewal that the server has executed. It is for locks that implement neither
// [lockimpl.Renewer] nor [lockimpl.LossNotifier]: the holder believes that the lease is renewed, so the lock must go on
// renewing.
var LostRenewal = []Case{{"the answer to a renewal is lost", func(b Bench) error {
	var holder *lockclient.Client
	since := func() string {
		if holder.Sent() == 0 {
			return "since it was granted, in which its client sent nothing for the last five leases,"
		}
		return "after the answer to one renewal was lost, of which its holder was told nothing"
	}
	return b.renewedSince(5, since, func(c *lockclient.Client, name string) (lockimpl.Lock, error) {
		holder = c
		l, err := c.Take(name, b.TTL, 0)
		if err == nil && b.pass(b.TTL) { // by then its script is loaded
			c.Arm(1, wire.DropReply)
		}
		return l, err
	})
}}}

// FailingRenewals has one command in four of a holder fail, for many renewals. Those between them succeed, so a lock that renews must
// go on renewing, or tell its holder that the lock is lost. A lock whose pause between renewals is so long that the lease ends after
// one failure is not judged.
var FailingRenewals = []Case{{"one command in four fails", func(b Bench) error {
	const leases, tries = 8, 2 // a machine that is busy may hold up a renewal once
	return b.eachTime(tries, func(b Bench) error { return b.failingRenewals(leases) })
}}}

func (b Bench) failingRenewals(leases int) error {
	var line *interrupt.Interceptor
	holder, err := b.Client(func(env *variant.Env) { *env, line = interrupt.Intercept(*env) })
	if err != nil {
		return err
	}
	other, err := b.client()
	if err != nil {
		return err
	}
	holder.Practise(b.Name, b.TTL, b.Extends)
	l, err := b.held(holder, b.TTL)
	if err != nil {
		return err
	}
	lost := lost(holder, l)
	var mu sync.Mutex
	last, longest := time.Now(), time.Duration(0) // when a command was sent, and the longest time between two
	line.Errors(interrupt.ErrRefused, interrupt.ErrRefused)
	line.Plan(func(nth int) interrupt.Action {
		mu.Lock()
		defer mu.Unlock()
		longest, last = max(longest, time.Since(last)), time.Now()
		if nth%4 == 0 {
			return interrupt.Refuse
		}
		return interrupt.Pass
	})
	if !b.pass(time.Duration(leases) * b.TTL) {
		return nil
	}
	sent := line.Sent()
	line.Plan(nil)
	mu.Lock()
	quiet, pause := time.Since(last), longest
	mu.Unlock()
	m, err := other.Try(b.Name, b.TTL)
	if err != nil {
		_ = holder.Release(l)
		return nil
	}
	_ = other.Release(m)
	select {
	case <-lost:
		return nil // it was told
	default:
	}
	if _, tells := holder.Locker.(lockimpl.Renewer); tells && time.Until(holder.Until(l)) <= 0 {
		return nil // the lock says when the lease ends
	}
	// A lock that gave up has sent nothing for longer than a lease; one that still sends was too slow once.
	if sent < 4 || quiet < b.TTL+b.TTL/2 || 2*pause > b.TTL*9/10 {
		return nil
	}
	return lockfinding.Broken(variant.MutualExclusion, "of the %d commands that a holder sent to renew its lease, the server answered every fourth with an error: the last one was sent %v before another client got the lock, though the holder was alive, had not released the lock, and was not told that it is lost",
		sent, quiet.Round(time.Millisecond))
}

// renewed has a client hold a lock that renews for a number of its leases, and expects that another client is refused then. It makes
// up to three tries, since a busy machine may delay a renewal for too long.
func (b Bench) renewed(leases int, since string, take func(c *lockclient.Client, name string) (lockimpl.Lock, error)) error {
	return b.renewedSince(leases, func() string { return since }, take)
}

// renewedSince is renewed; since returns what comes before the finding in its text, and is called when another client has got the lock.
func (b Bench) renewedSince(leases int, since func() string, take func(c *lockclient.Client, name string) (lockimpl.Lock, error)) error {
	const tries = 3
	var found error
	for try := range tries {
		name := fmt.Sprintf("%s-%d", b.Name, try)
		holder, err := b.client()
		if err != nil {
			return err
		}
		other, err := b.client()
		if err != nil {
			return err
		}
		l, err := take(holder, name)
		if err != nil || !b.pass(time.Duration(leases)*b.TTL) {
			return nil
		}
		if m, err := other.Try(name, b.TTL); err == nil {
			found = lockfinding.Broken(variant.MutualExclusion, "%v %s, another client got the lock: the lease was not renewed, though its holder was alive and had not released it", time.Duration(leases)*b.TTL, since())
			_ = other.Release(m)
		} else {
			found = nil
		}
		_ = holder.Release(l)
		if found == nil {
			return nil
		}
	}
	return found
}

// renewedOften holds a lock with a short lease for long, on a machine and with a server that answer in time.
func (b Bench) renewedOften(lease, long time.Duration) error {
	holder, other, err := b.two()
	if err != nil {
		return err
	}
	holder.Plan(nil)
	l, err := b.held(holder, lease)
	if err != nil {
		return err
	}
	granted := holder.Sent() // 0 if its commands do not pass the proxies
	slowest := time.Duration(0)
	for start, last := time.Now(), time.Now(); time.Since(start) < long; last = time.Now() {
		if !b.pass(4*lockclient.Pace) || other.Env.Redis[0].Ping(b.Ctx).Err() != nil {
			return nil
		}
		slowest = max(slowest, time.Since(last))
	}
	m, err := other.Try(b.Name, lease)
	switch {
	case err != nil:
		_ = holder.Release(l)
		return nil
	case granted > 0 && holder.Sent() == granted:
		_ = other.Release(m)
		return lockfinding.Broken(variant.MutualExclusion, "%v since a lease of %v was granted, another client got the lock: the holder was alive and had not released it, and its client had sent nothing since, so nothing renews the lease", long, lease)
	case slowest > lease/4:
		return lockfinding.Unjudged("the lock was not renewed in time, perhaps because the machine is busy", nil)
	}
	_ = other.Release(m)
	return lockfinding.Broken(variant.MutualExclusion, "%v since a lease of %v was granted, another client got the lock: the lease was not renewed, though its holder was alive and had not released it", long, lease)
}

// pass waits, unless the test ends.
func (b Bench) pass(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-b.Ctx.Done():
		return false
	}
}

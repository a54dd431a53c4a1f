package lockrules

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/keyname"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// Virtual is a bench on the emulation, with a clock that only the case moves: the servers and the clients read it.
type Virtual struct {
	Bench
	Clock *clock.Virtual
	// Call runs a call. If it has not returned after a while it sleeps by the clock, which is moved on for it.
	Call func(call func(), while time.Duration)
	// Promised returns the end of a lease by the clock.
	Promised func(lockimpl.Lock) time.Time
	// Client makes a client that reads the clock.
	Client func() (*lockclient.Client, error)
}

// ErrUnfit says that a lock cannot be judged on a clock that is moved.
var ErrUnfit = errors.New("the lock cannot be judged on a clock that is moved")

// sleeps is how long a call on the virtual clock may take: a time limit must not pass because the machine is busy.
const sleeps = 400 * time.Millisecond

// WaitsForHours has a client wait for hours, by the virtual clock: it must not think at some time that the holder is dead, and must not give
// up much earlier than it was told.
var WaitsForHours = []Case{{"a wait of three hours", func(b Bench) error {
	if b.Renews {
		return nil // leases are renewed by the real clock
	}
	return b.OnVirtualClock(func(v Virtual) error {
		const lease, wait, looks, limit = 4 * time.Hour, 3 * time.Hour, 5 * time.Minute, 5 * time.Second
		holder, err := v.Client()
		if err != nil {
			return err
		}
		waiter, err := v.Client()
		if err != nil {
			return err
		}
		var pauses atomic.Int64
		waiter.Env.Wait = func(ctx context.Context, _ string, atMost time.Duration) error {
			pauses.Add(1)
			return v.Clock.Sleep(ctx, atMost)
		}
		waiter.Again()
		l, err := v.take(holder, lease)
		if err != nil {
			return err
		}
		until := v.Promised(l)
		ctx, cancel := context.WithTimeout(v.Ctx, limit)
		defer cancel()
		from := v.Clock.Now()
		v.Call(func() {
			_, err = waiter.Acquire(ctx, v.Name, lockimpl.Options{TTL: v.TTL, Wait: wait, RetryEvery: looks})
		}, 2*lockclient.Pace)
		now := v.Clock.Now()
		switch left := until.Sub(now); {
		case err == nil && left > 0:
			return lockfinding.Broken(variant.MutualExclusion, "a client that had waited for %v was granted the lock %v before the end of the lease of %v",
				now.Sub(from).Round(time.Second), left.Round(time.Second), lease)
		case err != nil && !errors.Is(err, lockimpl.ErrHeld):
			return fmt.Errorf("%w: a wait was answered %w", ErrUnfit, err)
		case err != nil && ctx.Err() == nil && pauses.Load() > 0 && now.Sub(from) < wait*9/10:
			return notAsked("an acquire of a held lock with Options.Wait = %v was refused after %v", wait, now.Sub(from).Round(time.Second))
		}
		return nil
	})
}}}

// CloseFences are cases in which a lock is taken, released and taken again within a few microseconds by the clocks of the
// servers and the clients. A token that has the time in milliseconds, say, is then the same twice.
var CloseFences = []Case{{"two microseconds and more apart", func(b Bench) error {
	return b.OnVirtualClock(func(v Virtual) error {
		var apart []time.Duration
		for _, d := range []time.Duration{2 * time.Microsecond, 20 * time.Microsecond, 200 * time.Microsecond, 2 * time.Millisecond, 200 * time.Millisecond} {
			apart = append(apart, d, d)
		}
		return v.rise(apart)
	})
}}}

// LaterFences are cases in which hours, days and more pass between two grants.
var LaterFences = []Case{{"minutes to months apart", func(b Bench) error {
	return b.OnVirtualClock(func(v Virtual) error {
		return v.rise([]time.Duration{2 * time.Minute, 2 * time.Hour, 26 * time.Hour, 40 * 24 * time.Hour, 400 * 24 * time.Hour})
	})
}}}

// rise expects that tokens rise from grant to grant, with times between the grants.
func (v Virtual) rise(apart []time.Duration) error {
	last, err := v.first()
	for _, d := range apart {
		if err != nil {
			return err
		}
		v.Clock.Advance(d)
		var next int64
		if next, err = v.token(false); err == nil && next <= last {
			err = lockfinding.Broken(variant.Fencing, "token %d was granted %v after token %d", next, d, last)
		}
		last = next
	}
	return err
}

// take makes an attempt to acquire the lock, which is free.
func (v Virtual) take(c *lockclient.Client, ttl time.Duration) (l lockimpl.Lock, err error) {
	v.Call(func() { l, err = c.Try(v.Name, ttl) }, sleeps)
	if err != nil {
		return l, fmt.Errorf("%w: an acquire of a free lock failed: %w", ErrUnfit, err)
	}
	return l, nil
}

// token has a new client acquire the lock and release it, and returns the token of the grant. If refused is set, another client asks
// for the lock in between.
func (v Virtual) token(refused bool) (int64, error) {
	c, err := v.Client()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	l, err := v.take(c, v.TTL)
	if err != nil {
		return 0, err
	}
	if refused {
		other, err := v.Client()
		if err != nil {
			return 0, err
		}
		_, _ = v.take(other, v.TTL)
	}
	v.Call(func() { err = c.Release(l) }, sleeps)
	if err != nil {
		return 0, fmt.Errorf("%w: a release was answered %w", ErrUnfit, err)
	}
	return l.Fence, nil
}

// first is the token of the first grant.
func (v Virtual) first() (int64, error) {
	fence, err := v.token(false)
	if err == nil && fence <= 0 {
		err = fmt.Errorf("%w: a grant has no token", ErrUnfit)
	}
	return fence, err
}

// OldFences are cases about a lock that has been granted often: its counter, a number in the servers that rises with each grant,
// is set to one that is about to get longer, or too large for some type.
var OldFences = []Case{{"counters set ahead", func(b Bench) error {
	return b.OnVirtualClock(func(v Virtual) error {
		if _, err := v.first(); err != nil {
			return err
		}
		counters, err := v.counters()
		if err != nil {
			return err
		}
		if len(counters) == 0 {
			return fmt.Errorf("%w: the servers hold no counter of its tokens", ErrUnfit)
		}
		var most int64 // that was counted
		for _, n := range counters {
			most = max(most, n)
		}
		for _, at := range []int64{9, 99, 127, 255, 999, 9_999, 32_767, 65_535, 99_999, 999_999, 16_777_215, 1<<31 - 1, 1<<32 - 1, 99_999_999_999} {
			if at-2 <= most {
				continue
			}
			most = at + 3
			for p := range counters {
				counters[p] = at - 2
			}
			if err := v.set(counters); err != nil {
				return err
			}
			if err := v.riseFrom(at); err != nil {
				return err
			}
		}
		return nil
	})
}}}

// riseFrom expects that the tokens of five grants rise, when a counter has been set to about a number of grants.
func (v Virtual) riseFrom(grants int64) error {
	var last int64
	for n := range 5 {
		next, err := v.token(n == 2)
		if err != nil {
			return err
		}
		switch {
		case n == 0 && next <= 0:
			return lockfinding.Broken(variant.Fencing, "after some %d grants, the lock was granted with token %d; earlier grants had positive tokens", grants, next)
		case n > 0 && next <= last:
			return lockfinding.Broken(variant.Fencing, "after some %d grants, the token %d was followed by %d", grants, last, next)
		}
		last = next
	}
	return nil
}

// place is where a server holds a number.
type place struct {
	node int
	keyname.Place
}

// numbers are all numbers that the servers hold.
func (v Virtual) numbers() (map[place]int64, error) {
	all := map[place]int64{}
	err := v.each(func(node int, rdb redis.UniversalClient) error {
		found, err := keyname.Numbers(v.Ctx, rdb)
		for p, n := range found {
			all[place{node, p}] = n
		}
		return err
	})
	return all, err
}

// set replaces numbers.
func (v Virtual) set(numbers map[place]int64) error {
	return v.each(func(node int, rdb redis.UniversalClient) (err error) {
		for p, n := range numbers {
			if p.node == node {
				err = errors.Join(err, p.Set(v.Ctx, rdb, n))
			}
		}
		return err
	})
}

// each runs f for each server.
func (v Virtual) each(f func(node int, rdb redis.UniversalClient) error) error {
	c, err := v.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	for node, rdb := range c.Env.Redis {
		err = errors.Join(err, f(node, rdb))
	}
	return err
}

// counters are the numbers that rise a little with each of a few grants: nothing else does on a clock that stands still.
func (v Virtual) counters() (map[place]int64, error) {
	before, err := v.numbers()
	for range 3 {
		if err != nil {
			return nil, err
		}
		if _, err := v.token(false); err != nil {
			return nil, err
		}
		var now map[place]int64
		now, err = v.numbers()
		for p, n := range before {
			if before[p] = now[p]; now[p] <= n || now[p] > n+100 {
				delete(before, p)
			}
		}
	}
	return before, err
}

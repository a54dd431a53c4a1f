package lockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
)

// InTime are cases in which a holder extends or releases its lock shortly before the lease ends. The answer must not be ErrLost.
var InTime = func() (cases []Case) {
	for _, act := range []string{"extend", "release"} {
		cases = append(cases, Case{act + ", by a clock that is moved", func(b Bench) error {
			if b.Renews || act == "extend" && !b.Extends {
				return nil // leases are renewed by the real clock
			}
			return b.OnVirtualClock(func(v Virtual) error { return v.inTime(act) })
		}})
		for _, left := range []time.Duration{250, 90, 45} {
			cases = append(cases, Case{fmt.Sprintf("%s, with %v left", act, left*time.Millisecond), func(b Bench) error { return b.inTime(act, left*time.Millisecond) }})
		}
	}
	return cases
}()

// inTime tries several leases, and several times before their ends.
func (v Virtual) inTime(act string) error {
	c, err := v.Client()
	if err != nil {
		return err
	}
	base, n := v.Name, 0
	for _, lease := range []time.Duration{v.TTL, 10 * time.Second, 5 * time.Minute, 3 * time.Hour} {
		for _, left := range []time.Duration{lease * 2 / 3, lease / 3, lease / 11, lease / 40, lease / 150, 700 * time.Millisecond, 90 * time.Millisecond, 30 * time.Millisecond, 6 * time.Millisecond} {
			if left < 5*lockclient.Grain || left >= lease {
				continue
			}
			n++
			v.Name = fmt.Sprint(base, "-", n)
			l, err := v.take(c, lease)
			if err != nil {
				return err
			}
			end := v.Promised(l)
			v.Clock.Advance(max(end.Add(-left).Sub(v.Clock.Now()), 0))
			v.Call(func() { err = call(c, act, l, lease) }, sleeps)
			if now := v.Clock.Now().Add(2 * lockclient.Grain); errors.Is(err, lockimpl.ErrLost) && now.Before(end) {
				return v.falselyLost(act, lease, end.Sub(now))
			}
		}
	}
	return nil
}

// inTime makes one call by the real clock.
func (b Bench) inTime(act string, left time.Duration) error {
	if act == "extend" && !b.Extends || b.Renews {
		return nil
	}
	c, l, err := b.practisedHolder(b.TTL)
	if err != nil {
		return err
	}
	end := c.Until(l)
	if !b.pass(time.Until(end) - left) {
		return nil
	}
	err = call(c, act, l, b.TTL)
	if left := time.Until(end); errors.Is(err, lockimpl.ErrLost) && left > 0 {
		return b.falselyLost(act, b.TTL, left)
	}
	return nil
}

// call extends or releases a lock.
func call(c *lockclient.Client, act string, l lockimpl.Lock, ttl time.Duration) (err error) {
	if act == "release" {
		return c.Release(l)
	}
	_, err = c.Extend(l, ttl)
	return err
}

func (b Bench) falselyLost(act string, lease, left time.Duration) error {
	return lockfinding.Broken(b.FalseLoss, "a holder's %s of a lease of %v, %v before its end, was answered with %q: nobody else had asked for the lock", act, lease, left.Round(time.Millisecond), lockimpl.ErrLost)
}

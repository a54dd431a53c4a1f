package lockrules

import (
	"context"
	"errors"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// SingleAttempts are cases in which a free lock is asked for by a client that calls Acquire repeatedly with Options.Wait = 0. One of the
// calls must be granted the lock. Locks fail that remember an earlier refusal, or in which only waiters remove the records of dead ones.
var SingleAttempts = []Case{
	{"after a refusal, and the release of a long lease", func(b Bench) error {
		holder, c, l, err := b.heldByOne(time.Hour)
		if err != nil {
			return err
		}
		if _, err := c.Try(b.Name, b.TTL); !errors.Is(err, lockimpl.ErrHeld) || holder.Release(l) != nil {
			return nil
		}
		return b.inSingleAttempts(c, "a client was refused, then the holder released its lease of an hour, and nobody else asked for the lock")
	}},
}

// AfterDeadWaiters are like SingleAttempts, after the death of a client that was waiting for the lock.
var AfterDeadWaiters = []Case{
	{"the holder releases", func(b Bench) error { return b.afterDeadWaiter(false) }},
	{"the holder dies", func(b Bench) error { return b.afterDeadWaiter(true) }},
}

func (b Bench) afterDeadWaiter(dies bool) error {
	holder, waiter, l, err := b.heldByOne(b.TTL)
	if err != nil {
		return err
	}
	l.Until = holder.Until(l)
	go func() {
		_, _ = waiter.Acquire(waiter.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: lockclient.Pace})
	}()
	if !b.pass(b.TTL / 4) {
		return nil
	}
	waiter.Die()
	what := "a client died while it waited, and the holder released the lock"
	if dies {
		what = "a client died while it waited, and so did the holder, whose lease is over"
		holder.Die()
		b.pass(time.Until(l.Until) + b.TTL) // the waiter may have been granted the lock as it died
	} else if holder.Release(l) != nil {
		return nil
	}
	c, err := b.client()
	if err != nil {
		return err
	}
	return b.inSingleAttempts(c, what)
}

// inSingleAttempts has a client call Acquire with Options.Wait = 0, again and again, until it is granted the lock. The lock is free, so
// that must happen within b.Patience.
func (b Bench) inSingleAttempts(c *lockclient.Client, what string) error {
	start, n := b.Lasted(), 0
	for b.Lasted()-start < b.Patience && b.Ctx.Err() == nil {
		l, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace})
		if err == nil {
			_ = c.Release(l)
			return nil
		}
		if errors.Is(err, lockimpl.ErrHeld) {
			n++
		} else if errors.Is(err, context.DeadlineExceeded) {
			return lockfinding.Unjudged("an acquire ended with its time limit", err)
		}
		b.pass(4 * lockclient.Pace)
	}
	if b.Ctx.Err() != nil || n < 10 {
		return nil
	}
	return lockfinding.Broken(variant.Progress, "%s: then a client was refused %d times in %v, in attempts that do not wait", what, n, (b.Lasted() - start).Round(time.Second))
}

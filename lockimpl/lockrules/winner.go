package lockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// WinnerDies has clients wait for a lock, each in one call. Its holder releases it, and the client that gets it dies. When its
// lease is over, another gets the lock, though nobody announces that end.
var WinnerDies = func() (cases []Case) {
	for _, waiters := range []int{2, 3} {
		cases = append(cases, Case{fmt.Sprintf("%d clients wait", waiters), func(b Bench) error { return b.winnerDies(waiters) }})
	}
	return cases
}()

// grant is the answer to a client that has waited.
type grant struct {
	c   *lockclient.Client
	l   lockimpl.Lock
	err error
}

func (b Bench) winnerDies(waiters int) error {
	const more = 5 * time.Second // that the others wait after the end of the lease
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	got := make(chan grant, waiters)
	for range waiters {
		c, err := b.client()
		if err != nil {
			return err
		}
		go func() {
			m, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: b.TTL + 2*more, RetryEvery: lockclient.Pace})
			got <- grant{c, m, err}
		}()
	}
	if !b.pass(20*lockclient.Pace) || holder.Release(l) != nil {
		return nil
	}
	won := <-got
	if won.err != nil {
		return nil // another rule's business
	}
	won.l.Until = won.c.Until(won.l)
	won.c.Die()
	return b.succeeds(got, won.l, more)
}

// succeeds expects that one of the clients that wait gets the lock soon after the end of a lease.
func (b Bench) succeeds(got <-chan grant, l lockimpl.Lock, within time.Duration) error {
	if !b.pass(time.Until(l.Until)) {
		return nil
	}
	for start := b.Lasted(); b.Lasted()-start < within; {
		select {
		case g := <-got:
			if errors.Is(g.err, lockimpl.ErrHeld) {
				return nil // it waited for a shorter time than it was told
			}
			if g.err == nil {
				_ = g.c.Release(g.l)
			}
			return nil
		case <-time.After(lockclient.Pace):
		case <-b.Ctx.Done():
			return nil
		}
	}
	return lockfinding.Broken(variant.Progress, "several clients waited for a lock, which its holder released, and the one that was granted it died: no other was granted it for %v after the end of that lease", within)
}

package locktest

import (
	"errors"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// lossIsTold: a lock that tells its holder of a loss does so once another client has it, and at no other time.
func lossIsTold(b *bench) error {
	return b.together(4, []part{
		{"held", func(b *bench) error { return b.keptUntold(false) }},
		{"released in time", func(b *bench) error { return b.keptUntold(true) }},
		{"taken by another", takenIsTold},
	})
}

// lost returns the channel that the lock closes when l is lost, or nil.
func (c *client) lost(l lockimpl.Lock) <-chan struct{} {
	if loser, tells := c.Locker.(lockimpl.LossNotifier); tells {
		return loser.Lost(l)
	}
	return nil
}

// keptUntold holds a lock, or releases it: in neither case is it lost.
func (b *bench) keptUntold(back bool) error {
	c, l, err := b.holder(b.ttl)
	if err != nil {
		return err
	}
	lost := c.lost(l)
	b.sleep(b.ttl / 2)
	if time.Until(c.Until(l)) <= 0 {
		return unjudged("the lease ended meanwhile", errors.New("a holder waited for half of its lease"))
	}
	select {
	case <-lost:
		return lockfinding.BrokenInterface("lockimpl.LossNotifier", variant.Progress, "a holder was told that its lock is lost %v before the end of its lease, and nobody else had asked for it", time.Until(c.Until(l)).Round(time.Millisecond))
	default:
	}
	if !back {
		return b.intact(c, l, "half a lease after the grant")
	}
	err = c.Release(l)
	if err != nil || time.Until(c.Until(l)) <= 0 {
		return nil // other rules are about that
	}
	select {
	case <-lost:
		return lockfinding.BrokenInterface("lockimpl.LossNotifier", variant.Progress, "a holder that had released its lock in time was told that it is lost")
	case <-b.after(2 * b.ttl):
		return nil
	}
}

// takenIsTold cuts a holder off from the server until another client has the lock. When its requests are answered
// again it has had every chance to know, at the latest by an extend that is answered with ErrLost.
func takenIsTold(b *bench) error {
	c, l, err := b.holder(b.ttl)
	if err != nil {
		return err
	}
	lost := c.lost(l)
	c.Freeze()
	if _, _, err := b.next(c, l, 2*b.ttl, long, "with the holder cut off"); err != nil {
		return err
	}
	c.Thaw()
	select {
	case <-lost:
		return nil
	case <-b.after(2 * b.ttl):
	}
	if b.run.able.extends && !b.run.lock.Renews {
		if _, err := c.Extend(l, b.ttl); !errors.Is(err, lockimpl.ErrLost) {
			return nil // other rules are about that
		}
	}
	select {
	case <-lost:
		return nil
	case <-b.after(b.ttl):
		return broken(variant.MutualExclusion, "a holder that had been cut off was not told that its lock is lost, %v after another client was granted the lock and the holder could reach the server again", 3*b.ttl)
	}
}

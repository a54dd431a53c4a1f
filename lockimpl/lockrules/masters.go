package lockrules

import (
	"fmt"

	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// DeadMasters cuts a client off from a minority of the masters, the first ones or the last ones. The client must still be able to
// take a free lock, and to release it.
var DeadMasters = []Case{
	{"the first masters", func(b Bench) error { return b.deadMasters(true) }},
	{"the last masters", func(b Bench) error { return b.deadMasters(false) }},
}

func (b Bench) deadMasters(first bool) error {
	c, err := b.practised()
	if err != nil {
		return err
	}
	masters := len(c.Links)
	dead := (masters - 1) / 2
	c.CutOffExcept(func(master int) bool {
		if first {
			return master >= dead
		}
		return master < masters-dead
	})
	l, err := c.TakeWithin(b.Name, 4*b.TTL, b.Patience)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a client that reaches %d of %d masters could not take a free lock: %v", masters-dead, masters, err)
	}
	if err := c.Release(l); err != nil {
		return nil // it may not have arrived
	}
	return b.free(fmt.Sprintf("a client that reaches %d of %d masters released a lock", masters-dead, masters))
}

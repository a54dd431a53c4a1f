package lockcalls

import (
	"errors"
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// QuickFences are cases in which a lock is taken and released many times in quick succession, by clients that are connected
// to the server directly. The fencing token of each grant is above those of all grants before: a time of the server that is
// no finer than a millisecond is not.
var QuickFences = []Case{
	{"by one client", func(b Bench) error { return b.quickFences(1) }},
	{"by two clients in turns", func(b Bench) error { return b.quickFences(2) }},
}

func (b Bench) quickFences(clients int) error {
	const grants, limit = 600, 3 * time.Second
	var all []*lockclient.Client
	for range clients {
		c, err := b.Client(func(*variant.Env) {})
		if err != nil {
			return err
		}
		c.Direct()
		all = append(all, c)
	}
	var last int64
	for n, start := 0, time.Now(); n < grants && time.Since(start) < limit; n++ {
		c := all[n%clients]
		l, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: long, RetryEvery: lockclient.Pace})
		if err != nil {
			return nil // another rule's business
		}
		if l.Fence <= last {
			return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d, in grant %d of many in quick succession", l.Fence, last, n+1)
		}
		last = l.Fence
		if c.Release(l) != nil {
			return nil
		}
	}
	return nil
}

// FencesBeside holds up an acquire, before each command after the first up to the last, while another client takes the lock
// and releases it. The lock is free, or held and released meanwhile; the acquire goes on while that client holds the lock,
// or afterwards, or only when its own lease is over.
func FencesBeside(last int) (cases []Case) {
	for n := 2; n <= last; n++ {
		for _, of := range []string{"free", "held"} {
			for _, until := range []string{"during", "after"} {
				cases = append(cases, Case{fmt.Sprintf("of a %s lock, before command %d, until %s the next grant", of, n, until), func(b Bench) error {
					return b.fencesBeside(n, of == "held", until == "during")
				}})
			}
		}
		cases = append(cases, Case{fmt.Sprintf("until the lease is over, before command %d", n), func(b Bench) error { return b.olderGrant(n) }})
	}
	return cases
}

func (b Bench) fencesBeside(n int, held, during bool) error {
	slow, err := b.practised()
	if err != nil {
		return err
	}
	other, err := b.Client(func(*variant.Env) {})
	if err != nil {
		return err
	}
	holder, err := b.Client(func(*variant.Env) {})
	if err != nil {
		return err
	}
	var first lockimpl.Lock
	if held {
		if first, err = holder.Take(b.Name, long, 0); err != nil {
			return nil // another rule's business
		}
	}
	var l lockimpl.Lock
	err = errors.New("the call has not returned")
	s := slow.Stalled(n, func() { l, err = slow.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL}) })
	if s == nil {
		return nil
	}
	if held {
		_ = holder.Release(first)
	}
	m, e := other.TakeWithin(b.Name, b.TTL, 3*b.TTL)
	if during {
		s.GoOn()
	}
	if e == nil {
		_ = other.Release(m)
	}
	if !during {
		s.GoOn()
	}
	if e != nil {
		return nil
	}
	last := max(first.Fence, m.Fence)
	switch {
	case held && m.Fence <= first.Fence:
		return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d, while another client was held up before command %d of its acquire", m.Fence, first.Fence, n)
	case err == nil && l.Fence <= last:
		return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d: to a client held up before command %d of its acquire", l.Fence, last, n)
	case err == nil:
		last = l.Fence
		_ = slow.Release(l)
	}
	next, err := other.TakeWithin(b.Name, b.TTL, 3*b.TTL)
	if err == nil && next.Fence <= last {
		return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d, and after an acquire that had been held up before command %d", next.Fence, last, n)
	}
	return nil
}

// olderGrant holds up an acquire until its lease is over and another client holds the lock. If it is granted all the same,
// too late to be of use, its token must not be newer than that of the holder: a resource would refuse the holder.
func (b Bench) olderGrant(n int) error {
	slow, err := b.practised()
	if err != nil {
		return err
	}
	other, err := b.Client(func(*variant.Env) {})
	if err != nil {
		return err
	}
	var l lockimpl.Lock
	err = errors.New("the call has not returned")
	s := slow.Stalled(n, func() { l, err = slow.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL}) })
	if s == nil {
		return nil
	}
	m, e := other.TakeWithin(b.Name, long, 3*b.TTL)
	s.GoOn()
	if e == nil && err == nil && l.Fence > m.Fence {
		return lockfinding.Broken(variant.Fencing, "token %d was granted to a client whose lease was over, held up before command %d of its acquire, and the older token %d to the one that holds the lock", l.Fence, n, m.Fence)
	}
	return nil
}

// practised returns a client that has made each call once.
func (b Bench) practised() (*lockclient.Client, error) {
	c, err := b.Client(func(*variant.Env) {})
	if err != nil {
		return nil, err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	c.Plan(nil)
	return c, nil
}

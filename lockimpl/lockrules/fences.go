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

// QuickFences are cases in which a lock is taken and released many times in quick succession, by clients that are connected
// to the server directly. The fencing token of each grant is above those of all grants before: a time of the server that is
// no finer than a millisecond is not.
var QuickFences = []Case{
	{"by one client", func(b Bench) error { return b.quickFences(1) }},
	{"by two clients in turns", func(b Bench) error { return b.quickFences(2) }},
}

// ExtendedFences extend a lock: its holder has the fencing token of its grant, or a higher one, for as long as it holds the
// lock, and the next holder's is above it.
var ExtendedFences = []Case{{"the token of an extended lock", func(b Bench) error {
	if !b.Extends {
		return nil
	}
	c, l, err := b.holder(b.TTL)
	if err != nil {
		return err
	}
	m, err := c.Extend(l, b.TTL)
	if err != nil {
		return nil
	}
	if m.Fence < l.Fence {
		return lockfinding.Broken(variant.Fencing, "a client was granted the lock with token %d, and the extended lock has token %d: want a token that is not lower", l.Fence, m.Fence)
	}
	if c.Release(m) != nil {
		return nil
	}
	next, err := b.client()
	if err != nil {
		return err
	}
	n, err := next.Take(b.Name, b.TTL, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = next.Release(n) }()
	if n.Fence <= m.Fence {
		return lockfinding.Broken(variant.Fencing, "the next holder was granted the lock with token %d, and the holder before had extended it, and then had token %d: want a token that is above it", n.Fence, m.Fence)
	}
	return nil
}}}

func (b Bench) quickFences(clients int) error {
	const grants, limit = 600, 3 * time.Second
	var all []*lockclient.Client
	for range clients {
		c, err := b.client()
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

// FencesBeside stops an acquire before one command, from the second to the last-th, while another client acquires the
// lock and releases it. At first the lock is free, or it is held and released meanwhile. The acquire goes on while the
// other client holds the lock, after its release, or only when the acquire's own lease is over.
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

// acquiring is a client that is held up in an acquire.
type acquiring struct {
	*lockclient.Client
	*lockclient.Stall // nil if the call has fewer commands
	l                 lockimpl.Lock
	err               error // of the acquire
}

// acquires has a new client acquire the lock, and holds it up before its n-th command.
func (b Bench) acquires(n int) (*acquiring, error) {
	c, err := b.practised()
	if err != nil {
		return nil, err
	}
	a := &acquiring{Client: c, err: errors.New("the call has not returned")}
	a.Stall = c.Stalled(n, func() { a.l, a.err = c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL}) })
	return a, nil
}

func (b Bench) fencesBeside(n int, held, during bool) error {
	holder, other, err := b.two()
	if err != nil {
		return err
	}
	var first lockimpl.Lock
	if held {
		if first, err = holder.Take(b.Name, long, 0); err != nil {
			return nil // another rule's business
		}
	}
	slow, err := b.acquires(n)
	if err != nil || slow.Stall == nil {
		return err
	}
	if held {
		_ = holder.Release(first)
	}
	m, err := other.TakeWithin(b.Name, b.TTL, 3*b.TTL)
	if during {
		slow.GoOn()
	}
	if err == nil {
		_ = other.Release(m)
	}
	if !during {
		slow.GoOn()
	}
	if err != nil {
		return nil // what the client that was held up had written by then keeps others out
	}
	last := max(first.Fence, m.Fence)
	switch {
	case held && m.Fence <= first.Fence:
		return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d, while another client was held up before command %d of its acquire", m.Fence, first.Fence, n)
	case slow.err == nil && slow.l.Fence <= last:
		return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d: to a client held up before command %d of its acquire", slow.l.Fence, last, n)
	case slow.err == nil:
		last = slow.l.Fence
		_ = slow.Release(slow.l)
	}
	next, err := other.TakeWithin(b.Name, b.TTL, 3*b.TTL)
	if err == nil && next.Fence <= last {
		return lockfinding.Broken(variant.Fencing, "token %d was granted after token %d, and after an acquire that had been held up before command %d", next.Fence, last, n)
	}
	return nil
}

// olderGrant holds up an acquire until its lease is over and another client holds the lock. If the late acquire is answered with a
// grant, its token must not be higher than the holder's: a resource that compares tokens would then refuse the holder.
func (b Bench) olderGrant(n int) error {
	other, err := b.client()
	if err != nil {
		return err
	}
	slow, err := b.acquires(n)
	if err != nil || slow.Stall == nil {
		return err
	}
	m, err := other.TakeWithin(b.Name, long, 3*b.TTL)
	slow.GoOn()
	if err == nil && slow.err == nil && slow.l.Fence > m.Fence {
		return lockfinding.Broken(variant.Fencing, "token %d was granted to a client whose lease was over, held up before command %d of its acquire, and the older token %d to the one that holds the lock", slow.l.Fence, n, m.Fence)
	}
	return nil
}

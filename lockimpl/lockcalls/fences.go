package lockcalls

import (
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

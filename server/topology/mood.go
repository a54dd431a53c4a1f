package topology

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/server/instance"
)

// Vigilance says how soon a silent server is given up by the processes that watch the
// servers: sentinels, or the nodes of a cluster, which watch each other.
//
// A server that is silent for half a second is to be given up fast when a run has
// killed it, or else its leases would be over before there is a failover. But on a
// busy machine servers are often silent for that long, and a run without a fault
// must not see a failover. So they are patient as long as nothing is done to a
// server, and are told when something is.
type Vigilance int

const (
	// Patient: a silent server is given up after many seconds.
	Patient Vigilance = iota
	// Watchful: after half a second.
	Watchful
	// Mending: and a former primary that came back is corrected within a second,
	// which takes sentinels 8 s otherwise.
	Mending
)

// toAll has all servers of some roles, unless they were killed or frozen, do
// something at the same time.
func (t *Group) toAll(ctx context.Context, do func(context.Context, *redis.Client) error, roles ...instance.Role) error {
	errs := make([]error, len(t.Servers))
	var wg sync.WaitGroup
	for i, s := range t.Servers {
		if s.Up() && slices.Contains(roles, s.Role) {
			wg.Go(func() { errs[i] = s.Visit(ctx, do) })
		}
	}
	wg.Wait()
	return cmp.Or(errs...)
}

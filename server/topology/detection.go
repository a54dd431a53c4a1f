package topology

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/server/instance"
)

// Detection says how soon the processes that watch the servers give up a silent one: sentinels, or the nodes of a
// cluster, which watch each other.
//
// After a kill, a server must be given up within half a second of silence; otherwise its leases would be over before
// the failover. But on a busy machine servers are often silent for that long, and a run without a fault must not see a
// failover. So the watchers are patient until a fault hits a server, and are then told so.
type Detection int

const (
	// Patient: a silent server is given up after many seconds.
	Patient Detection = iota
	// Watchful: after half a second, or 1.5 s by sentinels before Redis 7.
	Watchful
	// Mending: also, sentinels make a former primary that came back a replica within a second; otherwise they take 8 s.
	Mending
)

// toAll calls do at the same time for all servers of some roles that were not killed or frozen.
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

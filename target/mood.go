package target

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// mood is how those are who look after the servers: sentinels, and the nodes of a
// cluster, which look after each other.
//
// A server that is silent for half a second is to be given up fast when a run has
// killed it, or else its leases would be over before there is a failover. But on a
// busy machine servers are often silent for that long, and a run without a fault
// must not see a failover. So they are patient as long as nothing is done to a
// server, and are told when something is.
type mood int

const (
	// patient: a silent server is given up after many seconds.
	patient mood = iota
	// watchful: after half a second.
	watchful
	// mending: and a former primary that came back is corrected within a second,
	// which takes sentinels 8 s otherwise.
	mending
)

// alarm makes them watchful.
func (t *Target) alarm(ctx context.Context) {
	if t.Kind == Address {
		return
	}
	t.alarmed.Store(true)
	_ = t.shape.become(ctx, watchful) // whoever did not hear is only slower
}

// mend has them repair what they were made watchful for.
func (t *Target) mend(ctx context.Context) {
	if t.alarmed.Load() {
		_ = t.shape.become(ctx, mending)
	}
}

// calm makes them patient again.
func (t *Target) calm(ctx context.Context) {
	if t.alarmed.Load() && t.shape.become(ctx, patient) == nil {
		t.alarmed.Store(false)
	}
}

// toAll has all servers of some roles, unless they were killed or frozen, do
// something at the same time.
func (t *Target) toAll(ctx context.Context, do func(context.Context, *redis.Client) error, roles ...Role) error {
	errs := make([]error, len(t.servers))
	var wg sync.WaitGroup
	for i, s := range t.servers {
		if s.up() && slices.Contains(roles, s.Role) {
			wg.Go(func() { errs[i] = s.visit(ctx, do) })
		}
	}
	wg.Wait()
	return cmp.Or(errs...)
}

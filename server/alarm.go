package server

import (
	"context"

	"oversell/server/topology"
)

// alarm makes the sentinels or cluster nodes watchful.
func (t *Target) alarm(ctx context.Context) {
	if t.Kind == Address {
		return
	}
	t.alarmed.Store(true)
	_ = t.shape.Become(ctx, topology.Watchful) // a server that was not told only reacts more slowly
}

// mend makes them correct a former primary that came back.
func (t *Target) mend(ctx context.Context) {
	if t.alarmed.Load() {
		_ = t.shape.Become(ctx, topology.Mending)
	}
}

// calm makes them patient again.
func (t *Target) calm(ctx context.Context) {
	if t.alarmed.Load() && t.shape.Become(ctx, topology.Patient) == nil {
		t.alarmed.Store(false)
	}
}

package server

import (
	"context"

	"oversell/server/topology"
)

// speedUpDetection makes the sentinels or cluster nodes watchful.
func (t *Target) speedUpDetection(ctx context.Context) {
	if t.Kind == Address {
		return
	}
	t.alarmed.Store(true)
	_ = t.shape.SetDetection(ctx, topology.Watchful) // a server that was not told only reacts more slowly
}

// mend makes them correct a former primary that came back.
func (t *Target) mend(ctx context.Context) {
	if t.alarmed.Load() {
		_ = t.shape.SetDetection(ctx, topology.Mending)
	}
}

// calm makes them patient again.
func (t *Target) calm(ctx context.Context) {
	if t.alarmed.Load() && t.shape.SetDetection(ctx, topology.Patient) == nil {
		t.alarmed.Store(false)
	}
}

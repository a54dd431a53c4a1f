//go:build !race

package golocks

import (
	"testing"

	"oversell/lockimpl/locktest"
	"oversell/reports"
	"oversell/variant"
)

// TestRedsyncOnThreeMasters searches redsync on three masters. Time passes only when no client can go on; otherwise there
// would be ten million states. The million that are left take minutes under the race detector, so make test runs this
// test without it.
func TestRedsyncOnThreeMasters(t *testing.T) {
	v := Redsync
	v.Needs.Masters = 3
	// Owner-only-release can be judged only on one master.
	v.Promises = []variant.Property{variant.MutualExclusion}
	locktest.ExploreBubble(t, v, reports.Bounds{Clients: 2, Tries: 1, Advances: -1, Lost: -1, Late: -1})
}

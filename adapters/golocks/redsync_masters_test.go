//go:build !race

package golocks

import (
	"testing"

	"oversell/lockimpl/locktest"
	"oversell/reports"
	"oversell/variant"
)

// TestRedsyncOnThreeMasters: no moment passes while somebody could run, or there are
// ten million situations. Its million takes minutes under the race detector, so make
// test runs it without.
func TestRedsyncOnThreeMasters(t *testing.T) {
	v := Redsync
	v.Needs.Masters = 3
	// That a release changes another's lock is judged for one master only.
	v.Promises = []variant.Property{variant.MutualExclusion}
	locktest.ExploreBubble(t, v, reports.Bounds{Clients: 2, Tries: 1, Advances: -1, Lost: -1, Late: -1})
}

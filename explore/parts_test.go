package explore

import (
	"testing"

	"oversell/explore/table"
	"oversell/internal/names"
)

// TestFingerprints checks that states that differ in one field have different fingerprints.
func TestFingerprints(t *testing.T) {
	seen := map[table.Fingerprint]state{}
	for i := range uint32(20_000) {
		for _, s := range []state{{servers: i + 1}, {facts: i + 1}, {inFlight: i + 1}, {now: i + 1}, {nodes: [names.MaxSlots]uint32{0: i + 1}}, {nodes: [names.MaxSlots]uint32{1: i + 1}}, {nodes: [names.MaxSlots]uint32{names.MaxSlots - 1: i + 1}}} {
			f := s.fingerprint()
			if old, known := seen[f]; known {
				t.Fatalf("%+v and %+v have the same fingerprint", old, s)
			}
			seen[f] = s
		}
	}
	for _, s := range []state{{}, {lost: 1}, {late: 1}, {moved: 1}, {stalled: 1}} {
		if old, known := seen[s.fingerprint()]; known {
			t.Errorf("%+v and %+v have the same fingerprint", old, s)
		}
		seen[s.fingerprint()] = s
	}
}

// TestOrders checks that ordersOf returns each order within the groups once, and no other order.
func TestOrders(t *testing.T) {
	seen := map[names.Perm]bool{}
	for _, p := range ordersOf(0b01101, 5) {
		if seen[p] || p[0] > 1 || p[1] > 1 || p[5] != 5 {
			t.Errorf("%v", p)
		}
		seen[p] = true
	}
	if len(seen) != 2*6 {
		t.Errorf("%d orders", len(seen))
	}
}

package locktest

import (
	"testing"

	"oversell/explore"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// Package locksearch tests what the searches find. These tests only check that searches of sound locks pass.

func TestExplore(t *testing.T) { Explore(t, shipped(t, "lua-release"), reports.Bounds{Tries: 1}) }

func TestExploreBubble(t *testing.T) {
	ExploreBubble(t, entry(t, "bsm/redislock"), reports.Bounds{Tries: 1, Advances: 1, Late: -1})
}

func TestExploreSale(t *testing.T) {
	sale, _ := stockimpl.Find("lua")
	ExploreSale(t, shipped(t, "lua-release"), sale, reports.Bounds{Tries: 1})
}

// TestBubbles checks that a user's own search can run its clients in bubbles.
func TestBubbles(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	c := explore.Config{
		Run:    scenarios.Config{Scenario: mutex, Lock: shipped(t, "set-nx-ex")},
		Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 2, Stalls: 1, TimeMS: 30_000},
		Look:   []history.Promise{{Of: variant.Lock, Property: variant.OwnerOnlyRelease}},
	}
	c.Start = Bubbles(t, c)
	if r, err := explore.Run(t.Context(), c); err != nil || r.Verdict != reports.Violated {
		t.Errorf("the search ended in %s (%s), %v; want a broken promise", r.Verdict, r.Why, err)
	}
}

func shipped(t *testing.T, name string) lockimpl.Variant {
	t.Helper()
	v, known := lockimpl.Find(name)
	if !known {
		t.Fatalf("there is no lock %s", name)
	}
	return v
}

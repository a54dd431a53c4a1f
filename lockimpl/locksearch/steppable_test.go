package locksearch

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/internal/mutants"
	"oversell/lockimpl"
	"oversell/reports"
)

func entry(t *testing.T, name string) lockimpl.Variant {
	t.Helper()
	all := mutants.Locks()
	i := slices.IndexFunc(all, func(l mutants.Lock) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no lock %q", name)
	}
	return all[i].Variant
}

// TestSteppable checks that a search says that it cannot step a lock that uses its own Redis client, and why, and that it
// says so of no other lock.
func TestSteppable(t *testing.T) {
	err := steppable(t.Context(), entry(t, "rueidislock"))
	if !errors.Is(err, errInconclusive) || !strings.Contains(err.Error(), "Env.Addr by a Redis client of its own") || strings.Contains(err.Error(), "\n") {
		t.Errorf("of rueidislock, the search says %v; want one sentence that says why it is inconclusive", err)
	}
	for _, name := range []string{"sound-set-nx", "sound-line", "sound-masters", "sound-self-renewing", "bsm/redislock", "redsync", "redsync-3", "abandoned-wait"} {
		if err := steppable(t.Context(), entry(t, name)); err != nil {
			t.Errorf("lock %s uses the clients in Env.Redis, but %v", name, err)
		}
	}
}

// TestBubblesEnd checks that a search that is too large ends at its time limit, and says so.
func TestBubblesEnd(t *testing.T) {
	const runLimit = 10 * time.Second // time limit of one run in a bubble
	start := time.Now()
	_, err := searchBubbles(t.Context(), mutex(entry(t, "redsync-3"), reports.Bounds{TimeMS: 500}), bubblesOf(t))
	if !errors.Is(err, errInconclusive) || !strings.Contains(err.Error(), "was ended after") {
		t.Errorf("the search said %v; want that it is inconclusive, and was ended", err)
	}
	if took := time.Since(start); took > runLimit {
		t.Errorf("the search took %v; its limit is half a second, and one run has %v", took, runLimit)
	}
}

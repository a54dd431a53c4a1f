package explore

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestUntriedMomentsStandBesideTheVerdict checks that a search which had no time for the moments inside a lease says so beside its verdict, and
// beside each promise that holds.
func TestUntriedMomentsStandBesideTheVerdict(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	lock, _ := lockimpl.Find("lua-release")
	c := Config{Run: scenarios.Config{Scenario: mutex, Lock: lock}, Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 1, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Pass || strings.Contains(r.Why, "not tried") {
		t.Fatalf("the search ended in %s (%s), %v", r.Verdict, r.Why, err)
	}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	c.scripts, c.clocked = &coro.Scripts{}, &atomic.Bool{} // as Run does
	if r, err = c.inLeases(t.Context(), time.Now().Add(-time.Hour), r, 0); err != nil {
		t.Fatal(err)
	}
	texts := []string{r.Why}
	for _, p := range r.Properties {
		if p.Result == reports.Holds {
			texts = append(texts, p.Why)
		}
	}
	if len(texts) != 2 {
		t.Errorf("%d promises hold; want 1", len(texts)-1)
	}
	for _, text := range texts {
		if !strings.HasSuffix(text, "moments inside a lease at which nothing ends were not tried: the time was over") {
			t.Errorf("%q does not say what was not tried", text)
		}
	}
}

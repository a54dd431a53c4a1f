package explore

import (
	"slices"
	"strings"
	"testing"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestSemaphoresHaveManyOwners checks that owner-only-release is judged only of a lock that promises mutual exclusion, and
// that the result says so.
func TestSemaphoresHaveManyOwners(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	for _, exclusive := range []bool{true, false} {
		promises := []variant.Property{variant.OwnerOnlyRelease, variant.Progress}
		if exclusive {
			promises = append(promises, variant.MutualExclusion)
		}
		c := Config{Run: scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "mine", Promises: promises, New: func(variant.Env) lockimpl.Locker { return nil }}}}
		c.defaults()
		if got := slices.Contains(c.Look, ownerOnly); got != exclusive {
			t.Errorf("exclusive %t: the search looks for %v", exclusive, c.Look)
		}
		for _, p := range c.properties(reports.Exploration{Verdict: reports.Pass}, "") {
			if p.Name == variant.OwnerOnlyRelease && (p.Result == reports.Unknown) == exclusive {
				t.Errorf("exclusive %t: %s is %s, %s", exclusive, p.Name, p.Result, p.Why)
			} else if p.Result == reports.Unknown && !strings.Contains(p.Why, "several holders") {
				t.Errorf("the reason is %q", p.Why)
			}
		}
	}
}

// TestReadingsInBubbles checks that the search of code in bubbles says that it tries no stall between two readings of the
// clock.
func TestReadingsInBubbles(t *testing.T) {
	for _, bubbles := range []bool{false, true} {
		c := Config{Bounds: reports.Bounds{Stalls: 1}}
		if bubbles {
			c.Start = func(Who) Execution { return nil }
		}
		if says := strings.Contains(strings.Join(c.notChecked(), "\n"), "between two readings of the clock"); says != bubbles {
			t.Errorf("bubbles %t: %q", bubbles, c.notChecked())
		}
	}
}

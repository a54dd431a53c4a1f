package judging

import (
	"slices"
	"testing"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// TestConditionsThatARunMet checks that a violation is declared, and a condition tried, if the run met the condition
// without asking for it, and only then.
func TestConditionsThatARunMet(t *testing.T) {
	sold := history.Promise{Of: variant.Sale, Property: variant.NoOversell}
	known := []history.Untried{
		{Under: "overrun", Breaks: []history.Promise{sold}, Why: "two inside"},
		{Under: "restart-empty", Breaks: []history.Promise{sold}, Why: "forgotten"},
	}
	for _, c := range []struct {
		name     string
		overruns int
		befell   []variant.Fault
		verdict  string
		declared bool
		left     []string
	}{
		{"nothing", 0, nil, reports.Violated, false, []string{"overrun", "restart-empty"}},
		{"overruns", 12, nil, reports.Violated, true, []string{"restart-empty"}},
		{"overruns that broke nothing", 12, nil, reports.Pass, false, []string{"restart-empty"}},
		{"a restart", 0, []variant.Fault{variant.RestartEmpty}, reports.Violated, true, []string{"overrun"}},
	} {
		r := reports.Run{Verdict: c.verdict, Expected: reports.Pass, KnownToBreak: known}
		r.Overruns = c.overruns
		p := reports.Property{Name: sold.Property, Of: sold.Of, Result: reports.Holds}
		if c.verdict == reports.Violated {
			p.Result = reports.Broken
		}
		r.Properties = []reports.Property{p}
		befall(&r, &history.History{Trailer: &history.Trailer{Befell: c.befell}})
		var left []string
		for _, u := range r.KnownToBreak {
			left = append(left, u.Under)
		}
		if r.Properties[0].Declared != c.declared || (r.Expected == reports.Violated) != c.declared || len(r.ExpectedWhy) > 0 != c.declared || !slices.Equal(left, c.left) {
			t.Errorf("%s: declared %v, expected %s %q, not tried: %q", c.name, r.Properties[0].Declared, r.Expected, r.ExpectedWhy, left)
		}
		if r.Surprise() == c.declared && c.verdict == reports.Violated {
			t.Errorf("%s: a surprise: %v", c.name, r.Surprise())
		}
	}
}

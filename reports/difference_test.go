package reports

import (
	"slices"
	"testing"

	"oversell/variant"
)

func TestDifferenceHeadline(t *testing.T) {
	pass := func(results ...string) Run {
		r := Run{Verdict: Pass}
		for i, result := range results {
			r.Properties = append(r.Properties, Property{Of: variant.Lock, Name: []variant.Property{variant.MutualExclusion, variant.Progress}[i], Result: result, Measured: result})
		}
		return r
	}
	violated := Run{Verdict: Violated}
	for _, c := range []struct {
		d    Difference
		want string
	}{
		{Difference{A: pass(Holds), B: pass(Holds)}, "Both are pass, and every property came out the same"},
		{Difference{A: pass(Holds, Holds), B: pass(Holds, Unknown)}, "Both are pass; 1 property came out differently"},
		{Difference{A: pass(), B: pass(Holds, Unknown)}, "Both are pass; 2 properties came out differently"},
		{Difference{A: violated, B: pass(Holds)}, "The verdict changed from violated to pass"},
		{Difference{A: violated, B: pass(Holds), Unlike: []Setting{{Name: "clients"}, {Name: "scenario"}}}, "Not comparable: the runs differ in clients, scenario"},
	} {
		if got := c.d.Headline(); got != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
	}
}

// TestDifferenceMoved checks that a measure counts as moved if the interval of its ratio excludes 1.
func TestDifferenceMoved(t *testing.T) {
	ratio := func(low, high float64) Measure {
		return Measure{Name: "x", Ratio: &Interval{Value: (low + high) / 2, Low: low, High: high}}
	}
	d := Difference{Measures: []Measure{ratio(1.1, 1.3), ratio(0.9, 1.1), ratio(0.4, 0.6), {Name: "without"}}}
	if got, want := d.Moved(), []string{"x: 1.20 times A's (1.10 to 1.30)", "x: 0.50 times A's (0.40 to 0.60)"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

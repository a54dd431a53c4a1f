package reports

import (
	"slices"
	"strings"
	"testing"

	"oversell/variant"
)

func TestRate(t *testing.T) {
	for rate, want := range map[float64]string{0: "0", 0.04: "0.0", 9.94: "9.9", 9.96: "10", 96.918: "97", 14324.6: "14,325"} {
		if got := Rate(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}

// TestSeparators checks that numbers for people have separators wherever they are written.
func TestSeparators(t *testing.T) {
	sold, stock, unknown := int64(16957), int64(1500), int64(1000)
	for got, want := range map[string]string{
		Run{Sold: &sold, Stock: &stock, Unknown: &unknown}.SoldOfStock(): "16,957/1,500 +1,000?",
		Below(1422):      "3/1,422 = 0.21 %",
		Short(1106.2):    "1,106",
		Millis(1206.699): "1,206.699 ms",
		Quantity{Value: 2601, Unit: "of 4352"}.Told():  "2,601 of 4,352",
		Quantity{Value: 1, Unit: "of 128 bits"}.Told(): "1 of 128 bits",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFoldedUnits checks that a number stays on one line with its unit where there is room for both.
func TestFoldedUnits(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"never (95 %: below 8.1 %)", 10, []string{"never", "(95 %:", "below", "8.1 %)"}},
		{"after 1,000 ms, 5 of them", 12, []string{"after", "1,000 ms, 5", "of them"}},
		{"12345 ms", 5, []string{"12345", "ms"}},
		{"10 µs 3 s", 6, []string{"10 µs", "3 s"}},
	} {
		if got := Folded(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestSlowerRoundByRound checks that a measure's sentence first gives the slow-down per round that decided it, and
// then the medians, from which another slow-down would follow.
func TestSlowerRoundByRound(t *testing.T) {
	low, high := -0.01, 0.03
	m := GateMeasure{Name: "throughput", Unit: "a second", Candidate: 8566, Baseline: 9057, Slowdown: Estimate{0.014, &low, &high}, Noise: Estimate{0, &low, &high}, Allowed: 0.1}
	want := "throughput: round by round 1.4 % slower (-1.0 % to 3.0 % slower), the baseline against itself -1.0 % to 3.0 %; allowed 10 %; the medians of all rounds, which include the noise between rounds, are 8,566 and, of the baseline, 9,057 a second"
	if got := m.Sentence(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestSummaryOfWhatPromisesNothing checks that a run without promises says so, and names the properties that it would
// have broken.
func TestSummaryOfWhatPromisesNothing(t *testing.T) {
	r := Run{Verdict: Inconclusive, Properties: []Property{{Name: variant.MutualExclusion, Of: variant.Lock, Result: NotClaimed, Measured: Broken}}}
	if got, want := r.Summary(), "inconclusive, because it promises nothing; it would have broken mutual-exclusion"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoClaimAnswered checks that nothing is said of declared answers where no claim was answered.
func TestNoClaimAnswered(t *testing.T) {
	if got := (Claims{}).Sum(); strings.Contains(got, "declared") {
		t.Error(got)
	}
	if got := (Claims{Claims: []Claim{{Answer: Confirmed, Declared: Confirmed}}}).Sum(); !strings.HasPrefix(got, "1 claim: 1 confirmed") {
		t.Error(got)
	}
}

// TestSomeClaimsAnswered checks that the summary of an interrupted measurement says so, not that all is as declared.
func TestSomeClaimsAnswered(t *testing.T) {
	got := Claims{Claims: []Claim{{Answer: Confirmed, Declared: Confirmed}}, Interrupted: true}.Sum()
	if undecided := (Claims{Claims: []Claim{{Answer: Inconclusive, Declared: Confirmed}}}).Sum(); !strings.HasSuffix(undecided, "1 inconclusive") {
		t.Error(undecided)
	}
	if !strings.HasSuffix(got, "; the other claims were not answered") || strings.Contains(got, "as declared") {
		t.Error(got)
	}
}

// TestExtent checks that counts have the unit of what is counted.
func TestExtent(t *testing.T) {
	for _, c := range []struct {
		p    Property
		want string
	}{
		{Property{Name: variant.NoUndersell, Count: 14, Unit: "refusal"}, ", in 14 refusals"},
		{Property{Name: variant.NoUndersell, Count: 1, Unit: "refusal"}, ", in 1 refusal"},
		{Property{Name: variant.NoUndersell, Count: 4147, Unit: "piece"}, ", by 4,147 pieces"},
		{Property{Name: variant.NoUndersell, Count: 2}, ", 2 times"},
		{Property{Name: variant.NoOversell, Count: 3, Unit: "order"}, ", in 3 orders"},
		{Property{Name: variant.NoOversell, Count: 3}, ", by 3 pieces"}, // an older document
		{Property{Name: variant.NoGaps, Count: 12, Unit: "number"}, ", by 12 numbers"},
		{Property{Name: variant.MutualExclusion, Count: 1}, ", once"},
	} {
		if got := c.p.Extent(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}

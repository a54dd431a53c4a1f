package reports

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
)

func TestExitCodeOfAComparison(t *testing.T) {
	caught := []Configuration{{Control: Control{Runs: 2, Caught: 2}}}
	safe := ComparisonCell{Outcome: NoViolation, Expected: Pass, AsDeclared: true}
	broke := ComparisonCell{Outcome: Broke, Expected: Violated, AsDeclared: true}
	surprise := ComparisonCell{Outcome: Broke, Expected: Pass}
	open := ComparisonCell{Outcome: Undecided, Expected: Pass}
	for _, c := range []struct {
		name string
		c    Comparison
		want int
	}{
		{"as declared", Comparison{Configurations: caught, Cells: []ComparisonCell{safe, broke}}, ExitPass},
		{"a surprise", Comparison{Configurations: caught, Cells: []ComparisonCell{open, surprise, broke}}, ExitViolated},
		{"undecided", Comparison{Configurations: caught, Cells: []ComparisonCell{safe, open}}, ExitInconclusive},
		{"stopped", Comparison{Configurations: caught, Cells: []ComparisonCell{safe}, Interrupted: true}, ExitInconclusive},
		{"stopped with a surprise", Comparison{Configurations: caught, Cells: []ComparisonCell{surprise}, Interrupted: true}, ExitViolated},
		{"not caught", Comparison{Configurations: []Configuration{{Control: Control{Runs: 2}}}, Cells: []ComparisonCell{broke}}, ExitInconclusive},
		{"seldom caught", Comparison{Configurations: []Configuration{{Control: Control{Runs: 3, Caught: 1}}}, Cells: []ComparisonCell{broke}}, ExitInconclusive},
		{"no control", Comparison{Configurations: []Configuration{{}}, Cells: []ComparisonCell{broke}}, ExitInconclusive},
		{"nothing at all", Comparison{}, ExitInconclusive},
	} {
		if got := c.c.ExitCode(); got != c.want {
			t.Errorf("%s: %d; want %d", c.name, got, c.want)
		}
	}
}

// TestRecommendation checks that the recommendation lists the contenders that broke nothing anywhere, the fastest
// first, with their speeds, and says which of them did not run everywhere.
func TestRecommendation(t *testing.T) {
	cell := func(configuration, contender int, outcome string, ratio float64) ComparisonCell {
		return ComparisonCell{Configuration: configuration, Contender: contender, Outcome: outcome, Estimate: &RatioEstimate{Ratio: ratio}}
	}
	c := Comparison{
		Contenders:     []Contender{{Lock: "a"}, {Lock: "b"}, {Lock: "c"}, {Lock: "d"}, {Lock: "e"}, {Lock: "f"}},
		Configurations: make([]Configuration, 2),
		Cells: []ComparisonCell{
			cell(0, 0, NoViolation, 0.2), cell(1, 0, NoViolation, 1),
			cell(0, 1, NoViolation, 0.5), cell(1, 1, NoViolation, 0.8),
			cell(0, 2, NoViolation, 0.9), cell(1, 2, Broke, 2),
			cell(0, 3, NoViolation, 1),
			cell(0, 4, NoViolation, 0.7), cell(1, 4, NotSeen, 2), // declared to break
			cell(1, 5, NoViolation, 3),
		},
	}
	c.Recommended = c.Recommend()
	var order []int
	for _, r := range c.Recommended {
		order = append(order, r.Contender)
	}
	if want := []int{1, 0, 3, 5}; !slices.Equal(order, want) {
		t.Errorf("recommended are %v; want %v: those that ran everywhere first, and then by the printed ratio", order, want)
	}
	want := "No violation seen in any configuration, fastest first: d (1.00×, runs in 1 of 2 configurations), b (0.50×), a (0.20×), f (runs in 1 of 2 configurations)"
	if got := c.Choice(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := c.Recommendation(); !strings.HasPrefix(got, want+". Untried conditions") {
		t.Errorf("without a tie: %s", got)
	}
	c.Cells[0].Tied, c.Cells[2].Tied = true, true
	if got := c.Recommendation(); !strings.Contains(got, "b (=0.50×), a (=0.20×)") || !strings.Contains(got, "too few to order those marked =") {
		t.Errorf("with a tie: %s", got)
	}
	if got := (Comparison{}).Recommendation(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := (Comparison{Cells: []ComparisonCell{cell(0, 0, Broke, 1)}}).Choice(); got != "No contender was without a violation in every configuration" {
		t.Errorf("of one that broke: %q", got)
	}
}

// TestRateOfACell checks that a contender that did no work has the rate 0, and that one that was not measured has none.
func TestRateOfACell(t *testing.T) {
	for _, c := range []struct {
		cell ComparisonCell
		want string
	}{
		{ComparisonCell{Throughput: Spread{Median: 1234.5}}, "1,235"},
		{ComparisonCell{Rounds: []ComparedRun{{Throughput: 0}}}, "0"},
		{ComparisonCell{Rounds: []ComparedRun{{Throughput: 3160.4}}}, ""},
		{ComparisonCell{}, ""},
	} {
		if got := c.cell.Rate(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.cell, got, c.want)
		}
	}
}

// TestMergedLatencies checks that merged latencies are those of all values together, not an average.
func TestMergedLatencies(t *testing.T) {
	a, b, all := NewLatencies(), NewLatencies(), NewLatencies()
	add := func(to *Latencies, kind history.Kind, took time.Duration, times int) {
		for range times {
			op := history.Op{Kind: kind, Due: 0, Call: took / 2, Return: took}
			to.Add(&op)
			all.Add(&op)
		}
	}
	add(a, history.Buy, time.Millisecond, 99)
	add(b, history.Buy, time.Second, 1)
	add(b, history.Release, time.Hour, 3)
	a.Merge(b)
	got, want := a.Summary(), all.Summary()
	if len(got) != 2 || !reflect.DeepEqual(got, want) || got["buy"].Count != 100 || got["buy"].Due.P90 > 1.1 || got["buy"].Due.Max < 999 {
		t.Errorf("merged: %+v; want %+v", got, want)
	}
	if l := b.Summary()["buy"]; l.Count != 1 {
		t.Errorf("what was merged has changed: %+v", l)
	}
	// When a closed and an open load are merged, both count from their due times.
	closed, open := NewLatencies(), NewLatencies()
	closed.Add(&history.Op{Kind: history.Buy, Outcome: history.Refused, Return: time.Second})
	open.Add(&history.Op{Kind: history.Buy, Outcome: history.OK, Call: time.Second, Return: 2 * time.Second})
	if closed.Summary()["buy"].Due != nil {
		t.Error("a closed load has no latency from when operations were due")
	}
	closed.Merge(open)
	if l := closed.Summary()["buy"]; l.Due == nil || l.Due.Max < 1990 || l.Due.P50 > 1010 || l.Call.Max > 1010 || l.Outcomes["refused"].Count != 1 || l.Outcomes["ok"].Count != 1 {
		t.Errorf("an open and a closed load: %+v", l)
	}
}

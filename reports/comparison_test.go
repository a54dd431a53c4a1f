package reports

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"oversell/history"
	"oversell/variant"
)

// A comparison with everything in it.
func everyOutcome() Comparison {
	control := Control{Contender: Contender{Lock: "none", Sale: "plain"}, Of: variant.Sale, Property: variant.NoOversell, Runs: 3, Caught: 3}
	blind := control
	blind.Caught, blind.Why = 1, "it kept its promises"
	latency := &Latency{Count: 600, Call: Percentiles{P50: 0.123, P99: 1234.5, P999: 20000}}
	runs := func(verdicts ...string) (rs []ComparedRun) {
		for i, v := range verdicts {
			rs = append(rs, ComparedRun{Round: i + 1, Verdict: v})
		}
		return rs
	}
	return Comparison{
		Scenario: "seckill", Waiting: "poll", Rounds: 3, Ended: "as many as were wanted", Work: "purchases", Conditions: []string{"--stock=200"},
		Contenders: []Contender{{Lock: "setnx-expire-atomic", Sale: "plain"}, {Lock: "lua-release", Sale: "plain"}, {Lock: "php-lock-printed", Sale: "plain"}, {Lock: "none", Sale: "lua"}},
		Configurations: []Configuration{
			{Target: "process", ServerVersion: "7.0.15", Swept: []string{"--clients=10"}, Control: control, Fastest: 1},
			{Target: "process", ServerVersion: "7.0.15", Swept: []string{"--clients=10"}, Faults: []string{"slow 150ms 5%"}, Control: blind, Fastest: -1},
		},
		Cells: []ComparisonCell{
			{Contender: 2, Outcome: Broke, Expected: Violated, AsDeclared: true, Runs: 3, Rounds: runs(Violated, Pass, Violated), Throughput: Spread{Median: 99999.5}, Ratio: &Spread{12.345, 10.1, 15.5}, Request: latency,
				Broken: []BrokenPromise{{Of: variant.Sale, Property: variant.NoOversell, Runs: 2, Count: 1234, SoonestMS: 3.14, MedianMS: 5, Why: "sold 201 of 200: two clients"}}},
			{Contender: 0, Outcome: NoViolation, Expected: Pass, AsDeclared: true, Runs: 3, Throughput: Spread{Median: 9.25}, Ratio: &Spread{0.0625, 0.05, 0.5}, Request: latency, RequestAlone: latency, CommandsPerAcquisition: 105.91, Fairness: 0.999, LongestWaitMS: 12345},
			{Contender: 1, Outcome: NoViolation, Opportunities: 1204, Promises: 2, KnownToBreak: []history.Untried{{Under: "overrun"}, {Under: "failover"}}, Expected: Pass, AsDeclared: true, Runs: 3, Throughput: Spread{Median: 148}, Ratio: &Spread{1, 1, 1}, CommandsPerAcquisition: 5},
			{Contender: 3, Outcome: Broke, Expected: Pass, Runs: 3, Rounds: runs(Pass, Pass, Pass), Broken: []BrokenPromise{{Of: variant.Sale, Property: variant.OncePerOrder, Runs: 1, Count: 1, Alone: true, Why: "twice"}}},
			{Configuration: 1, Contender: 0, Outcome: Undecided, Why: "the control was not caught", Expected: Pass, Faults: []Fault{{Fired: 1234, Holders: 34}}, Runs: 3},
			{Configuration: 1, Contender: 1, Outcome: Undecided, Why: "it is declared to break, and that did not show in 3 runs", Expected: Violated, ExpectedWhy: []string{"sale plain, no-oversell: " + strings.Repeat("a long story ", 20)}},
		},
		Skipped: []string{"redlock + plain: it needs masters"},
	}
}

func TestComparisonOnATerminal(t *testing.T) {
	var b strings.Builder
	if err := (Terminal{W: &b}).Comparison(everyOutcome()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	told := regexp.MustCompile(`([^\n ]) +`).ReplaceAllString(text, "$1 ") // whatever the width of the columns
	at := 0
	for _, want := range []string{
		"process 7.0.15, --clients=10, no fault",
		"control: none + plain broke no-oversell in 3 of 3 runs",
		"PURCHASES",
		"lua-release + plain no violation in 1,204 148 1.00 - - 5.0 - - overrun, failover",
		"setnx-expire-atomic + plain no violation 9.2 0.062 (0.050-0.50)",
		"php-lock-printed + plain BROKE 2/3 100,000 [12.3 10.1-15.5] 0.12/1234/20000",
		"none + lua BROKE 0/3!",
		"php-lock-printed + plain broke\n  no-oversell of the sale in 2 of 3 runs, by 1,234 pieces; first after 3.14 ms (median 5.00)",
		"none + lua broke, THOUGH NO FLAW IS DECLARED",
		"once-per-order of the sale in 1 run with as few clients as can be, once",
		"fault: slow 150ms 5%",
		"NOT CAUGHT: none + plain is known to break no-oversell and did so in 1 of 3 runs (it kept its promises)",
		"setnx-expire-atomic + plain: inconclusive\n  the control was not caught",
		"lua-release + plain: inconclusive\n  it is declared to break",
		`the fault "slow 150ms 5%" struck 1,234 times in 3 runs, 34 of them`,
		"!: not",
		"redlock + plain: it needs masters",
		"No contender was without a violation in every configuration.\n",
		"2 without a violation, 2 broke, 2 inconclusive; 1 not as declared (marked with !); the control was not caught in 1 of 2",
	} {
		i := strings.Index(told[at:], want)
		if i < 0 {
			t.Fatalf("%q does not come next:\n%s", want, text)
		}
		at += i
	}
	table := false // which is as wide as it needs
	for line := range strings.Lines(text) {
		table = strings.HasPrefix(line, "CONTENDER") || table && line != "\n"
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > tableWidth && !table {
			t.Errorf("%d wide: %s", n, line)
		}
	}
	b.Reset()
	(Terminal{W: &b, Color: true}).Comparison(everyOutcome())
	if plain := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(b.String()); plain != text || strings.Count(b.String(), "\x1b[0m") != 6 {
		t.Errorf("%d colours, or they change more than colours:\n%s", strings.Count(b.String(), "\x1b[0m"), b.String())
	}
}

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

// TestRecommendation: who broke nothing anywhere, and what that costs; then those that did
// not run everywhere.
func TestRecommendation(t *testing.T) {
	cell := func(configuration, contender int, outcome string, ratio float64) ComparisonCell {
		return ComparisonCell{Configuration: configuration, Contender: contender, Outcome: outcome, Ratio: &Spread{Median: ratio}}
	}
	c := Comparison{
		Contenders:     []Contender{{Lock: "a"}, {Lock: "b"}, {Lock: "c"}, {Lock: "d"}, {Lock: "e"}},
		Configurations: make([]Configuration, 2),
		Cells: []ComparisonCell{
			cell(0, 0, NoViolation, 0.2), cell(1, 0, NoViolation, 1),
			cell(0, 1, NoViolation, 0.5), cell(1, 1, NoViolation, 0.8),
			cell(0, 2, NoViolation, 0.9), cell(1, 2, Broke, 2),
			cell(0, 3, NoViolation, 1),
			cell(0, 4, NoViolation, 0.7), cell(1, 4, NotSeen, 2), // declared to break
		},
	}
	c.Recommended = c.Recommend()
	want := "No violation in any configuration (2 of 2): b (0.50 of the fastest), a (0.20 of the fastest). No violation, but not run in every configuration: d (1.00 of the fastest)."
	if got := c.Recommendation(); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := (Comparison{}).Recommendation(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// TestMergedLatencies are those of all values together, not an average.
func TestMergedLatencies(t *testing.T) {
	a, b, all := NewLatencies(), NewLatencies(), NewLatencies()
	add := func(to *Latencies, kind history.Kind, took time.Duration, times int) {
		for range times {
			op := history.Op{Kind: kind, Due: 0, Call: took / 2, Return: took}
			to.Add(op)
			all.Add(op)
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
	// Of two sets, one of which is of a closed load, both count from when they were due.
	closed, open := NewLatencies(), NewLatencies()
	closed.Add(history.Op{Kind: history.Buy, Outcome: history.Refused, Return: time.Second})
	open.Add(history.Op{Kind: history.Buy, Outcome: history.OK, Call: time.Second, Return: 2 * time.Second})
	if closed.Summary()["buy"].Due != nil {
		t.Error("a closed load has no latency from when operations were due")
	}
	closed.Merge(open)
	if l := closed.Summary()["buy"]; l.Due == nil || l.Due.Max < 1990 || l.Due.P50 > 1010 || l.Call.Max > 1010 || l.Outcomes["refused"].Count != 1 || l.Outcomes["ok"].Count != 1 {
		t.Errorf("an open and a closed load: %+v", l)
	}
}

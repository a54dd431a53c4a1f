package text

import (
	"bytes"
	"strings"
	"testing"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

func ptr(n int64) *int64 { return &n }

func example() reports.Document {
	return reports.Document{Schema: reports.Schema, Runs: []reports.Run{
		{
			Scenario: "seckill", Lock: "none", Sale: "plain", Verdict: reports.Violated, Expected: reports.Violated,
			Throughput: 71081.4, Stock: ptr(500), Sold: ptr(15569), Unknown: ptr(0),
			Latency: map[string]reports.Latency{"buy": {Count: 3, Call: reports.Percentiles{P50: 2.42, P99: 8.66, P999: 120.4}}},
			Properties: []reports.Property{
				{Name: variant.NoOversell, Of: variant.Sale, Result: reports.Broken, Measured: reports.Broken, Declared: true, Count: 1, Why: "sold 15,569 of 500"},
				{Name: variant.MutualExclusion, Of: variant.Lock, Result: reports.NotClaimed, Measured: reports.Broken, Count: 1204, Why: "nobody is kept out"},
				{Name: variant.Progress, Of: variant.Lock, Result: reports.Holds, Measured: reports.Holds},
			},
		},
		{
			Scenario: "seckill", Lock: "lua-release", Sale: "plain", Verdict: reports.Pass, Expected: reports.Pass,
			Stock: ptr(500), Sold: ptr(500), Unknown: ptr(0),
			Properties: []reports.Property{
				{Name: variant.NoOversell, Of: variant.Sale, Result: reports.Holds, Measured: reports.Holds, Opportunities: 499, Why: "sold 500 of 500"},
				{Name: variant.MutualExclusion, Of: variant.Lock, Result: reports.Holds, Measured: reports.Holds, Opportunities: 1204, Why: "no two holders at once"},
				{Name: variant.Linearizable, Of: variant.Lock, Result: reports.NotClaimed, Measured: reports.Holds, Opportunities: 3},
			},
			KnownToBreak: []history.Untried{
				{Under: "overrun", Breaks: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}, Why: "the lease is over"},
				{Under: "failover", Breaks: []history.Promise{{Of: variant.Lock, Property: variant.MutualExclusion}}, Why: "the replica lacks the lock"},
			},
		},
		{
			Scenario: "mutex", Lock: "redlock", Verdict: reports.Inconclusive, Why: "the run was stopped before its end", Expected: reports.Pass,
			Notes: []string{"3 operations ended in an error"},
			Properties: []reports.Property{
				{Name: variant.Linearizable, Of: variant.Lock, Result: reports.Unknown, Measured: reports.Unknown, Why: "too many at once"},
			},
		},
		{Scenario: "mutex", Lock: "fair", Verdict: reports.Violated, Expected: reports.Pass, Properties: []reports.Property{}},
	}}
}

func TestTableSaysWhatBroke(t *testing.T) {
	var b bytes.Buffer
	if err := (Terminal{W: &b, Width: 110}).Table(example()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"none         plain  violated      -                15,569/500  71,081",
		"2.42/8.66/120  no-oversell\n",
		"lua-release  plain  pass          ≥ 499            500/500",
		"\nDeclared to break under conditions that were not tried here:\n  overrun, failover  lua-release\n",
		"violated!", // the exclamation mark means: not as declared
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if strings.TrimRight(line, " \n")+"\n" != line {
			t.Errorf("a line ends in blanks: %q", line)
		}
	}
}

func TestExplainTellsEveryRunThatDidNotPass(t *testing.T) {
	var b bytes.Buffer
	if err := (Terminal{W: &b, Width: 200}).Explain(example()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seckill, lock none, sale plain: violated, as its flaws declare",
		"no-oversell, by 1 piece\n    sold 15,569 of 500.",
		"not promised, and broken: mutual-exclusion, 1,204 times",
		"1 passed, 2 violated, 1 inconclusive; 1 not as declared",
		"mutex, lock redlock: inconclusive\n  the run was stopped before its end",
		"linearizable: unknown",
		"note: 3 operations ended in an error",
		"mutex, lock fair: violated, and no flaw declares that",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the paragraphs lack %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "lua-release") {
		t.Errorf("a run that passed needs no explanation, but got:\n%s", b.String())
	}
}

// TestNothingIsSaidOfWhatIsNotDeclared checks that a history from elsewhere, which declares no outcome, is not
// counted as declared.
func TestNothingIsSaidOfWhatIsNotDeclared(t *testing.T) {
	r := example().Runs[1]
	undeclared := r
	undeclared.Expected = ""
	for want, runs := range map[string][]reports.Run{
		"1 passed, 0 violated, 0 inconclusive": {undeclared},
		"2 passed, 0 violated, 0 inconclusive; every decided outcome is as promises and flaws declare, where they declare one": {r, undeclared},
	} {
		if got := (reports.Document{Runs: runs}).Summary(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// TestAPassSaysWhatItRestsOn checks that a pass comes with the number of opportunities, the bound that follows from
// it, and the conditions known to break a promise that were not tried.
func TestAPassSaysWhatItRestsOn(t *testing.T) {
	d := example()
	r := d.Runs[1]
	const rests = "no violation seen in 499 opportunities or more for each promise (95 %: below 3/499 = 0.60 %); known to break under: overrun, failover; not tried"
	if got := r.Seen(); got != rests {
		t.Errorf("%q; want %q", got, rests)
	}
	if got, want := r.Summary(), "pass, sold 500/500, no violation in ≥ 499 opportunities"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	var b bytes.Buffer
	if err := (Terminal{W: &b, Width: 200}).Explain(reports.Document{Runs: []reports.Run{r}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seckill, lock lua-release, sale plain: pass, as declared\n  " + rests + "\n",
		"mutual-exclusion: no violation seen in 1,204 opportunities (95 %: below 3/1,204 = 0.25 %)\n    no two holders at once.",
		"1 passed, 0 violated, 0 inconclusive; every decided outcome is as promises and flaws declare",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("a single run lacks %q:\n%s", want, b.String())
		}
	}
	r.Properties = r.Properties[:1]
	r.Properties[0].Opportunities, r.KnownToBreak = 1, nil
	if got, want := r.Seen(), "no violation seen in 1 opportunity (95 %: below 95 %)"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestADeclaredFlawThatIsNotSeen checks that a declared flaw that did not show is reported, but not as a surprise.
func TestADeclaredFlawThatIsNotSeen(t *testing.T) {
	holds := reports.Property{Name: variant.NoOversell, Of: variant.Sale, Result: reports.Holds, Measured: reports.Holds, Declared: true, Opportunities: 9, Why: "sold 3 of 3"}
	broken := reports.Property{Name: variant.OncePerOrder, Of: variant.Sale, Result: reports.Broken, Measured: reports.Broken, Count: 2, Why: "twice"}
	unseen := reports.Run{Scenario: "seckill", Lock: "redislock", Verdict: reports.Pass, Expected: reports.Violated, Properties: []reports.Property{holds}}
	var b bytes.Buffer
	if err := (Terminal{W: &b}).Table(reports.Document{Runs: []reports.Run{unseen}}); err != nil {
		t.Fatal(err)
	}
	if err := (Terminal{W: &b, Width: 200}).Explain(reports.Document{Runs: []reports.Run{unseen}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  declared, not seen: no-oversell\n", "pass; declared, not seen: no-oversell\n", "every violation is declared as a flaw, and in 1 run a declared flaw was not seen"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "!") || strings.Contains(b.String(), "not as declared") {
		t.Errorf("a declared flaw that was not seen is marked as a surprise:\n%s", b.String())
	}
	other := unseen
	other.Verdict, other.Properties = reports.Violated, []reports.Property{holds, broken}
	if !other.Surprise() || unseen.Surprise() {
		t.Error("a promise that broke without a declared flaw is a surprise, whatever else is declared")
	}
	elsewhere := reports.Run{Verdict: reports.Violated, Properties: []reports.Property{broken}}
	if elsewhere.Surprise() {
		t.Error("of a history from elsewhere nothing is declared")
	}
	for _, c := range []struct {
		name string
		runs []reports.Run
		want int
	}{
		{"as declared", []reports.Run{{Verdict: reports.Violated, Expected: reports.Violated, Properties: []reports.Property{{Result: reports.Broken, Declared: true}}}, {Verdict: reports.Pass, Expected: reports.Pass}}, reports.ExitPass},
		{"not seen", []reports.Run{unseen}, reports.ExitPass},
		{"a surprise", []reports.Run{unseen, {Verdict: reports.Violated, Expected: reports.Pass}}, reports.ExitViolated},
		{"another promise", []reports.Run{other}, reports.ExitViolated},
		{"undecided", []reports.Run{unseen, {Verdict: reports.Inconclusive, Expected: reports.Pass}}, reports.ExitInconclusive},
		{"no verdict", []reports.Run{{Expected: reports.Pass}}, reports.ExitInconclusive},
		{"nothing", nil, reports.ExitInconclusive},
	} {
		if got := (reports.Document{Runs: c.runs}).DemonstrationCode(); got != c.want {
			t.Errorf("%s: exit %d; want %d", c.name, got, c.want)
		}
	}
}

func TestColourDoesNotMoveColumns(t *testing.T) {
	var plain, colour bytes.Buffer
	if err := (Terminal{W: &plain}).Table(example()); err != nil {
		t.Fatal(err)
	}
	if err := (Terminal{W: &colour, Color: true}).Table(example()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colour.String(), "\x1b[31m") {
		t.Error("no violation is red")
	}
	stripped := colour.String()
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		stripped = strings.ReplaceAll(stripped, code, "")
	}
	if stripped != plain.String() {
		t.Errorf("without its colours the table differs:\n%s\n%s", stripped, plain.String())
	}
}

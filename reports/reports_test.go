package reports

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

func ptr(n int64) *int64 { return &n }

func example() Document {
	return Document{Schema: Schema, Runs: []Run{
		{
			Scenario: "seckill", Lock: "none", Sale: "plain", Verdict: Violated, Expected: Violated,
			Throughput: 71081.4, Stock: ptr(500), Sold: ptr(15569), Unknown: ptr(0),
			Latency: map[string]Latency{"buy": {Count: 3, Call: Percentiles{P50: 2.42, P99: 8.66, P999: 120.4}}},
			Properties: []Property{
				{Name: variant.NoOversell, Of: variant.Sale, Result: Broken, Measured: Broken, Declared: true, Count: 1, Why: "sold 15,569 of 500"},
				{Name: variant.MutualExclusion, Of: variant.Lock, Result: NotClaimed, Measured: Broken, Count: 1204, Why: "nobody is kept out"},
				{Name: variant.Progress, Of: variant.Lock, Result: Holds, Measured: Holds},
			},
		},
		{
			Scenario: "seckill", Lock: "lua-release", Sale: "plain", Verdict: Pass, Expected: Pass,
			Stock: ptr(500), Sold: ptr(500), Unknown: ptr(0),
			Properties: []Property{
				{Name: variant.NoOversell, Of: variant.Sale, Result: Holds, Measured: Holds, Opportunities: 499, Why: "sold 500 of 500"},
				{Name: variant.MutualExclusion, Of: variant.Lock, Result: Holds, Measured: Holds, Opportunities: 1204, Why: "no two holders at once"},
				{Name: variant.Linearizable, Of: variant.Lock, Result: NotClaimed, Measured: Holds, Opportunities: 3},
			},
			KnownToBreak: []history.Untried{
				{Under: "overrun", Breaks: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}, Why: "the lease is over"},
				{Under: "failover", Breaks: []history.Promise{{Of: variant.Lock, Property: variant.MutualExclusion}}, Why: "the replica lacks the lock"},
			},
		},
		{
			Scenario: "mutex", Lock: "redlock", Verdict: Inconclusive, Why: "the run was stopped before its end", Expected: Pass,
			Notes: []string{"3 operations ended in an error"},
			Properties: []Property{
				{Name: variant.Linearizable, Of: variant.Lock, Result: Unknown, Measured: Unknown, Why: "too many at once"},
			},
		},
		{Scenario: "mutex", Lock: "fair", Verdict: Violated, Expected: Pass, Properties: []Property{}},
	}}
}

func TestTableSaysWhatBroke(t *testing.T) {
	var b bytes.Buffer
	if err := (Terminal{W: &b}).Table(example()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"none         plain  violated      -                15569/500  71,081",
		"2.42 / 8.66 / 120",
		"  no-oversell\n",
		"lua-release  plain  pass          ≥ 499            500/500",
		"  known to break under: overrun, failover; not tried\n", // which the run did not bring
		"violated!", // not what was declared
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
	if err := (Terminal{W: &b}).Explain(example()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seckill, lock none, sale plain: violated, as its flaws declare",
		"no-oversell, by 1 piece\n    sold 15,569 of 500.",
		"not promised, and not kept: mutual-exclusion, 1,204 times",
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
		t.Errorf("a run that passed is explained:\n%s", b.String())
	}
}

// TestNothingIsSaidOfWhatIsNotDeclared: a history from elsewhere declares no outcome.
func TestNothingIsSaidOfWhatIsNotDeclared(t *testing.T) {
	r := example().Runs[1]
	undeclared := r
	undeclared.Expected = ""
	for want, runs := range map[string][]Run{
		"1 passed, 0 violated, 0 inconclusive": {undeclared},
		"2 passed, 0 violated, 0 inconclusive; every decided outcome is the one that promises and flaws declare, where they declare one": {r, undeclared},
	} {
		if got := (Document{Runs: runs}).Sum(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// TestAPassSaysWhatItRestsOn: how often a promise could have broken, the bound that this
// gives, and what is known to break it and was not tried.
func TestAPassSaysWhatItRestsOn(t *testing.T) {
	d := example()
	r := d.Runs[1]
	const rests = "no violation seen in 499 opportunities or more for each promise (95 %: below 3/499 = 0.6 %); known to break under: overrun, failover; not tried"
	if got := r.Seen(); got != rests {
		t.Errorf("%q; want %q", got, rests)
	}
	if got, want := r.Summary(), "pass, sold 500/500, no violation in ≥ 499 opportunities"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	var b bytes.Buffer
	if err := (Terminal{W: &b}).Explain(Document{Runs: []Run{r}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seckill, lock lua-release, sale plain: pass, as declared\n  " + rests + "\n",
		"mutual-exclusion: no violation seen in 1,204 opportunities (95 %: below 3/1204 = 0.25 %)\n    no two holders at once.",
		"1 passed, 0 violated, 0 inconclusive; every decided outcome is the one that promises and flaws declare",
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

// TestADeclaredFlawThatIsNotSeen is no surprise, and no reason to apologise.
func TestADeclaredFlawThatIsNotSeen(t *testing.T) {
	holds := Property{Name: variant.NoOversell, Of: variant.Sale, Result: Holds, Measured: Holds, Declared: true, Opportunities: 9, Why: "sold 3 of 3"}
	broken := Property{Name: variant.OncePerOrder, Of: variant.Sale, Result: Broken, Measured: Broken, Count: 2, Why: "twice"}
	unseen := Run{Scenario: "seckill", Lock: "redislock", Verdict: Pass, Expected: Violated, Properties: []Property{holds}}
	var b bytes.Buffer
	if err := (Terminal{W: &b}).Table(Document{Runs: []Run{unseen}}); err != nil {
		t.Fatal(err)
	}
	if err := (Terminal{W: &b}).Explain(Document{Runs: []Run{unseen}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  declared, not seen: no-oversell\n", "pass; declared, not seen: no-oversell\n", "nothing broke that no flaw declares, and in 1 run a declared flaw was not seen"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "!") || strings.Contains(b.String(), "not as declared") {
		t.Errorf("an apology:\n%s", b.String())
	}
	other := unseen
	other.Verdict, other.Properties = Violated, []Property{holds, broken}
	if !other.Surprise() || unseen.Surprise() {
		t.Error("a promise that broke without a declared flaw is a surprise, whatever else is declared")
	}
	elsewhere := Run{Verdict: Violated, Properties: []Property{broken}}
	if elsewhere.Surprise() {
		t.Error("of a history from elsewhere nothing is declared")
	}
	for _, c := range []struct {
		name string
		runs []Run
		want int
	}{
		{"as declared", []Run{{Verdict: Violated, Expected: Violated, Properties: []Property{{Result: Broken, Declared: true}}}, {Verdict: Pass, Expected: Pass}}, ExitPass},
		{"not seen", []Run{unseen}, ExitPass},
		{"a surprise", []Run{unseen, {Verdict: Violated, Expected: Pass}}, ExitViolated},
		{"another promise", []Run{other}, ExitViolated},
		{"undecided", []Run{unseen, {Verdict: Inconclusive, Expected: Pass}}, ExitInconclusive},
		{"no verdict", []Run{{Expected: Pass}}, ExitInconclusive},
		{"nothing", nil, ExitInconclusive},
	} {
		if got := (Document{Runs: c.runs}).DemonstrationCode(); got != c.want {
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

func TestExitCodes(t *testing.T) {
	of := func(verdicts ...string) (d Document) {
		for _, v := range verdicts {
			d.Runs = append(d.Runs, Run{Verdict: v})
		}
		return d
	}
	for _, c := range []struct {
		d    Document
		want int
	}{
		{of(), ExitInconclusive},
		{of(Pass, Pass), ExitPass},
		{of(Pass, Inconclusive), ExitInconclusive},
		{of(Inconclusive, Violated, Pass), ExitViolated},
		{of(Pass, ""), ExitInconclusive}, // a verdict that was never filled in does not pass
	} {
		if got := c.d.ExitCode(); got != c.want {
			t.Errorf("%v: exit %d; want %d", c.d.Runs, got, c.want)
		}
	}
}

func TestLatenciesCountFromDueAndFromCall(t *testing.T) {
	l := NewLatencies()
	for i := range 1000 {
		call := time.Duration(i) * time.Second
		op := history.Op{Kind: history.Buy, Outcome: history.OK, Due: call - 10*time.Millisecond, Call: call, Return: call + time.Duration(i+1)*time.Microsecond}
		l.Add(op)
		op.Reason = history.Stopped
		l.Add(op) // our own stop is no latency
	}
	l.Add(history.Op{Kind: history.ReadState, Return: time.Hour})
	s := l.Summary()
	buy := s["buy"]
	if len(s) != 1 || buy.Count != 1000 {
		t.Fatalf("summary: %+v; want 1000 buys and nothing else", s)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= want/500 }
	if !near(buy.Call.P50, 0.5) || !near(buy.Call.P99, 0.99) || !near(buy.Call.Max, 1) {
		t.Errorf("from the call: %+v; want 0.5, 0.99 and 1 ms", buy.Call)
	}
	if !near(buy.Due.P50, 10.5) || !near(buy.Due.Max, 11) {
		t.Errorf("from when it was due: %+v; want 10 ms more", buy.Due)
	}
	var b bytes.Buffer
	if err := l.WriteHGRM(&b, history.Buy); err != nil || !strings.Contains(b.String(), "TotalCount") {
		t.Errorf("the percentile file: %v\n%s", err, b.String())
	}
	if err := l.WriteHGRM(&b, history.Refund); err == nil {
		t.Error("percentiles of what never happened were written")
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d) = %s; want %s", n, got, want)
		}
	}
}

package judging

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

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

// TestJudgedAsMet checks that a verdict takes account of what befell a run.
func TestJudgedAsMet(t *testing.T) {
	sold := history.Promise{Of: variant.Sale, Property: variant.NoOversell}
	h := &history.History{Header: history.Header{Stock: 1, Expected: reports.Pass, Promises: []history.Promise{sold}, KnownToBreak: []history.Untried{{Under: "restart-empty", Breaks: []history.Promise{sold}, Why: "forgotten"}}}}
	for i := range int64(2) {
		at := time.Duration(i) * time.Second
		h.Ops = append(h.Ops, history.Op{Client: int32(i), Kind: history.Buy, Outcome: history.OK, Arg: history.Int(i), Call: at, Return: at + time.Millisecond})
	}
	for _, befell := range [][]variant.Fault{nil, {variant.RestartEmpty}} {
		h.Trailer = &history.Trailer{Elapsed: 2 * time.Second, Befell: befell}
		if r := Judge(h).Run; r.Verdict != reports.Violated || r.Surprise() != (befell == nil) {
			t.Errorf("befallen %v: %s, a surprise: %v", befell, r.Verdict, r.Surprise())
		}
	}
}

// TestFaultThatMatched checks that a fault that did not fire says whether anything matched it.
func TestFaultThatMatched(t *testing.T) {
	for n, want := range map[int64]string{
		0:  `the fault "drop-reply SET nth 500" never fired: nothing matched it`,
		1:  `the fault "drop-reply SET nth 500" never fired, though it matched once`,
		27: `the fault "drop-reply SET nth 500" never fired, though it matched 27 times`,
	} {
		if got := idle(&history.Trailer{Faults: []history.FaultCount{{Name: "drop-reply SET nth 500", Matched: n}}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestIntervalsByRank checks that the width of an interval is the smallest value that so many do not exceed.
func TestIntervalsByRank(t *testing.T) {
	h := hdrhistogram.New(1, int64(time.Hour), 3)
	for _, ms := range []int64{1, 2, 3} {
		if err := h.RecordValue(ms * 1e6); err != nil {
			t.Fatal(err)
		}
	}
	i := intervals(&history.History{}, h)
	if math.Round(i.Operations.P50) != 2 || math.Round(i.Operations.P99) != 3 {
		t.Errorf("%+v; want 2 and 3", *i.Operations)
	}
	many := hdrhistogram.New(1, int64(time.Hour), 3)
	for n := range 52 { // rank 51.48 of 52 values is the last one
		_ = many.RecordValue(int64(1+9*(n/51)) * 1e6)
	}
	if i := intervals(&history.History{}, many); math.Round(i.Operations.P99) != 10 {
		t.Errorf("p99 %v; want 10", i.Operations.P99)
	}
	for range 7 { // the median of ten values is the fifth
		_ = h.RecordValue(10 * 1e6)
	}
	for _, p := range []float64{10, 20, 21, 30, 31, 99} {
		want := map[float64]int64{10: 1, 20: 2, 21: 3, 30: 3, 31: 10, 99: 10}[p]
		if got := reports.ValueAt(h, p); (got+500_000)/1_000_000 != want {
			t.Errorf("p%v is %d ms, want %d", p, got/1_000_000, want)
		}
	}
}

// TestPhasesCountAnswers checks that operations without an answer count as failed, not as work.
func TestPhasesCountAnswers(t *testing.T) {
	const ms = time.Millisecond
	h := &history.History{Header: history.Header{Faults: []string{"kill at 10ms"}}, Trailer: &history.Trailer{Elapsed: 30 * ms}}
	for i, outcome := range []history.Outcome{history.OK, history.Unknown, history.Unknown, history.Refused, history.OK} {
		at := time.Duration(5*i+1) * ms
		h.Ops = append(h.Ops, history.Op{Client: 1, Kind: history.Acquire, Outcome: outcome, Call: at, Return: at + ms})
	}
	h.Ops = append(h.Ops, history.Op{Client: -1, Kind: history.Fault, Key: history.Text("kill at 10ms"), Call: 3 * ms, Return: 30 * ms})
	for _, p := range phases(h) {
		if p.Name == "during" && (p.Operations != 2 || p.Failed != 2 || p.Latency["acquire"].Count != 2) {
			t.Errorf("%+v; want 2 answers and 2 failures", p)
		}
	}
	if s := (reports.Phase{ToMS: 1000, Throughput: 276, Failed: 1200}).Answers(); s != "276, 1,200 failed" {
		t.Errorf("%q", s)
	}
}

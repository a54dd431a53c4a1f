package reports

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"oversell/history"
)

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
		l.Add(&op)
		op.Reason = history.Stopped
		l.Add(&op) // an operation that the run itself stopped has no latency
	}
	l.Add(&history.Op{Kind: history.ReadState, Return: time.Hour})
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

func TestCutKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"abcdefgh", 8, "abcdefgh"}, {"abcdefgh", 5, "ab…gh"}, {"abcdefgh", 4, "ab…h"}, {"äöüäöü", 3, "ä…ü"}, {"ab", 1, "…"}, {"ab", 0, ""}} {
		got := Cut(c.text, c.width)
		if got != c.want || utf8.RuneCountInString(got) > c.width {
			t.Errorf("cut(%q, %d) = %q; want %q", c.text, c.width, got, c.want)
		}
	}
}

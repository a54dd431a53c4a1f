package page

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"oversell/reports"
)

// differing returns two runs, one of which broke a promise.
func differing() DifferenceInput {
	a, b := takenOver(), served()
	b.Run.Verdict = reports.Pass
	b.Run.Properties = b.Run.Properties[:2:2]
	b.Run.Properties[1].Result, b.Run.Properties[1].Measured, b.Run.Properties[1].Count = reports.Holds, reports.Holds, 0
	at := func(v float64) reports.Interval { return reports.Interval{Value: v, Low: v * 0.9, High: v * 1.2} }
	more, same := at(1.5), at(1)
	d := reports.Difference{A: a.Run, B: b.Run, Kind: "acquire", Chosen: []reports.Setting{{Name: "lock", A: "php-lock-printed", B: "fenced"}}, Measures: []reports.Measure{
		{Name: "Purchases", Unit: "a second", A: at(1000), B: at(1500), Sure: true, Ratio: &more},
		{Name: "acquire p50", Unit: "ms", A: at(2), B: at(2), Sure: true, Ratio: &same},
		{Name: "acquire p99.9", Unit: "ms", A: at(3), B: at(4)},
	}}
	in := DifferenceInput{Difference: d}
	for i, r := range []RunInput{a, b} {
		in.Runs[i] = DifferenceRun{History: r.History, Latencies: r.Latencies, Name: "runs/0" + string('1'+rune(i)), Page: "report.html"}
	}
	return in
}

// TestDifferencePage checks that the page says what changed and by which method, and that it gives reasons instead of
// ratios where two runs are not comparable.
func TestDifferencePage(t *testing.T) {
	told := func(in DifferenceInput) string {
		var b bytes.Buffer
		if err := Difference(&b, in); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	in := differing()
	text := told(in)
	for _, want := range []string{"The verdict changed from violated to pass", "Purchases: 1.50 times A&#39;s (1.35 to 1.80)", "more than A", "no change beyond the interval", "too few operations for an interval", "block bootstrap", "php-lock-printed", "A: sold 42 of 5", "not judged", "ms by percentile"[3:]} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	in.Difference.Unlike = []reports.Setting{{Name: "clients", A: "16", B: "64"}}
	for i := range in.Difference.Measures {
		in.Difference.Measures[i].Ratio = nil
	}
	if text := told(in); !strings.Contains(text, "Not comparable: the runs differ in clients") || !strings.Contains(text, "no ratios are given") || strings.Contains(text, "times A") {
		t.Error("runs that are not alike are compared")
	}
	if err := Difference(&bytes.Buffer{}, DifferenceInput{}); err == nil {
		t.Error("there is a page of no runs")
	}
}

// TestGlance checks that the fastest run comes first, that oversold pieces are drawn beyond the stock, and that there
// is no overview of a single run.
func TestGlance(t *testing.T) {
	in := OverviewInput{Runs: []OverviewRun{{Run: frozen().Run}, {Run: takenOver().Run}}}
	in.Runs[1].Run.Throughput = 1e6
	g := glanceOf(in.runs(), in.Runs)
	if g == nil || len(g.Rows) != 2 || !g.Sales {
		t.Fatalf("%+v; want two runs, one of which sold", g)
	}
	first, second := g.Rows[0], g.Rows[1]
	if first.Link != "run-2" || first.RateW != "100.0000" || first.Over != "60.0000" || first.Sold != "40.0000" || first.SoldText != "42, 37 too many" {
		t.Errorf("the first row is %+v; want the sale, oversold beyond the edge", first)
	}
	if second.SoldText != "" || second.Latency == "" || !strings.Contains(second.Label, "operations a second; p50 / p99 / p99.9 of acquire") {
		t.Errorf("the second row is %+v", second)
	}
	if g := glanceOf(in.runs()[:1], in.Runs[:1]); g != nil {
		t.Errorf("one run is compared with nothing: %+v", g)
	}
}

// TestGlanceComparesLikeWithLike checks that latencies share an axis under one name only if they are all of requests;
// otherwise each says what it is of.
func TestGlanceComparesLikeWithLike(t *testing.T) {
	in := OverviewInput{Runs: []OverviewRun{{Run: frozen().Run}, {Run: givenTwice().Run}}}
	g := glanceOf(in.runs(), in.Runs)
	if g.Latency != "latency, of what is named" || !strings.HasPrefix(g.Rows[0].Latency, "next-id ") && !strings.HasPrefix(g.Rows[1].Latency, "next-id ") {
		t.Errorf("%q, %q and %q", g.Latency, g.Rows[0].Latency, g.Rows[1].Latency)
	}
	for i := range in.Runs {
		in.Runs[i].Run.Request = &reports.Latency{Count: 9, Call: reports.Percentiles{P50: float64(i + 1), P99: 7, P999: 9}}
	}
	g = glanceOf(in.runs(), in.Runs)
	if !strings.HasPrefix(g.Latency, "latency of a request") || !strings.HasSuffix(g.Rows[0].Latency, " / 7.00 / 9.00") || !strings.Contains(g.Rows[0].Label, "of a request") {
		t.Errorf("%q: %+v", g.Latency, g.Rows[0])
	}
}

// TestOverviewTellsRunsApart checks that a run is named after its variants, and by its path where they are the same
// or unknown.
func TestOverviewTellsRunsApart(t *testing.T) {
	run := func(lock, name string) OverviewRun { return OverviewRun{Run: reports.Run{Lock: lock}, Name: name} }
	in := OverviewInput{Runs: []OverviewRun{run("", "a/h1.jsonl"), run("", "a/h2.jsonl"), run("lua", "a/h3.jsonl"), run("lua", "b/h3.jsonl"), run("none", "b/h4.jsonl")}}
	want := []string{"h1.jsonl", "h2.jsonl", "history, lock lua (a/h3.jsonl)", "history, lock lua (b/h3.jsonl)", "history, lock none"}
	if got := in.titles(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

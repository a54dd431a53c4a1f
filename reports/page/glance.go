package page

import (
	"cmp"
	"fmt"
	"slices"

	"oversell/reports"
	"oversell/reports/page/chart"
)

// glance shows several runs side by side, the fastest first: throughput, latency, and pieces sold of the stock.
type glance struct {
	Label string
	// Latency names the operation of the latencies, and Scale the ends of their scale.
	Latency, Scale string
	Sales          bool
	Rows           []glanceRow
}

// glanceRow is one run; all positions are in percent of the width.
type glanceRow struct {
	Link, Name, Class, Icon string
	Rate, RateW             string
	// From to To is p50 to p99.9 on a logarithmic scale, with p99 at Middle.
	From, Long, Middle, Latency string
	// Sold is drawn up to the stock, at position Stock, and Over beyond it, at most to the edge.
	Sold, Over, Stock, SoldText string
	Label                       string
}

// stockAt is the position of the stock, which leaves room for one and a half times as much beyond it.
const stockAt = 40

// glanceOf draws runs; nil for fewer than two.
func glanceOf(rows []overviewRow, runs []OverviewRun) *glance {
	if len(runs) < 2 {
		return nil
	}
	g := glance{Label: fmt.Sprintf("%d runs, the fastest first: throughput, latency and sales", len(runs))}
	fastest, latencies, of := 0.0, []float64{}, timedIn(runs)
	for _, o := range runs {
		fastest = max(fastest, o.Run.Throughput)
		if l := of.latency(&o.Run); l != nil {
			latencies = append(latencies, max(l.Call.P50, 0.001), max(l.Call.P999, 0.001))
		}
		g.Sales = g.Sales || o.Run.Sold != nil
	}
	y := chart.LogScale(latencies)
	g.Scale = fmt.Sprintf("from %s to %s ms, logarithmic", millisAxis(y.Low), millisAxis(y.High))
	g.Latency = of.heading()
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(runs[b].Run.Throughput, runs[a].Run.Throughput) })
	for _, i := range order {
		g.Rows = append(g.Rows, glanceRowOf(&rows[i], &runs[i].Run, fastest, y, of))
	}
	return &g
}

// compared is the operation whose latencies several runs show: the main kind if all runs have the same; otherwise
// requests, which include all waiting. If a run has no requests, each run shows its own kind, and names it.
type compared struct {
	kind     string
	requests bool
}

func timedIn(runs []OverviewRun) (c compared) {
	kinds := map[string]bool{}
	c.requests = true
	for i := range runs {
		r := &runs[i].Run
		if _, ok := r.Latency[r.MainKind()]; ok {
			c.kind = r.MainKind()
			kinds[c.kind] = true
			c.requests = c.requests && r.Request != nil
		}
	}
	if len(kinds) == 1 {
		return compared{kind: c.kind}
	}
	return compared{requests: c.requests}
}

// latency returns the latency of a run; nil if it has none.
func (c compared) latency(r *reports.Run) *reports.Latency {
	if c.requests {
		return r.Request
	}
	if l, ok := r.Latency[r.MainKind()]; ok {
		return &l
	}
	return nil
}

// heading names the operation of the latencies.
func (c compared) heading() string {
	switch {
	case c.requests:
		return "latency of a request, the wait for a lock included"
	case c.kind != "":
		return "latency of " + c.kind
	}
	return "latency, of what is named"
}

// of names the operation of a run's latency.
func (c compared) of(r *reports.Run) string {
	if c.requests {
		return "a request"
	}
	return r.MainKind()
}

func glanceRowOf(row *overviewRow, r *reports.Run, fastest float64, y chart.Scale, of compared) glanceRow {
	g := glanceRow{Link: row.ID, Name: row.Title, Class: row.Class, Icon: row.Icon, Rate: row.Rate, RateW: chart.Percent(100 * r.Throughput / max(fastest, 1))}
	g.Label = fmt.Sprintf("%s: %s, %s operations a second", row.Title, row.Verdict, row.Rate)
	if l := of.latency(r); l != nil {
		from, to := 100*y.At(max(l.Call.P50, 0.001)), 100*y.At(max(l.Call.P999, 0.001))
		g.From, g.Long, g.Middle = chart.Percent(from), chart.Percent(max(to-from, 0.5)), chart.Percent(100*y.At(max(l.Call.P99, 0.001)))
		g.Latency = l.Summary()
		g.Label += fmt.Sprintf("; p50 / p99 / p99.9 of %s %s ms", of.of(r), g.Latency)
		if of == (compared{}) {
			g.Latency = r.MainKind() + " " + g.Latency
		}
	}
	if r.Sold == nil || r.Stock == nil || *r.Stock <= 0 {
		return g
	}
	share := stockAt * float64(*r.Sold) / float64(*r.Stock)
	g.Stock, g.Sold, g.Over = chart.Percent(stockAt), chart.Percent(min(share, stockAt)), chart.Percent(max(0, min(share, 100)-stockAt))
	g.SoldText = reports.Thousands(*r.Sold)
	if over := *r.Sold - *r.Stock; over > 0 {
		g.SoldText += fmt.Sprintf(", %s too many", reports.Thousands(over))
	}
	g.Label += fmt.Sprintf("; sold %s of %s", reports.Thousands(*r.Sold), reports.Thousands(*r.Stock))
	return g
}

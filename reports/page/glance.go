package page

import (
	"cmp"
	"fmt"
	"slices"

	"oversell/reports"
)

// glance are several runs drawn side by side, the fastest first: how fast each was, how
// long its operations took, and how much it sold of how much.
type glance struct {
	Label string
	// Latency says what the latencies are of, and Scale what its ends stand for.
	Latency, Scale string
	Sales          bool
	Rows           []glanceRow
}

// glanceRow is one run; all places are in per cent of the width.
type glanceRow struct {
	Link, Name, Class, Icon string
	Rate, RateW             string
	// From to To is p50 to p99.9 on a logarithmic scale, with p99 at Middle.
	From, Long, Middle, Latency string
	// Sold is drawn up to the stock, which stands at Stock, and Over beyond it, at most to
	// the edge.
	Sold, Over, Stock, SoldText string
	Label                       string
}

// stockAt is where the stock stands, so that there is room for as much again and a half.
const stockAt = 40

// glanceOf draws runs; nil of fewer than two, which need no comparison.
func glanceOf(rows []overviewRow, runs []OverviewRun) *glance {
	if len(runs) < 2 {
		return nil
	}
	g := glance{Label: fmt.Sprintf("%d runs, the fastest first: throughput, latency and sales", len(runs))}
	fastest, latencies, kinds := 0.0, []float64{}, map[string]bool{}
	for _, o := range runs {
		fastest = max(fastest, o.Run.Throughput)
		if l, ok := o.Run.Latency[o.Run.MainKind()]; ok {
			latencies = append(latencies, max(l.Call.P50, 0.001), max(l.Call.P999, 0.001))
			kinds[o.Run.MainKind()] = true
		}
		g.Sales = g.Sales || o.Run.Sold != nil
	}
	y := logScale(latencies)
	g.Scale = fmt.Sprintf("from %s to %s ms, logarithmic", millisAxis(y.low), millisAxis(y.high))
	g.Latency = "latency"
	if len(kinds) == 1 {
		for kind := range kinds {
			g.Latency = "latency of " + kind
		}
	}
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(runs[b].Run.Throughput, runs[a].Run.Throughput) })
	for _, i := range order {
		g.Rows = append(g.Rows, glanceRowOf(&rows[i], &runs[i].Run, fastest, y))
	}
	return &g
}

func glanceRowOf(row *overviewRow, r *reports.Run, fastest float64, y scale) glanceRow {
	g := glanceRow{Link: row.ID, Name: row.Title, Class: row.Class, Icon: row.Icon, Rate: row.Rate, RateW: percent(100 * r.Throughput / max(fastest, 1))}
	g.Label = fmt.Sprintf("%s: %s, %s operations a second", row.Title, row.Verdict, row.Rate)
	if l, ok := r.Latency[r.MainKind()]; ok {
		from, to := 100*y.at(max(l.Call.P50, 0.001)), 100*y.at(max(l.Call.P999, 0.001))
		g.From, g.Long, g.Middle = percent(from), percent(max(to-from, 0.5)), percent(100*y.at(max(l.Call.P99, 0.001)))
		g.Latency = r.LatencySummary(r.MainKind())
		g.Label += fmt.Sprintf("; p50 / p99 / p99.9 of %s %s ms", r.MainKind(), g.Latency)
	}
	if r.Sold == nil || r.Stock == nil || *r.Stock <= 0 {
		return g
	}
	share := stockAt * float64(*r.Sold) / float64(*r.Stock)
	g.Stock, g.Sold, g.Over = percent(stockAt), percent(min(share, stockAt)), percent(max(0, min(share, 100)-stockAt))
	g.SoldText = reports.Thousands(*r.Sold)
	if over := *r.Sold - *r.Stock; over > 0 {
		g.SoldText += fmt.Sprintf(", %s too many", reports.Thousands(over))
	}
	g.Label += fmt.Sprintf("; sold %s of %s", reports.Thousands(*r.Sold), reports.Thousands(*r.Stock))
	return g
}

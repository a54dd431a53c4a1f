package page

import (
	"fmt"
	"math"
	"strconv"

	"oversell/reports"
	"oversell/reports/page/chart"
)

// percentileCurve is a latency distribution as a curve.
type percentileCurve struct {
	name, class string
	points      []reports.Quantile
	exact       reports.Percentiles
}

// percentileChart draws curves over 1/(1-q) on a logarithmic scale, so that every further nine has the same width.
func percentileChart(title string, curves []percentileCurve) (chart.Chart, bool) {
	var lines []chart.Line
	nines := 1.0
	for _, c := range curves {
		l, most := percentileLine(c.name, c.class, c.points)
		nines = max(nines, most)
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return chart.Chart{}, false
	}
	x := chart.Linear(0, nines)
	c := chart.New(title, "ms", lines, chart.Axis{Scale: x, Format: quantileName}, chart.Axis{Scale: chart.LogScale(chart.Ys(lines)), Format: millisAxis})
	for i := 0; float64(i) <= nines; i++ {
		anchor := "middle"
		share := 100 * float64(i) / nines
		switch {
		case i == 0:
			anchor = "start"
		case share > 96:
			anchor = "end"
		}
		c.XTicks = append(c.XTicks, chart.Tick{At: chart.Percent(share), Text: quantileName(float64(i)), Anchor: anchor})
	}
	c.Label = fmt.Sprintf("%s: percentiles of %s", title, listed(lines))
	c.XName = "faster than"
	c.Foot = "to the right: the share of operations that were faster"
	c.Rows = percentileRows(curves)
	return c, true
}

// percentileLine returns a distribution as a curve, and its largest x.
func percentileLine(name, class string, points []reports.Quantile) (l chart.Line, most float64) {
	l = chart.Line{Name: name, Class: class}
	for _, p := range points {
		if p.Percent < 100 {
			most = rarity(p.Percent)
		} else {
			most += 0.15 // the maximum, a single value
		}
		l.Points = append(l.Points, chart.Point{X: most, Y: max(p.MS, 0.001)})
	}
	return l, most
}

// rarity returns log10 of 1/(1-q): 1 for 90 %, 2 for 99 %.
func rarity(percent float64) float64 {
	return -math.Log10(1 - min(percent/100, 1-1e-12))
}

// quantileName formats a position on the axis as a percentage.
func quantileName(x float64) string {
	if x <= 0 {
		return "0 %"
	}
	x = math.Round(x*1e6) / 1e6
	digits := max(0, int(math.Ceil(x))-2)
	if x != math.Trunc(x) {
		digits = max(digits, 1)
	}
	return strconv.FormatFloat(100*(1-math.Pow(10, -x)), 'f', digits, 64) + " %"
}

func listed(lines []chart.Line) (s string) {
	for i, l := range lines {
		if i > 0 {
			s += ", "
		}
		s += l.Name
	}
	return s
}

// percentileRows returns the usual percentiles of curves.
func percentileRows(curves []percentileCurve) (rows [][]string) {
	for _, row := range []struct {
		name string
		of   func(reports.Percentiles) float64
	}{
		{"50 %", func(p reports.Percentiles) float64 { return p.P50 }},
		{"90 %", func(p reports.Percentiles) float64 { return p.P90 }},
		{"99 %", func(p reports.Percentiles) float64 { return p.P99 }},
		{"99.9 %", func(p reports.Percentiles) float64 { return p.P999 }},
		{"all", func(p reports.Percentiles) float64 { return p.Max }},
	} {
		cells := []string{row.name}
		for _, c := range curves {
			if len(c.points) > 0 {
				cells = append(cells, millisAxis(row.of(c.exact)))
			}
		}
		rows = append(rows, cells)
	}
	return rows
}

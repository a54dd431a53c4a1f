package page

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/internal/printable"
	"oversell/reports"
)

// chart is a picture of curves over a common scale. What runs to the right is in per
// cent of the width, and what runs down in pixels.
type chart struct {
	Title, Unit, Label, XName string
	Height, Base, Bottom      int
	Bands                     []chartBand
	XTicks, YTicks            []tick
	Curves                    []curve
	Marks                     []chartMark
	Keys                      []key
	Foot                      string
	// Note explains what the curves show, in sentences; empty if nothing needs it.
	Note string
	Rows [][]string
	// Points are the curves for the script: what it says of the place that somebody
	// points at.
	Points plotted
	// drawn are the points of the curves in the plot.
	drawn [][]point
}

// tick is a mark on a scale; At is in per cent or in pixels.
type tick struct {
	At, Text, Anchor string
	TextY            int
	// Minor ones are left out on narrow screens.
	Minor bool
}

type curve struct {
	Class string
	Path  plotted
	Name  string
}

// plotted is a path, or points for the script, of any length.
type plotted string

// Rewrite implements printable.Rewriter: plotted is shown as it is.
func (g plotted) Rewrite(func(string) string) any { return g }

type chartBand struct {
	X, W  string
	Y, H  int
	Class string
	Text  string
}

type chartMark struct {
	X    string
	Y    int
	Pill pill
}

// key explains a pattern in the legend.
type key struct{ Class, Text string }

// point is one of a curve's.
type point struct{ X, Y float64 }

// line is a curve before it is drawn.
type line struct {
	name, class string
	points      []point
	steps       bool // it stays where it is until the next point
}

// scale maps values to places between 0 and 1.
type scale struct {
	low, high float64
	log       bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log10(max(v, s.low)), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return 0
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// plotHeight is the height of a chart's plot, in pixels.
const plotHeight = 190

// newChart draws curves. format writes values of the y axis, and xs those of the other.
func newChart(title, unit string, lines []line, x, y scale, xs, format func(float64) string) chart {
	c := chart{Title: title, Unit: unit, Height: plotHeight + 24, Base: plotHeight, Bottom: plotHeight + 16}
	for _, v := range ticksOf(y) {
		at := int(math.Round((1 - y.at(v)) * plotHeight))
		c.YTicks = append(c.YTicks, tick{At: strconv.Itoa(at), Text: brief(v, format(v)), TextY: at + 4})
	}
	for _, l := range lines {
		c.drawn = append(c.drawn, l.places(x, y))
		c.Curves = append(c.Curves, curve{l.class, l.path(x, y), l.name})
	}
	c.Points = pointsJSON(lines, x, xs, format)
	return c
}

// longestLabel is how many characters of a number have room beside a chart.
const longestLabel = 7

// brief is a number as it was written, or as a power of ten where that is too long.
func brief(v float64, written string) string {
	if len(written) <= longestLabel {
		return written
	}
	return powers.Replace(strconv.FormatFloat(v, 'g', 3, 64))
}

// powers writes 1e+06 as 1e6.
var powers = strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-")

// places are the points of a line in the plot: to the right in per cent, down in pixels. A
// line that stays where it is has a point where it leaves.
func (l line) places(x, y scale) (all []point) {
	for _, p := range l.points {
		if math.IsNaN(p.Y) {
			continue
		}
		at := point{100 * x.at(p.X), (1 - y.at(p.Y)) * plotHeight}
		if n := len(all); l.steps && n > 0 {
			all = append(all, point{at.X, all[n-1].Y})
		}
		all = append(all, at)
	}
	return all
}

// covers tells whether a curve runs through a part of the plot.
func (c *chart) covers(left, right, top, bottom float64) bool {
	for _, places := range c.drawn {
		for i, b := range places {
			a := b
			if i > 0 {
				a = places[i-1]
			}
			if b.X < left || a.X > right {
				continue
			}
			y := func(x float64) float64 { // of the line from a to b
				if b.X <= a.X {
					return b.Y
				}
				return a.Y + (b.Y-a.Y)*(min(max(x, a.X), b.X)-a.X)/(b.X-a.X)
			}
			from, to := y(left), y(right)
			if a.X == b.X {
				from = a.Y
			}
			if max(from, to) >= top && min(from, to) <= bottom {
				return true
			}
		}
	}
	return false
}

// path is a line as SVG, in a box of 1000 by plotHeight.
func (l line) path(x, y scale) plotted {
	var b strings.Builder
	last := 0.0
	for i, p := range l.points {
		if math.IsNaN(p.Y) {
			continue
		}
		px, py := x.at(p.X)*1000, (1-y.at(p.Y))*plotHeight
		switch {
		case i == 0 || math.IsNaN(l.points[i-1].Y):
			b.WriteByte('M')
		case l.steps:
			b.WriteString("L" + short1(px) + " " + short1(last) + "L")
		default:
			b.WriteByte('L')
		}
		b.WriteString(short1(px) + " " + short1(py))
		if alone(l.points, i) {
			b.WriteString("h0") // a dot
		}
		last = py
	}
	return plotted(b.String())
}

// alone tells whether a point has no neighbours to draw a line to.
func alone(points []point, i int) bool {
	return (i == 0 || math.IsNaN(points[i-1].Y)) && (i == len(points)-1 || math.IsNaN(points[i+1].Y))
}

func short1(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// pointsJSON are the points in words, by place.
func pointsJSON(lines []line, x scale, xs, format func(float64) string) plotted {
	type told struct {
		Name  string   `json:"name"`
		Steps bool     `json:"steps"`
		At    []string `json:"at"`
		X     []string `json:"x"`
		Y     []string `json:"y"`
	}
	var all []told
	for _, l := range lines {
		t := told{Name: printable.Text(l.name), Steps: l.steps}
		for _, p := range l.points {
			if math.IsNaN(p.Y) {
				continue
			}
			t.At = append(t.At, strconv.FormatFloat(x.at(p.X), 'f', 4, 64))
			t.X = append(t.X, xs(p.X))
			t.Y = append(t.Y, format(p.Y))
		}
		all = append(all, t)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "[]" // strings and booleans: it cannot be
	}
	return plotted(text)
}

// ticksOf are round values on a scale.
func ticksOf(s scale) (vs []float64) {
	if s.log {
		for v := math.Pow(10, math.Floor(math.Log10(s.low))); v <= s.high*1.0001; v *= 10 {
			if v >= s.low*0.9999 {
				vs = append(vs, v)
			}
		}
		if len(vs) >= 2 {
			return vs
		}
		return []float64{s.low, s.high}
	}
	step := roundStep((s.high - s.low) / 4)
	for v := math.Ceil(s.low/step-1e-9) * step; v <= s.high+step*1e-9; v += step {
		vs = append(vs, v)
	}
	return vs
}

// roundStep is the next 1, 2 or 5 times a power of ten.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*unit >= v*0.999 {
			return f * unit
		}
	}
	return 10 * unit
}

// logScale is a scale of whole powers of ten, or of halves where that is too wide.
func logScale(values []float64) scale {
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 && !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 {
		return scale{0.001, 1, true}
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low >= high {
		high = low * 10
	}
	return scale{low, high, true}
}

// fromZero is a scale from zero with a little room above the largest value.
func fromZero(most float64) scale {
	if most <= 0 {
		most = 1
	}
	step := roundStep(most / 4)
	return scale{0, math.Ceil(most*1.02/step) * step, false}
}

// ys are the values of lines.
func ys(lines []line) (vs []float64) {
	for _, l := range lines {
		for _, p := range l.points {
			vs = append(vs, p.Y)
		}
	}
	return vs
}

// mostTicks is how many fit a wide screen; of them every second one a narrow one.
const mostTicks = 9

// timeTicks are round times between two.
func timeTicks(from, to time.Duration) (all []tick) {
	span := float64(to - from)
	step := roundStep(span / mostTicks)
	first := math.Ceil(float64(from)/step) * step
	for v, i := first, int(math.Round(first/step)); v <= float64(to); v, i = v+step, i+1 {
		share := 100 * (v - float64(from)) / span
		anchor := "middle"
		switch {
		case share < 3:
			anchor = "start"
		case share > 97:
			anchor = "end"
		}
		all = append(all, tick{At: percent(share), Text: timeAt(time.Duration(math.Round(v)), time.Duration(step)), Anchor: anchor, Minor: i%2 != 0})
	}
	return all
}

// timeAt writes a time as exactly as the steps between times ask for.
func timeAt(at, step time.Duration) string {
	unit, name := time.Millisecond, " ms"
	if step >= 100*time.Millisecond || step >= 10*time.Millisecond && at >= 10*time.Second {
		unit, name = time.Second, " s"
	}
	digits := 0
	for s := unit; s > step && digits < 6; s /= 10 {
		digits++
	}
	s := strconv.FormatFloat(float64(at)/float64(unit), 'f', digits, 64)
	if whole, frac, ok := strings.Cut(s, "."); ok {
		return grouped(whole) + "." + frac + name
	}
	return grouped(s) + name
}

func grouped(digits string) string {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return digits
	}
	return reports.Thousands(n)
}

// figures are the values of lines that share their places, as a table of so many
// rows at most.
func figures(lines []line, rows int, xs, format func(float64) string) (table [][]string) {
	if len(lines) == 0 || len(lines[0].points) == 0 {
		return nil
	}
	n := len(lines[0].points)
	for i := 0; i < n; i += max(1, (n+rows-1)/rows) {
		row := []string{xs(lines[0].points[i].X)}
		for _, l := range lines {
			cell := "–"
			if i < len(l.points) && !math.IsNaN(l.points[i].Y) {
				cell = format(l.points[i].Y)
			}
			row = append(row, cell)
		}
		table = append(table, row)
	}
	return table
}

// mergedBands joins bands that touch, and keeps so many.
func mergedBands(bands [][2]time.Duration, gap time.Duration) (merged [][2]time.Duration) {
	slices.SortFunc(bands, func(a, b [2]time.Duration) int { return cmp.Compare(a[0], b[0]) })
	for _, b := range bands {
		if n := len(merged); n > 0 && b[0] <= merged[n-1][1]+gap {
			merged[n-1][1] = max(merged[n-1][1], b[1])
			continue
		}
		merged = append(merged, b)
	}
	return merged
}

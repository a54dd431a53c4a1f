// Package chart draws curves over common scales as data for HTML templates. Horizontal positions are percentages of
// the width, so that one drawing fits every screen.
package chart

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

// Chart is a chart of curves over a common scale. Horizontal positions are in percent of the width, vertical ones
// in pixels.
type Chart struct {
	Title, Unit, Label, XName string
	Height, Base, Bottom      int
	Bands                     []Band
	XTicks, YTicks            []Tick
	Curves                    []Curve
	Marks                     []Mark
	Keys                      []Key
	Foot                      string
	// Note explains the curves; may be empty.
	Note string
	Rows [][]string
	// Points are the points of the curves, for the script that shows values under the pointer.
	Points Plotted
	// drawn are the points of the curves in the plot.
	drawn [][]Point
}

// Tick is a mark on a scale; At is in percent or in pixels.
type Tick struct {
	At, Text, Anchor string
	TextY            int
	// Minor ticks are omitted on narrow screens.
	Minor bool
}

// Curve is a line in its drawn form.
type Curve struct {
	Class string
	Path  Plotted
	Name  string
}

// Plotted is a path, or points for the script.
type Plotted string

// Rewrite implements printable.Rewriter: plotted data stays as it is.
func (g Plotted) Rewrite(func(string) string) any { return g }

// Band is an interval of the x axis, such as the time of a fault.
type Band struct {
	X, W  string
	Y, H  int
	Class string
	Text  string
}

// Mark is a word at a position in the plot.
type Mark struct {
	X    string
	Y    int
	Pill Pill
}

// Key explains a pattern in the legend.
type Key struct{ Class, Text string }

// Point is a point of a curve.
type Point struct{ X, Y float64 }

// Line is a curve before it is drawn.
type Line struct {
	Name, Class string
	Points      []Point
	Steps       bool // constant until the next point
}

// Scale maps values to positions between 0 and 1.
type Scale struct {
	Low, High float64
	Log       bool // logarithmic; Low must be above zero
}

// Linear returns a scale from low to high.
func Linear(low, high float64) Scale { return Scale{Low: low, High: high} }

// At returns the position of a value, clipped to the scale.
func (s Scale) At(v float64) float64 {
	low, high := s.Low, s.High
	if s.Log {
		v, low, high = math.Log10(max(v, s.Low)), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return 0
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// Height is the height of a chart's plot, in pixels.
const Height = 190

// Axis is a scale and the format of its values.
type Axis struct {
	Scale
	Format func(float64) string
}

// New draws curves over the x axis.
func New(title, unit string, lines []Line, x, y Axis) Chart {
	c := Chart{Title: title, Unit: unit, Height: Height + 24, Base: Height, Bottom: Height + 16}
	for _, v := range Ticks(y.Scale) {
		at := int(math.Round((1 - y.At(v)) * Height))
		c.YTicks = append(c.YTicks, Tick{At: strconv.Itoa(at), Text: Brief(v, y.Format(v)), TextY: at + 4})
	}
	for _, l := range lines {
		c.drawn = append(c.drawn, l.places(x.Scale, y.Scale))
		c.Curves = append(c.Curves, Curve{l.Class, l.Path(x.Scale, y.Scale), l.Name})
	}
	c.Points = pointsJSON(lines, x, y.Format)
	return c
}

// longestLabel is the number of characters that fit beside a chart.
const longestLabel = 7

// Brief returns a number as it was written or, if that is too long, with an SI prefix from million (M) to
// quadrillion (P), or else as a power of ten.
func Brief(v float64, written string) string {
	if len(written) <= longestLabel {
		return written
	}
	if prefix := int(math.Log10(math.Abs(v))/3) - 2; v >= 1e6 && prefix < len(prefixes) {
		s := strconv.FormatFloat(v/math.Pow(1000, float64(prefix+2)), 'g', 3, 64)
		if !strings.Contains(s, "e") { // 999.6 million is 1e+03 million
			return s + prefixes[prefix]
		}
	}
	return Scientific(v, 3)
}

// prefixes are the SI prefixes for a million and each further factor of 1,000.
var prefixes = []string{"M", "G", "T", "P"}

// Scientific formats a number with this many digits: 1e6, not 1e+06.
func Scientific(v float64, digits int) string {
	return strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-").Replace(strconv.FormatFloat(v, 'g', digits, 64))
}

// places returns the points of a line in the plot: x in percent from the left, y in pixels from the top. A line
// with steps has an additional point before each step.
func (l Line) places(x, y Scale) (all []Point) {
	for _, p := range l.Points {
		if math.IsNaN(p.Y) {
			continue
		}
		at := Point{100 * x.At(p.X), (1 - y.At(p.Y)) * Height}
		if n := len(all); l.Steps && n > 0 {
			all = append(all, Point{at.X, all[n-1].Y})
		}
		all = append(all, at)
	}
	return all
}

// Covers reports whether a curve passes through a part of the plot.
func (c *Chart) Covers(left, right, top, bottom float64) bool {
	for _, places := range c.drawn {
		for i, b := range places {
			a := b
			if i > 0 {
				a = places[i-1]
			}
			if b.X < left || a.X > right {
				continue
			}
			y := func(x float64) float64 { // on the line from a to b
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

// Path returns a line as an SVG path, in a box of 1000 by Height.
func (l Line) Path(x, y Scale) Plotted {
	var b strings.Builder
	last := 0.0
	for i, p := range l.Points {
		if math.IsNaN(p.Y) {
			continue
		}
		px, py := x.At(p.X)*1000, (1-y.At(p.Y))*Height
		switch {
		case i == 0 || math.IsNaN(l.Points[i-1].Y):
			b.WriteByte('M')
		case l.Steps:
			b.WriteString("L" + short1(px) + " " + short1(last) + "L")
		default:
			b.WriteByte('L')
		}
		b.WriteString(short1(px) + " " + short1(py))
		if alone(l.Points, i) {
			b.WriteString("h0") // a dot
		}
		last = py
	}
	return Plotted(b.String())
}

// alone reports whether a point has no neighbours to draw a line to.
func alone(points []Point, i int) bool {
	return (i == 0 || math.IsNaN(points[i-1].Y)) && (i == len(points)-1 || math.IsNaN(points[i+1].Y))
}

func short1(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// pointsJSON returns the formatted points as JSON.
func pointsJSON(lines []Line, x Axis, format func(float64) string) Plotted {
	type told struct {
		Name  string   `json:"name"`
		Steps bool     `json:"steps"`
		At    []string `json:"at"`
		X     []string `json:"x"`
		Y     []string `json:"y"`
	}
	var all []told
	for _, l := range lines {
		t := told{Name: printable.Text(l.Name), Steps: l.Steps}
		for _, p := range l.Points {
			if math.IsNaN(p.Y) {
				continue
			}
			t.At = append(t.At, strconv.FormatFloat(x.At(p.X), 'f', 4, 64))
			t.X = append(t.X, x.Format(p.X))
			t.Y = append(t.Y, format(p.Y))
		}
		all = append(all, t)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "[]" // unreachable: strings and booleans only
	}
	return Plotted(text)
}

// Ticks returns round values on a scale.
func Ticks(s Scale) (vs []float64) {
	if s.Log {
		for v := math.Pow(10, math.Floor(math.Log10(s.Low))); v <= s.High*1.0001; v *= 10 {
			if v >= s.Low*0.9999 {
				vs = append(vs, v)
			}
		}
		if len(vs) >= 2 {
			return vs
		}
		return []float64{s.Low, s.High}
	}
	step := roundStep((s.High - s.Low) / 4)
	for v := math.Ceil(s.Low/step-1e-9) * step; v <= s.High+step*1e-9; v += step {
		vs = append(vs, v)
	}
	return vs
}

// roundStep returns the next 1, 2 or 5 times a power of ten.
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

// LogScale returns a scale of whole powers of ten, or of halves if that is too wide.
func LogScale(values []float64) Scale {
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 && !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 {
		return Scale{0.001, 1, true}
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low >= high {
		high = low * 10
	}
	return Scale{low, high, true}
}

// FromZero returns a scale from zero with some room above the largest value.
func FromZero(most float64) Scale {
	if most <= 0 {
		most = 1
	}
	step := roundStep(most / 4)
	return Linear(0, math.Ceil(most*1.02/step)*step)
}

// Ys returns the values of lines.
func Ys(lines []Line) (vs []float64) {
	for _, l := range lines {
		for _, p := range l.Points {
			vs = append(vs, p.Y)
		}
	}
	return vs
}

// mostTicks is how many ticks fit a wide screen; half as many fit a narrow one.
const mostTicks = 9

// TimeTicks returns round times in an interval.
func TimeTicks(from, to time.Duration) (all []Tick) {
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
		all = append(all, Tick{At: Percent(share), Text: timeAt(time.Duration(math.Round(v)), time.Duration(step)), Anchor: anchor, Minor: i%2 != 0})
	}
	return all
}

// timeAt formats a time with the precision of the step between times.
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

// Table returns the values of lines with common x values, as a table of at most this many rows.
func Table(lines []Line, rows int, xs, format func(float64) string) (table [][]string) {
	if len(lines) == 0 || len(lines[0].Points) == 0 {
		return nil
	}
	n := len(lines[0].Points)
	for i := 0; i < n; i += max(1, (n+rows-1)/rows) {
		row := []string{xs(lines[0].Points[i].X)}
		for _, l := range lines {
			cell := "–"
			if i < len(l.Points) && !math.IsNaN(l.Points[i].Y) {
				cell = format(l.Points[i].Y)
			}
			row = append(row, cell)
		}
		table = append(table, row)
	}
	return table
}

// MergedBands joins adjacent bands, and keeps at most a fixed number.
func MergedBands(bands [][2]time.Duration, gap time.Duration) (merged [][2]time.Duration) {
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

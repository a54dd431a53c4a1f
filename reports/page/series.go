package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
	"oversell/variant"
)

// series is a run over time, divided into a fixed number of parts.
type series struct {
	end time.Duration
	// rate is the number of main operations per second, and p50 and p99 their latency, by part.
	rated     history.Kind
	timedKind history.Kind
	rate      []chart.Point
	p50, p99  []chart.Point
	// sold is what buyers were told they had bought, less refunds, and left the last stock that they were told; may
	// be empty.
	sold, left []chart.Point
	// several means that more than one product was sold, so sold is a sum that cannot be compared with the stock of
	// one.
	several bool
	// oversold is when sales first exceeded the stock; 0: never.
	oversold time.Duration
	// faults are the times of faults that affected the servers or the wire for all clients, and hits those of
	// faults on single clients.
	faults, hits [][2]time.Duration
	// gone describes when the stock sold out and what changed then; nil if it did not.
	gone *soldOut
}

// Maximum number of points of a curve; quantiles need more operations each.
const (
	mostPoints  = 600
	mostBuckets = 120
	perBucket   = 15
)

// seriesOf reads a history once.
func seriesOf(h *history.History, r *reports.Run) series {
	s := series{timedKind: kindNamed(r.MainKind()), rated: kindNamed(r.UsefulKind())}
	s.end = endOf(h)
	if s.end <= 0 {
		return s
	}
	n := min(max(int(r.Latency[r.MainKind()].Count)/perBucket, 10), mostBuckets)
	var took []time.Duration // in the current part
	s.p50, s.p99 = make([]chart.Point, n), make([]chart.Point, n)
	middle := func(i int) float64 { return (float64(i) + 0.5) / float64(n) * float64(s.end) }
	part := 0
	next := func() {
		slices.Sort(took)
		s.p50[part], s.p99[part] = chart.Point{X: middle(part), Y: quantile(took, 0.5)}, chart.Point{X: middle(part), Y: quantile(took, 0.99)}
		part, took = part+1, took[:0]
	}
	done := make([]int, n)
	st := stockOverTime{stock: h.Header.Stock, every: s.end / mostPoints, returns: returnsOf(h)}
	for op := range h.Each() {
		at := min(max(int(int64(op.Return)*int64(n)/int64(s.end)), 0), n-1)
		switch {
		case op.Kind == history.ReadState || op.Kind == history.Join || op.Reason == history.Stopped:
			continue
		case op.Kind == history.Fault:
			s.disturbed(op)
			continue
		case op.Kind == history.Buy || op.Kind == history.Refund:
			st.add(op)
		}
		if op.Kind == s.timedKind {
			for part < at { // operations come in order of completion
				next()
			}
			took = append(took, op.Return-op.Call)
		}
		if op.Kind == s.rated && op.Outcome == history.OK && op.Reason == history.NoReason {
			done[at]++
		}
	}
	for part < n {
		next()
	}
	long := s.end.Seconds() / float64(n)
	for i := range n {
		s.rate = append(s.rate, chart.Point{X: middle(i), Y: float64(done[i]) / long})
	}
	s.sold, s.left, s.oversold = st.ended(s.end)
	s.several = st.several
	if s.several || !measuredBroken(r, variant.Sale, variant.NoOversell) {
		s.oversold = 0 // the page never claims more than the verdict
	}
	s.faults, s.hits = chart.MergedBands(s.faults, s.end/mostPoints), chart.MergedBands(s.hits, s.end/mostPoints)
	s.gone = soldOutIn(h, s.timedKind)
	return s
}

// disturbed records a fault. A fault that began after the load does not count.
func (s *series) disturbed(op *history.Op) {
	on := [2]time.Duration{op.Call, min(faultEnd(*op), s.end)}
	switch {
	case op.Call > s.end:
	case op.Client < 0:
		s.faults = append(s.faults, on)
	default:
		s.hits = append(s.hits, on)
	}
}

// endOf returns when the last of the clients' operations ended.
func endOf(h *history.History) time.Duration {
	end := time.Duration(0)
	for op := range h.Each() {
		if op.Kind != history.ReadState && op.Kind != history.Fault {
			end = op.Return
		}
	}
	return end
}

// quantile returns a quantile of sorted durations, in milliseconds; NaN if there are none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := min(int(math.Ceil(q*float64(len(sorted)))), len(sorted)) - 1
	return max(float64(sorted[max(i, 0)])/1e6, 0.001)
}

// measuredBroken reports whether a property was broken, promised or not.
func measuredBroken(r *reports.Run, of variant.Object, name variant.Property) bool {
	return slices.ContainsFunc(r.Properties, func(p reports.Property) bool {
		return p.Of == of && p.Name == name && p.Measured == reports.Broken
	})
}

// stockOverTime tracks the stock, and samples it periodically.
type stockOverTime struct {
	stock, sold, told int64
	// back is the number of pieces that refunds without an answer may have returned.
	back         int64
	every        time.Duration
	next         time.Duration
	sales, lefts []chart.Point
	oversold     time.Duration
	any, several bool
	// says means that buyers were told how many pieces are left.
	says    bool
	product history.Value
	// returns are the future refunds.
	returns []returned
}

// returned is a refund. It counts from its call on, like in the checker: the pieces may be sold again before its
// answer arrives.
type returned struct {
	at     time.Duration
	pieces int64
	sure   bool
}

// returnsOf returns the refunds of a history that returned pieces, or may have, in order of their calls.
func returnsOf(h *history.History) (all []returned) {
	for op := range h.Each() {
		if op.Kind == history.Refund && op.Outcome != history.Refused && op.Reason == history.NoReason {
			all = append(all, returned{op.Call, op.Pieces(), op.Outcome == history.OK})
		}
	}
	slices.SortFunc(all, func(a, b returned) int { return cmp.Compare(a.at, b.at) })
	return all
}

func (s *stockOverTime) add(op *history.Op) {
	if op.Outcome != history.OK || op.Reason != history.NoReason {
		return
	}
	if !s.any {
		s.any, s.told, s.product = true, s.stock, op.Key
		s.keep(0)
	}
	s.several = s.several || op.Key != s.product
	s.takeBack(op.Return)
	s.goOn(op.Return)
	if op.Kind == history.Buy {
		s.sold += op.Pieces()
	}
	if left, ok := op.Result.Num(); ok && left >= 0 {
		s.told, s.says = left, true
	}
	if s.sold-s.back > s.stock && s.oversold == 0 {
		s.oversold = op.Return
		s.keep(op.Return)
	}
}

// goOn samples the state up to a time.
func (s *stockOverTime) goOn(to time.Duration) {
	for s.next < to {
		s.keep(s.next)
		s.next = max(s.next+s.every, s.next+1)
		if s.next < to { // nothing changed meanwhile
			s.next = max(s.next, to-s.every)
		}
	}
}

// takeBack counts the refunds called up to a time.
func (s *stockOverTime) takeBack(to time.Duration) {
	for len(s.returns) > 0 && s.returns[0].at <= to {
		s.goOn(s.returns[0].at)
		if s.returns[0].sure {
			s.sold -= s.returns[0].pieces
		} else {
			s.back += s.returns[0].pieces
		}
		s.returns = s.returns[1:]
	}
}

func (s *stockOverTime) keep(at time.Duration) {
	s.sales = append(s.sales, chart.Point{X: float64(at), Y: float64(s.sold)})
	s.lefts = append(s.lefts, chart.Point{X: float64(at), Y: float64(s.told)})
}

func (s *stockOverTime) ended(end time.Duration) (sold, left []chart.Point, oversold time.Duration) {
	if s.any {
		s.takeBack(end)
		s.keep(min(s.next, end)) // shows the last changes where they happened
		s.keep(end)
	}
	if !s.says {
		s.lefts = nil
	}
	return s.sales, s.lefts, s.oversold
}

func kindNamed(name string) history.Kind {
	k, err := history.ParseKind(name)
	if err != nil {
		return history.Acquire
	}
	return k
}

// charts draws a run over time.
func (s *series) charts(r *reports.Run) (all []chart.Chart) {
	if s.end <= 0 {
		return nil
	}
	x := timeAxis(s.end)
	if len(s.sold) > 0 && r.Stock != nil {
		all = append(all, s.stockChart(r, x))
	}
	rate := []chart.Line{{Name: "done", Class: seriesClass(0), Points: s.rate}}
	c := chart.New(r.UsefulWork(), "a second", rate, x, chart.Axis{Scale: chart.FromZero(highest(rate)), Format: amount})
	c.Label = fmt.Sprintf("%s over time: at most %s, in %s", c.Title, amount(highest(rate))+" a second", moment(s.end))
	all = append(all, s.timed(c, rate, x.Format, amount))
	all = append(all, s.serverCharts(r, x)...)

	lat := []chart.Line{{Name: "p99", Class: seriesClass(1), Points: s.p99}, {Name: "p50", Class: seriesClass(0), Points: s.p50}}
	c = chart.New("Latency of "+r.MainKind(), "ms", lat, x, chart.Axis{Scale: chart.LogScale(chart.Ys(lat)), Format: millisAxis})
	c.Label = fmt.Sprintf("Latency of %s over time; p99 is at most %s", r.MainKind(), millisAxis(highest(lat))+" ms")
	c.Note = s.gone.note()
	return append(all, s.timed(c, lat, x.Format, millisAxis))
}

// timeAxis returns an axis from 0 to end.
func timeAxis(end time.Duration) chart.Axis {
	return chart.Axis{Scale: chart.Linear(0, float64(end)), Format: func(v float64) string { return moment(time.Duration(v)) }}
}

// timed adds what all charts over time have in common.
func (s *series) timed(c chart.Chart, lines []chart.Line, when, format func(float64) string) chart.Chart {
	c.XTicks, c.XName = chart.TimeTicks(0, s.end), "time"
	c.Rows = chart.Table(lines, 20, when, format)
	for _, f := range s.faults[:min(len(s.faults), mostPoints)] {
		x, w, text := s.within(f, "a fault, ")
		c.Bands = append(c.Bands, chart.Band{X: x, W: w, Y: 0, H: chart.Height, Class: "shade", Text: text}, chart.Band{X: x, W: w, Y: 0, H: 9, Class: "fault", Text: text})
	}
	for _, f := range s.hits[:min(len(s.hits), mostPoints)] {
		x, w, text := s.within(f, "a fault at one client, ")
		c.Bands = append(c.Bands, chart.Band{X: x, W: w, Y: 0, H: 9, Class: "hit", Text: text})
	}
	if len(s.faults) > 0 {
		c.Keys = append(c.Keys, chart.Key{Class: "fault", Text: "a fault was on"})
	}
	if len(s.hits) > 0 {
		c.Keys = append(c.Keys, chart.Key{Class: "hit", Text: "a fault hit one client"})
	}
	return s.gone.marked(c, s.end)
}

// within returns the position of a time interval in a chart, and its description.
func (s *series) within(f [2]time.Duration, what string) (x, w, text string) {
	a, b := 100*float64(f[0])/float64(s.end), 100*float64(f[1])/float64(s.end)
	return chart.Percent(a), chart.Percent(max(b-a, 0.1)), what + moment(f[0]) + " to " + moment(f[1])
}

func (s *series) stockChart(r *reports.Run, x chart.Axis) chart.Chart {
	if s.several {
		lines := []chart.Line{{Name: "sold", Class: seriesClass(1), Points: s.sold, Steps: true}}
		c := chart.New("Sales of all products together", "pieces", lines, x, chart.Axis{Scale: chart.FromZero(max(highest(lines), 1)), Format: amount})
		c.Label = fmt.Sprintf("Sales over time, of all products together: %s sold", amount(s.sold[len(s.sold)-1].Y))
		return s.timed(c, lines, x.Format, amount)
	}
	stock := float64(*r.Stock)
	lines := []chart.Line{{Name: "sold", Class: seriesClass(1), Points: s.sold, Steps: true}}
	if len(s.left) > 0 {
		lines = append(lines, chart.Line{Name: "left, as buyers were told", Class: seriesClass(0), Points: s.left, Steps: true})
	}
	told := lines
	lines = append(lines, chart.Line{Name: "stock", Class: seriesClass(3), Points: []chart.Point{{X: 0, Y: stock}, {X: float64(s.end), Y: stock}}})
	y := chart.FromZero(max(highest(lines), 1))
	c := chart.New("Stock and sales", "pieces", lines, x, chart.Axis{Scale: y, Format: amount})
	c.Label = fmt.Sprintf("Stock over time: %s sold of %s", amount(s.sold[len(s.sold)-1].Y), amount(stock))
	if s.oversold > 0 {
		at := 100 * float64(s.oversold) / float64(s.end)
		c.Marks = append(c.Marks, markAt(at, int((1-y.At(stock))*chart.Height), "alarm", "oversold from "+moment(s.oversold)))
		c.Label += ", more than there was from " + moment(s.oversold)
		c.Bands = append(c.Bands, chart.Band{X: chart.Percent(0), W: chart.Percent(100), Y: 0, H: int((1 - y.At(stock)) * chart.Height), Class: "beyond", Text: "more than the stock"})
		c.Keys = append(c.Keys, chart.Key{Class: "beyond", Text: "more than the stock"})
	}
	c = s.timed(c, told, x.Format, amount)
	for i := range c.Rows { // the stock is the same in all rows
		c.Rows[i] = append(c.Rows[i], amount(stock))
	}
	return c
}

// smallChart is the width of a chart's plot on a small screen, in pixels.
const smallChart = 296

// markAt marks a position of a chart, with words beside it.
func markAt(share float64, y int, class, text string) chart.Mark {
	w := textWidth(text) + 12
	left := 10
	if share > 50 {
		left = -10 - w
	}
	at := share * smallChart / 100 // inside the plot on a small screen, too
	left = max(min(left, int(smallChart-at)-w), -int(at))
	top := -24
	if y < 30 {
		top = 8
	}
	return chart.Mark{X: chart.Percent(share), Y: y, Pill: chart.Pill{Rect: chart.Rect{X: left, Y: top, W: w, H: 18, Class: class}, TextX: left + w/2, TextY: top + 13, Text: text}}
}

func highest(lines []chart.Line) (most float64) {
	for _, v := range chart.Ys(lines) {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	return most
}

// amount formats an average count, with a decimal if it is small, and two significant digits below one.
func amount(v float64) string {
	switch {
	case v != math.Trunc(v) && v < 1:
		return chart.Scientific(v, 2)
	case v != math.Trunc(v) && v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return reports.Thousands(int64(math.Round(v)))
}

// millisAxis formats milliseconds with three significant digits and without trailing zeros.
func millisAxis(v float64) string {
	if v >= 100 {
		return reports.Thousands(int64(math.Round(v)))
	}
	s := strconv.FormatFloat(v, 'g', 3, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s
}

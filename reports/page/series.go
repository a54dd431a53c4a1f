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
	"oversell/variant"
)

// series is a run over time, in a fixed number of parts whatever its length.
type series struct {
	end time.Duration
	// rate is the operations of the kind that matters a second, and p50 and p99 their
	// latency, per part.
	rated     history.Kind
	timedKind history.Kind
	rate      []point
	p50, p99  []point
	// sold is what buyers were told they had bought, less what they gave back, and
	// left what they were last told is left; empty if they were told nothing.
	sold, left []point
	// several: more than one product was sold, so that sold is a sum and the stock of
	// one is no measure for it.
	several bool
	// oversold is when more had been sold than there was; 0: never.
	oversold time.Duration
	// faults are when the servers or the wire were disturbed for all, and struck when a
	// fault was on for one client only.
	faults, struck [][2]time.Duration
	// gone is when the stock was, and what that changed; nil if it was never gone.
	gone *soldOut
}

// A curve has so many points at most; quantiles need more operations each.
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
	took := make([][]time.Duration, n)
	done := make([]int, n)
	st := stockOverTime{stock: h.Header.Stock, every: s.end / mostPoints, returns: returnsOf(h)}
	for i := range h.Ops {
		op := &h.Ops[i]
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
			took[at] = append(took[at], op.Return-op.Call)
		}
		if op.Kind == s.rated && op.Outcome == history.OK && op.Reason == history.NoReason {
			done[at]++
		}
	}
	long := s.end.Seconds() / float64(n)
	for i := range n {
		x := (float64(i) + 0.5) / float64(n) * float64(s.end)
		slices.Sort(took[i])
		s.rate = append(s.rate, point{x, float64(done[i]) / long})
		s.p50 = append(s.p50, point{x, quantile(took[i], 0.5)})
		s.p99 = append(s.p99, point{x, quantile(took[i], 0.99)})
	}
	s.sold, s.left, s.oversold = st.ended(s.end)
	s.several = st.several
	if s.several || !measuredBroken(r, variant.Sale, variant.NoOversell) {
		s.oversold = 0 // the verdict says so, and a page never more than it
	}
	s.faults, s.struck = mergedBands(s.faults, s.end/mostPoints), mergedBands(s.struck, s.end/mostPoints)
	s.gone = soldOutIn(h, s.timedKind)
	return s
}

// disturbed notes a fault. What began after the load disturbed nothing.
func (s *series) disturbed(op *history.Op) {
	on := [2]time.Duration{op.Call, min(faultEnd(*op), s.end)}
	switch {
	case op.Call > s.end:
	case op.Client < 0:
		s.faults = append(s.faults, on)
	default:
		s.struck = append(s.struck, on)
	}
}

// endOf is when the last of the clients' operations ended.
func endOf(h *history.History) time.Duration {
	for i := len(h.Ops) - 1; i >= 0; i-- {
		if k := h.Ops[i].Kind; k != history.ReadState && k != history.Fault {
			return h.Ops[i].Return
		}
	}
	return 0
}

// quantile of sorted lengths of time, in milliseconds; not a number if there are none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := min(int(math.Ceil(q*float64(len(sorted)))), len(sorted)) - 1
	return max(float64(sorted[max(i, 0)])/1e6, 0.001)
}

// measuredBroken tells whether a property was seen broken, promised or not.
func measuredBroken(r *reports.Run, of variant.Object, name variant.Property) bool {
	return slices.ContainsFunc(r.Properties, func(p reports.Property) bool {
		return p.Of == of && p.Name == name && p.Measured == reports.Broken
	})
}

// stockOverTime follows the stock, and keeps what it was every so often.
type stockOverTime struct {
	stock, sold, told int64
	// back is what may have been given back by refunds without an answer.
	back         int64
	every        time.Duration
	next         time.Duration
	sales, lefts []point
	oversold     time.Duration
	any, several bool
	// says: buyers were told how many are left.
	says    bool
	product history.Value
	// returns are the refunds that are still to come.
	returns []returned
}

// returned is a refund. It counts from its call on, as with the checker: the pieces
// may be sold again before its answer comes.
type returned struct {
	at     time.Duration
	pieces int64
	sure   bool
}

// returnsOf are the refunds of a history that gave something back, or may have done
// so, in the order of their calls.
func returnsOf(h *history.History) (all []returned) {
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Kind == history.Refund && op.Outcome != history.Refused && op.Reason == history.NoReason {
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

// goOn keeps what was, up to a moment.
func (s *stockOverTime) goOn(to time.Duration) {
	for s.next < to {
		s.keep(s.next)
		s.next = max(s.next+s.every, s.next+1)
		if s.next < to { // nothing happened meanwhile
			s.next = max(s.next, to-s.every)
		}
	}
}

// takeBack counts the refunds called up to a moment.
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
	s.sales = append(s.sales, point{float64(at), float64(s.sold)})
	s.lefts = append(s.lefts, point{float64(at), float64(s.told)})
}

func (s *stockOverTime) ended(end time.Duration) (sold, left []point, oversold time.Duration) {
	if s.any {
		s.takeBack(end)
		s.keep(min(s.next, end)) // what the last operations changed is seen where they did
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

// charts are the pictures of a run over time.
func (s *series) charts(r *reports.Run) (all []chart) {
	if s.end <= 0 {
		return nil
	}
	x := scale{0, float64(s.end), false}
	when := func(v float64) string { return moment(time.Duration(v)) }
	if len(s.sold) > 0 && r.Stock != nil {
		all = append(all, s.stockChart(r, x, when))
	}
	rate := []line{{name: "done", class: seriesClass(0), points: s.rate}}
	c := newChart(r.UsefulWork(), "a second", rate, x, fromZero(highest(rate)), when, amount)
	c.Label = fmt.Sprintf("%s over time: %s at the most, in %s", c.Title, amount(highest(rate))+" a second", moment(s.end))
	all = append(all, s.timed(c, rate, when, amount))
	all = append(all, s.serverCharts(r, x, when)...)

	lat := []line{{name: "p99", class: seriesClass(1), points: s.p99}, {name: "p50", class: seriesClass(0), points: s.p50}}
	c = newChart("Latency of "+r.MainKind(), "ms", lat, x, logScale(ys(lat)), when, millisAxis)
	c.Label = fmt.Sprintf("Latency of %s over time; p99 is %s at the most", r.MainKind(), millisAxis(highest(lat))+" ms")
	c.Note = s.gone.note()
	return append(all, s.timed(c, lat, when, millisAxis))
}

// timed adds what all charts over time have.
func (s *series) timed(c chart, lines []line, when, format func(float64) string) chart {
	c.XTicks, c.XName = timeTicks(0, s.end), "time"
	c.Rows = figures(lines, 20, when, format)
	for _, f := range s.faults[:min(len(s.faults), mostPoints)] {
		x, w, text := s.within(f, "a fault, ")
		c.Bands = append(c.Bands, chartBand{x, w, 0, plotHeight, "shade", text}, chartBand{x, w, 0, 9, "fault", text})
	}
	for _, f := range s.struck[:min(len(s.struck), mostPoints)] {
		x, w, text := s.within(f, "a fault at one client, ")
		c.Bands = append(c.Bands, chartBand{x, w, 0, 9, "struck", text})
	}
	if len(s.faults) > 0 {
		c.Keys = append(c.Keys, key{"fault", "a fault was on"})
	}
	if len(s.struck) > 0 {
		c.Keys = append(c.Keys, key{"struck", "a fault struck one client"})
	}
	return s.gone.marked(c, s.end)
}

// within is where a length of time is in a chart, and what it is.
func (s *series) within(f [2]time.Duration, what string) (x, w, text string) {
	a, b := 100*float64(f[0])/float64(s.end), 100*float64(f[1])/float64(s.end)
	return percent(a), percent(max(b-a, 0.1)), what + moment(f[0]) + " to " + moment(f[1])
}

func (s *series) stockChart(r *reports.Run, x scale, when func(float64) string) chart {
	if s.several {
		lines := []line{{name: "sold", class: seriesClass(1), points: s.sold, steps: true}}
		c := newChart("Sales of all products together", "pieces", lines, x, fromZero(max(highest(lines), 1)), when, amount)
		c.Label = fmt.Sprintf("Sales over time, of all products together: %s sold", amount(s.sold[len(s.sold)-1].Y))
		return s.timed(c, lines, when, amount)
	}
	stock := float64(*r.Stock)
	lines := []line{{name: "sold", class: seriesClass(1), points: s.sold, steps: true}}
	if len(s.left) > 0 {
		lines = append(lines, line{name: "left, as buyers were told", class: seriesClass(0), points: s.left, steps: true})
	}
	told := lines
	lines = append(lines, line{name: "stock", class: seriesClass(3), points: []point{{0, stock}, {float64(s.end), stock}}})
	y := fromZero(max(highest(lines), 1))
	c := newChart("Stock and sales", "pieces", lines, x, y, when, amount)
	c.Label = fmt.Sprintf("Stock over time: %s sold of %s", amount(s.sold[len(s.sold)-1].Y), amount(stock))
	if s.oversold > 0 {
		at := 100 * float64(s.oversold) / float64(s.end)
		c.Marks = append(c.Marks, moments(at, int((1-y.at(stock))*plotHeight), "alarm", "oversold from "+moment(s.oversold)))
		c.Label += ", more than there was from " + moment(s.oversold)
		c.Bands = append(c.Bands, chartBand{percent(0), percent(100), 0, int((1 - y.at(stock)) * plotHeight), "beyond", "more than the stock"})
		c.Keys = append(c.Keys, key{"beyond", "more than the stock"})
	}
	c = s.timed(c, told, when, amount)
	for i := range c.Rows { // the stock is the same in all of them
		c.Rows[i] = append(c.Rows[i], amount(stock))
	}
	return c
}

// smallChart is the width of a chart's plot on a small screen, in pixels.
const smallChart = 296

// moments is a mark at a place of a chart, with words beside it.
func moments(share float64, y int, class, text string) chartMark {
	w := textWidth(text) + 12
	left := 10
	if share > 50 {
		left = -10 - w
	}
	at := share * smallChart / 100 // inside the plot also on a small screen
	left = max(min(left, int(smallChart-at)-w), -int(at))
	top := -24
	if y < 30 {
		top = 8
	}
	return chartMark{percent(share), y, pill{rect{left, top, w, 18, class}, left + w/2, top + 13, text}}
}

func highest(lines []line) (most float64) {
	for _, v := range ys(lines) {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	return most
}

// amount writes a number of things, with a digit behind the point if it is small, and two
// that say something if it is below one.
func amount(v float64) string {
	switch {
	case v != math.Trunc(v) && v < 1:
		return powers.Replace(strconv.FormatFloat(v, 'g', 2, 64))
	case v != math.Trunc(v) && v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return reports.Thousands(int64(math.Round(v)))
}

// millisAxis writes milliseconds with three significant digits and no zeros behind.
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

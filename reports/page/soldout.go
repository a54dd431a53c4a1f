package page

import (
	"fmt"
	"slices"
	"time"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
)

// soldOut is the time when a sale had nothing left. Buyers usually stop then, so operations measured later come
// from other clients.
type soldOut struct {
	at   time.Duration
	kind history.Kind
	// before and after are the latencies of operations of the kind that ended before or after it.
	before, after []time.Duration
	// again counts the operations in before that came from the same client as the
	// operation before them.
	again int
	// back counts the operations in after of clients that had already been told that nothing was left.
	back int
}

// enough is the number of operations that a median needs on either side, and jump the smallest change that is worth
// a sentence.
const (
	enough = 5
	jump   = 2
)

// soldOutIn returns when the stock was gone: at the last successful purchase, if later buyers were told so;
// otherwise nil.
func soldOutIn(h *history.History, kind history.Kind) *soldOut {
	at := lastPurchase(h)
	if at == history.Forever {
		return nil
	}
	s := soldOut{at: at, kind: kind}
	told, last, seen := map[int32]bool{}, int32(-1), false
	for op := range h.Each() {
		switch {
		case op.Kind != kind || op.Reason == history.Stopped:
		case op.Return <= at:
			if op.Client == last {
				s.again++
			}
			last = op.Client
			s.before = append(s.before, op.Return-op.Call)
		default:
			s.after = append(s.after, op.Return-op.Call)
			if told[op.Client] {
				s.back++
			}
		}
		if op.Kind == history.Buy && op.Reason == history.SoldOut { // also before the last piece was sold
			told[op.Client] = true
			seen = seen || op.Return > at
		}
	}
	if !seen {
		return nil
	}
	slices.Sort(s.before)
	slices.Sort(s.after)
	return &s
}

// marked adds the time to a chart over time that ends at end.
func (s *soldOut) marked(c chart.Chart, end time.Duration) chart.Chart {
	if s == nil {
		return c
	}
	share, text := 100*float64(s.at)/float64(end), "sold out at "+moment(s.at)
	best := -1
	for y := 2; y < chart.Height; y += 22 { // the words are within that distance of the mark
		m := markAt(share, y, "note", text)
		top := float64(y + m.Pill.Y)
		bottom := top + float64(m.Pill.H)
		if bottom > chart.Height || slices.ContainsFunc(c.Marks, func(o chart.Mark) bool {
			return float64(o.Y+o.Pill.Y) < bottom+4 && float64(o.Y+o.Pill.Y+o.Pill.H) > top-4
		}) {
			continue
		}
		if best < 0 {
			best = y
		}
		left := share + 100*float64(m.Pill.X)/smallChart
		if !c.Covers(left, left+100*float64(m.Pill.W)/smallChart, top-2, bottom+2) {
			best = y
			break
		}
	}
	c.Marks = append(c.Marks, markAt(share, max(best, 2), "note", text))
	return c
}

// note explains why the median jumps at that time; empty if it does not.
func (s *soldOut) note() string {
	if s == nil || len(s.before) < enough || len(s.after) < enough {
		return ""
	}
	before, after := quantile(s.before, 0.5), quantile(s.after, 0.5)
	if after < jump*before && before < jump*after {
		return ""
	}
	why := "From then on each buyer is told that nothing is left and does not return"
	switch again := float64(s.again) / float64(len(s.before)); {
	case s.back > 0:
		why = fmt.Sprintf("From then on each buyer is told that nothing is left, but buyers return: %s of the %s are of buyers who had been told before.", reports.Thousands(int64(s.back)), reports.Thousands(int64(len(s.after))))
	case after < before:
		why += ", so that fewer and fewer compete."
	case again > 0.5:
		why = fmt.Sprintf("Before, %s of them came from the buyer who had just bought and asked again without waiting. %s: the operations that end then are the last tries of waiting buyers.", reports.Percent(again), why)
	default:
		why += ", so that the operations that end then are the last tries of waiting buyers."
	}
	return fmt.Sprintf("The stock was gone at %s. The median of the %s that ended before is %s ms, and of those that ended after it %s ms (%s and %s of them). %s",
		moment(s.at), kindPlural(s.kind), millisAxis(before), millisAxis(after), reports.Thousands(int64(len(s.before))), reports.Thousands(int64(len(s.after))), why)
}

// kindPlural names operations of a kind.
func kindPlural(kind history.Kind) string {
	if kind == history.Acquire {
		return "acquisitions"
	}
	return kind.String() + " operations"
}

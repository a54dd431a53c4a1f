package reports

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/history"
)

// Latencies collects the latencies of a history by kind of operation and outcome: from the call to the answer, over
// all operations that ended.
type Latencies struct {
	kinds []*histograms // by kind; nil: none
}

// histograms holds the histograms of one kind.
type histograms struct {
	// outcomes measures from the call; nil: no operation had that outcome.
	outcomes [history.Refused + 1]*hdrhistogram.Histogram
	// due measures all of them from when they should have started; nil while every operation started when it
	// should.
	due *hdrhistogram.Histogram
}

// Range of the histograms, in nanoseconds, and their precision.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Hour)
	digits   = 3
)

// NewLatencies returns an empty set.
func NewLatencies() *Latencies { return new(Latencies) }

// timed lists the kinds of operations whose duration matters to a user.
var timed = []history.Kind{
	history.Acquire, history.Enqueue, history.Pop, history.Dequeue, history.Peek, history.Ack, history.Effect,
	history.Take, history.Submit, history.Buy, history.NextID, history.Extend, history.Release, history.Refund,
}

// Add counts a client's operation. An unknown one counts with the time after which its client gave up; one that the
// end of the run stopped has not ended and does not count.
func (l *Latencies) Add(op *history.Op) {
	if op.Reason == history.Stopped || op.Outcome > history.Refused {
		return
	}
	h := l.at(op.Kind)
	if h == nil {
		if !slices.Contains(timed, op.Kind) {
			return
		}
		h = l.of(op.Kind)
	}
	if h.due == nil && op.Due != op.Call {
		h.due = h.call()
	}
	if h.due != nil {
		record(h.due, op.Return-op.Due)
	}
	record(h.with(op.Outcome), op.Return-op.Call)
}

// at returns the histograms of a kind; nil: nothing of it was added.
func (l *Latencies) at(kind history.Kind) *histograms {
	if int(kind) >= len(l.kinds) {
		return nil
	}
	return l.kinds[kind]
}

// of is like at, and makes them if there are none.
func (l *Latencies) of(kind history.Kind) *histograms {
	if l.at(kind) == nil {
		l.kinds = append(l.kinds, make([]*histograms, max(0, int(kind)+1-len(l.kinds)))...)
		l.kinds[kind] = new(histograms)
	}
	return l.kinds[kind]
}

// with returns the histogram of an outcome.
func (h *histograms) with(outcome history.Outcome) *hdrhistogram.Histogram {
	if h.outcomes[outcome] == nil {
		h.outcomes[outcome] = newHistogram()
	}
	return h.outcomes[outcome]
}

// call returns a histogram of all outcomes, from the call.
func (h *histograms) call() *hdrhistogram.Histogram {
	all := newHistogram()
	for _, o := range h.outcomes {
		if o != nil {
			all.Merge(o) // they have the same range, so nothing is dropped
		}
	}
	return all
}

// Merge adds the counts of another set. Percentiles of several runs must be computed from all values: an average of
// percentiles is not a percentile.
func (l *Latencies) Merge(other *Latencies) {
	for kind, from := range other.kinds {
		if from == nil {
			continue
		}
		h := l.of(history.Kind(kind))
		if h.due != nil || from.due != nil {
			if h.due == nil {
				h.due = h.call()
			}
			if from.due != nil {
				h.due.Merge(from.due)
			} else {
				h.due.Merge(from.call())
			}
		}
		for outcome, o := range from.outcomes {
			if o != nil {
				h.with(history.Outcome(outcome)).Merge(o)
			}
		}
	}
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, digits) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// A value beyond an hour counts as an hour, so that nothing is dropped.
	h.RecordValue(min(max(int64(d), shortest), longest))
}

// Summary returns the percentiles by kind.
func (l *Latencies) Summary() map[string]Latency {
	s := map[string]Latency{}
	for kind, h := range l.kinds {
		if h == nil {
			continue
		}
		call := h.call()
		sum := Latency{Count: call.TotalCount(), Call: percentiles(call), Outcomes: map[string]OutcomeLatency{}}
		for outcome, o := range h.outcomes {
			if o != nil {
				sum.Outcomes[history.Outcome(outcome).String()] = OutcomeLatency{Count: o.TotalCount(), Percentiles: percentiles(o)}
			}
		}
		if h.due != nil {
			due := percentiles(h.due)
			sum.Due = &due
		}
		s[history.Kind(kind).String()] = sum
	}
	return s
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(p float64) float64 { return inMS(ValueAt(h, p)) }
	return Percentiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: inMS(h.Max())}
}

// ValueAt returns a percentile: the smallest value that at least p of 100 values do not exceed.
func ValueAt(h *hdrhistogram.Histogram, p float64) int64 {
	n := float64(h.TotalCount())
	return h.ValueAtQuantile(100 * math.Ceil(p/100*n) / max(n, 1))
}

// inMS converts nanoseconds to milliseconds, rounded to the microsecond.
func inMS(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e3 }

// Kinds lists the kinds that were measured.
func (l *Latencies) Kinds() []history.Kind {
	var ks []history.Kind
	for _, k := range timed {
		if l.at(k) != nil {
			ks = append(ks, k)
		}
	}
	return ks
}

// pointsPerDecade is the number of points of a distribution per further nine.
const pointsPerDecade = 8

// Curve returns the distribution of one kind, at eight percentages for each further nine, up to the one that the
// number of operations supports; nil without operations. The last point is the maximum.
func (l *Latencies) Curve(kind history.Kind) (points []Quantile) {
	h := l.at(kind)
	if h == nil {
		return nil
	}
	all := h.call()
	for i := 0; ; i++ {
		rare := math.Pow(10, -float64(i)/pointsPerDecade)
		if rare*float64(all.TotalCount()) <= 1 {
			return append(points, Quantile{100, inMS(all.Max())})
		}
		points = append(points, Quantile{100 * (1 - rare), inMS(ValueAt(all, 100*(1-rare)))})
	}
}

// WriteHGRM writes the percentiles of one kind in the text format of the HdrHistogram tools, in milliseconds.
func (l *Latencies) WriteHGRM(w io.Writer, kind history.Kind) error {
	h := l.at(kind)
	if h == nil {
		return fmt.Errorf("no %s operations were recorded", kind)
	}
	_, err := h.call().PercentilesPrint(w, 5, float64(time.Millisecond))
	return err
}

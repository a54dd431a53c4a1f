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

// Latencies gathers the latencies of a history, per kind of operation.
type Latencies struct {
	kinds map[history.Kind]*histograms
}

type histograms struct{ due, call *hdrhistogram.Histogram }

// The histograms' range, in nanoseconds, and their precision.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Hour)
	digits   = 3
)

// NewLatencies returns an empty set.
func NewLatencies() *Latencies { return &Latencies{kinds: map[history.Kind]*histograms{}} }

// timed are the kinds whose duration means something to a user.
var timed = []history.Kind{
	history.Acquire, history.Enqueue, history.Pop, history.Dequeue, history.Ack, history.Effect,
	history.Take, history.Submit, history.Buy, history.NextID, history.Extend, history.Release, history.Refund,
}

// Add counts a client's operation. An unknown one counts with the time after
// which its client gave up; one that was stopped by the end of the run does not
// count.
func (l *Latencies) Add(op history.Op) {
	if op.Reason == history.Stopped {
		return
	}
	if !slices.Contains(timed, op.Kind) {
		return
	}
	h := l.kinds[op.Kind]
	if h == nil {
		h = newHistograms()
		l.kinds[op.Kind] = h
	}
	record(h.due, op.Return-op.Due)
	record(h.call, op.Return-op.Call)
}

// Merge adds all that another set has counted. Percentiles of several runs come
// from their values together: an average of percentiles is none.
func (l *Latencies) Merge(other *Latencies) {
	for kind, from := range other.kinds {
		h := l.kinds[kind]
		if h == nil {
			h = newHistograms()
			l.kinds[kind] = h
		}
		h.due.Merge(from.due) // of one range, so that nothing is dropped
		h.call.Merge(from.call)
	}
}

func newHistograms() *histograms {
	return &histograms{hdrhistogram.New(shortest, longest, digits), hdrhistogram.New(shortest, longest, digits)}
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// A value beyond an hour counts as an hour; nothing is ever dropped.
	h.RecordValue(min(max(int64(d), shortest), longest))
}

// Summary is the table of percentiles by kind.
func (l *Latencies) Summary() map[string]Latency {
	s := map[string]Latency{}
	for kind, h := range l.kinds {
		s[kind.String()] = Latency{Count: h.call.TotalCount(), Due: percentiles(h.due), Call: percentiles(h.call)}
	}
	return s
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(p float64) float64 { return inMS(h.ValueAtQuantile(p)) }
	return Percentiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: inMS(h.Max())}
}

// inMS is nanoseconds as milliseconds, to the microsecond.
func inMS(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e3 }

// Kinds lists the kinds that were measured.
func (l *Latencies) Kinds() []history.Kind {
	var ks []history.Kind
	for _, k := range timed {
		if l.kinds[k] != nil {
			ks = append(ks, k)
		}
	}
	return ks
}

// pointsPerDecade is how many points a distribution has for every further nine.
const pointsPerDecade = 8

// Curve is the distribution of one kind, from when it was due, at some forty shares
// that come ever closer to all, as far as there are operations for it; nil if there
// was none. The last point is the largest value.
func (l *Latencies) Curve(kind history.Kind) (points []Quantile) {
	h := l.kinds[kind]
	if h == nil || h.due.TotalCount() == 0 {
		return nil
	}
	for i := 0; ; i++ {
		rare := math.Pow(10, -float64(i)/pointsPerDecade)
		if rare*float64(h.due.TotalCount()) <= 1 {
			return append(points, Quantile{100, inMS(h.due.Max())})
		}
		points = append(points, Quantile{100 * (1 - rare), inMS(h.due.ValueAtQuantile(100 * (1 - rare)))})
	}
}

// WriteHGRM writes the percentiles of one kind, from when it was due, in the
// text form of HdrHistogram's own tools, in milliseconds.
func (l *Latencies) WriteHGRM(w io.Writer, kind history.Kind) error {
	h := l.kinds[kind]
	if h == nil {
		return fmt.Errorf("no %s operations were recorded", kind)
	}
	_, err := h.due.PercentilesPrint(w, 5, float64(time.Millisecond))
	return err
}

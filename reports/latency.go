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
		h = &histograms{hdrhistogram.New(shortest, longest, digits), hdrhistogram.New(shortest, longest, digits)}
		l.kinds[op.Kind] = h
	}
	record(h.due, op.Return-op.Due)
	record(h.call, op.Return-op.Call)
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

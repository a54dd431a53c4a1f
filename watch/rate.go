package watch

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/history"
	"oversell/variant"
)

// rate is how fast a counter rises.
type rate struct {
	samples []sample // of the last second, and one from before it
	marks   []sample // one in each half second
}

type sample struct {
	when  time.Time
	count int64
}

const (
	cellWidth = 500 * time.Millisecond
	mostCells = 40
)

// sample notes what the counter is.
func (r *rate) sample(now time.Time, count int64) {
	s := sample{now, count}
	r.samples = append(r.samples, s)
	for len(r.samples) > 2 && now.Sub(r.samples[1].when) >= time.Second {
		r.samples = r.samples[1:]
	}
	if n := len(r.marks); n > 0 && now.Sub(r.marks[n-1].when) < cellWidth {
		return
	}
	if r.marks = append(r.marks, s); len(r.marks) > mostCells+1 {
		r.marks = r.marks[1:]
	}
}

// now is the rate over the last second, per second.
func (r *rate) now() float64 {
	if len(r.samples) == 0 {
		return 0
	}
	return between(r.samples[0], r.samples[len(r.samples)-1])
}

// cells are the rates of the last half seconds, oldest first.
func (r *rate) cells() (rates []float64) {
	for i := 1; i < len(r.marks); i++ {
		rates = append(rates, between(r.marks[i-1], r.marks[i]))
	}
	return rates
}

func between(a, b sample) float64 {
	if d := b.when.Sub(a.when); d > 0 {
		return float64(b.count-a.count) / d.Seconds()
	}
	return 0
}

// spans are the latencies of the last seconds.
type spans struct {
	window *hdrhistogram.WindowedHistogram
	turned time.Time
}

// The window has windowSeconds parts of a second each; values are kept to two significant digits.
const (
	windowSeconds = 5
	shortest      = int64(time.Microsecond)
	longest       = int64(time.Hour)
)

func newSpans() spans {
	return spans{window: hdrhistogram.NewWindowed(windowSeconds, shortest, longest, 2)}
}

// at drops the values that are older than the window at the given time.
func (s *spans) at(now time.Time) {
	if s.turned.IsZero() {
		s.turned = now
	}
	for n := 0; now.Sub(s.turned) >= time.Second; n++ {
		if n < windowSeconds {
			s.window.Rotate()
		}
		s.turned = s.turned.Add(time.Second)
	}
}

func (s *spans) add(d time.Duration) {
	_ = s.window.Current.RecordValue(min(max(int64(d), shortest), longest)) // in range, and so never refused
}

func (s *spans) quantiles() (p50, p99 time.Duration) {
	all := s.window.Merge()
	return time.Duration(all.ValueAtQuantile(50)), time.Duration(all.ValueAtQuantile(99))
}

// mains lists kinds of operations by importance, as in reports: the first that occurs is the one whose latency is
// shown. Acquire is last if the lock promises nothing, because no client waits for it.
func mains(h *history.Header) []history.Kind {
	if h.PromisedOf(variant.Lock) {
		return []history.Kind{history.Acquire, history.Pop, history.Take, history.Buy, history.NextID}
	}
	return []history.Kind{history.Pop, history.Take, history.Buy, history.NextID, history.Acquire}
}

// main are the latencies of a run's main operation.
type main struct {
	of   []history.Kind // in the order of what they tell
	rank int            // in of; len(of): none has occurred
	spans
}

func newMain(h *history.Header) main {
	of := mains(h)
	return main{of, len(of), newSpans()}
}

// kind is the main operation as far as is known; NoKind: not at all.
func (m *main) kind() history.Kind {
	if m.rank == len(m.of) {
		return history.NoKind
	}
	return m.of[m.rank]
}

func (m *main) observe(op *history.Op) {
	if op.Reason == history.Stopped {
		return
	}
	if better := slices.Index(m.of[:m.rank], op.Kind); better >= 0 {
		m.rank, m.spans = better, spans{newSpans().window, m.turned}
	}
	if op.Kind == m.kind() {
		m.add(op.Return - op.Call)
	}
}

package arrival

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/history"
)

// Book hands the arrivals of a run out to its clients, each once and in order, and notes
// how they were begun. It is safe for concurrent use. All times are since the start of the
// run.
type Book struct {
	rate Rate
	ends time.Duration // of the load, since it began; 0: no arrival is too late
	most int64         // arrivals; 0: as many as come

	mu    sync.Mutex
	began bool
	zero  time.Duration // when the load began
	times *Sequence
	next  time.Duration // since the load began, of the next arrival to be handed out
	comes bool          // there is one
	taken int64
	under int64 // steps that have begun and not ended

	seen    history.Arrivals
	lastDue time.Duration
	lastAt  time.Duration // when the last one began
	late    *hdrhistogram.Histogram
	waited  *hdrhistogram.Histogram
	driver  *hdrhistogram.Histogram
	steps   *hdrhistogram.Histogram
}

// NewBook opens a book of arrivals that come until the load ends (0: it does not) and are so
// many at the most (0: any number).
func NewBook(r Rate, p Process, seed uint64, ends time.Duration, most int64) *Book {
	b := &Book{rate: r, ends: ends, most: most, times: r.Sequence(p, seed), late: spans(), waited: spans(), driver: spans(), steps: spans()}
	b.next, b.comes = b.times.Next()
	return b
}

// spans counts times from a microsecond to an hour.
func spans() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Hour), 3)
}

func count(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 0), int64(time.Hour))) // within its range
}

// Arrival is one that was handed out.
type Arrival struct {
	// Due is when the step should begin.
	Due   time.Duration
	taken time.Duration // when a client was free for it
	call  time.Duration // when the step began
}

// Take hands out the next arrival to a client that is free. It is false when there is none,
// which the limits of the load do not decide if beyond is true. The load begins with the
// first call.
func (b *Book) Take(now time.Duration, beyond bool) (Arrival, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.began {
		b.began, b.zero = true, now
	}
	if !b.comes || b.past() && !beyond {
		return Arrival{}, false
	}
	a := Arrival{Due: b.zero + b.next, taken: now}
	b.taken++
	b.next, b.comes = b.times.Next()
	return a, true
}

// past reports whether the next arrival is beyond the limits of the load.
func (b *Book) past() bool { return b.ends > 0 && b.next >= b.ends || b.most > 0 && b.taken >= b.most }

// Begin notes that the step of an arrival begins now.
func (b *Book) Begin(a *Arrival, now time.Duration) {
	a.call = now
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.Begun++
	b.under++
	b.lastDue, b.lastAt = max(b.lastDue, a.Due), max(b.lastAt, now)
	count(b.late, now-a.Due)
	count(b.waited, a.taken-a.Due)
	count(b.driver, now-max(a.Due, a.taken))
	if a.taken > a.Due+noticeable {
		b.seen.Waited++
	}
}

// noticeable is how long an arrival must have waited for a client to be counted among those that
// did: less is how long a client takes from one step to the next.
const noticeable = time.Millisecond

// End notes that the step of an arrival that was begun has ended.
func (b *Book) End(a Arrival, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under--
	count(b.steps, now-a.call)
}

// Drop gives an arrival up that was handed out and not begun.
func (b *Book) Drop(a Arrival, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Due <= now {
		b.seen.Missed++
	}
}

// Served reports whether every arrival within the limits of the load was begun, and its step has
// ended.
func (b *Book) Served() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.under == 0 && (!b.comes || b.past())
}

// Over reports whether no arrival is left within the limits of the load.
func (b *Book) Over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.comes || b.past()
}

// Close sums the book up when all clients have ended. If the run was stopped, arrivals that
// were due by then and were not handed out have been missed.
func (b *Book) Close(now time.Duration, stopped bool) history.Arrivals {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seen
	for stopped && b.comes && !b.past() && b.zero+b.next <= now {
		s.Missed++
		b.taken++
		b.next, b.comes = b.times.Next()
	}
	s.Offered, s.Achieved = perSecond(s.Begun, b.lastDue-b.zero), perSecond(s.Begun, max(b.lastDue, b.lastAt)-b.zero)
	s.Highest = b.rate.Highest(b.lastDue - b.zero)
	s.Late, s.ForClient, s.Driver, s.Step = summary(b.late), summary(b.waited), summary(b.driver), summary(b.steps)
	return s
}

// perSecond is the rate of n arrivals, the first at the beginning of a time and the last at its end.
func perSecond(n int64, in time.Duration) float64 {
	if n < 2 || in <= 0 {
		return 0
	}
	return float64(n-1) / in.Seconds()
}

func summary(h *hdrhistogram.Histogram) history.Spans {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)).Truncate(time.Microsecond) }
	return history.Spans{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: time.Duration(h.Max()).Truncate(time.Microsecond)}
}

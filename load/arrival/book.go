package arrival

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/history"
)

// Book hands out the arrivals of a run to its clients, each once and in order, and records how they were begun. It
// is safe for concurrent use. Times that its methods take are since the start of the run; ends and next are since the
// start of the load.
type Book struct {
	rate Rate
	ends time.Duration // end of the load, since its start; 0: no end
	most int64         // maximum number of arrivals; 0: no limit

	mu    sync.Mutex
	zero  time.Duration // when the load began
	times *Sequence
	next  time.Duration // the next arrival, since the load began
	comes bool          // whether there is a next arrival
	taken int64
	open  int64 // arrivals within the limits that were handed out, and have not ended

	seen    history.Arrivals
	lastDue time.Duration
	lastAt  time.Duration // when the last one began
	late    *hdrhistogram.Histogram
	waited  *hdrhistogram.Histogram
	driver  *hdrhistogram.Histogram
	steps   *hdrhistogram.Histogram
}

// NewBook creates a book of arrivals until the load ends (0: no end), at most a given number (0: no limit).
func NewBook(r Rate, p Process, seed uint64, ends time.Duration, most int64) *Book {
	b := &Book{rate: r, ends: ends, most: most, times: r.Sequence(p, seed), late: spans(), waited: spans(), driver: spans(), steps: spans()}
	b.next, b.comes = b.times.Next()
	return b
}

// spans returns a histogram from a microsecond to an hour.
func spans() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Hour), 3)
}

func count(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 0), int64(time.Hour))) // always in range
}

// Arrival is an arrival that was handed out.
type Arrival struct {
	// Due is when the step should begin.
	Due    time.Duration
	taken  time.Duration // when a client was free for it
	call   time.Duration // when the step began
	within bool          // the limits of the load
}

// Open sets when the load begins. It precedes all other calls.
func (b *Book) Open(zero time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.zero = zero
}

// Take hands out the next arrival to a client that is free. It returns false if there is none; with beyond, it
// ignores the limits of the load.
func (b *Book) Take(now time.Duration, beyond bool) (Arrival, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	within := !b.past()
	if !b.comes || !within && !beyond {
		return Arrival{}, false
	}
	a := Arrival{Due: b.zero + b.next, taken: now, within: within}
	if within {
		b.open++
	}
	b.taken++
	b.next, b.comes = b.times.Next()
	return a, true
}

// past reports whether the next arrival is beyond the limits of the load.
func (b *Book) past() bool { return b.ends > 0 && b.next >= b.ends || b.most > 0 && b.taken >= b.most }

// Begin records that the step of an arrival begins now.
func (b *Book) Begin(a *Arrival, now time.Duration) {
	a.call = now
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.Begun++
	b.lastDue, b.lastAt = max(b.lastDue, a.Due), max(b.lastAt, now)
	count(b.late, now-a.Due)
	count(b.waited, a.taken-a.Due)
	count(b.driver, now-max(a.Due, a.taken))
	if a.taken > a.Due+noticeable {
		b.seen.Waited++
	}
}

// noticeable is the shortest wait for a client that is counted: a shorter one is the pause between two steps of a
// client.
const noticeable = time.Millisecond

// End records that the step of an arrival has ended.
func (b *Book) End(a Arrival, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close(a)
	count(b.steps, now-a.call)
}

// close notes that an arrival that was handed out has ended, or was given up.
func (b *Book) close(a Arrival) {
	if a.within {
		b.open--
	}
}

// Drop gives up an arrival that was handed out and not begun.
func (b *Book) Drop(a Arrival, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close(a)
	if a.Due <= now {
		b.seen.Missed++
	}
}

// Served reports whether every arrival within the limits of the load was begun, and its step has ended, or was given up.
func (b *Book) Served() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open == 0 && (!b.comes || b.past())
}

// Over reports whether no arrival is left within the limits of the load.
func (b *Book) Over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.comes || b.past()
}

// Close returns the totals after all clients have ended. If the run was stopped, arrivals that were due by then and
// were not handed out count as missed.
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

// perSecond returns the rate of n arrivals, the first at the beginning of a period and the last at its end.
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

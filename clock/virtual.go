package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Virtual is a clock that moves only when it is advanced. Sleepers wake, and timeouts fire, in order of their due
// time and, if equal, in the order in which they were set. It is safe for concurrent use.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	seq    uint64
	timers timerHeap
	// armed is closed and replaced whenever a timer is set, so that
	// AwaitTimers can block on a condition instead of polling.
	armed chan struct{}
}

// NewVirtual returns a clock that stands at start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{now: start, armed: make(chan struct{})}
}

// Now returns the time that the clock was last advanced to.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Sleep blocks until the clock has been advanced by d, or ctx is done.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	woken := make(chan struct{})
	t := v.set(d, func() { close(woken) })
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		v.unset(t)
		return context.Cause(ctx)
	}
}

// WithTimeout returns a context that is cancelled, with
// context.DeadlineExceeded as its cause, when the clock has been advanced by d.
// It reports no Deadline: a virtual deadline means nothing to a socket.
func (v *Virtual) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if d <= 0 {
		cancel(context.DeadlineExceeded)
		return ctx, func() {}
	}
	t := v.set(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		v.unset(t)
		cancel(context.Canceled)
	}
}

// Advance moves the clock forward by d and fires everything that becomes due, each at its own time.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	end := v.now.Add(d)
	for len(v.timers) > 0 && !v.timers[0].due.After(end) {
		t := heap.Pop(&v.timers).(*timer)
		if t.due.After(v.now) {
			v.now = t.due
		}
		v.mu.Unlock()
		t.fire()
		v.mu.Lock()
	}
	if end.After(v.now) {
		v.now = end
	}
	v.mu.Unlock()
}

// Next returns the time until the earliest sleeper or timeout, and whether there is one.
func (v *Virtual) Next() (time.Duration, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.timers) == 0 {
		return 0, false
	}
	return v.timers[0].due.Sub(v.now), true
}

// AwaitTimers blocks until at least n sleepers and timeouts are pending, or ctx is done. Tests use it to wait until
// a goroutine sleeps.
func (v *Virtual) AwaitTimers(ctx context.Context, n int) error {
	for {
		v.mu.Lock()
		if len(v.timers) >= n {
			v.mu.Unlock()
			return nil
		}
		armed := v.armed
		v.mu.Unlock()
		select {
		case <-armed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (v *Virtual) set(d time.Duration, fire func()) *timer {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seq++
	t := &timer{due: v.now.Add(d), seq: v.seq, fire: fire}
	heap.Push(&v.timers, t)
	close(v.armed)
	v.armed = make(chan struct{})
	return t
}

func (v *Virtual) unset(t *timer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.index >= 0 {
		heap.Remove(&v.timers, t.index)
	}
}

type timer struct {
	due   time.Time
	seq   uint64
	fire  func()
	index int
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}

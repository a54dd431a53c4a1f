package load

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"

	"oversell/internal/closed"
	"oversell/load/mux"
)

// SleepUntil waits until a time and reports true. On an idle machine it is late by a fraction of a millisecond. If
// the run is stopping or ctx ends, it ends early and reports false. ctx must be, or be derived from, the Context of
// the sleeping client.
func (e *Engine) SleepUntil(ctx context.Context, at time.Time) bool {
	if e.Stopping() {
		return false
	}
	left := time.Until(at)
	if left <= 0 {
		return true
	}
	if w := mux.Of(ctx); w != nil {
		w.Sleep(ctx, left, nil)
		return !e.Stopping() && ctx.Err() == nil
	}
	timer := time.NewTimer(left) // earlier than the pacer on a busy machine
	defer timer.Stop()
	select {
	case <-e.pacer.wake(at):
	case <-timer.C:
	case <-e.stopping:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// pacer wakes clients when they are due. On an idle machine a timer of the Go runtime is up to a millisecond late,
// because its threads wait for the network in whole milliseconds. So the pacer sleeps on a thread of its own, and
// uses timers only while no client is due soon. The zero value is ready; its goroutine starts with the first
// waiting client.
type pacer struct {
	mu      sync.Mutex
	waiting wakes
	changed chan struct{} // capacity 1; nil: not started
	done    chan struct{} // closed to end the pacer
}

// wake returns a channel that is closed at a time.
func (p *pacer) wake(at time.Time) <-chan struct{} {
	w := wake{at, make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	heap.Push(&p.waiting, w)
	if p.changed == nil {
		p.changed, p.done = make(chan struct{}, 1), make(chan struct{})
		go p.run()
	}
	if p.waiting[0].at.Equal(at) {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	return w.due
}

// close ends the pacer; waiting clients keep waiting.
func (p *pacer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		close(p.done)
		p.done = nil
	}
}

// soon is how long before a wake-up the pacer stops using timers, which may be a millisecond late; nap is its
// longest sleep, which cannot be interrupted.
const (
	soon = 2 * time.Millisecond
	nap  = 500 * time.Microsecond
)

// run wakes clients until the pacer is closed.
func (p *pacer) run() {
	runtime.LockOSThread() // never unlocked: the thread, with its fine timer slack, ends with the goroutine
	reduceTimerSlack()
	p.mu.Lock()
	done, changed := p.done, p.changed
	p.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for done != nil {
		left, any := p.release(time.Now())
		switch {
		case any && left <= soon:
			doze(min(left, nap))
			if closed.Is(done) {
				return
			}
			continue
		case any:
			timer.Reset(left - soon)
		default:
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-changed:
		case <-done:
			return
		}
	}
}

// release wakes who is due, and tells how long it takes until the next one is, if there is any.
func (p *pacer) release(now time.Time) (left time.Duration, any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) > 0 {
		if left = p.waiting[0].at.Sub(now); left > 0 {
			return left, true
		}
		close(heap.Pop(&p.waiting).(wake).due)
	}
	return 0, false
}

// wake is a client that waits until a time.
type wake struct {
	at  time.Time
	due chan struct{}
}

// wakes is a heap, the next one first.
type wakes []wake

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].at.Before(w[j].at) }
func (w wakes) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)        { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = wake{}
	*w = (*w)[:last]
	return x
}

package load

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"oversell/internal/closed"
	"oversell/load/arrival"
)

// BenchmarkLateness measures how late clients begin when they take arrivals in turn and do nothing else. "timers"
// uses timers of the Go runtime instead of the pacer.
func BenchmarkLateness(b *testing.B) {
	for _, way := range []string{"pacer", "timers"} {
		for _, rate := range []string{"1k", "20k"} {
			b.Run(way+"/"+rate, func(b *testing.B) {
				for b.Loop() {
					late := lateness(b, way == "pacer", rate)
					slices.Sort(late)
					us := func(d time.Duration) float64 { return float64(d) / 1e3 }
					b.ReportMetric(us(late[len(late)/2]), "p50-µs")
					b.ReportMetric(us(late[len(late)*99/100]), "p99-µs")
					b.ReportMetric(us(late[len(late)-1]), "max-µs")
				}
			})
		}
	}
}

// TestSleepUntil checks that clients are woken at their times, in whatever order they came, and at once when the run
// is stopped.
func TestSleepUntil(t *testing.T) {
	e := &Engine{stopping: make(chan struct{})}
	defer e.pacer.close()
	start := time.Now()
	for _, after := range []time.Duration{-time.Hour, 0, 7 * time.Millisecond} {
		if at := start.Add(after); !e.SleepUntil(t.Context(), at) || time.Now().Before(at) {
			t.Errorf("until %v after the start: woken at %v", after, time.Since(start))
		}
	}
	var clients sync.WaitGroup
	for i := range 50 {
		at := time.Now().Add(time.Duration((i*37)%50) * 100 * time.Microsecond)
		clients.Go(func() {
			if !e.SleepUntil(t.Context(), at) || time.Now().Before(at) {
				t.Error("woken early")
			}
		})
	}
	clients.Wait()

	ctx, cancel := context.WithCancel(t.Context())
	for range 10 {
		clients.Go(func() {
			if e.SleepUntil(ctx, start.Add(time.Hour)) {
				t.Error("an hour has passed")
			}
		})
	}
	cancel()
	clients.Wait()
	clients.Go(func() {
		if e.SleepUntil(t.Context(), start.Add(time.Hour)) {
			t.Error("an hour has passed")
		}
	})
	e.Stop()
	clients.Wait()
	if e.SleepUntil(t.Context(), start) {
		t.Error("a run that is stopping waits for nobody")
	}
}

// TestPacerWakesInOrder checks that the pacer wakes the clients that are due and nobody else, and returns the time
// until the next one is due.
func TestPacerWakesInOrder(t *testing.T) {
	p := pacer{changed: make(chan struct{}, 1)} // this pacer has no goroutine
	start := time.Now()
	var due []<-chan struct{}
	for _, ms := range []int{5, 1, 3} {
		due = append(due, p.wake(start.Add(time.Duration(ms)*time.Millisecond)))
	}
	for _, c := range []struct {
		at, left time.Duration
		any      bool
		woken    []bool
	}{
		{0, time.Millisecond, true, []bool{false, false, false}},
		{time.Millisecond, 2 * time.Millisecond, true, []bool{false, true, false}},
		{4 * time.Millisecond, time.Millisecond, true, []bool{false, true, true}},
		{time.Second, 0, false, []bool{true, true, true}},
	} {
		left, any := p.release(start.Add(c.at))
		if left != c.left && any || any != c.any {
			t.Errorf("at %v: the next is due in %v (%t); want %v", c.at, left, any, c.left)
		}
		for i, ch := range due {
			if closed.Is(ch) != c.woken[i] {
				t.Errorf("at %v: client %d is woken: %t", c.at, i, closed.Is(ch))
			}
		}
	}
}

func lateness(b *testing.B, paced bool, text string) (all []time.Duration) {
	rate, err := arrival.ParseRate(text)
	if err != nil {
		b.Fatal(err)
	}
	e := &Engine{stopping: make(chan struct{})}
	defer e.pacer.close()
	zero := time.Now()
	book := arrival.NewBook(rate, arrival.Poisson, 1, time.Second, 0)
	var clients sync.WaitGroup
	var mu sync.Mutex
	for range 64 {
		clients.Go(func() {
			for {
				a, ok := book.Take(time.Since(zero), false)
				if !ok {
					return
				}
				at := zero.Add(a.Due)
				if paced {
					e.SleepUntil(context.Background(), at)
				} else {
					e.Sleep(context.Background(), time.Until(at), nil)
				}
				late := time.Since(at)
				mu.Lock()
				all = append(all, late)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return all
}

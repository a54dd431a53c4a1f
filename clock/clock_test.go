package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestVirtualWakesInOrder(t *testing.T) {
	start := time.Unix(1000, 0)
	v := NewVirtual(start)
	type wake struct {
		name string
		at   time.Time
	}
	woken := make(chan wake)
	sleep := func(name string, d time.Duration) {
		go func() {
			if err := v.Sleep(t.Context(), d); err != nil {
				t.Errorf("sleep %s: %v", name, err)
			}
			woken <- wake{name, v.Now()}
		}()
	}
	sleep("late", 2*time.Second)
	sleep("early", time.Second)
	if err := v.AwaitTimers(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if d, ok := v.Next(); !ok || d != time.Second {
		t.Errorf("Next() = %v, %v; want 1s, true", d, ok)
	}
	v.Advance(time.Second)
	if w := <-woken; w.name != "early" || !w.at.Equal(start.Add(time.Second)) {
		t.Errorf("first to wake was %+v; want early at +1s", w)
	}
	v.Advance(10 * time.Second)
	if w := <-woken; w.name != "late" {
		t.Errorf("second to wake was %+v; want late", w)
	}
	if got := v.Now(); !got.Equal(start.Add(11 * time.Second)) {
		t.Errorf("clock stands at %v; want +11s", got.Sub(start))
	}
}

func TestVirtualTimeout(t *testing.T) {
	v := NewVirtual(time.Unix(0, 0))
	ctx, cancel := v.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, has := ctx.Deadline(); has {
		t.Error("a virtual timeout must not show a deadline to the network code")
	}
	v.Advance(999 * time.Millisecond)
	if ctx.Err() != nil {
		t.Fatal("fired too early")
	}
	v.Advance(time.Millisecond)
	<-ctx.Done()
	if got := context.Cause(ctx); !errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("cause = %v; want deadline exceeded", got)
	}
	if err := v.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sleep under a dead context = %v", err)
	}
}

func TestCancelledTimersLeaveNothingBehind(t *testing.T) {
	v := NewVirtual(time.Unix(0, 0))
	_, cancel := v.WithTimeout(t.Context(), time.Second)
	cancel()
	if d, ok := v.Next(); ok {
		t.Errorf("a timer is still pending in %v", d)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- v.Sleep(ctx, time.Hour) }()
	if err := v.AwaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled sleep = %v", err)
	}
	if _, ok := v.Next(); ok {
		t.Error("the cancelled sleep left its timer")
	}
}

func TestRealSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := Real{}.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := (Real{}).Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sleep = %v; want deadline exceeded", err)
	}
	if err := (Real{}).Sleep(t.Context(), -1); err != nil {
		t.Errorf("negative sleep = %v", err)
	}
}

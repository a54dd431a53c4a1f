package history

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestWaterIsTrue checks that no operation that is handed over after a sweep returned, or was called, before the low
// waters of that sweep.
func TestWaterIsTrue(t *testing.T) {
	const clients, rounds = 8, 4000
	log := NewLog(time.Now())
	var working sync.WaitGroup
	for c := range int32(clients) {
		working.Go(func() {
			r, rec := rand.New(rand.NewPCG(uint64(c), 3)), log.Recorder(c)
			var under []time.Duration // the calls under way at this recorder
			for range rounds {
				if len(under) < 1+int(c)%4 {
					call := rec.Now()
					rec.Begun(call)
					rec.Noted()
					under = append(under, call)
					continue
				}
				i := r.IntN(len(under))
				call := under[i]
				under = slices.Delete(under, i, i+1)
				op := Op{Kind: Pop, Call: call, Return: rec.Now(), Outcome: OK}
				for range 1 + r.IntN(2) {
					rec.Record(&op)
				}
				rec.Settled(call)
				rec.Noted()
			}
			for _, call := range under {
				rec.Settled(call)
			}
		})
	}
	var ops []Op
	var levels []Watermark
	sweep := func() {
		if err := log.Drain(func(batch []Op) error { ops = append(ops, batch...); return nil }); err != nil {
			t.Fatal(err)
		}
		levels = append(levels, log.Watermark())
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		sweep()
	}
	slices.Reverse(levels)
	returned, called, at := Forever, Forever, len(ops)
	for _, w := range levels {
		for ; at > int(w.Ops); at-- {
			returned, called = min(returned, ops[at-1].Return), min(called, ops[at-1].Call)
		}
		if returned < w.Returned || called < w.Called {
			t.Fatalf("after %d operations it was said %+v, and one came that returned at %d, one that was called at %d", w.Ops, w, returned, called)
		}
	}
	last := levels[0]
	if last.Ops != int64(len(ops)) || last.Returned < ops[len(ops)-1].Return || last.Called != last.Returned {
		t.Errorf("in the end it is %+v, of %d operations", last, len(ops))
	}
}

// TestWaterWaits checks that an operation under way holds back the low water of calls, and that one that is about to
// be recorded holds back that of returns.
func TestWaterWaits(t *testing.T) {
	log := NewLog(time.Now())
	rec := log.Recorder(1)
	level := func() Watermark {
		t.Helper()
		if err := log.Drain(func([]Op) error { return nil }); err != nil {
			t.Fatal(err)
		}
		return log.Watermark()
	}
	call := rec.Now()
	rec.Begun(call)
	rec.Noted()
	if w := level(); w.Called > call || w.Returned <= call {
		t.Errorf("under way since %d: %+v", call, w)
	}
	ret := rec.Now()
	if w := level(); w.Called > call || w.Returned > ret {
		t.Errorf("about to be recorded at %d: %+v", ret, w)
	}
	rec.Record(&Op{Call: call, Return: ret})
	rec.Settled(call)
	rec.Noted()
	if w := level(); w.Ops != 1 || w.Called <= ret || w.Returned <= ret {
		t.Errorf("recorded at %d: %+v", ret, w)
	}
}

// TestWaterOfSeveral checks that, of several operations under way at one recorder, the earliest call counts, in
// whatever order they end.
func TestWaterOfSeveral(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}} {
		log := NewLog(time.Now())
		rec := log.Recorder(1)
		calls := make([]time.Duration, 3)
		for i := range calls {
			calls[i] = rec.Now()
			rec.Begun(calls[i])
			rec.Noted()
		}
		left := slices.Clone(calls)
		for _, i := range order {
			if err := log.Drain(func([]Op) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if w, earliest := log.Watermark(), slices.Min(left); w.Called > earliest {
				t.Errorf("ending in the order %v: no operation to come was called before %d, it says, and one was at %d", order, w.Called, earliest)
			}
			rec.Record(&Op{Call: calls[i], Return: rec.Now()})
			rec.Settled(calls[i])
			rec.Noted()
			left = slices.DeleteFunc(left, func(c time.Duration) bool { return c == calls[i] })
		}
		if err := log.Drain(func([]Op) error { return nil }); err != nil || log.Watermark().Called <= calls[2] {
			t.Errorf("ended in the order %v: %+v, %v", order, log.Watermark(), err)
		}
	}
}

package mux

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWheelAgainstAList compares the wheel with a list of timers. Timers fire when they are due and never before, and
// not at all once they are removed; next never returns a time after the first of them.
func TestWheelAgainstAList(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		var w wheel
		now := time.Duration(0)
		set := map[*timer]time.Duration{}
		for range 1000 {
			switch r.IntN(4) {
			case 0, 1:
				tm := &timer{}
				at := now + time.Duration(r.Int64N(1<<uint(10+r.IntN(40))))
				w.add(tm, at)
				set[tm] = at
			case 2:
				for tm := range set {
					w.remove(tm)
					delete(set, tm)
					break
				}
			case 3:
				now += time.Duration(r.Int64N(1 << uint(10+r.IntN(26))))
				w.advance(now, func(tm *timer) {
					at, known := set[tm]
					if !known {
						t.Fatalf("seed %d: a timer that is not set fired", seed)
					}
					if at > now {
						t.Fatalf("seed %d: fired at %v, due at %v", seed, now, at)
					}
					delete(set, tm)
				})
				for _, at := range set {
					if at <= now-1<<tickBits {
						t.Fatalf("seed %d: at %v a timer of %v has not fired", seed, now, at)
					}
				}
			}
			if w.count != len(set) {
				t.Fatalf("seed %d: %d timers are counted, and %d are set", seed, w.count, len(set))
			}
			at, any := w.next()
			if any != (len(set) > 0) {
				t.Fatalf("seed %d: next says %v with %d timers set", seed, any, len(set))
			}
			for _, due := range set {
				if at > due+1<<tickBits {
					t.Fatalf("seed %d: next says %v, and a timer is due at %v", seed, at, due)
				}
			}
		}
	}
}

func BenchmarkWheel(b *testing.B) {
	var w wheel
	timers := make([]timer, 100_000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range timers {
		w.add(&timers[i], time.Duration(r.Int64N(int64(time.Second))))
	}
	now := time.Duration(0)
	fired := 0
	for fired < b.N {
		now += 1 << tickBits
		w.advance(now, func(t *timer) {
			fired++
			w.add(t, now+time.Duration(r.Int64N(int64(time.Second))))
		})
	}
}

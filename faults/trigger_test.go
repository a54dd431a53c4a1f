package faults

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// injectedAt returns at which of n opportunities, a millisecond apart, a fault fires.
func injectedAt(w When, seed uint64, n int) (at []int) {
	t := newTrigger(w, seed)
	for i := range n {
		if t.fires(time.Duration(i) * time.Millisecond) {
			at = append(at, i)
		}
	}
	return at
}

func TestTriggerFires(t *testing.T) {
	for _, c := range []struct {
		name string
		when When
		want []int
	}{
		{"once by default", When{}, []int{0}},
		{"once, from a time on", When{At: 5 * ms}, []int{5}},
		{"times", When{Times: 3}, []int{0, 1, 2}},
		{"the nth only", When{Nth: 3}, []int{2}},
		{"the nth from a time on", When{At: 5 * ms, Nth: 3}, []int{7}},
		{"once in each period", When{Every: 4 * ms}, []int{0, 4, 8}},
		{"once in each period from a time on", When{At: 3 * ms, Every: 4 * ms}, []int{3, 7}},
		{"periods, some times", When{Every: 2 * ms, Times: 2}, []int{0, 2}},
		{"always", When{Chance: 1}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"always, some times", When{Chance: 1, Times: 2}, []int{0, 1}},
	} {
		if got := injectedAt(c.when, 1, 10); !slices.Equal(got, c.want) {
			t.Errorf("%s: fires at %v; want %v", c.name, got, c.want)
		}
	}
}

// TestTriggerPeriodsWithoutOpportunity checks that a fault does not make up for a period without an opportunity.
func TestTriggerPeriodsWithoutOpportunity(t *testing.T) {
	tr := newTrigger(When{Every: 10 * ms}, 1)
	var got []bool
	for _, now := range []time.Duration{1, 9, 35, 36, 39, 40} {
		got = append(got, tr.fires(now*ms))
	}
	if want := []bool{true, false, true, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("fires %v; want %v", got, want)
	}
}

func TestTriggerChance(t *testing.T) {
	const n = 100_000
	for _, p := range []float64{0.001, 0.01, 0.25, 0.9} {
		got := injectedAt(When{Chance: p}, 7, n)
		mean, deviation := p*n, math.Sqrt(p*(1-p)*n)
		if math.Abs(float64(len(got))-mean) > 5*deviation {
			t.Errorf("a chance of %v fires %d times in %d; want %.0f ± %.0f", p, len(got), n, mean, 5*deviation)
		}
		if !slices.Equal(got, injectedAt(When{Chance: p}, 7, n)) {
			t.Errorf("a chance of %v: the same seed fires differently", p)
		}
		if slices.Equal(got, injectedAt(When{Chance: p}, 8, n)) {
			t.Errorf("a chance of %v: another seed fires alike", p)
		}
	}
	if got := injectedAt(When{Chance: 0.5, Times: 4}, 7, 1000); len(got) != 4 {
		t.Errorf("50%% times 4 fires at %v", got)
	}
	half := injectedAt(When{Chance: 0.5, Every: 100 * ms}, 7, 1000)
	if len(half) != 10 {
		t.Errorf("50%% every 100ms fires at %v in a second", half)
	}
}

// TestTriggerConcurrently checks that limits hold under concurrent calls.
func TestTriggerConcurrently(t *testing.T) {
	const clients, asks = 16, 2000
	for _, c := range []struct {
		when When
		want int64
	}{
		{When{}, 1},
		{When{Nth: 1000}, 1},
		{When{Times: 17}, 17},
		{When{Chance: 0.2, Times: 17}, 17},
		{When{Every: time.Hour}, 1},
		{When{Every: time.Hour, Times: 3}, 1},
		{When{Chance: 1}, clients * asks},
		{When{Nth: clients * asks}, 1},
		{When{At: time.Hour}, 0},
	} {
		tr := newTrigger(c.when, 1)
		var fired atomic.Int64
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for range asks {
					if tr.fires(time.Second) {
						fired.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if fired.Load() != c.want {
			t.Errorf("%+v fires %d times; want %d", c.when, fired.Load(), c.want)
		}
	}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		when When
		want []time.Duration // the first five at most
	}{
		{When{}, []time.Duration{0}},
		{When{At: time.Second}, []time.Duration{time.Second}},
		{When{At: time.Second, Every: 2 * time.Second}, []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second, 9 * time.Second}},
		{When{Every: time.Second}, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}},
		{When{At: 2, Every: math.MaxInt64 / 2}, []time.Duration{2, 2 + math.MaxInt64/2}},
	} {
		var got []time.Duration
		for n := range 5 {
			at, ok := c.when.schedule(n)
			if !ok {
				break
			}
			got = append(got, at)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v fires at %v; want %v", c.when, got, c.want)
		}
	}
}

func BenchmarkTriggerSpent(b *testing.B) {
	tr := newTrigger(When{}, 1)
	tr.fires(0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tr.fires(time.Second)
		}
	})
}

package numset

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSet compares sets with maps: of consecutive numbers, of numbers far apart, and of a full range.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var s Set
	want := map[int64]bool{}
	add := func(n int64) {
		if !s.Add(n) {
			t.Fatalf("%d does not fit", n)
		}
		want[n] = true
	}
	for n := range int64(100_000) {
		add(n - 50_000)
		if n%100 == 0 {
			add(r.Int64N(1 << 26))
		}
	}
	add(math.MinInt64)
	add(math.MaxInt64)
	for n := int64(-60_000); n < 60_000; n++ {
		if s.Has(n) != want[n] {
			t.Fatalf("%d is in the set: %t", n, s.Has(n))
		}
	}
	for range 100_000 {
		if n := r.Int64N(1 << 26); s.Has(n) != want[n] {
			t.Fatalf("%d is in the set: %t", n, s.Has(n))
		}
	}
	for n := range want {
		if !s.Has(n) {
			t.Fatalf("%d is not in the set", n)
		}
	}
}

// TestSetIsFull checks that a set of numbers that are far apart says when it is too large.
func TestSetIsFull(t *testing.T) {
	var s Set
	for n := int64(0); ; n++ {
		if !s.Add(n << chunkBits) {
			if n < mostChunks || n > mostChunks+1 {
				t.Errorf("it is full after %d numbers; want %d", n, mostChunks)
			}
			return
		}
	}
}

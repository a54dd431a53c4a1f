package table

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
)

func TestVisited(t *testing.T) {
	var v Visited
	f := func(n uint64) Fingerprint {
		m := NewMixer()
		m.Add(n)
		return m.Sum()
	}
	first, fresh := v.Add(f(1), Way{From: NoState, Cost: 5})
	if !fresh {
		t.Error("the first is not new")
	}
	if id, fresh := v.Add(f(1), Way{From: 3, Cost: 4}); fresh || id != first || v.Way(first).From != 3 {
		t.Errorf("a cheaper way in the same layer: %d, %t, %+v", id, fresh, v.Way(first))
	}
	v.Add(f(1), Way{From: 4, Cost: 4})
	v.Add(f(1), Way{From: 5, Cost: 6})
	if v.Way(first).From != 3 {
		t.Error("a way that is no cheaper replaced the first")
	}
	v.Next()
	if v.Add(f(1), Way{From: 6, Cost: 1}); v.Way(first).From != 3 {
		t.Error("a cheaper way in a later layer is a longer one")
	}
	ids := map[StateID]uint64{first: 1}
	r := rand.New(rand.NewPCG(1, 2))
	const many = 1_000_000
	seen := make(map[uint64]bool, many)
	for len(seen) < many {
		n := r.Uint64() >> 20 // close to each other, like the numbers of situations
		if n <= 1 || seen[n] {
			continue
		}
		seen[n] = true
		id, fresh := v.Add(f(n), Way{From: StateID(n)})
		if !fresh {
			t.Fatalf("%d is taken for another", n)
		}
		if n%64 == 0 {
			ids[id] = n
		}
	}
	if v.Len() != many+1 {
		t.Errorf("%d states", v.Len())
	}
	for id, n := range ids {
		if id != first && v.Way(id).From != StateID(n) {
			t.Fatalf("the way to %d is %+v", n, v.Way(id))
		}
		if again, fresh := v.Add(f(n), Way{From: NoState, Cost: 1}); fresh || again != id {
			t.Fatalf("%d is new again", n)
		}
	}
}

type counted uint32

func (k counted) Hash() uint64 { return Spread(uint64(k), 1) }

// TestMemoGrows checks that a memo returns the values of its function, also while it grows and others use it.
func TestMemoGrows(t *testing.T) {
	m := NewMemo(func(k counted) uint32 { return uint32(k) * 3 })
	var all sync.WaitGroup
	for seed := range uint64(3) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, seed))
			for range 20_000 {
				k := counted(r.IntN(5_000))
				if got := *m.Get(k, k.Hash()); got != uint32(k)*3 || m.Of(k) != got {
					t.Errorf("%d: %d", k, got)
				}
			}
		})
	}
	all.Wait()
}

// TestInternerNumbersInOrder checks that equal keys have the same number, numbers are in order, and Get returns the key
// of a number after the table has grown.
func TestInternerNumbersInOrder(t *testing.T) {
	in := NewInterner[string]()
	for i := range uint32(5_000) {
		key := strconv.Itoa(int(i))
		for range 2 {
			if id := in.ID(key, func() string { return key }); id != i {
				t.Fatalf("%s has the number %d", key, id)
			}
		}
	}
	for i := range uint32(5_000) {
		if got := in.Get(i); got != strconv.Itoa(int(i)) {
			t.Fatalf("%d is %s", i, got)
		}
	}
}

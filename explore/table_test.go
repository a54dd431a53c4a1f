package explore

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
)

func TestVisited(t *testing.T) {
	var v visited
	f := func(n uint64) fingerprint {
		m := newMixer()
		m.add(n)
		return m.sum()
	}
	first, fresh := v.add(f(1), way{from: noState, cost: 5})
	if !fresh {
		t.Error("the first is not new")
	}
	if id, fresh := v.add(f(1), way{from: 3, cost: 4}); fresh || id != first || v.way(first).from != 3 {
		t.Errorf("a cheaper way in the same layer: %d, %t, %+v", id, fresh, v.way(first))
	}
	v.add(f(1), way{from: 4, cost: 4})
	v.add(f(1), way{from: 5, cost: 6})
	if v.way(first).from != 3 {
		t.Error("a way that is no cheaper replaced the first")
	}
	v.next()
	if v.add(f(1), way{from: 6, cost: 1}); v.way(first).from != 3 {
		t.Error("a cheaper way in a later layer is a longer one")
	}
	ids := map[stateID]uint64{first: 1}
	r := rand.New(rand.NewPCG(1, 2))
	const many = 1_000_000
	seen := make(map[uint64]bool, many)
	for len(seen) < many {
		n := r.Uint64() >> 20 // close to each other, as numbers of situations are
		if n <= 1 || seen[n] {
			continue
		}
		seen[n] = true
		id, fresh := v.add(f(n), way{from: stateID(n)})
		if !fresh {
			t.Fatalf("%d is taken for another", n)
		}
		if n%64 == 0 {
			ids[id] = n
		}
	}
	if v.len() != many+1 {
		t.Errorf("%d states", v.len())
	}
	for id, n := range ids {
		if id != first && v.way(id).from != stateID(n) {
			t.Fatalf("the way to %d is %+v", n, v.way(id))
		}
		if again, fresh := v.add(f(n), way{from: noState, cost: 1}); fresh || again != id {
			t.Fatalf("%d is new again", n)
		}
	}
}

type counted uint32

func (k counted) Hash() uint64 { return spread(uint64(k), 1) }

// TestMemoGrows: a memo says what its function says, also while it grows and others ask.
func TestMemoGrows(t *testing.T) {
	m := newMemo(func(k counted) uint32 { return uint32(k) * 3 })
	var all sync.WaitGroup
	for seed := range uint64(3) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, seed))
			for range 20_000 {
				k := counted(r.IntN(5_000))
				if got := *m.get(k, k.Hash()); got != uint32(k)*3 || m.of(k) != got {
					t.Errorf("%d: %d", k, got)
				}
			}
		})
	}
	all.Wait()
}

// TestInternerNumbersInOrder: equal keys have one number, and what stands under it does not move.
func TestInternerNumbersInOrder(t *testing.T) {
	in := newInterner[string]()
	for i := range uint32(5_000) {
		key := strconv.Itoa(int(i))
		for range 2 {
			if id := in.id(key, func() string { return key }); id != i {
				t.Fatalf("%s has the number %d", key, id)
			}
		}
	}
	for i := range uint32(5_000) {
		if got := in.get(i); got != strconv.Itoa(int(i)) {
			t.Fatalf("%d is %s", i, got)
		}
	}
}

package checker

import "oversell/history"

// pageBits is the size of a page of a table: 4,096 entries.
const pageBits = 12

// table holds a T for every order id. Ids that are not negative and not too far
// apart, which is what programs count with, live in pages; all others in a map.
type table[T any] struct {
	pages []*[1 << pageBits]T
	rest  map[history.Value]*T
	far   bool // rest holds a number: the pages must not grow over it
}

// at returns the place of id, zero at first.
func (t *table[T]) at(id history.Value) *T {
	if n, ok := id.Num(); ok && uint64(n)>>pageBits < uint64(len(t.pages)) {
		if p := t.pages[n>>pageBits]; p != nil {
			return &p[n&(1<<pageBits-1)]
		}
	}
	return t.slow(id)
}

func (t *table[T]) slow(id history.Value) *T {
	const most = 1 << 20 // pages: four thousand million ids, 8 MB of directory
	if n, ok := id.Num(); ok && n >= 0 && n>>pageBits < most && t.near(n>>pageBits) {
		for int64(len(t.pages)) <= n>>pageBits {
			t.pages = append(t.pages, nil)
		}
		p := &t.pages[n>>pageBits]
		if *p == nil {
			*p = new([1 << pageBits]T)
		}
		return &(*p)[n&(1<<pageBits-1)]
	}
	if t.rest == nil {
		t.rest = make(map[history.Value]*T)
	}
	p := t.rest[id]
	if p == nil {
		p = new(T)
		t.rest[id] = p
		if _, ok := id.Num(); ok {
			t.far = true
		}
	}
	return p
}

// near tells whether page belongs to the dense part, now or by letting it grow.
func (t *table[T]) near(page int64) bool {
	return page < int64(len(t.pages)) || !t.far && page <= 2*int64(len(t.pages))+1024
}

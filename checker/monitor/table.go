package monitor

import "oversell/history"

// pageBits is the size of a page of a table: 16 entries.
const pageBits = 4

// Table holds a T for every identity: of an order, a task, a client or a key. Programs count, so ids that are close to
// each other share a page. Pages from 0 on are in a slice, as long as it is filled to some degree; all others are found
// by a hash. So an id that is far from all others costs one page. Ids that are texts are in a map.
type Table[T any] struct {
	dense []*tablePage[T]
	far   map[int64]*tablePage[T]
	text  map[history.Value]*T
	pages int            // in dense and far
	spare []tablePage[T] // allocated, not used
}

type tablePage[T any] [1 << pageBits]T

// At returns the entry of id, zero at first.
func (t *Table[T]) At(id history.Value) *T {
	n, ok := id.Num()
	if number := uint64(n) >> pageBits; ok && number < uint64(len(t.dense)) {
		if p := t.dense[number]; p != nil {
			return &p[n&(1<<pageBits-1)]
		}
	}
	if !ok {
		return t.named(id)
	}
	return &t.page(n >> pageBits)[n&(1<<pageBits-1)]
}

func (t *Table[T]) named(id history.Value) *T {
	if t.text == nil {
		t.text = make(map[history.Value]*T)
	}
	p := t.text[id]
	if p == nil {
		p = new(T)
		t.text[id] = p
	}
	return p
}

// page finds a page that dense does not hold, or makes it. A page that was far when it
// was made moves to dense when dense has grown beyond it.
func (t *Table[T]) page(number int64) *tablePage[T] {
	p := t.far[number]
	made := p == nil
	if made {
		p = t.make()
	}
	if most := int64(2*t.pages + 16); number >= int64(len(t.dense)) && number < most {
		t.dense = append(t.dense, make([]*tablePage[T], most-int64(len(t.dense)))...)
	}
	switch {
	case number >= 0 && number < int64(len(t.dense)):
		t.dense[number] = p
		delete(t.far, number)
	case made:
		if t.far == nil {
			t.far = make(map[int64]*tablePage[T])
		}
		t.far[number] = p
	}
	return p
}

// make takes a new page, from a block of them when there are many.
func (t *Table[T]) make() *tablePage[T] {
	if len(t.spare) == 0 {
		t.spare = make([]tablePage[T], min(t.pages/8+1, 256))
	}
	t.pages++
	p := &t.spare[0]
	t.spare = t.spare[1:]
	return p
}

// Each calls f for every entry of an id that is a number: those in dense in the order of their numbers, the others
// after them in any order.
func (t *Table[T]) Each(f func(id int64, at *T)) {
	visit := func(number int64, p *tablePage[T]) {
		for i := range p {
			f(number<<pageBits+int64(i), &p[i])
		}
	}
	for number, p := range t.dense {
		if p != nil {
			visit(int64(number), p)
		}
	}
	for number, p := range t.far {
		visit(number, p)
	}
}

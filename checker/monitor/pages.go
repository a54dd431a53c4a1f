package monitor

import (
	"encoding/binary"
	"slices"

	"oversell/history"
)

// Pages hold values by number, from 0 in the order of their addition. A value is seldom read long after it came, so
// pages that were not read for a while are packed, into a fraction of the memory.
type Pages[T any] struct {
	// code encodes or decodes the value with a number, as differences from before: the previous value of the page that
	// code left, or a zero T.
	code  func(c *Packer, number int32, v, before *T)
	all   []page[T]
	count int32
	asked int64   // how often a value was read
	open  []int32 // the pages that are not packed
	room  []byte  // for packing
	spare *[1 << pageOf]T
	texts *texts
}

// pageOf is the size of a page of Pages, in values: 1 << pageOf.
const pageOf = 8

type page[T any] struct {
	values *[1 << pageOf]T // nil: they are packed
	packed []byte
	asked  int64 // Pages.asked when a value of it was last read
}

const (
	// openPages may be open before one of them is checked for packing.
	openPages = 64
	// rested is after how many reads of other pages a page may be packed.
	rested = 1 << 14
)

// NewPages returns empty pages, whose values are packed by code.
func NewPages[T any](code func(c *Packer, number int32, v, before *T)) Pages[T] {
	return Pages[T]{code: code, texts: &texts{}}
}

// Len returns how many values there are.
func (ps *Pages[T]) Len() int32 { return ps.count }

// Add makes room for one more value, and returns its number.
func (ps *Pages[T]) Add() int32 {
	if int(ps.count>>pageOf) == len(ps.all) {
		ps.all = append(ps.all, page[T]{values: ps.empty()})
		ps.spare = ps.opened(int32(len(ps.all) - 1))
	}
	ps.count++
	return ps.count - 1
}

// empty returns a page of zero values. It uses the memory of a page that was packed when the page before was added, so
// pointers to its values are no longer valid; see At.
func (ps *Pages[T]) empty() *[1 << pageOf]T {
	values := ps.spare
	if values == nil {
		return new([1 << pageOf]T)
	}
	clear(values[:])
	return values
}

// At returns a value. The pointer is valid until other values have been read 16,384 times. After that, changes may be
// lost, and it may point to another value once more values have been added.
func (ps *Pages[T]) At(number int32) *T {
	i := number >> pageOf
	p := &ps.all[i]
	ps.asked++
	p.asked = ps.asked
	if p.values == nil {
		ps.unpack(i)
		ps.opened(i)
	}
	return &p.values[number&(1<<pageOf-1)]
}

// Packed returns how many values are in packed pages, and how many bytes these have.
func (ps *Pages[T]) Packed() (values, bytes int) {
	for i := range ps.all {
		if p := &ps.all[i]; p.values == nil {
			values, bytes = values+1<<pageOf, bytes+len(p.packed)
		}
	}
	return values, bytes
}

// Each calls f with every value, in the order in which they were added. Packed pages stay packed. f must neither change
// the value nor keep the pointer.
func (ps *Pages[T]) Each(f func(number int32, v *T)) {
	room := new([1 << pageOf]T)
	for i := range int32(len(ps.all)) {
		values := ps.all[i].values
		if values == nil {
			clear(room[:])
			values = room
			ps.walk(&Packer{b: ps.all[i].packed, texts: ps.texts, reading: true}, i, values)
		}
		first := i << pageOf
		for j := range min(1<<pageOf, ps.count-first) {
			f(first+j, &values[j])
		}
	}
}

// Clone returns independent pages with the same values.
func (ps *Pages[T]) Clone() Pages[T] {
	c := *ps
	c.all, c.open, c.room, c.spare = slices.Clone(ps.all), slices.Clone(ps.open), nil, nil
	for i := range c.all {
		if v := c.all[i].values; v != nil {
			own := *v
			c.all[i].values = &own
		}
	}
	return c
}

// opened adds a page to the open ones. If there are many, it packs one of them and returns the memory of its values. It
// looks at only one, so more may be open if old values are read again.
func (ps *Pages[T]) opened(i int32) *[1 << pageOf]T {
	ps.open = append(ps.open, i)
	if len(ps.open) <= openPages {
		return nil
	}
	old := ps.open[0]
	ps.open = append(ps.open[:0], ps.open[1:]...)
	if ps.asked-ps.all[old].asked < rested {
		ps.open = append(ps.open, old)
		return nil
	}
	return ps.pack(old)
}

// pack packs a page, and returns the memory of its values.
func (ps *Pages[T]) pack(i int32) *[1 << pageOf]T {
	p := &ps.all[i]
	values := p.values
	c := Packer{b: ps.room[:0], texts: ps.texts}
	ps.walk(&c, i, values)
	ps.room = c.b
	p.packed, p.values = slices.Clone(c.b), nil
	return values
}

func (ps *Pages[T]) unpack(i int32) {
	p := &ps.all[i]
	c := Packer{b: p.packed, texts: ps.texts, reading: true}
	p.values, p.packed = new([1 << pageOf]T), nil
	ps.walk(&c, i, p.values)
}

func (ps *Pages[T]) walk(c *Packer, page int32, values *[1 << pageOf]T) {
	var before T
	for i := range values {
		ps.code(c, page<<pageOf+int32(i), &values[i], &before)
	}
}

// Packer writes values into the memory of a packed page, or reads them back: both visit a value in the same way.
type Packer struct {
	b       []byte
	reading bool
	texts   *texts
}

// Number writes or reads a number. Those near 0 take the least room.
func Number[N ~int64 | ~int32 | ~uint8](c *Packer, n *N) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, int64(*n))
		return
	}
	if b := c.b[0]; b < 0x80 {
		c.b = c.b[1:]
		*n = N(b>>1) ^ -N(b&1)
		return
	}
	v, size := binary.Varint(c.b)
	c.b = c.b[size:]
	*n = N(v)
}

// Since writes or reads a number that is close to another one.
func Since[N ~int64 | ~int32](c *Packer, n *N, from N) {
	d := *n - from
	Number(c, &d)
	*n = from + d
}

// Bits writes or reads booleans.
func (c *Packer) Bits(of ...*bool) {
	if !c.reading {
		var bits uint64
		for i, is := range of {
			if *is {
				bits |= 1 << i
			}
		}
		c.b = binary.AppendUvarint(c.b, bits)
		return
	}
	bits, size := binary.Uvarint(c.b)
	c.b = c.b[size:]
	for i, is := range of {
		*is = bits>>i&1 != 0
	}
}

// Value writes or reads a value of a history that is often close to another one.
func (c *Packer) Value(v *history.Value, near history.Value) {
	const text = 1 // the numbers of texts are odd, and differences are even, unless they are too large
	last, _ := near.Num()
	if c.reading {
		var n int64
		switch Number(c, &n); {
		case n&text != 0 && n>>1 == 0:
			Number(c, &n)
			*v = history.Int(n)
		case n&text != 0:
			*v = c.texts.all[n>>1-1]
		default:
			*v = history.Int(last + n>>1)
		}
		return
	}
	n, number := v.Num()
	d := (n - last) << 1
	switch {
	case !number:
		d = int64(c.texts.number(*v)+1)<<1 | text
	case d>>1 != n-last:
		d = text
	}
	if Number(c, &d); d == text {
		Number(c, &n)
	}
}

// texts numbers the values that are not numbers.
type texts struct {
	all   []history.Value
	known map[history.Value]int
}

func (t *texts) number(v history.Value) int {
	n, known := t.known[v]
	if !known {
		if t.known == nil {
			t.known = make(map[history.Value]int)
		}
		n = len(t.all)
		t.all, t.known[v] = append(t.all, v), n
	}
	return n
}

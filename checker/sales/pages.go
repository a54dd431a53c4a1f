package sales

import (
	"encoding/binary"
	"time"
)

// pages hold orders by number, from 1 on in the order in which they came. An order is seldom sent again long after it
// was sent first, so pages that nobody has looked at for a while are packed, into a quarter of the memory.
type pages struct {
	all   []page
	count int32
	asked int64   // how often an order was looked at
	open  []int32 // the pages that are not packed
	pack  []byte  // room for packing
	spare []*[1 << pageBits]order
}

// pageBits is the size of a page, in orders.
const pageBits = 8

type page struct {
	orders *[1 << pageBits]order // nil: they are packed
	packed []byte
	asked  int64 // pages.asked when an order of it was looked at last
}

const (
	// openPages may be open without a look whether one of them can be packed.
	openPages = 64
	// rested is for how many orders' time nobody must have looked at a page that is packed. What at returns is valid
	// for that long.
	rested = 1 << 14
)

// add makes room for one more order of a product, and returns its number.
func (ps *pages) add(product int32) int32 {
	if int(ps.count>>pageBits) == len(ps.all) {
		ps.all = append(ps.all, page{orders: ps.room()})
		ps.opened(int32(len(ps.all) - 1))
	}
	ps.count++
	ps.at(ps.count).product = product
	return ps.count
}

// at returns an order, which may be changed until many others have been looked at.
func (ps *pages) at(number int32) *order {
	i := (number - 1) >> pageBits
	p := &ps.all[i]
	ps.asked++
	p.asked = ps.asked
	if p.orders == nil {
		p.unpack(ps.room())
		ps.opened(i)
	}
	return &p.orders[(number-1)&(1<<pageBits-1)]
}

// opened notes a page that is open, and packs another one if there are many. It looks at one only, so that they may be
// more where old orders are sent again.
func (ps *pages) opened(i int32) {
	ps.open = append(ps.open, i)
	if len(ps.open) <= openPages {
		return
	}
	old := ps.open[0]
	ps.open = append(ps.open[:0], ps.open[1:]...)
	p := &ps.all[old]
	if ps.asked-p.asked < rested {
		ps.open = append(ps.open, old)
		return
	}
	ps.spare = append(ps.spare, p.orders)
	ps.pack = p.pack(ps.pack[:0])
}

// room is an empty page.
func (ps *pages) room() *[1 << pageBits]order {
	n := len(ps.spare)
	if n == 0 {
		return new([1 << pageBits]order)
	}
	o := ps.spare[n-1]
	ps.spare = ps.spare[:n-1]
	*o = [1 << pageBits]order{}
	return o
}

// pack packs a page, in the memory of scratch, which it returns.
func (p *page) pack(scratch []byte) []byte {
	c := packer{b: scratch}
	before := order{}
	for i := range p.orders {
		c.order(&p.orders[i], &before)
		if p.orders[i].effects > 0 {
			before = p.orders[i]
		}
	}
	p.packed, p.orders = append([]byte(nil), c.b...), nil
	return c.b
}

func (p *page) unpack(room *[1 << pageBits]order) {
	p.orders = room
	c := packer{b: p.packed, reading: true}
	before := order{}
	for i := range p.orders {
		c.order(&p.orders[i], &before)
		if p.orders[i].effects > 0 {
			before = p.orders[i]
		}
	}
	p.packed = nil
}

// packer writes orders, or reads them back: both walk an order in the same way.
type packer struct {
	b       []byte
	reading bool
}

// The kinds of orders that take the least memory, and of all others.
const (
	onlySent = iota // it was sent, and nothing else is known of it
	usual           // it had one effect of one piece, of which its own answer tells
	other
)

// order writes what is not as in the order before, or reads it.
func (c *packer) order(o, before *order) {
	plain := order{product: before.product, sent: true}
	common := plain
	common.call, common.ret, common.client = o.call, o.ret, o.client
	common.pieces, common.effects, common.fresh = 1, 1, true
	kind := uint8(other)
	switch *o {
	case plain:
		kind = onlySent
	case common:
		kind = usual
	}
	number(c, &kind)
	if kind == onlySent {
		*o = plain
		return
	}
	since, took := o.call-before.call, o.ret-o.call
	number(c, &since)
	number(c, &took)
	number(c, &o.client)
	if c.reading {
		o.call = before.call + since
		o.ret = o.call + took
	}
	if kind == usual {
		o.product, o.pieces, o.effects, o.sent, o.fresh = before.product, 1, 1, true, true
		return
	}
	var said [3]uint8
	for i, is := range []*bool{&o.sent, &o.fresh, &o.told} {
		if *is {
			said[i] = 1
		}
		number(c, &said[i])
		*is = said[i] == 1
	}
	number(c, &o.product)
	number(c, &o.tried)
	number(c, &o.pieces)
	number(c, &o.back)
	number(c, &o.effects)
}

// number is a number.
func number[N int64 | int32 | uint8 | time.Duration](c *packer, n *N) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, int64(*n))
		return
	}
	v, size := binary.Varint(c.b)
	c.b = c.b[size:]
	*n = N(v)
}

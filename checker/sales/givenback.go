package sales

import (
	"time"

	"oversell/history"
)

// givenBack limits the refunds of one product to the pieces bought: no more of an order is refunded than was bought of it
// by then. Refunds beyond that free no pieces.
//
// So a refund without an answer and one with an answer count once, a refund of a purchase that may not have taken
// effect returns nothing unless it did, and a second refund of a purchase returns nothing. The smallest bad
// history that shows it, with a stock of 1:
//
//	client 1  buy     [1, 2]  order 7  ok
//	client 1  refund  [3, 4]  order 7  ok
//	client 1  refund  [5, 6]  order 7  ok
//	client 2  buy     [7, 8]  order 8  ok
//	client 3  buy     [9, 9]  order 9  ok
type givenBack struct {
	list []back

	certain int64 // pieces that were refunded for certain
	perhaps int64 // pieces of known purchases that refunds without an answer may have returned, too
	undone  int64 // pieces of purchases that may have taken effect and been refunded: the pieces left do not show it
	vague   int64 // pieces of purchases that a refund overlaps, of which not only the moment is unclear
	// tangled says that some refund was not simply of an earlier purchase with an answer, so that it matters which
	// purchase each refund is of.
	tangled bool
}

// back is the record of one order that was, or may have been, refunded, in pieces.
type back struct {
	bought, lost int64          // bought for certain, and by tries without an answer that may have had an effect
	given, maybe int64          // the same of refunds
	tab          *tab           // nil as long as it was bought once, with an answer, and at most one refund came
	by           time.Duration  // the latest return of a refund
	last         *history.Op    // the last refund with an answer, if it refunded too much
	call         time.Duration  // the earliest call of a refund
	refunds      int32          // that may have had an effect
	passage      int32          // its entry in balance.passing, plus one
	vague        bool           // it counts in givenBack.vague
	again        *[2]history.Op // its first refund, and the last that came after it: they may be of parts
}

// excess returns how much more was refunded than can have been bought.
func (b *back) excess() int64 { return max(0, b.given-b.bought-b.lost) }

// change applies a change to an order, and to the sums.
func (g *givenBack) change(b *back, f func()) {
	g.count(b, -1)
	f()
	g.count(b, 1)
}

func (g *givenBack) count(b *back, sign int64) {
	settled := min(b.bought, b.given)
	g.certain += sign * settled
	g.perhaps += sign * min(b.bought-settled, b.maybe)
	g.undone += sign * min(b.lost, b.maybe+b.given-settled)
}

// backOf returns the entry of an order, made if necessary.
func (p *product) backOf(o *order) *back {
	if o.back == 0 {
		b := back{bought: int64(o.effects) * int64(o.pieces)}
		if o.tried > 0 {
			t := &p.sales.bought.tried[o.tried-1]
			spare := t.lost
			if t.credited {
				spare--
			}
			b.lost = spare * t.pieces
		}
		p.list = append(p.list, b)
		o.back = int32(len(p.list))
	}
	return &p.list[o.back-1]
}

// rebought enters that more of an order was bought, or may have been. Dated says that an effect of the order was known
// before, and since when.
func (p *product) rebought(o *order, op *history.Op, more, lost int64, dated bool) {
	b := &p.list[o.back-1]
	p.enlarge(o, b, op, more, lost)
	if dated || op.Call > b.by || op.Outcome == history.Refused || b.refunds == 0 ||
		op.Outcome == history.Unknown && b.given == 0 {
		return
	}
	if op.Reason == history.Repeated {
		p.blur(o, b)
		return
	}
	to := b.by
	if op.Outcome == history.OK {
		to = min(to, op.Return)
	}
	p.pass(o, b, op, op.Pieces(), max(op.Call, b.call), to)
}

// enlarge enters that more of an order was bought, or may have been, after a refund of it.
func (p *product) enlarge(o *order, b *back, op *history.Op, more, lost int64) {
	if more > 0 {
		p.tabOf(o, b).buy(&p.net, boughtBy(op, more))
	}
	p.change(b, func() { b.bought, b.lost = b.bought+more, b.lost+lost })
}

// pass enters that an order may have been bought and refunded at one moment from from to to.
func (p *product) pass(o *order, b *back, op *history.Op, pieces int64, from, to time.Duration) {
	if o.effects > 0 {
		to = min(to, o.ret)
	}
	switch {
	case from > to: // another purchase must have been the one
		return
	case b.vague && b.passage == 0: // another moment, which is not known, may have been the one
		return
	}
	if b.passage == 0 {
		b.passage = int32(p.net.passing.add(op, pieces)) + 1
	} else {
		p.blur(o, b)
	}
	p.net.passing.allow(int(b.passage)-1, from, to)
	if b.refunds > 1 || b.given+b.maybe != pieces || o.effects > 1 {
		p.blur(o, b)
	}
}

// blur notes that the facts about an order that was bought while it was refunded do not bound the pieces it needed.
func (p *product) blur(o *order, b *back) {
	if !b.vague {
		b.vague = true
		p.vague += max(int64(o.effects)*int64(o.pieces), b.bought+b.lost, b.given+b.maybe)
	}
}

// giveBack enters a refund: pieces that are newly known to have been refunded, or that
// may have been. Implied says that no other operation had shown that they were bought.
func (p *product) giveBack(op *history.Op, more, maybe int64, implied bool) {
	o := p.sales.bought.of(p, op.Arg)
	b := p.backOf(o)
	simple := o.effects == 1 && o.ret < op.Call
	if b.tab == nil && (b.refunds > 0 || o.tried > 0 || o.effects != 1) {
		p.tabOf(o, b)
	}
	p.change(b, func() { b.given, b.maybe = b.given+more, b.maybe+maybe })
	late := o.effects == 1 && o.ret >= op.Call
	switch {
	case op.Reason == history.Repeated: // the refund that it refers to counts, whether it came or is still to come
	case b.tab != nil:
		b.tab.refund(&p.net, givenBy(op))
	case late:
		p.net.refund(o.ret, min(b.bought, op.Pieces()), true)
	default:
		p.net.refund(op.Call, min(b.bought, op.Pieces()), false)
	}
	b.by = max(b.by, op.Return)
	switch {
	case op.Outcome == history.Unknown:
		b.by = history.Forever
	case b.excess() > 0:
		b.last = clone(op)
	}
	if op.Reason != history.Repeated {
		if b.refunds++; b.refunds == 1 || op.Call < b.call {
			b.call = op.Call
		}
	}
	if !simple || b.given+b.maybe > b.bought {
		p.tangled = true
	}
	p.overlap(o, b, op, late, implied)
}

// overlap looks for the moment of a purchase that a refund overlaps.
func (p *product) overlap(o *order, b *back, op *history.Op, late, implied bool) {
	to := op.Return
	if op.Outcome == history.Unknown {
		to = history.Forever
	}
	var t tries
	if o.tried > 0 {
		t = p.sales.bought.tried[o.tried-1]
	}
	switch {
	case o.effects == 0 || !late:
	case op.Reason == history.Repeated, !implied && (o.told || o.effects > 1 || t.lost > 0), b.refunds > 1:
		p.blur(o, b)
	case !implied:
		p.pass(o, b, op, int64(o.pieces), max(o.call, op.Call), to)
	case t.lost > 0:
		p.pass(o, b, op, t.pieces, max(t.earliest, op.Call), to)
		if t.lost > 1 {
			p.blur(o, b)
		}
	}
}

// tooMuch finds an order of which more was refunded than can have been bought.
func (g *givenBack) tooMuch() *back {
	for i := range g.list {
		if b := &g.list[i]; b.excess() > 0 {
			return b
		}
	}
	return nil
}

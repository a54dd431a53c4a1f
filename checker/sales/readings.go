package sales

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// reading is one final reading: at some moment between call and ret, this many unsold pieces
// were there.
type reading struct {
	left      int64
	sold      bool // it is of what was sold
	call, ret time.Duration
	ops       []history.Op
}

// readings returns the final readings of the pieces left, including reserved ones, and of the pieces sold. There are
// none in a history that was cut off.
func (p *product) readings() (list []reading) {
	f := &p.final
	if p.ended {
		return nil
	}
	var left, sold *reading
	note := func(r **reading, n int64, op *history.Op) {
		if *r == nil {
			*r = &reading{left: n, call: op.Call}
		}
		(*r).call, (*r).ret = min((*r).call, op.Call), max((*r).ret, op.Return)
		(*r).ops = append((*r).ops, *op)
	}
	for i := len(f.readings) - 1; i >= 0; i-- { // the last of each
		op := &f.readings[i]
		switch {
		case slices.ContainsFunc(f.readings[i+1:], func(later history.Op) bool { return later.Arg == op.Arg }):
		case op.Arg == monitor.IsSold:
			note(&sold, p.h.Stock-f.sold, op)
		case f.haveLeft:
			note(&left, f.left+f.reserved, op)
		}
	}
	if sold != nil {
		sold.sold = true
	}
	for _, r := range []*reading{left, sold} {
		if r != nil {
			list = append(list, *r)
		}
	}
	if len(list) == 2 && list[1].ret < list[0].call {
		list[0], list[1] = list[1], list[0]
	}
	return list
}

// read reports whether a sale that has settled all answers can show the final readings. left is then the number left,
// and spare lists the changes by operations without an answer that may still come, each before, between or after the
// readings.
func (p *product) read(left int64, spare []unanswered) monitor.Result {
	f := &p.final
	if !f.haveSold && f.left+f.reserved == left && left >= 0 && left <= p.h.Stock { // as almost always
		return monitor.Holds
	}
	list := p.readings()
	for _, r := range list {
		if r.left < 0 || r.left > p.h.Stock {
			return monitor.Violated
		}
	}
	switch len(list) {
	case 0:
		return monitor.Holds
	case 1:
		return reach(spare, left-list[0].left, 0)
	}
	a, b := list[0].left, list[1].left
	result := reach(spare, left-a, a-b)
	if result != monitor.Holds && list[1].call <= list[0].ret { // or the other one was first
		if other := reach(spare, left-b, b-a); other != monitor.Violated {
			result = other
		}
	}
	return result
}

// mostReached bounds the steps of reach.
const mostReached = 1 << 16

// reach reports whether some operations of spare, which take pieces, or give them back if negative, add up to first,
// and some of the others to second. The result is Unknown if there are too many combinations.
func reach(list []unanswered, first, second int64) monitor.Result {
	list = slices.DeleteFunc(slices.Clone(list), func(s unanswered) bool { return s.count == 0 && s.late == 0 })
	// The larger numbers first: smaller ones fill the rest.
	slices.SortStableFunc(list, func(a, b unanswered) int { return cmp.Compare(max(b.pieces, -b.pieces), max(a.pieces, -a.pieces)) })
	steps := 0
	return reachMixed(list, first, second, &steps)
}

func reachMixed(list []unanswered, first, second int64, steps *int) monitor.Result {
	if first == 0 && second == 0 {
		return monitor.Holds
	}
	var takes, gives, lateTakes, lateGives int64
	equal := true
	for _, s := range list {
		equal = equal && max(s.pieces, -s.pieces) == max(list[0].pieces, -list[0].pieces)
		if s.pieces > 0 {
			takes, lateTakes = takes+s.pieces*s.count, lateTakes+s.pieces*s.late
		} else {
			gives, lateGives = gives-s.pieces*s.count, lateGives-s.pieces*s.late
		}
	}
	switch {
	case first > takes, second > takes+lateTakes, -first > gives, -second > gives+lateGives:
		return monitor.Violated
	case max(first, 0)+max(second, 0) > takes+lateTakes, max(-first, 0)+max(-second, 0) > gives+lateGives:
		if equal || gives+lateGives == 0 || takes+lateTakes == 0 {
			return monitor.Violated
		}
	}
	if equal { // as often: pieces that are taken and refunded change nothing
		if q := list[0].pieces; first%q != 0 || second%q != 0 {
			return monitor.Violated
		}
		return monitor.Holds
	}
	result, s := monitor.Violated, list[0]
	for a := s.count; a >= 0; a-- {
		if gives == 0 && a*s.pieces > first {
			continue
		}
		for b := s.count - a + s.late; b >= 0; b-- {
			if *steps++; *steps > mostReached {
				return monitor.Unknown
			}
			if gives+lateGives == 0 && b*s.pieces > second {
				continue
			}
			switch reachMixed(list[1:], first-a*s.pieces, second-b*s.pieces, steps) {
			case monitor.Holds:
				return monitor.Holds
			case monitor.Unknown:
				result = monitor.Unknown
			}
		}
	}
	return result
}

// spare returns the changes by operations without an answer that may still come.
func (p *product) spare() []unanswered {
	list := slices.Clone(p.buys.spare)
	for _, s := range p.refunds.spare {
		list = append(list, unanswered{pieces: -s.pieces, count: s.count})
	}
	return list
}

// accounts reports whether the final readings balance the books: operations without an answer must account for the
// difference, each wholly. At most one operation of each order has changed the stock left, but the sale may have
// counted the order more often; see [oncePerOrder].
func (p *product) accounts() monitor.Result {
	list := p.readings()
	from := p.h.Stock - p.buys.sure + p.certain
	back, undone, vague := p.mayReturn()
	try := func(a, b *reading, back []unanswered) monitor.Result {
		orders := slices.Concat(p.buys.untoldSpare, back)
		if b == nil {
			return reach(orders, from-a.left, 0)
		}
		if b.sold {
			for _, s := range p.buys.spare {
				i := slices.IndexFunc(orders, func(o unanswered) bool { return o.pieces == s.pieces })
				if i < 0 {
					i = len(orders)
					orders = append(orders, unanswered{pieces: s.pieces})
				}
				orders[i].late = s.count - orders[i].count
			}
		}
		return reach(orders, from-a.left, a.left-b.left)
	}
	ways := func(back []unanswered) monitor.Result {
		switch len(list) {
		case 0:
			return monitor.Holds
		case 1:
			return try(&list[0], nil, back)
		}
		result := try(&list[0], &list[1], back)
		if result != monitor.Holds && list[1].call <= list[0].ret { // or the other one was first
			if other := try(&list[1], &list[0], back); other != monitor.Violated {
				result = other
			}
		}
		return result
	}
	result := ways(back)
	if result == monitor.Violated && len(undone) > 0 && ways(slices.Concat(back, undone)) != monitor.Violated {
		result = monitor.Unknown
	}
	if result == monitor.Holds && vague {
		result = monitor.Unknown
	}
	return result
}

// mayReturn returns how much refunds without an answer may have returned: of known purchases (back), and of purchases
// that may have had an effect (undone). vague says that they may have returned only part of an order.
func (g *givenBack) mayReturn() (back, undone []unanswered, vague bool) {
	if g.perhaps == 0 && g.undone == 0 {
		return nil, nil, false
	}
	for i := range g.list {
		b := &g.list[i]
		settled := min(b.bought, b.given)
		more := min(b.bought-settled, b.maybe)
		switch {
		case more == 0:
		case b.refunds > 1 || more != b.maybe:
			back, vague = enter(back, -1, more), vague || more > 1
		default:
			back = enter(back, -more, 1)
		}
		switch n := min(b.lost, b.maybe+b.given-settled); {
		case n == 0:
		case b.refunds > 1 || b.given > 0 || n != b.maybe:
			undone = enter(undone, -1, n)
		default:
			undone = enter(undone, -n, 1)
		}
	}
	return back, undone, vague
}

// misread returns the verdict on final readings that do not fit the answers.
func (p *product) misread() monitor.Verdict {
	v := monitor.Verdict{Result: monitor.Violated, Count: 1}
	for i, r := range p.readings() {
		if i > 0 {
			v.Why += " and "
		}
		v.Why += fmt.Sprintf("%d not sold between %s and %s", r.left, say.At(r.call), say.At(r.ret))
		v.Witness = append(v.Witness, r.ops...)
	}
	v.Witness = monitor.InOrder(v.Witness...)
	v.Why = "the final state shows " + v.Why + ", which fits no order of the answers"
	return v
}

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

// toldLeft judges the numbers left that buyers were told: a purchase that leaves r pieces took the pieces r+1 to r+q,
// counted from the last. Without refunds each piece is sold once, so these numbers give the order of the purchases, and
// each must fit it: in that order, t = max(t, call) may not pass a return. A piece that no answer mentions went to a
// purchase whose answer had no number, or that had no answer. The smallest bad histories, with a stock of 9:
//
//	client 1  buy  [1, 4]  8 left
//	client 2  buy  [2, 3]  8 left
//
//	client 1  buy  [1, 2]  7 left
//	client 2  buy  [3, 4]  8 left
//
// Purchases that continue the sequence from the stock are settled at once, so little is remembered.
type toldLeft struct {
	next    int64         // the largest piece that is not settled
	t       time.Duration // the greedy schedule of the settled purchases
	latest  sale          // the purchase that set t, if it is occupied
	pending []sale        // told, and not settled, the largest number first
	untold  int64         // pieces bought that may be any: without an answer, or without a number
	told    int64         // pieces told
	lost    bool          // too many were pending: nothing is judged
	below   *history.Op   // the first purchase that was told a number below zero
	wrong   int
	twice   bool // a piece was told to two
	why     string
	witness []history.Op
}

// mostPending bounds the memory of a toldLeft: 6 MB.
const mostPending = 1 << 16

// observe takes a purchase that had no answer or a fresh success.
func (w *toldLeft) observe(p *product, op *history.Op) {
	left, said := op.Result.Num()
	if op.Outcome != history.Unknown && said && left < -1 && w.below == nil {
		w.below = clone(op)
	}
	if op.Outcome == history.Unknown || !said || left < 0 {
		w.untold += op.Pieces()
		return
	}
	w.told += op.Pieces()
	if w.lost || w.wrong > 0 {
		return
	}
	if w.told == op.Pieces() {
		w.next = p.h.Stock
	}
	first := left + op.Pieces()
	if first == w.next && max(w.t, op.Call) <= op.Return { // as almost always
		if op.Call > w.t {
			w.t, w.latest = op.Call, taleOf(op, left)
		}
		if w.next = left; len(w.pending) > 0 {
			w.settle(p, 0)
		}
		return
	}
	at, _ := slices.BinarySearchFunc(w.pending, left, func(s sale, left int64) int { return cmp.Compare(left, s.left) })
	w.pending = slices.Insert(w.pending, at, taleOf(op, left))
	if first >= w.next {
		w.settle(p, 0)
	} else if w.lost = len(w.pending) > mostPending; w.lost {
		w.pending = nil
	}
}

func taleOf(op *history.Op, left int64) sale {
	return sale{call: op.Call, ret: op.Return, left: left, order: op.Arg, session: op.Session, fence: op.Fence, client: op.Client, amount: op.Amount, occupied: 1}
}

// advance settles purchases before which no other can come any more: a purchase called after the answer to another has
// a smaller number.
func (w *toldLeft) advance(p *product, lowWater time.Duration) {
	if !slices.ContainsFunc(w.pending, func(s sale) bool { return s.ret < lowWater }) {
		return
	}
	last := len(w.pending)
	for last > 0 && w.pending[last-1].ret >= lowWater {
		last--
	}
	w.settle(p, last)
}

// settle takes the pending purchases in the order in which buyers were told of them, as long as
// they follow one another without a gap; it takes the first many of them even across gaps.
func (w *toldLeft) settle(p *product, many int) {
	n := 0
	for ; n < len(w.pending) && w.wrong == 0; n++ {
		s := &w.pending[n]
		switch first := s.left + max(int64(s.amount), 1); {
		case first > w.next:
			w.twice = w.next < p.h.Stock
			op := s.op(&history.Op{Key: p.key})
			w.fail(p, op, fmt.Sprintf("%s was told at %s that %s left of %s after order %s, but %s", say.Client(op), say.At(op.Return), were(s.left), say.Thousands(p.h.Stock), op.Arg, w.others(p)))
			return
		case first < w.next && n >= many:
			w.pending = slices.Delete(w.pending, 0, n)
			return
		}
		if s.call > w.t {
			w.t, w.latest = s.call, *s
		}
		if w.t > s.ret {
			op, before := s.op(&history.Op{Key: p.key}), w.latest.op(&history.Op{Key: p.key})
			w.fail(p, op, fmt.Sprintf("%s was told by %s that %s left after order %s, but %s, which was told that %s left, bought only from %s on",
				say.Client(op), say.At(op.Return), were(s.left), op.Arg, say.Client(before), were(w.latest.left), say.At(before.Call)))
			return
		}
		w.next = s.left
	}
	w.pending = slices.Delete(w.pending, 0, n)
}

// others describes the answers to other purchases that this answer does not fit.
func (w *toldLeft) others(p *product) string {
	if w.next == p.h.Stock {
		return "there were no more than " + say.Thousands(p.h.Stock)
	}
	return "that fits no order with what others were told: the last of them that " + were(w.next) + " left"
}

func (w *toldLeft) fail(p *product, op *history.Op, why string) {
	w.wrong, w.why = 1, why
	if w.latest.occupied != 0 && w.latest.order != op.Arg {
		w.witness = append(w.witness, *w.latest.op(&history.Op{Key: p.key}))
	}
	w.witness = monitor.InOrder(append(w.witness, *op)...)
	w.pending = nil
}

// verdict judges the answers so far. good is the verdict to return if they are right.
func (w *toldLeft) verdict(p *product, good monitor.Verdict, cut bool) monitor.Verdict {
	switch {
	case w.told == 0:
		return good
	case w.lost:
		return monitor.Undecided(fmt.Sprintf("what buyers were told was not judged: too many numbers are missing between those that were told, of %s", say.Count(w.told, "piece")))
	}
	end := *w
	end.pending, end.witness = slices.Clone(w.pending), slices.Clone(w.witness)
	end.settle(p, len(end.pending))
	switch missing := p.h.Stock - end.next - w.told; {
	case end.wrong > 0:
		v := monitor.Verdict{Result: monitor.Violated, Count: 1, Why: end.why, Witness: end.witness}
		if u := p.update; end.twice && u != nil {
			v.Why = fmt.Sprintf("%s and %s were both told that %s left, after orders %s and %s", say.Client(&u[0]), say.Client(&u[1]), were(leftAfter(&u[0])), u[0].Arg, u[1].Arg)
			v.Witness = monitor.InOrder(u[0], u[1])
		}
		return v
	case missing > w.untold && !cut:
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Why: fmt.Sprintf("a buyer was told that %s left, but only %s of %s can have been sold by then", were(end.next), say.Thousands(w.told+w.untold), say.Thousands(p.h.Stock)), Witness: end.last(p)}
	}
	return good
}

// leftAfter returns how many pieces a buyer was told are left.
func leftAfter(op *history.Op) int64 {
	left, _ := op.Result.Num()
	return left
}

// last returns the purchase that set the time of the schedule, if there is one.
func (w *toldLeft) last(p *product) []history.Op {
	if w.latest.occupied == 0 {
		return nil
	}
	return []history.Op{*w.latest.op(&history.Op{Key: p.key})}
}

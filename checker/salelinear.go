package checker

import (
	"fmt"
	"slices"
	"time"

	"oversell/history"
	"oversell/variant"
)

// saleLinear judges that every answer of a sale fits one legal order of purchases,
// refunds and sold-out answers, each at a moment between its call and its return.
//
// The object is a number of pieces. A purchase takes its pieces when that many
// are left, a refund gives them back, a sold-out answer needs fewer left than
// ordered. An operation without an answer takes effect at some moment after its call, or
// never. An answer that an order had been counted needs an effect of that order
// before it and has none itself; a refusal as stale has no effect. That an order
// has no second effect is the business of once-per-order.
//
// Which procedure decides depends on what occurred (spec/checking.md). S is the
// stock, K what surely sold:
//
//   - Purchases only: K <= S.
//   - Also sold-out answers, all for one piece: moreover, with D the earliest
//     return of such an answer, every purchase was called by D, and enough
//     without an answer, to take all: K + U(D) >= S.
//   - Also sold-out answers, for any amounts, every purchase answered: no
//     refusal of q pieces while q were surely left; see [soldOut].
//   - Refunds, but no sold-out answers: what is surely sold at any moment, net of
//     refunds called, is at most S; see [balance].
//   - Everything else: a search; see [frontier]. It needs all operations from
//     the first on. It runs along when the header announces refunds or amounts;
//     otherwise the first 8,192 operations are kept for it.
//
// The smallest bad histories, with a stock of 1:
//
//	client 1  buy  [1, 2]  refused (sold-out)
//	client 2  buy  [3, 4]  ok
//
//	client 1  buy  [1, 2]  order 7  ok (repeated)
type saleLinear struct {
	h     *history.Header
	sales keyed[stock]
	ended bool
}

type stock struct {
	h   *history.Header
	key history.Value

	sure        int64 // pieces that surely sold
	fresh       table[bool]
	lost        map[history.Value][]lostBuy
	credits     map[history.Value]credit     // orders of which only a repetition shows the effect
	unexplained map[history.Value]history.Op // repetitions of orders without an effect so far

	mixedAmounts   bool
	refundCount    int64
	buys, soldOuts int64
	first          history.Op // the earliest sold-out answer
	late           int        // purchases called after it returned
	firstLate      history.Op
	lastSale       history.Op // the purchase that went beyond the stock

	out   soldOut
	net   balance
	kept  *frontier    // nil once it is too late
	live  bool         // kept runs along
	early []history.Op // the first operations, for the oracle
	held  int          // operations kept so far
	// bound says that a repetition bound the time of an effect in a way that
	// the search does not know.
	bound bool
}

type lostBuy struct {
	call   time.Duration
	pieces int64
}

// credit is the effect that a repetition implies.
type credit struct {
	by   time.Duration // the return of the repetition
	from lostBuy
}

const keptOps = 1 << 13

func newSaleLinear(h *history.Header) *saleLinear {
	return &saleLinear{h: h, sales: newKeyed(func(key history.Value) *stock {
		return &stock{h: h, key: key, kept: newFrontier(h.Stock), live: h.Refund > 0 || h.Quantity > 1,
			out: soldOut{stock: h.Stock}, net: balance{stock: h.Stock},
			lost: make(map[history.Value][]lostBuy), credits: make(map[history.Value]credit),
			unexplained: make(map[history.Value]history.Op)}
	})}
}

// Observe implements [Monitor].
func (m *saleLinear) Observe(op *history.Op) {
	switch op.Kind {
	case history.Buy:
		m.sales.at(op.Key).buy(op)
	case history.Refund:
		m.sales.at(op.Key).refund(op)
	}
}

func (s *stock) buy(op *history.Op) {
	s.buys++
	s.note(op)
	switch {
	case op.Outcome == history.Unknown:
		s.lose(op)
	case op.Outcome == history.OK && op.Reason == history.Repeated:
		s.repeat(op)
	case op.Outcome == history.OK:
		s.sell(op)
	case op.Reason == history.SoldOut:
		s.refuse(op)
	}
}

// note keeps the first operations, and one more to show that there were more.
func (s *stock) note(op *history.Op) {
	if len(s.early) <= oracleOps {
		s.early = append(s.early, *op)
	}
}

func (s *stock) sell(op *history.Op) {
	q := op.Pieces()
	if q != 1 {
		s.mixedAmounts = true
	}
	*s.fresh.at(op.Arg) = true
	s.out.buy(op)
	s.keep(op, takes)
	if s.soldOuts > 0 && op.Call > s.first.Return {
		if s.late++; s.late == 1 {
			s.firstLate = *op
		}
	}
	if len(s.credits)+len(s.unexplained) > 0 && s.meant(op) {
		return
	}
	s.sure += q
	s.net.sell(op, q)
	if s.sure > s.h.Stock && s.lastSale.Kind == history.NoKind {
		s.lastSale = *op
	}
}

// meant tells whether op is the effect that an earlier repetition implied, and
// has been counted for it.
func (s *stock) meant(op *history.Op) bool {
	c, credited := s.credits[op.Arg]
	if credited = credited && op.Call <= c.by; credited {
		delete(s.credits, op.Arg)
		s.lost[op.Arg] = append(s.lost[op.Arg], c.from)
		s.bound = true
	}
	r, ok := s.unexplained[op.Arg]
	if !ok || op.Call > r.Return {
		return credited
	}
	delete(s.unexplained, op.Arg)
	s.bound = true
	if credited { // a later repetition was explained by something else so far
		s.sure -= c.from.pieces
		s.net.undo(c.by, c.from.pieces)
	}
	s.sure += op.Pieces()
	s.net.sell(&r, op.Pieces()) // it must have taken effect by then
	return true
}

func (s *stock) lose(op *history.Op) {
	if op.Pieces() != 1 {
		s.mixedAmounts = true
	}
	s.out.buy(op)
	s.keep(op, takes)
	l := lostBuy{op.Call, op.Pieces()}
	if r, ok := s.unexplained[op.Arg]; ok && op.Call <= r.Return {
		delete(s.unexplained, op.Arg)
		s.credit(&r, l)
		return
	}
	s.lost[op.Arg] = append(s.lost[op.Arg], l)
}

func (s *stock) repeat(op *history.Op) {
	if *s.fresh.at(op.Arg) {
		return
	}
	if _, ok := s.credits[op.Arg]; ok {
		return // of two repetitions the earlier one binds
	}
	lost := s.lost[op.Arg]
	if len(lost) == 0 {
		if _, ok := s.unexplained[op.Arg]; !ok {
			s.unexplained[op.Arg] = *op
		}
		return
	}
	i := 0
	for j := range lost {
		if lost[j].call < lost[i].call {
			i = j
		}
	}
	l := lost[i]
	if s.lost[op.Arg] = slices.Delete(lost, i, i+1); len(lost) == 1 {
		delete(s.lost, op.Arg)
	}
	s.credit(op, l)
}

// credit counts an operation without an answer as the effect that the
// repetition op implies.
func (s *stock) credit(op *history.Op, l lostBuy) {
	s.credits[op.Arg] = credit{op.Return, l}
	s.bound = true
	s.sure += l.pieces
	s.net.sell(op, l.pieces)
	if s.sure > s.h.Stock && s.lastSale.Kind == history.NoKind {
		s.lastSale = *op
	}
}

func (s *stock) refuse(op *history.Op) {
	if op.Pieces() != 1 {
		s.mixedAmounts = true
	}
	if s.soldOuts++; s.soldOuts == 1 {
		s.first = *op // the first to return, because it is the first to complete
	}
	s.out.refuse(op)
	s.keep(op, finds)
}

func (s *stock) refund(op *history.Op) {
	if op.Outcome == history.Refused || op.Outcome == history.OK && op.Reason == history.Repeated {
		return
	}
	s.refundCount++
	s.note(op)
	s.net.refund(op, op.Pieces())
	s.keep(op, gives)
}

func (s *stock) keep(op *history.Op, kind itemKind) {
	if s.kept == nil {
		return
	}
	if s.held++; s.held > keptOps && !s.live {
		s.kept = nil
		return
	}
	s.kept.add(op, kind)
}

// Advance implements [Monitor].
func (m *saleLinear) Advance(lowWater time.Duration) {
	for _, s := range m.sales.all {
		s.out.advance(lowWater)
		s.net.advance(lowWater)
		if s.live {
			s.kept.advance(lowWater)
		}
	}
}

func (m *saleLinear) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *saleLinear) Verdict() Verdict {
	return m.sales.verdict(variant.Sale, variant.Linearizable, "nothing was ordered", func(s *stock) Verdict {
		return s.verdict(m.ended)
	})
}

func (s *stock) verdict(cut bool) Verdict {
	if s.buys+s.refundCount == 0 {
		return Verdict{Why: "nothing was ordered"}
	}
	if len(s.unexplained) > 0 {
		return s.repeatedNothing(cut)
	}
	good := Verdict{Result: Holds, Why: fmt.Sprintf("%s fit one order, %s of them sold out", many(s.buys+s.refundCount, "answer"), count(s.soldOuts))}
	switch {
	case s.refundCount > 0 && s.soldOuts > 0,
		s.mixedAmounts && s.soldOuts > 0 && len(s.lost) > 0:
		return s.searched(good, cut)
	case s.refundCount > 0:
		net := s.net.final()
		if net.peak > s.h.Stock && cut {
			return Verdict{Why: "more sold than there were, unless refunds explain it: " + cutOff}
		}
		if net.peak > s.h.Stock {
			return Verdict{Result: Violated, Count: int(net.peak - s.h.Stock), Why: fmt.Sprintf("sold %s of %s at one time, all refunds called by then deducted", count(net.peak), count(s.h.Stock)),
				Witness: inOrder(net.crossing)}
		}
		return good
	case cut && s.h.Refund > 0:
		return Verdict{Why: "the first refund of all may be in flight: " + cutOff}
	case s.sure > s.h.Stock:
		op := &s.lastSale
		return Verdict{Result: Violated, Count: int(s.sure - s.h.Stock), Witness: inOrder(*op),
			Why: fmt.Sprintf("sold %s of %s: the purchase by %s from %s to %s (order %s) found nothing left to take", count(s.sure), count(s.h.Stock),
				client(op), at(op.Call), at(op.Return), op.Arg)}
	case s.soldOuts == 0:
		return good
	case s.mixedAmounts:
		return s.amounts(good, cut)
	}
	return s.single(good, cut)
}

// repeatedNothing is the verdict when an order was called repeated that had no effect before.
func (s *stock) repeatedNothing(cut bool) Verdict {
	if cut {
		return Verdict{Why: fmt.Sprintf("%s called counted without a trace of it: %s", many(len(s.unexplained), "order"), cutOff)}
	}
	var op history.Op
	for _, r := range s.unexplained {
		if op.Kind == history.NoKind || r.Return < op.Return || r.Return == op.Return && r.Client < op.Client {
			op = r
		}
	}
	return Verdict{Result: Violated, Count: len(s.unexplained), Witness: []history.Op{op},
		Why: fmt.Sprintf("%s was told at %s that order %s had been counted before, but nothing that it sent before can have been", client(&op), at(op.Return), op.Arg)}
}

// single judges sold-out answers when all amounts are one.
func (s *stock) single(good Verdict, cut bool) Verdict {
	if s.late > 0 {
		op := &s.firstLate
		return Verdict{Result: Violated, Count: s.late, Witness: inOrder(s.first, *op),
			Why: fmt.Sprintf("%s was told at %s that nothing was left, but %s bought a piece from %s to %s", client(&s.first), at(s.first.Return),
				client(op), at(op.Call), at(op.Return))}
	}
	for _, c := range s.credits {
		if c.from.call > s.first.Return {
			return Verdict{Result: Violated, Count: 1, Witness: inOrder(s.first),
				Why: fmt.Sprintf("%s was told at %s that nothing was left, but an order sent only after that is said to have been counted", client(&s.first), at(s.first.Return))}
		}
	}
	var open int64
	for _, lost := range s.lost {
		for _, l := range lost {
			if l.call <= s.first.Return {
				open++
			}
		}
	}
	if left := s.h.Stock - s.sure - open; left > 0 {
		if cut {
			return Verdict{Why: fmt.Sprintf("%s was told that nothing was left when %s: %s", client(&s.first), be(left), cutOff)}
		}
		return Verdict{Result: Violated, Count: 1, Witness: []history.Op{s.first},
			Why: fmt.Sprintf("%s was told at %s that nothing was left, but only %s of %s can have been sold by then", client(&s.first), at(s.first.Return),
				count(s.sure+open), count(s.h.Stock))}
	}
	return good
}

// amounts judges sold-out answers for any amounts when every purchase was answered.
func (s *stock) amounts(good Verdict, cut bool) Verdict {
	wrong, first := s.out.final(cut)
	switch {
	case wrong > 0:
		op := &first.op
		return Verdict{Result: Violated, Count: wrong, Witness: []history.Op{*op},
			Why: fmt.Sprintf("%s was told between %s and %s that fewer than %s left, but at least %s", client(op), at(op.Call), at(op.Return), be(op.Pieces()), be(first.left))}
	case cut && len(s.out.waiting) > 0:
		return Verdict{Why: "a refusal came while stock seemed to be left: " + cutOff}
	}
	return good
}

// searched judges by a search.
func (s *stock) searched(good Verdict, cut bool) Verdict {
	if s.kept == nil {
		return Verdict{Why: fmt.Sprintf("refunds or amounts together with sold-out answers need a search from the first operation on, and only the first %s are kept when the header announces neither", count(int64(keptOps)))}
	}
	end := s.kept.final()
	switch {
	case end.gaveUp != "" || end.stuck == nil && s.bound:
		return s.asked(good, cut, end.gaveUp)
	case end.stuck != nil && cut:
		return Verdict{Why: "no order was found: " + cutOff}
	case end.stuck != nil:
		it := end.stuck
		cl := end.classes[it.class]
		op := history.Op{Client: it.client, Amount: int32(cl.pieces), Kind: history.Buy, Outcome: history.OK, Key: s.key, Arg: it.arg,
			Result: history.Int(-1), Due: it.call, Call: it.call, Return: it.ret}
		what := "bought " + many(cl.pieces, "piece")
		switch cl.kind {
		case gives:
			op.Kind, what = history.Refund, "gave back "+many(cl.pieces, "piece")
		case finds:
			op.Outcome, op.Reason, what = history.Refused, history.SoldOut, "was refused "+many(cl.pieces, "piece")+" as sold out"
		}
		return Verdict{Result: Violated, Count: 1, Witness: []history.Op{op},
			Why: fmt.Sprintf("%s %s from %s to %s (order %s), which fits no order of the answers until then", client(&op), what, at(it.call), at(it.ret), it.arg)}
	}
	return good
}

// asked puts a history that the search cannot decide to porcupine, if it is small.
func (s *stock) asked(good Verdict, cut bool, reason string) Verdict {
	if reason == "" {
		reason = "an order is called counted that had no answer by then, which the search does not use"
	}
	if len(s.early) <= oracleOps {
		switch r := ask(stockModel(s.h.Stock), operations(s.early)); {
		case r == Holds:
			return good
		case r == Violated && !cut:
			return Verdict{Result: Violated, Count: 1, Why: fmt.Sprintf("no order explains the %s", many(len(s.early), "answer")), Witness: s.early[len(s.early)-1:]}
		}
	}
	return Verdict{Why: "no order was found, and none is excluded: " + reason}
}

package sales

import (
	"fmt"
	"slices"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// saleLinear judges that every answer of a sale fits one legal order of purchases,
// refunds and sold-out answers, each at a moment between its call and its return.
//
// The object is a number of pieces. A purchase takes its pieces when that many
// are left, a refund returns them, a sold-out answer needs fewer left than
// ordered. An operation without an answer takes effect at some moment after its call, or
// never. An answer that an order had been counted needs an effect of that order before it and has none itself; the same
// holds for an answer that it had been refunded. If no other operation can have had that effect, it is the operation's
// own: the program repeated it by itself. A refusal as stale has no effect. Second effects of an order are judged by
// once-per-order, but a refund returns pieces that were bought by its order and not refunded before. The final
// readings are operations, too: they report the pieces left, and sold, at a moment between their calls and their
// returns.
//
// Which procedure decides depends on what occurred. S is the
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
//   - The numbers left that buyers were told, unless there are refunds; see [toldLeft]. A number below -1 fits no order;
//     -1 says that none was told.
//   - Everything else: a search; see [frontier]. It needs all operations from
//     the first on. It runs along when the header announces refunds or amounts;
//     otherwise the first 8,192 operations are kept for it.
//   - Earlier readings: no verdict, unless the rest fits no order.
//   - Final readings: some of the operations without an answer must account for them;
//     see [product.read].
//   - A refund that is not simply of an earlier purchase with an answer: porcupine, up
//     to 500 operations. Of more the verdict is Violated where the answers fit no order
//     even if a refund can be of anything, and else Unknown.
//
// The smallest bad histories, with a stock of 1:
//
//	client 1  buy  [1, 2]  refused (sold-out)
//	client 2  buy  [3, 4]  ok
//
//	client 1  buy  [1, 2]  unknown
//	client 2  buy  [3, 4]  refused (sold-out)
//	reading  left  1
//
// One opportunity is an operation that met a rival (see [contention]), provided that an answer could have been out of
// order: some answer was sold out or repeated, or more was ordered than there was.
func saleLinear(p *product) monitor.Verdict {
	v := p.ordering(p.ended)
	if v.Result == monitor.Holds {
		v = p.tales(v)
	}
	v = p.agrees(v)
	if below := p.tale.below; below != nil && v.Result != monitor.Violated {
		left, _ := below.Result.Num()
		v = monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: []history.Op{*below},
			Why: fmt.Sprintf("%s was told at %s that %s pieces were left after order %s, fewer than none", say.Client(below), say.At(below.Return), say.Thousands(left), below.Arg)}
	}
	if n := p.final.passed; n > 0 && v.Result == monitor.Holds {
		v = monitor.Undecided(fmt.Sprintf("what was read before the last purchase or refund had ended, in %s, was not judged", say.Count(n, "reading")))
	}
	if v.Result == monitor.Unknown {
		if o := p.oversold(); o.Result == monitor.Violated { // in any order
			v = o
		}
	}
	if p.soldOuts > 0 || p.repetitions > 0 || p.demand > p.h.Stock {
		v.Opportunities = p.contest.count
	}
	return v
}

// tales also judges the numbers left that buyers were told, if the answers otherwise fit an order: with refunds, or
// together with sold-out answers, by porcupine, in small histories.
func (p *product) tales(good monitor.Verdict) monitor.Verdict {
	if p.tale.told == 0 {
		return good
	}
	refunds, own := p.refundCount > 0 || p.h.Refund > 0, len(p.own()) > 0
	if !refunds && !own {
		if v := p.tale.verdict(p, good, p.ended); v.Result != monitor.Holds {
			return v
		}
	}
	if p.noted == len(p.early) && (refunds || own || p.soldOuts > 0 || p.tale.untold > 0) {
		if v := p.asked(good, p.ended, ""); v.Result != monitor.Unknown {
			return v
		}
	}
	if refunds {
		say := good.Say
		good.Say = func() string {
			return say() + "; what buyers were told to be left was not compared, since orders were refunded"
		}
	}
	if own && !refunds {
		say := good.Say
		good.Say = func() string {
			return say() + "; what buyers were told to be left was not compared, since orders were called repeated that had not been sent before"
		}
	}
	return good
}

// linearization is the state of a product that only its linearizability needs.
type linearization struct {
	operations   int64 // purchases, and refunds that may have had an effect
	soldOuts     int64
	repetitions  int64
	refundCount  int64
	mixedAmounts bool
	first        *history.Op // the earliest sold-out answer
	late         int         // purchases called after it returned
	firstLate    *history.Op
	lastSale     *history.Op    // the purchase that went beyond the stock
	second       *[2]history.Op // the first answers that show an order counted twice

	tale      toldLeft
	searching *frontier // nil at first, and once it is too late
	live      bool      // searching runs along
	gone      bool      // operations are missing from searching
	held      int       // operations kept for it

	early []history.Op // the first operations, for the oracle
	noted int          // operations, early or not
}

// The limits of the operations kept for a later search: of one product, and of all products
// together.
const (
	keptOps = 1 << 13
	mostOps = 1 << 17
)

func (l *linearization) buy(p *product, op *history.Op, fresh bool) {
	l.operations++
	p.note(op)
	if op.Pieces() != 1 && (op.Outcome != history.Refused || op.Reason == history.SoldOut) && op.Reason != history.Repeated {
		l.mixedAmounts = true
	}
	if op.Outcome == history.Unknown || fresh {
		p.tale.observe(p, op)
	}
	switch {
	case op.Outcome == history.Unknown:
		p.keep(op, takes)
	case op.Reason == history.Repeated:
		l.repetitions++
	case fresh:
		p.keep(op, takes)
		if l.first != nil && op.Call > l.first.Return {
			if l.late++; l.late == 1 {
				l.firstLate = clone(op)
			}
		}
	case op.Reason == history.SoldOut:
		if l.soldOuts++; l.soldOuts == 1 {
			l.first = clone(op) // the first to return, because it is the first to complete
		}
		p.keep(op, finds)
	}
	if p.buys.sure > p.h.Stock && l.lastSale == nil {
		l.lastSale = clone(op)
	}
}

func (l *linearization) refund(p *product, op *history.Op) {
	l.operations++
	l.refundCount++
	p.note(op)
	if op.Reason != history.Repeated {
		p.keep(op, gives)
	}
}

func clone(op *history.Op) *history.Op {
	c := *op
	return &c
}

// note keeps the first operations for the oracle. It takes small histories only.
func (p *product) note(op *history.Op) {
	if p.noted++; p.noted > linear.OracleOps {
		p.early = nil
		return
	}
	if p.noted == len(p.early)+1 && p.kept < mostOps {
		p.early = append(p.early, *op)
		p.kept++
	}
}

// keep enters an operation for a search.
func (p *product) keep(op *history.Op, kind itemKind) {
	if p.gone {
		return
	}
	if !p.live {
		if p.held++; p.held > keptOps || p.kept >= mostOps {
			p.gone, p.searching = true, nil
			return
		}
		p.kept++
	}
	if p.searching == nil {
		p.searching = newFrontier(p.h.Stock)
	}
	p.searching.add(op, kind)
}

func (p *product) ordering(cut bool) monitor.Verdict {
	if p.operations == 0 {
		return monitor.Verdict{Why: "nothing was ordered"}
	}
	if v, is := p.returnedUnbought(cut); is {
		return v
	}
	if b := p.tooMuch(); b != nil {
		return p.returnedNothing(b, cut)
	}
	good := monitor.Verdict{Result: monitor.Holds, Say: func() string {
		return fmt.Sprintf("%s, %s of them contended, fit one order; %s sold out", say.Count(p.operations, "answer"), say.Thousands(p.contest.count), were(p.soldOuts))
	}}
	own := p.own()
	mixed := p.mixedAmounts || slices.ContainsFunc(own, func(r history.Op) bool { return r.Pieces() != 1 })
	switch {
	case len(p.refunds.unexplained) > 0, len(own) > 0 && (p.refundCount > 0 || mixed && p.buys.unknown > 0) && p.soldOuts > 0:
		return p.asked(good, cut, "orders were called repeated that had not been sent before, which the search does not use")
	case p.refundCount > 0 && p.soldOuts > 0,
		mixed && p.soldOuts > 0 && p.buys.unknown > 0:
		return p.searched(good, cut)
	case p.refundCount > 0:
		net := p.net.final()
		if net.peak > p.h.Stock && cut {
			return monitor.Undecided("more sold than there were, unless refunds explain it: " + monitor.CutOff)
		}
		if net.peak > p.h.Stock {
			v := monitor.Verdict{Result: monitor.Violated, Count: int(net.peak - p.h.Stock), Unit: inPieces,
				Why: fmt.Sprintf("sold %s of %s at one time, all refunds called by then deducted", say.Thousands(net.peak), say.Thousands(p.h.Stock))}
			if net.crossing != nil {
				v.Witness = []history.Op{*net.crossing}
			}
			return v
		}
		v := p.fits(good, cut)
		switch {
		case v.Result != monitor.Holds:
			return v
		case len(p.refunds.spare) > 0 && p.buys.sure > p.h.Stock && len(p.readings()) > 0:
			return p.asked(good, cut, "a refund without an answer may have been needed for a purchase, and the final state may leave no room for it")
		case p.tangled:
			return p.asked(good, cut, "")
		}
		return v
	case cut && p.h.Refund > 0:
		return monitor.Undecided("the first refund of all may be in flight: " + monitor.CutOff)
	case p.buys.sure > p.h.Stock:
		op := p.lastSale
		return monitor.Verdict{Result: monitor.Violated, Count: int(p.buys.sure - p.h.Stock), Unit: inPieces, Witness: monitor.InOrder(*op),
			Why: fmt.Sprintf("sold %s of %s: the purchase by %s from %s to %s (order %s) found nothing left to take", say.Thousands(p.buys.sure), say.Thousands(p.h.Stock),
				say.Client(op), say.At(op.Call), say.At(op.Return), op.Arg)}
	case p.soldOuts == 0:
	case mixed:
		good = p.amounts(good, cut)
	default:
		good = p.single(good, cut)
	}
	if good.Result != monitor.Holds {
		return good
	}
	return p.fits(good, cut)
}

// fits judges the final readings if the answers fit an order.
func (p *product) fits(good monitor.Verdict, cut bool) monitor.Verdict {
	switch p.read(p.h.Stock-p.buys.sure+p.refunds.sure, p.spare()) {
	case monitor.Violated:
		return p.misread()
	case monitor.Unknown:
		return p.asked(good, cut, manySums)
	}
	return good
}

const manySums = "there are too many sums of operations without an answer that could account for the final state"

// returnedUnbought returns the verdict when an order was refunded and the history holds no trace of
// its purchase.
func (p *product) returnedUnbought(cut bool) (v monitor.Verdict, is bool) {
	var first *history.Op
	wrong := 0
	for _, r := range p.buys.unexplained {
		if r.Kind != history.Refund {
			continue
		}
		if wrong++; first == nil || r.Return < first.Return || r.Return == first.Return && r.Client < first.Client {
			first = &r
		}
	}
	switch {
	case wrong == 0:
		return v, false
	case cut:
		return monitor.Undecided(fmt.Sprintf("%s refunded without a trace of its purchase: %s", say.Count(wrong, "order"), monitor.CutOff)), true
	}
	return monitor.Verdict{Result: monitor.Violated, Count: wrong, Witness: []history.Op{*first},
		Why: fmt.Sprintf("%s was told at %s that order %s was refunded, but nothing that it sent before can have been counted", say.Client(first), say.At(first.Return), first.Arg)}, true
}

// own returns the repetitions with effects of their own; see [ledger].
func (p *product) own() (all []history.Op) {
	for _, list := range []map[int32]history.Op{p.buys.unexplained, p.refunds.unexplained} {
		for _, r := range list {
			all = append(all, r)
		}
	}
	return all
}

// returnedNothing returns the verdict when more of an order was refunded than was bought.
func (p *product) returnedNothing(b *back, cut bool) monitor.Verdict {
	op := b.last
	why := fmt.Sprintf("%s refunded %s of order %s from %s to %s, which makes %s in all, but no more than %s bought of it",
		say.Client(op), say.Count(op.Pieces(), "piece"), op.Arg, say.At(op.Call), say.At(op.Return), say.Thousands(b.given), were(b.bought+b.lost))
	if cut {
		return monitor.Undecided(why + ": " + monitor.CutOff)
	}
	return monitor.Verdict{Result: monitor.Violated, Count: int(b.excess()), Unit: inPieces, Witness: []history.Op{*op}, Why: why}
}

// countedTooLate returns the repetition that returned first of those that were called after a sold-out answer had returned
// and must have had an effect of their own; nil if there is none.
func (p *product) countedTooLate() (first *history.Op) {
	for _, r := range p.buys.unexplained {
		if r.Call > p.first.Return && (first == nil || r.Return < first.Return || r.Return == first.Return && r.Client < first.Client) {
			first = &r
		}
	}
	return first
}

// single judges sold-out answers if all amounts are one.
func (p *product) single(good monitor.Verdict, cut bool) monitor.Verdict {
	if r := p.countedTooLate(); r != nil {
		why := fmt.Sprintf("%s was told at %s that nothing was left, but order %s of %s, sent only after that, is said to have been counted", say.Client(p.first), say.At(p.first.Return), r.Arg, say.Client(r))
		if cut { // an attempt that was sent before may be under way
			return monitor.Undecided(why + ": " + monitor.CutOff)
		}
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: monitor.InOrder(*p.first, *r), Why: why}
	}
	if p.late > 0 {
		op := p.firstLate
		return monitor.Verdict{Result: monitor.Violated, Count: p.late, Witness: monitor.InOrder(*p.first, *op),
			Why: fmt.Sprintf("%s was told at %s that nothing was left, but %s bought a piece from %s to %s", say.Client(p.first), say.At(p.first.Return),
				say.Client(op), say.At(op.Call), say.At(op.Return))}
	}
	if p.buys.late > 0 {
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: monitor.InOrder(*p.first),
			Why: fmt.Sprintf("%s was told at %s that nothing was left, but an order sent only after that is said to have been counted", say.Client(p.first), say.At(p.first.Return))}
	}
	open := p.buys.open
	var readings []reading
	if open > 0 {
		readings = p.readings()
	}
	for _, r := range readings {
		open = max(0, min(open, p.h.Stock-r.left-p.buys.sure))
	}
	if left := p.h.Stock - p.buys.sure - open; left > 0 {
		if cut {
			return monitor.Undecided(fmt.Sprintf("%s was told that nothing was left when %s: %s", say.Client(p.first), were(left), monitor.CutOff))
		}
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: []history.Op{*p.first},
			Why: fmt.Sprintf("%s was told at %s that nothing was left, but only %s of %s can have been sold by then", say.Client(p.first), say.At(p.first.Return),
				say.Thousands(p.buys.sure+open), say.Thousands(p.h.Stock))}
	}
	return good
}

// amounts judges sold-out answers for any amounts when every purchase was answered.
func (p *product) amounts(good monitor.Verdict, cut bool) monitor.Verdict {
	wrong, first, _ := p.out.final(cut)
	switch {
	case wrong > 0:
		op := &first.op
		return monitor.Verdict{Result: monitor.Violated, Count: wrong, Witness: []history.Op{*op},
			Why: fmt.Sprintf("%s was told between %s and %s that fewer than %s left, but at least %s", say.Client(op), say.At(op.Call), say.At(op.Return), were(op.Pieces()), were(first.left))}
	case cut && p.out.undecided():
		return monitor.Undecided("a refusal came while stock seemed to be left: " + monitor.CutOff)
	}
	return good
}

// searched judges by a search.
func (p *product) searched(good monitor.Verdict, cut bool) monitor.Verdict {
	if p.gone {
		return monitor.Undecided(fmt.Sprintf("refunds or amounts together with sold-out answers need a search from the first operation on, and only the first %s are kept when the header announces neither", say.Thousands(int64(keptOps))))
	}
	end := p.searching.final()
	switch {
	case end.gaveUp != "":
		return p.asked(good, cut, end.gaveUp)
	case end.stuck != nil && cut:
		return monitor.Undecided("no order was found: " + monitor.CutOff)
	case end.stuck != nil:
		it := end.stuck
		cl := end.classes[it.class]
		op := history.Op{Client: it.client, Amount: int32(cl.pieces), Kind: history.Buy, Outcome: history.OK, Key: p.key, Arg: it.arg,
			Result: history.Int(-1), Due: it.call, Call: it.call, Return: it.ret}
		what := "bought " + say.Count(cl.pieces, "piece")
		switch cl.kind {
		case gives:
			op.Kind, what = history.Refund, "refunded "+say.Count(cl.pieces, "piece")
		case finds:
			op.Outcome, op.Reason, what = history.Refused, history.SoldOut, "was refused "+say.Count(cl.pieces, "piece")+" as sold out"
		}
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: []history.Op{op},
			Why: fmt.Sprintf("%s %s from %s to %s (order %s), which fits no order of the answers until then", say.Client(&op), what, say.At(it.call), say.At(it.ret), it.arg)}
	}
	read := monitor.Violated
	for i := range end.configs {
		c := &end.configs[i]
		if r := p.read(c.left, end.unused(c)); r == monitor.Holds || read == monitor.Violated {
			read = r
		}
		if read == monitor.Holds {
			break
		}
	}
	switch {
	case read == monitor.Violated:
		return p.misread()
	case read == monitor.Unknown:
		return p.asked(good, cut, manySums)
	case p.tangled || p.buys.bound || p.refunds.bound:
		return p.asked(good, cut, "")
	}
	return good
}

// asked returns porcupine's answer for a history that the search cannot decide, if the history is small.
func (p *product) asked(good monitor.Verdict, cut bool, reason string) monitor.Verdict {
	if reason == "" {
		reason = "it matters when an order without an answer was counted, because it was called counted or was refunded, which the search does not use"
	}
	if p.noted == len(p.early) {
		ops := slices.Clone(p.early)
		for _, r := range p.own() {
			i := slices.IndexFunc(ops, func(op history.Op) bool {
				return op.Kind == r.Kind && op.Key == r.Key && op.Arg == r.Arg && op.Reason == history.Repeated && op.Return == r.Return
			})
			if i >= 0 {
				ops[i].Call, ops[i].Reason, ops[i].Result = r.Call, history.NoReason, history.Int(-1)
			}
		}
		for _, r := range p.readings() {
			op := r.ops[0]
			op.Arg, op.Result, op.Call, op.Return = monitor.IsLeft, history.Int(r.left), r.call, r.ret
			ops = append(ops, op)
		}
		switch r := linear.Ask(linear.StockModel(p.h.Stock, ops), linear.Operations(ops)); {
		case r == monitor.Holds:
			return good
		case r == monitor.Violated && !cut:
			return monitor.Verdict{Result: monitor.Violated, Count: 1, Why: fmt.Sprintf("no order explains the %s", say.Count(len(p.early), "answer")), Witness: p.early[len(p.early)-1:]}
		}
	}
	return monitor.Undecided("no order was found, and none is excluded: " + reason)
}

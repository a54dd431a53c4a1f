package sales

import (
	"fmt"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/internal/phrase"
)

// noOversell judges that accepted sales never exceed the stock, at any moment.
//
// Surely sold are every fresh success, and one effect for an order that an answer called
// repeated or that was refunded. Refunds count from their call, because they may take effect from then on, and give
// back no more than was bought (see [givenBack]). Pieces that may have been refunded as soon as they were bought were
// still sold for a moment; see [passing]. Of a refund without an answer and one with an answer, of the same purchase,
// the earlier call counts. More than the stock is a violation, and so is more than the stock in a reading of what the
// server itself counts as sold. If only the operations without an answer could carry it beyond the stock, oversell is
// possible, unless the final state shows how many of them took effect. The smallest bad histories, with a stock of 1:
//
//	client 1  buy  [1, 2]  ok
//	client 2  buy  [3, 4]  ok
//
//	client 1  buy  [1, 2]  ok
//	client 2  buy  [3, 4]  unknown
//	reading  left  0
//	reading  sold  2
//
// One opportunity is an operation that met a rival (see [contention]), provided that more was ordered than there was:
// otherwise a sale that accepts everything does not oversell. Every purchase counts as ordered, including purchases
// refused as stale: accepting one of them could have been the violation.
func noOversell(p *product) monitor.Verdict {
	v := p.oversold()
	if p.demand > p.h.Stock {
		v.Opportunities = p.contest.count
	}
	return v
}

func (p *product) oversold() monitor.Verdict {
	stock := p.h.Stock
	net := p.net.final()
	unsure := p.mayHaveSold()
	more := unsure + p.buys.undated
	most := net.peak + more
	peak := net.peak
	state := func() string {
		state := fmt.Sprintf("sold %s of %s", say.Thousands(peak), say.Thousands(stock))
		if unsure > 0 {
			state = fmt.Sprintf("sold %s to %s of %s", say.Thousands(peak), say.Thousands(peak+unsure), say.Thousands(stock))
		}
		if p.refunds.sent > 0 {
			state += " at the most at one time"
		}
		return state
	}
	unfit, first := net.passing.unfit()
	// Pieces of refunds that only an answer "repeated" shows: it is not known when they came, but not before the call of
	// that answer. before counts those that may have come before more than the stock was sold.
	var alone, before int64
	for _, r := range p.refunds.unexplained {
		if alone += r.Pieces(); net.crossed != nil && r.Call <= net.crossed.when {
			before += r.Pieces()
		}
	}
	certain := net.crossed != nil && net.crossed.pieces-before > stock
	booked, _ := p.final.mostSold()
	switch {
	case net.peak > stock && p.ended && (p.h.Refund > 0 || p.refunds.sent > 0): // the first refund of all may be in flight
		return monitor.Undecided(state() + ": refunds may explain it, but " + monitor.CutOff)
	case alone > 0 && booked <= stock && (net.peak > stock || unfit > 0) && net.peak-alone <= stock && !certain:
		return monitor.Undecided(fmt.Sprintf("%s: oversell is possible; an answer says that %s had been refunded before, and the history does not show when", state(), say.Count(alone, "piece")))
	case net.peak > stock:
		why, witness := p.explain(&net)
		return monitor.Verdict{Result: monitor.Violated, Count: int(net.peak - stock), Unit: inPieces, Why: state() + ": " + why, Witness: witness}
	case unfit > 0:
		return p.squeezed(unfit, first, state())
	case booked > stock:
		return monitor.Verdict{Result: monitor.Violated, Count: int(booked - stock), Unit: inPieces, Witness: []history.Op{*p.final.most},
			Why: fmt.Sprintf("%s, and the sale itself counted %s as sold at %s", state(), say.Count(booked, "piece"), say.At(p.final.most.Return))}
	case p.buys.sent == 0:
		return monitor.Verdict{Why: "nothing was sold"}
	case most == 0 && p.contest.count == 0:
		return monitor.Verdict{Why: "nothing was sold for certain"}
	case most > stock:
		return monitor.Undecided(fmt.Sprintf("%s: oversell is possible, it depends on %s without an answer", state(), say.Count(p.buys.unknown+p.buys.undated, "piece")))
	case more > 0 && most+p.vague+net.passing.most() > stock && p.demand > stock:
		return monitor.Undecided(fmt.Sprintf("%s: oversell is possible, it depends on %s without an answer, and on when pieces were sold that were refunded before the answer to their purchase", state(), say.Count(p.buys.unknown+p.buys.undated, "piece")))
	case p.vague > 0 && peak+p.vague > stock && p.demand > stock:
		return monitor.Undecided(fmt.Sprintf("%s: oversell is possible, it depends on when refunded pieces were sold (%s, refunded before the answer to their purchase)", state(), say.Thousands(p.vague)))
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string {
		why := state()
		if peak+p.buys.unknown > stock {
			_, taken, _ := p.taken()
			why += fmt.Sprintf(", and the final state shows %s taken", say.Count(taken, "piece"))
		}
		if p.demand <= stock {
			return fmt.Sprintf("%s, and no more than %s asked for", why, were(p.demand))
		}
		return why + ": no oversell seen in " + p.contended()
	}}
}

// squeezed returns the verdict if purchases that were refunded while they were made found no room.
func (p *product) squeezed(unfit int, first *passage, state string) monitor.Verdict {
	op := first.op
	why := fmt.Sprintf("%s, but order %s of %s was bought and refunded by %s, and at no moment before that were so many left", state, op.Arg, say.Count(first.pieces, "piece"), say.At(op.Return))
	if p.ended {
		return monitor.Undecided(why + ": " + monitor.CutOff)
	}
	return monitor.Verdict{Result: monitor.Violated, Count: unfit, Unit: inOrders, Why: why, Witness: []history.Op{*op}}
}

// were is "1 was", "3,000 were".
func were(n int64) string { return say.Thousands(n) + " " + phrase.Were(n) }

// mayHaveSold returns how many more pieces than the sure ones purchases without an answer can have sold. The final
// state bounds it if it accounts for everything that was surely sold, and so for everything else that was not given
// back.
func (p *product) mayHaveSold() int64 {
	least, most, known := p.taken()
	given := p.certain + p.perhaps
	if !known || p.final.left < 0 || p.final.reserved < 0 || least < p.buys.sure-given {
		return p.buys.unknown
	}
	return min(p.buys.unknown, most-p.buys.sure+given+p.undone)
}

// mayHaveTaken returns how many pieces purchases without an answer of their own can have taken before the
// final state was read.
func (p *product) mayHaveTaken() int64 {
	least, _, known := p.taken()
	if !known {
		return p.buys.unknown
	}
	told := p.buys.sure - p.buys.implied
	for _, r := range p.buys.unexplained {
		told += r.Pieces()
	}
	return least - told + p.certain + p.perhaps + p.undone
}

// SoldPieces returns how much was sold for certain over all, and how much more may have been. The final state bounds
// it; without refunds, the server's own count decides it.
func (ss *sales) SoldPieces() (sure, more int64) {
	for _, p := range ss.all.All {
		shown := int64(0)
		if p.final.haveSold && !p.ended && p.refunds.sent == 0 {
			shown = max(0, p.final.sold-p.buys.sure)
		}
		sure += p.buys.sure + shown
		more += max(0, p.mayHaveSold()-shown)
	}
	return sure, more
}

// explain says how stock was sold twice: by a lost update if one is known, and otherwise by the purchase that went
// beyond the stock.
func (p *product) explain(net *balance) (string, []history.Op) {
	if p.update != nil {
		a, b := &p.update[0], &p.update[1]
		left, _ := a.Result.Num()
		return fmt.Sprintf("%s and %s both sold down to %s left, at the same time (%s to %s and %s to %s)%s%s", say.Client(a), say.Client(b), say.Thousands(left),
			say.At(a.Call), say.At(a.Return), say.At(b.Call), say.At(b.Return), p.leases.stale(a), p.leases.stale(b)), monitor.InOrder(*a, *b)
	}
	c := net.crossing
	if c == nil {
		return "more than there was", nil
	}
	if c.Kind == history.Refund {
		return fmt.Sprintf("the purchase of order %s, of which %s refunded %s from %s to %s, went beyond the stock",
			c.Arg, say.Client(c), say.Count(c.Pieces(), "piece"), say.At(c.Call), say.At(c.Return)), []history.Op{*c}
	}
	return fmt.Sprintf("the purchase of %s by %s from %s to %s (order %s) went beyond the stock",
		say.Count(c.Pieces(), "piece"), say.Client(c), say.At(c.Call), say.At(c.Return), c.Arg), []history.Op{*c}
}

// toldBits is the size of the table of answers to buyers: 1,024 entries.
const toldBits = 10

// sale is the record of a purchase.
type sale struct {
	call, ret                time.Duration
	left, fence              int64
	order, session           history.Value
	product                  int32
	client, amount, occupied int32
}

func (s *sale) op(like *history.Op) *history.Op {
	return &history.Op{Client: s.client, Amount: s.amount, Kind: history.Buy, Outcome: history.OK, Key: like.Key, Arg: s.order,
		Result: history.Int(s.left), Fence: s.fence, Session: s.session, Due: s.call, Call: s.call, Return: s.ret}
}

// tell looks for a concurrent purchase that was told the same number left: a lost update. It remembers recent
// purchases.
func (p *product) tell(op *history.Op) {
	left, said := op.Result.Num()
	if !said || left < 0 {
		return
	}
	s := &p.told[(left+int64(p.number)*31)&(1<<toldBits-1)]
	if s.occupied != 0 && s.product == p.number && s.left == left && op.Call <= s.ret {
		p.update = &[2]history.Op{*s.op(op), *op}
		return
	}
	*s = sale{op.Call, op.Return, left, op.Fence, op.Arg, op.Session, p.number, op.Client, op.Amount, 1}
}

// leases holds the ends of the leases under which purchases were made, by session.
type leases []time.Duration

// maxLeases bounds the leases that are remembered: 8 MB.
const maxLeases = 1 << 20

func (l *leases) observe(op *history.Op) {
	n, _ := op.Arg.Num()
	if op.Outcome == history.Unknown && op.Kind != history.Release || op.Until == 0 || n <= 0 || n >= maxLeases {
		return
	}
	for int64(len(*l)) <= n {
		*l = append(*l, 0)
	}
	(*l)[n] = max((*l)[n], op.Until) // a release reports renewals in the background
}

// stale returns a clause which says that a purchase ended after the lease under which it began. It
// is empty if the purchase did not, or if that is unknown.
func (l leases) stale(op *history.Op) string {
	n, _ := op.Session.Num()
	if n <= 0 || n >= int64(len(l)) || l[n] == 0 || op.Return <= l[n] {
		return ""
	}
	return fmt.Sprintf("; the write of %s was stale: it had read the stock after %s, its lease ended at %s, and it went on until %s",
		say.Client(op), say.At(op.Call), say.At(l[n]), say.At(op.Return))
}

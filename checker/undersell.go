package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// noUndersell judges that no stock disappears: in the end
//
//	stock = sold - returned + left + reserved
//
// and that nobody was refused while stock was surely left (see [soldOut]).
//
// Purchases without an answer make sold an interval. An order counts once there,
// however often it was sent without an answer, because that is all it may take. The books
// balance when some number in the interval balances them; if even the largest
// leaves pieces unaccounted for, they vanished. More sold than the stock is
// oversell, and not judged here. The smallest bad histories, with a stock of 1:
//
//	reading  left  0
//
//	client 1  buy  [1, 2]  refused (sold-out)
type noUndersell struct {
	stock int64
	sales keyed[books]
	ended bool
}

type books struct {
	key     history.Value
	buys    ledger
	refunds ledger
	out     soldOut
	final   finalState
	reading []history.Op
}

func newNoUndersell(h *history.Header) *noUndersell {
	return &noUndersell{stock: h.Stock, sales: newKeyed(func(key history.Value) *books {
		return &books{key: key, out: soldOut{stock: h.Stock}}
	})}
}

// Observe implements [Monitor].
func (m *noUndersell) Observe(op *history.Op) {
	switch op.Kind {
	case history.Buy:
		m.sales.at(op.Key).buy(op)
	case history.Refund:
		m.sales.at(op.Key).refund(op)
	case history.ReadState:
		if !readsStock(op) {
			return
		}
		b := m.sales.at(op.Key)
		b.final.observe(op)
		b.reading = append(b.reading, *op)
	}
}

func (b *books) moved() {
	b.final.moved()
	b.reading = b.reading[:0]
}

func (b *books) buy(op *history.Op) {
	b.moved()
	switch {
	case op.Outcome == history.Refused:
		if op.Reason == history.SoldOut {
			b.out.refuse(op)
		}
		return
	case op.Outcome == history.Unknown || op.Reason != history.Repeated:
		b.out.buy(op)
	}
	b.buys.observe(op)
}

func (b *books) refund(op *history.Op) {
	b.moved()
	if op.Outcome == history.Refused {
		return
	}
	b.refunds.observe(op)
	if op.Outcome == history.OK && op.Reason != history.Repeated {
		b.out.refund(op)
	}
}

// Advance implements [Monitor].
func (m *noUndersell) Advance(lowWater time.Duration) {
	for _, b := range m.sales.all {
		b.out.advance(lowWater)
	}
}

func (m *noUndersell) cut() {
	m.ended = true
	for _, b := range m.sales.all {
		b.final.missing = true
	}
}

// Verdict implements [Monitor].
func (m *noUndersell) Verdict() Verdict {
	return m.sales.verdict(variant.Sale, variant.NoUndersell, "nothing was ordered", func(b *books) Verdict {
		return b.verdict(m.stock, m.ended)
	})
}

func (b *books) verdict(stock int64, cut bool) Verdict {
	wrong, first := b.out.final(cut)
	if wrong > 0 {
		op := &first.op
		return Verdict{Result: Violated, Count: wrong, Witness: []history.Op{*op},
			Why: fmt.Sprintf("%s was refused %s as sold out between %s and %s (order %s), though at least %s left at every moment in between",
				client(op), many(op.Pieces(), "piece"), at(op.Call), at(op.Return), op.Arg, be(first.left))}
	}
	if !b.final.known() {
		why := "the final state was not read"
		if cut {
			why = cutOff
		}
		return Verdict{Why: "what is left in the end is not known: " + why}
	}
	f := &b.final
	least := stock - f.left - f.reserved - b.buys.sure - b.buys.untold + b.refunds.sure
	most := least + b.buys.untold + b.refunds.unknown
	sum := fmt.Sprintf("of %s, %s sold, %s left", count(stock), count(b.buys.sure), count(f.left))
	if f.reserved != 0 {
		sum += fmt.Sprintf(", %s set aside", count(f.reserved))
	}
	if b.refunds.sure > 0 {
		sum += fmt.Sprintf(", %s returned", count(b.refunds.sure))
	}
	switch {
	case least > 0:
		more := ""
		if b.buys.untold > 0 {
			more = fmt.Sprintf(", even if all %s without an answer were sold", many(b.buys.untold, "piece"))
		}
		return Verdict{Result: Violated, Count: int(least), Why: fmt.Sprintf("%s vanished: %s%s", many(least, "piece"), sum, more), Witness: b.reading}
	case most < 0:
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s: nothing vanished, %s too many instead", sum, many(-most, "piece"))}
	case most > 0:
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s: the books balance if %s without an answer changed hands", sum, many(most, "piece"))}
	}
	return Verdict{Result: Holds, Why: sum + ": the books balance"}
}

// be is "1 was", "3 were".
func be(n int64) string {
	if n == 1 {
		return "1 was"
	}
	return count(n) + " were"
}

package sales

import (
	"fmt"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// noUndersell judges that no stock disappears, nor any comes from nowhere: in the end
//
//	stock = sold - returned + left + reserved
//
// and that nobody was refused while stock was surely left (see [soldOut]). A purchase
// without an answer that explains a refusal is gone in the end. Refunds give back no more
// than was bought; see [givenBack].
//
// Purchases without an answer make sold an interval. An order counts once there,
// however often it was sent without an answer, because its buyer has it once at most. The
// books balance when some number in the interval balances them; if even the largest
// leaves pieces unaccounted for, they vanished, and if even the smallest leaves more than
// there were, some were sold and are still there. The server's own count of what it sold
// must balance, too, but for what purchases without an answer may have moved between the
// two readings. Each of them counts in whole; see [product.accounts]. The smallest bad histories, with a stock of 1:
//
//	reading  left  0
//
//	client 1  buy  [1, 2]  ok
//	reading  left  1
//
//	client 1  buy  [1, 2]  refused (sold-out)
//
//	client 1  buy  [1, 2]  unknown
//	client 2  buy  [3, 4]  refused (sold-out)
//	reading  left  1
//
// One opportunity is an operation that met a rival (see [contest]): one of the two could
// have undone the other's change of the stock. The final reading is the evidence.
func noUndersell(p *product) monitor.Verdict {
	v := p.undersold()
	v.Opportunities = p.contest.count
	return v
}

func (p *product) undersold() monitor.Verdict {
	stock := p.h.Stock
	wrong, first, strict := p.out.final(p.ended)
	if wrong > 0 {
		op := &first.op
		return monitor.Verdict{Result: monitor.Violated, Count: wrong, Witness: []history.Op{*op},
			Why: fmt.Sprintf("%s was refused %s as sold out between %s and %s (order %s), though at least %s left at every moment in between",
				say.Client(op), say.Many(op.Pieces(), "piece"), say.At(op.Call), say.At(op.Return), op.Arg, were(first.left))}
	}
	if !p.final.haveLeft || p.ended {
		why := "the final state was not read"
		switch n := p.final.passed; {
		case p.ended:
			why = monitor.CutOff
		case n > 0:
			why = fmt.Sprintf("%s had been made before the last purchase or refund ended; one without an answer ends when its client gives up (gave_up_ns)", say.Many(n, "reading"))
		}
		return monitor.Undecided("what is left in the end is not known: " + why)
	}
	if v, is := p.returnedUnbought(p.ended); is {
		return v
	}
	f := &p.final
	least := stock - f.left - f.reserved - p.buys.sure - p.buys.untold + p.certain
	most := least + p.buys.untold + p.perhaps
	sum := func() string {
		sum := fmt.Sprintf("of %s, %s sold, %s left", say.Count(stock), say.Count(p.buys.sure), say.Count(f.left))
		if f.reserved != 0 {
			sum += fmt.Sprintf(", %s set aside", say.Count(f.reserved))
		}
		if p.refunds.sure > 0 {
			sum += fmt.Sprintf(", %s returned", say.Count(p.certain))
		}
		if more := p.refunds.sure - p.certain; more > 0 {
			sum += fmt.Sprintf(", and refunds of %s more than were bought of their orders", say.Count(more))
		}
		return sum
	}
	counted := func() string { return fmt.Sprintf("%s, and %s sold by the sale's own count", sum(), say.Count(f.sold)) }
	violated := func(n int64, what, sum, more string) monitor.Verdict {
		return monitor.Verdict{Result: monitor.Violated, Count: int(n), Why: say.Many(n, "piece") + " " + what + ": " + sum + more, Witness: f.readings}
	}
	switch {
	case least > 0:
		more := ""
		if p.buys.untold > 0 {
			more = fmt.Sprintf(", even if all %s without an answer were sold", say.Many(p.buys.untold, "piece"))
		}
		return violated(least, "vanished", sum(), more)
	case most < 0:
		more := ""
		if p.perhaps > 0 {
			more = fmt.Sprintf(", even if all %s without an answer were returned", say.Many(p.perhaps, "piece"))
		}
		return violated(-most, "too many", sum(), more)
	}
	if strict != nil {
		if may := p.mayHaveTaken(); strict.needed() > may {
			op := &strict.op
			return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: append([]history.Op{*op}, f.readings...),
				Why: fmt.Sprintf("%s was refused %s as sold out between %s and %s (order %s), though at least %s left at every moment in between: what is left in the end shows that no more than %s without an answer can have been sold",
					say.Client(op), say.Many(op.Pieces(), "piece"), say.At(op.Call), say.At(op.Return), op.Arg, were(strict.left-may), say.Many(may, "piece"))}
		}
	}
	if f.haveSold {
		fewest := p.buys.sure - p.certain - p.perhaps
		switch most := p.buys.sure + p.buys.unknown - p.certain; {
		case f.sold < fewest:
			return violated(fewest-f.sold, "vanished", counted(), "")
		case f.sold > most:
			return violated(f.sold-most, "too many", counted(), "")
		}
	}
	switch p.accounts() {
	case monitor.Violated:
		books := sum()
		if f.haveSold {
			books = counted()
		}
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: f.readings,
			Why: "the books do not balance: " + books + ", which no choice of the operations without an answer accounts for"}
	case monitor.Unknown:
		return monitor.Undecided(manySums)
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string {
		books := sum()
		if f.haveSold {
			books = counted()
		}
		why := books + ": the books balance"
		switch {
		case least < 0:
			why += fmt.Sprintf(" if %s without an answer came back", say.Many(-least, "piece"))
		case most > 0:
			why += fmt.Sprintf(" if %s without an answer changed hands", say.Many(most, "piece"))
		}
		return why + ", after " + p.contended()
	}}
}

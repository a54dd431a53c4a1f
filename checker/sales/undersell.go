package sales

import (
	"fmt"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// noUndersell judges that no stock disappears or appears: at the end
//
//	stock = sold - returned + left + reserved
//
// and no purchase is refused while stock is surely left (see [soldOut]). If a purchase without an answer explains a
// refusal, its pieces are missing from the stock at the end. Refunds give back no more than was bought; see
// [givenBack].
//
// Purchases without an answer make sold an interval. In that interval an order counts once, however often it was
// sent without an answer, because its buyer has it at most once. The books balance when some number in the interval
// balances them; if even the largest number leaves pieces unaccounted for, those pieces vanished; if even the smallest
// adds up to more than the stock, some pieces were sold and are still there. The server's own count of what it sold
// must balance, too, except for what purchases without an answer may have changed between the two readings. Each of
// them counts either wholly or not at all; see [product.accounts]. The smallest bad histories, with a stock of 1:
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
// The final readings must agree with each other, too: two of one number that differ are a violation if no operation
// without an answer may have come between them. With a stock of 2:
//
//	reading  left  0
//	reading  left  2
//
// One opportunity is an operation that met a rival (see [contention]): one of the two could
// have undone the other's change of the stock. The final reading is the evidence.
func noUndersell(p *product) monitor.Verdict {
	v := p.agrees(p.undersold())
	v.Opportunities = p.contest.count
	return v
}

func (p *product) undersold() monitor.Verdict {
	wrong, first, strict := p.out.final(p.ended)
	if wrong > 0 {
		v := refusedWrongly(&first.op, first.left, "")
		v.Count, v.Unit = wrong, inRefusals
		return v
	}
	if !p.final.haveLeft || p.ended {
		return p.unread()
	}
	if v, is := p.returnedUnbought(p.ended); is {
		return v
	}
	b := p.balanced()
	switch {
	case b.least > 0:
		more := ""
		if p.buys.untold > 0 {
			more = fmt.Sprintf(", even if all %s without an answer were sold", say.Count(p.buys.untold, "piece"))
		}
		return p.unbalanced(b.least, "vanished", p.sum()+more)
	case b.most < 0:
		more := ""
		if p.perhaps > 0 {
			more = fmt.Sprintf(", even if all %s without an answer were returned", say.Count(p.perhaps, "piece"))
		}
		return p.unbalanced(-b.most, "too many", p.sum()+more)
	}
	if may := p.mayHaveTaken(); strict != nil && strict.needed() > may {
		v := refusedWrongly(&strict.op, strict.known-may, fmt.Sprintf(": what is left in the end shows that no more than %s without an answer can have been sold", say.Count(may, "piece")))
		v.Witness = append(v.Witness, p.final.readings...)
		return v
	}
	if v, is := p.miscounted(); is {
		return v
	}
	switch p.accounts() {
	case monitor.Violated:
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: p.final.readings,
			Why: "the books do not balance: " + p.books() + ", which no choice of the operations without an answer accounts for"}
	case monitor.Unknown:
		return monitor.Undecided(manySums)
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string {
		return p.books() + ": the books balance" + p.provided(b) + ", after " + p.contended()
	}}
}

// refusedWrongly returns the verdict on a refusal during which at least left pieces were there at every moment.
func refusedWrongly(op *history.Op, left int64, because string) monitor.Verdict {
	return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: []history.Op{*op},
		Why: fmt.Sprintf("%s was refused %s as sold out between %s and %s (order %s), though at least %s left at every moment in between%s",
			say.Client(op), say.Count(op.Pieces(), "piece"), say.At(op.Call), say.At(op.Return), op.Arg, were(left), because)}
}

// unread returns the verdict if the final state is not known.
func (p *product) unread() monitor.Verdict {
	why := "the final state was not read"
	switch n := p.final.passed; {
	case p.ended:
		why = monitor.CutOff
	case n > 0:
		why = fmt.Sprintf("%s had been made before the last purchase or refund ended; one without an answer ends when its client gives up (gave_up_ns)", say.Count(n, "reading"))
	}
	return monitor.Undecided("what is left in the end is not known: " + why)
}

// accountedFor bounds how many pieces the final state does not account for.
type accountedFor struct{ least, most int64 }

func (p *product) balanced() (b accountedFor) {
	b.least = p.h.Stock - p.final.left - p.final.reserved - p.buys.sure - p.buys.untold + p.certain
	b.most = b.least + p.buys.untold + p.perhaps
	return b
}

// provided says what must have become of purchases and refunds without an answer for the books to balance. It is "" if all
// had answers.
func (p *product) provided(b accountedFor) string {
	sold, back := p.buys.untold, p.perhaps
	gone := b.least + sold // sold, less those that came back
	switch {
	case sold == 0 && back == 0:
		return ""
	case sold == 0:
		return fmt.Sprintf(" if %s without an answer came back", some(-gone, back))
	case back == 0:
		return fmt.Sprintf(" if %s without an answer changed hands", some(gone, sold))
	case gone == 0:
		return " if, without an answer, as many pieces changed hands as came back"
	case gone < 0:
		return fmt.Sprintf(" if, without an answer, %s more came back than changed hands", say.Count(-gone, "piece"))
	}
	return fmt.Sprintf(" if, without an answer, %s more changed hands than came back", say.Count(gone, "piece"))
}

// some says that n of all pieces are meant.
func some(n, all int64) string {
	switch n {
	case 0:
		return "none of " + say.Count(all, "piece")
	case all:
		return say.Count(all, "piece")
	}
	return fmt.Sprintf("%s of %s", say.Thousands(n), say.Count(all, "piece"))
}

// sum describes what happened to the stock.
func (p *product) sum() string {
	f := &p.final
	sum := fmt.Sprintf("of %s, %s sold, %s left", say.Thousands(p.h.Stock), say.Thousands(p.buys.sure), say.Thousands(f.left))
	if f.reserved != 0 {
		sum += fmt.Sprintf(", %s reserved", say.Thousands(f.reserved))
	}
	if p.refunds.sure > 0 {
		sum += fmt.Sprintf(", %s returned", say.Thousands(p.certain))
	}
	if more := p.refunds.sure - p.certain; more > 0 {
		sum += fmt.Sprintf(", and refunds of %s more than were bought of their orders", say.Thousands(more))
	}
	return sum
}

// books returns the text of sum, followed by the sale's own count if it was read.
func (p *product) books() string {
	if p.final.haveSold {
		return fmt.Sprintf("%s, and %s sold by the sale's own count", p.sum(), say.Thousands(p.final.sold))
	}
	return p.sum()
}

func (p *product) unbalanced(n int64, what, sum string) monitor.Verdict {
	return monitor.Verdict{Result: monitor.Violated, Count: int(n), Unit: inPieces, Why: say.Count(n, "piece") + " " + what + ": " + sum, Witness: p.final.readings}
}

// miscounted judges the sale's own count of what it sold.
func (p *product) miscounted() (v monitor.Verdict, is bool) {
	if !p.final.haveSold {
		return v, false
	}
	fewest := p.buys.sure - p.certain - p.perhaps
	switch sold, most := p.final.sold, p.buys.sure+p.buys.unknown-p.certain; {
	case sold < fewest:
		return p.unbalanced(fewest-sold, "vanished", p.books()), true
	case sold > most:
		return p.unbalanced(sold-most, "too many", p.books()), true
	}
	return v, false
}

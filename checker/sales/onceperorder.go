package sales

import (
	"fmt"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// oncePerOrder judges that one order id has one effect, however often it is sent.
//
// Two effects of one order are a violation, for a purchase as for a refund: two fresh successes, or one that was called
// after an answer had said that the order was counted. Several refunds of parts of an order count as one effect if
// together they refund no more than was bought. It is also a violation if the server counts more pieces as sold in the
// end than all orders come to, each once. An order with a success and an operation without an answer, or with two without
// an answer, may have had two effects; if the final state shows that exactly the pieces of all known orders were taken,
// each once, it had one. Further missing pieces cannot be attributed to an order, and are left to no-undersell. The
// smallest bad histories:
//
//	client 1  buy  [1, 2]  order 7  ok
//	client 1  buy  [3, 4]  order 7  ok
//
//	client 1  buy  [1, 2]  order 7  ok
//	reading  sold  2
//
// An opportunity is an order that was sent again when it had been or may have been
// counted, one of the two tries being answered with a success.
func oncePerOrder(p *product) monitor.Verdict {
	v := p.ordered()
	v.Opportunities = p.buys.again + p.refunds.again
	return v
}

// twice notes a second effect of an order.
func (p *product) twice(before, op *history.Op) {
	if p.second != nil {
		return
	}
	p.second = &[2]history.Op{*before, *op}
}

// eachOnce reports whether the final state shows exactly the pieces of all known orders, each once.
func (p *product) eachOnce() bool {
	least, most, known := p.taken()
	return known && p.refunds.unknown == 0 && least == most && most == p.buys.once-p.certain
}

func (p *product) ordered() monitor.Verdict {
	again := p.buys.resent + p.refunds.resent
	doubtful := p.buys.doubtful + p.refunds.doubtful
	second, refundedTwice := p.second, 0
	for i := range p.list {
		if b := &p.list[i]; b.again != nil && b.given > int64(p.sales.bought.of(p, b.again[1].Arg).pieces) { // not parts of it
			if refundedTwice++; second == nil {
				second = b.again
			}
		}
	}
	if second != nil {
		a, b := &second[0], &second[1]
		what := "counted"
		if b.Kind == history.Refund {
			what = "refunded"
		}
		how := "for"
		switch {
		case a.Reason == history.Repeated:
			how = "as told to"
		case a.Kind != b.Kind:
			how = "as refunded to"
		}
		return monitor.Verdict{Result: monitor.Violated, Count: int(p.buys.broken) + refundedTwice, Witness: monitor.InOrder(*a, *b),
			Why: fmt.Sprintf("order %s was %s twice: %s %s between %s and %s, and for %s between %s and %s", b.Arg, what,
				how, say.Client(a), say.At(a.Call), say.At(a.Return), say.Client(b), say.At(b.Call), say.At(b.Return))}
	}
	if f := &p.final; f.haveSold && !p.ended {
		if most := p.buys.once + p.buys.untold - p.certain; f.sold > most {
			return monitor.Verdict{Result: monitor.Violated, Count: int(f.sold - most), Unit: inPieces, Witness: f.readings,
				Why: fmt.Sprintf("the sale counts %s as sold in the end, but all orders, each once, come to %s", say.Count(f.sold, "piece"), say.Thousands(most))}
		}
	}
	shown := p.eachOnce()
	switch {
	case p.buys.sent == 0:
		return monitor.Verdict{Why: "nothing was ordered"}
	case doubtful > 0 && !shown:
		were := "it was"
		if doubtful != 1 {
			were = "they were"
		}
		return monitor.Undecided(fmt.Sprintf("%s may have been counted twice: %s sent again, and not every time answered", say.Count(doubtful, "order"), were))
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string {
		why := say.Count(p.buys.sent, "order") + ", no order was sent twice"
		if again > 0 {
			why = fmt.Sprintf("%s, sent again %s, none was seen counted twice", say.Count(p.buys.sent, "order"), say.Times(again))
		}
		if shown {
			_, taken, _ := p.taken()
			why += fmt.Sprintf("; the final state shows %s taken, which is each known order once", say.Count(taken, "piece"))
		}
		return why
	}}
}

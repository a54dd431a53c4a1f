package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// oncePerOrder judges that one order id has one effect, however often it is sent.
//
// Two fresh successes of one order are a violation, of a purchase as of a
// refund. An order with a success and an operation without an answer, or with two
// without an answer, may have had two effects; if the final state shows that
// just the pieces of all known orders were taken, each once, it had not. More
// taken than that cannot be attributed to an order, and is left to no-undersell.
// The smallest bad history:
//
//	client 1  buy  [1, 2]  order 7  ok
//	client 1  buy  [3, 4]  order 7  ok
type oncePerOrder struct {
	stock int64
	sales keyed[effects]
}

type effects struct {
	key          history.Value
	buys         ledger
	refunds      ledger
	bought, paid table[effect]
	final        finalState
	doubtful     int64
	broken       int
	why          string
	witness      []history.Op
}

// effect is an order's first fresh success.
type effect struct {
	call, ret time.Duration
	client    int32
	amount    int32
}

func newOncePerOrder(h *history.Header) *oncePerOrder {
	return &oncePerOrder{stock: h.Stock, sales: newKeyed(func(key history.Value) *effects { return &effects{key: key} })}
}

// Observe implements [Monitor].
func (m *oncePerOrder) Observe(op *history.Op) {
	switch op.Kind {
	case history.Buy:
		e := m.sales.at(op.Key)
		e.observe(op, &e.buys, &e.bought)
	case history.Refund:
		e := m.sales.at(op.Key)
		e.observe(op, &e.refunds, &e.paid)
	case history.ReadState:
		if !readsStock(op) {
			return
		}
		m.sales.at(op.Key).final.observe(op)
	}
}

func (e *effects) observe(op *history.Op, l *ledger, first *table[effect]) {
	e.final.moved()
	doubted := doubtful(*l.orders.at(op.Arg))
	_, now := l.observe(op)
	if !doubted && doubtful(now) {
		e.doubtful++
	}
	if op.Outcome != history.OK || op.Reason == history.Repeated {
		return
	}
	f := first.at(op.Arg)
	if now&freshTwo != 0 {
		e.twice(f, op)
		return
	}
	*f = effect{op.Call, op.Return, op.Client, op.Amount}
}

// doubtful tells whether an order may have had more effects than are known.
func doubtful(b uint8) bool {
	return b&lostTwo != 0 || b&lostOne != 0 && b&freshOne != 0
}

func (e *effects) twice(f *effect, op *history.Op) {
	e.broken++
	if e.broken > 1 {
		return
	}
	before := history.Op{Client: f.client, Amount: f.amount, Kind: op.Kind, Outcome: history.OK,
		Key: op.Key, Arg: op.Arg, Result: history.Int(-1), Due: f.call, Call: f.call, Return: f.ret}
	what := "counted"
	if op.Kind == history.Refund {
		what = "refunded"
	}
	e.why = fmt.Sprintf("order %s was %s twice: for %s between %s and %s, and for %s between %s and %s", op.Arg, what,
		client(&before), at(before.Call), at(before.Return), client(op), at(op.Call), at(op.Return))
	e.witness = inOrder(before, *op)
}

// Advance implements [Monitor]: nothing can be forgotten, for an order may be
// sent again at any time.
func (m *oncePerOrder) Advance(time.Duration) {}

func (m *oncePerOrder) cut() {
	for _, e := range m.sales.all {
		e.final.missing = true
	}
}

// Verdict implements [Monitor].
func (m *oncePerOrder) Verdict() Verdict {
	return m.sales.verdict(variant.Sale, variant.OncePerOrder, "nothing was ordered", func(e *effects) Verdict {
		return e.verdict(m.stock)
	})
}

func (e *effects) verdict(stock int64) Verdict {
	orders := many(e.buys.sent, "order")
	again := e.buys.resent + e.refunds.resent
	switch {
	case e.broken > 0:
		return Verdict{Result: Violated, Count: e.broken, Why: e.why, Witness: e.witness}
	case e.buys.sent == 0:
		return Verdict{Why: "nothing was ordered"}
	case again == 0:
		return Verdict{Result: Holds, Why: orders + "; no order was sent twice"}
	case e.doubtful == 0:
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s, sent again %s, none counted twice", orders, times(again))}
	case e.final.known() && e.refunds.unknown == 0 && e.final.taken(stock) == e.buys.once-e.refunds.once:
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s, sent again %s; the final state shows %s taken, which is each known order once",
			orders, times(again), many(e.final.taken(stock), "piece"))}
	}
	return Verdict{Why: fmt.Sprintf("%s may have been counted twice: it was sent again, and not every time answered", many(e.doubtful, "order"))}
}

func times(n int64) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return count(n) + " times"
}

package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// noOversell judges that accepted sales never exceed the stock, at any moment.
//
// Surely sold is every fresh success, and one effect for an order that was called
// repeated; refunds count from their call, when they may already have given
// back. More than the stock is a violation. If only the operations without an
// answer could carry it beyond the stock, oversell is possible, unless the final
// state shows how many of them took effect. The smallest bad history, with a
// stock of 1:
//
//	client 1  buy  [1, 2]  ok
//	client 2  buy  [3, 4]  ok
type noOversell struct {
	stock  int64
	sales  keyed[sold]
	leases leases
	paid   bool // the header announces refunds
	ended  bool
}

// leases are the ends of the leases under which purchases were made, by session.
type leases []time.Duration

// maxLeases bounds what is remembered: 8 MB.
const maxLeases = 1 << 20

func (l *leases) observe(op *history.Op) {
	n := session(op)
	if op.Outcome == history.Unknown && op.Kind != history.Release || op.Until == 0 || n <= 0 || n >= maxLeases {
		return
	}
	for int64(len(*l)) <= n {
		*l = append(*l, 0)
	}
	(*l)[n] = max((*l)[n], op.Until) // a release tells of renewals in the background
}

// stale says that a purchase ended after the lease under which it began; empty
// when it did not, or nobody knows.
func (l leases) stale(op *history.Op) string {
	if op.Session <= 0 || op.Session >= int64(len(l)) || l[op.Session] == 0 || op.Return <= l[op.Session] {
		return ""
	}
	return fmt.Sprintf("; the write of %s was stale: it had read the stock after %s, its lease ended at %s, and it went on until %s",
		client(op), at(op.Call), at(l[op.Session]), at(op.Return))
}

type sold struct {
	leases  *leases
	key     history.Value
	buys    ledger
	refunds ledger
	net     balance
	final   finalState

	// told remembers recent purchases by what they were told is left, to find
	// two at a time that were told the same: a lost update.
	told   [1 << toldBits]sale
	update [2]history.Op
}

const toldBits = 7

// sale is a purchase without its texts, which would cost the garbage collector.
type sale struct {
	call, ret            time.Duration
	left, order          int64
	fence, session       int64
	client, amount, done int32
}

func (s *sale) op(like *history.Op) history.Op {
	return history.Op{Client: s.client, Amount: s.amount, Kind: history.Buy, Outcome: history.OK, Key: like.Key, Arg: history.Int(s.order),
		Result: history.Int(s.left), Fence: s.fence, Session: s.session, Due: s.call, Call: s.call, Return: s.ret}
}

func newNoOversell(h *history.Header) *noOversell {
	m := &noOversell{stock: h.Stock, paid: h.Refund > 0}
	m.sales = newKeyed(func(key history.Value) *sold {
		return &sold{leases: &m.leases, key: key, net: balance{stock: h.Stock}}
	})
	return m
}

// Observe implements [Monitor].
func (m *noOversell) Observe(op *history.Op) {
	switch op.Kind {
	case history.Acquire, history.Extend, history.Release:
		m.leases.observe(op)
	case history.Buy:
		if op.Outcome != history.Refused {
			m.sales.at(op.Key).buy(op)
		}
	case history.Refund:
		if op.Outcome != history.Refused {
			m.sales.at(op.Key).refund(op)
		}
	case history.ReadState:
		if !readsStock(op) {
			return
		}
		m.sales.at(op.Key).final.observe(op)
	}
}

func (s *sold) buy(op *history.Op) {
	s.final.moved()
	more, _ := s.buys.observe(op)
	if more > 0 {
		s.net.sell(op, more)
	}
	if op.Outcome == history.OK && op.Reason == history.NoReason && s.update[0].Kind == history.NoKind {
		s.tell(op)
	}
}

// tell looks for a purchase at the same time that was told the same.
func (s *sold) tell(op *history.Op) {
	left, said := op.Result.Num()
	order, numbered := op.Arg.Num()
	if !said || left < 0 || !numbered {
		return
	}
	p := &s.told[left&(1<<toldBits-1)]
	if p.done != 0 && p.left == left && op.Call <= p.ret {
		s.update = [2]history.Op{p.op(op), *op}
		return
	}
	*p = sale{op.Call, op.Return, left, order, op.Fence, op.Session, op.Client, op.Amount, 1}
}

func (s *sold) refund(op *history.Op) {
	s.final.moved()
	s.refunds.observe(op)
	if op.Outcome == history.Unknown || op.Reason != history.Repeated {
		s.net.refund(op, op.Pieces())
	}
}

// Advance implements [Monitor].
func (m *noOversell) Advance(lowWater time.Duration) {
	for _, s := range m.sales.all {
		s.net.advance(lowWater)
	}
}

func (m *noOversell) cut() {
	m.ended = true
	for _, s := range m.sales.all {
		s.final.missing = true
	}
}

// soldPieces is how much was sold for certain over all, and how much more may have been.
func (m *noOversell) soldPieces() (sure, more int64) {
	for _, s := range m.sales.all {
		sure += s.buys.sure
		more += s.buys.unknown
	}
	return sure, more
}

// Verdict implements [Monitor].
func (m *noOversell) Verdict() Verdict {
	return m.sales.verdict(variant.Sale, variant.NoOversell, "nothing was sold", func(s *sold) Verdict {
		return s.verdict(m.stock, m.ended, m.paid)
	})
}

func (s *sold) verdict(stock int64, cut, paid bool) Verdict {
	net := s.net.final()
	most := net.peak + s.buys.unknown
	state := fmt.Sprintf("sold %s of %s", count(net.peak), count(stock))
	if s.buys.unknown > 0 {
		state = fmt.Sprintf("sold %s to %s of %s", count(net.peak), count(most), count(stock))
	}
	if s.refunds.sent > 0 {
		state += " at the most at one time"
	}
	switch {
	case net.peak > stock && cut && (paid || s.refunds.sent > 0): // the first refund of all may be in flight
		return Verdict{Why: state + ": refunds may explain it, but " + cutOff}
	case net.peak > stock:
		why, witness := s.explain(&net)
		return Verdict{Result: Violated, Count: int(net.peak - stock), Why: state + ": " + why, Witness: witness}
	case most <= stock && s.buys.sent == 0:
		return Verdict{Why: "nothing was sold"}
	case most <= stock:
		return Verdict{Result: Holds, Why: state + ": oversell is impossible"}
	case s.settled(stock):
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s, and the final state shows %s taken: oversell is impossible", state, many(s.final.taken(stock), "piece"))}
	}
	return Verdict{Why: fmt.Sprintf("%s: oversell is possible, it depends on %s without an answer", state, many(s.buys.unknown, "piece"))}
}

// settled tells whether the final state shows that no more than the stock was
// taken: it accounts for everything that was surely sold, and so for
// everything else.
func (s *sold) settled(stock int64) bool {
	if !s.final.known() || s.final.left < 0 {
		return false
	}
	taken := stock - s.final.left
	return taken <= stock && taken >= s.buys.sure-s.refunds.sure-s.refunds.unknown && s.refunds.sent == 0
}

// explain tells how stock came to be sold twice: by a lost update if one is
// known, or else by the purchase that went beyond the stock.
func (s *sold) explain(net *balance) (string, []history.Op) {
	if a, b := &s.update[0], &s.update[1]; a.Kind != history.NoKind {
		left, _ := a.Result.Num()
		return fmt.Sprintf("%s and %s both sold down to %s left, at the same time (%s to %s and %s to %s)%s%s", client(a), client(b), count(left),
			at(a.Call), at(a.Return), at(b.Call), at(b.Return), s.leases.stale(a), s.leases.stale(b)), inOrder(*a, *b)
	}
	c := &net.crossing
	if c.Kind == history.NoKind {
		return "more than there was", nil
	}
	return fmt.Sprintf("the purchase of %s by %s from %s to %s (order %s) went beyond the stock",
		many(c.Pieces(), "piece"), client(c), at(c.Call), at(c.Return), c.Arg), []history.Op{*c}
}

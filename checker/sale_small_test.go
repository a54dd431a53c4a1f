package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// smallRules says which rules an order of the operations of a small sale must keep.
type smallRules struct {
	stock    bool // no more is sold than there are
	once     bool // an order is bought once, and refunded once
	refusals bool // a sold-out answer is right only if too little is left
	readings bool
	tokens   bool // no token is accepted after a newer one
}

// toldOfItself handles an answer that an order was counted before, although no answered operation can have counted it by
// then, and no other one that was called before it: the program under test may have sent the request again by itself. It
// turns such an answer into a plain one, whose effect comes after the earliest call and before the earliest return of the
// answers of this kind.
func toldOfItself(ops []history.Op) []history.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		first := &ops[i]
		if first.Reason != history.Repeated {
			continue
		}
		call, lost, own := first.Call, history.Forever, true
		for k, op := range ops {
			switch {
			case k == i || op.Kind != first.Kind || op.Arg != first.Arg || op.Outcome == history.Refused:
			case op.Outcome == history.Unknown:
				lost = min(lost, op.Call)
			case op.Reason != history.Repeated:
				own = own && op.Call > first.Return
			case op.Return < first.Return || op.Return == first.Return && k < i:
				own = false // only the earlier of two such answers
			case op.Call <= first.Return:
				call = min(call, op.Call)
			}
		}
		if own && call < lost {
			first.Call, first.Reason = call, history.NoReason
			first.Fence = 0 // that was perhaps sent under another token
		}
	}
	return ops
}

// fits tries every order of the effects to decide whether a sale can have given these answers. The state follows from
// the set of operations that have taken effect, so it is enough to try every set. It shares no code with the
// monitors.
func (rules smallRules) fits(h *history.Header, ops []history.Op) bool {
	ops = toldOfItself(ops)
	type sums struct{ bought, given int64 }
	seen := make([]bool, 1<<len(ops))
	var try func(done int) bool
	try = func(done int) bool {
		if seen[done] {
			return false
		}
		seen[done] = true
		now, left, complete, newest := time.Duration(0), h.Stock, true, int64(0)
		orders := make(map[history.Value]sums)
		for i, op := range ops {
			if done>>i&1 == 0 {
				complete = complete && op.Outcome == history.Unknown
				continue
			}
			now = max(now, op.Call)
			if s := orders[op.Arg]; op.Outcome != history.Refused && op.Reason != history.Repeated {
				switch op.Kind {
				case history.Buy:
					s.bought, left = s.bought+op.Pieces(), left-op.Pieces()
				case history.Refund:
					s.given, left = s.given+op.Pieces(), left+op.Pieces()
				}
				orders[op.Arg] = s
				newest = max(newest, op.Fence)
			}
		}
		if complete {
			return true
		}
		for i, op := range ops {
			if done>>i&1 == 1 || op.Outcome != history.Unknown && now > op.Return {
				continue
			}
			s, q, n := orders[op.Arg], op.Pieces(), int64(0)
			if op.Kind == history.ReadState {
				n, _ = op.Result.Num()
			}
			var can bool
			switch {
			case op.Kind == history.ReadState && op.Arg == history.Text("sold"):
				can = !rules.readings || n == h.Stock-left
			case op.Kind == history.ReadState:
				can = !rules.readings || n == left
			case op.Outcome == history.Refused:
				can = !rules.refusals || left < q
			case op.Reason == history.Repeated && op.Kind == history.Buy:
				can = s.bought > 0
			case op.Reason == history.Repeated:
				can = s.given > 0
			case op.Kind == history.Buy:
				can = (!rules.stock || left >= q) && (!rules.once || s.bought == 0)
			default:
				can = s.given+q <= s.bought && (!rules.once || s.given == 0)
			}
			if rules.tokens && op.Reason != history.Repeated && op.Fence > 0 && op.Fence < newest {
				can = false
			}
			if can && try(done|1<<i) {
				return true
			}
		}
		return false
	}
	return try(0)
}

// smallSale generates the history of a small sale: the answers of an idempotent sale whose effects have one order.
// Some answers are lost; a lost operation ends at any time after its call, or after everything else. Some histories
// are corrupted afterwards.
func smallSale(r *rand.Rand) (*history.Header, []history.Op) {
	h := &history.Header{Stock: int64(r.IntN(4))}
	if chance(r, 30) {
		h.Refund = 0.1
	}
	amounts := chance(r, 25)
	if amounts && chance(r, 50) {
		h.Quantity = 3
	}
	orders := 1 + r.IntN(3)
	lost, refusals, many := 10+r.IntN(60), chance(r, 40), 2+r.IntN(5)
	sold, back, amount := make([]bool, orders), make([]bool, orders), make([]int32, orders)
	for i := range amount {
		amount[i] = 1
		if amounts {
			amount[i] += int32(r.IntN(2))
		}
	}
	left, now := h.Stock, time.Duration(10)
	var ops []history.Op
	for tries := 0; len(ops) < many && tries < 40; tries++ {
		now += 1 + upTo(r, 8)
		i := r.IntN(orders)
		op := pieces(bought(int32(len(ops)), int64(i), now-upTo(r, 12), now+upTo(r, 12)), amount[i])
		op.Call = max(0, op.Call)
		unknown := chance(r, lost)
		switch {
		case chance(r, 40):
			op.Kind = history.Refund
			switch {
			case back[i] && !unknown:
				op.Reason = history.Repeated
			case back[i]:
			case sold[i]:
				back[i] = true
				left += op.Pieces()
			case !unknown:
				continue
			}
		case sold[i] && !unknown:
			op.Reason = history.Repeated
		case sold[i]:
		case left >= op.Pieces():
			sold[i] = true
			left -= op.Pieces()
		case unknown:
		case refusals:
			op.Outcome, op.Reason = history.Refused, history.SoldOut
		default:
			continue
		}
		if unknown {
			op.Outcome, op.Reason = history.Unknown, history.NoReason
			op.Return = op.Call + upTo(r, 40)
			if chance(r, 30) {
				op.Return = 500
			}
		}
		ops = append(ops, op)
	}
	if len(ops) > 0 && chance(r, 50) { // corrupt one operation
		op := &ops[r.IntN(len(ops))]
		switch r.IntN(4) {
		case 0:
			op.Call = min(op.Return, op.Call+upTo(r, 10))
		case 1:
			op.Return = max(op.Call, op.Return-upTo(r, 10))
		case 2:
			op.Outcome, op.Reason = history.OK, history.NoReason
			op.Return = min(op.Return, op.Call+20)
		case 3:
			op.Arg = history.Int(int64(r.IntN(orders)))
			k, _ := op.Arg.Num()
			op.Amount = amount[k]
		}
	}
	if chance(r, 40) {
		n := left
		if chance(r, 40) {
			n += int64(r.IntN(3)) - 1
		}
		at := now + 13 + upTo(r, 40)
		ops = append(ops, read("left", n, at))
		if chance(r, 30) {
			ops = append(ops, read("sold", h.Stock-n, at+upTo(r, 2)))
		}
	}
	return h, complete(ops)
}

// TestCrossSmallSales compares no-oversell, no-undersell and linearizable with a trial of all orders of small
// histories. In these, an answer that an order was counted before can come before or after the unanswered operation
// that it means. Only linearizable must reject answers that even an endless stock cannot explain.
func TestCrossSmallSales(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int)
	for seed := range uint64(3 * crossRuns() / 4) {
		r := rand.New(rand.NewPCG(seed, 457))
		h, ops := smallSale(r)
		answers := slices.DeleteFunc(slices.Clone(ops), func(op history.Op) bool { return op.Kind == history.ReadState })
		counted := slices.ContainsFunc(ops, func(op history.Op) bool {
			n, _ := op.Result.Num()
			return op.Kind == history.ReadState && op.Arg == history.Text("sold") && n > h.Stock
		})
		unexplained := !smallRules{}.fits(h, answers)
		room := !counted && smallRules{stock: true}.fits(h, answers)
		legal := smallRules{stock: true, refusals: true, readings: true}.fits(h, ops)
		for _, c := range []struct {
			of           variant.Property
			right, wrong bool // right: it must not be violated; wrong: it must not hold
		}{
			{variant.NoOversell, room, !room && !unexplained && !refundedTooOften(answers)},
			{variant.NoUndersell, smallRules{stock: true, once: true, refusals: true, readings: true}.fits(h, ops), !unexplained && !smallRules{readings: true}.fits(h, ops)},
			{variant.Linearizable, legal, !legal},
		} {
			v := both(t, h, func() Monitor { return saleOf(h, c.of) }, ops)
			seen[fmt.Sprint(c.of, " ", v.Result)]++
			if v.Result == Violated && c.right || v.Result == Holds && c.wrong {
				t.Fatalf("seed %d: %s is %v (%s), want legal=%v\n%s", seed, c.of, v.Result, v.Why, c.right, show(h, ops))
			}
		}
	}
	t.Logf("%v", seen)
}

// TestCrossProofs compares the fencing of sales with a trial of all orders of small histories, in which repetitions and
// refunds show that a purchase without an answer had been accepted.
func TestCrossProofs(t *testing.T) {
	t.Parallel()
	var seen, legal [3]int
	missed := 0
	for seed := range uint64(crossRuns()) {
		r := rand.New(rand.NewPCG(seed, 611))
		h, ops := smallSale(r)
		h.Stock = 99
		same := chance(r, 50) // all tries of an order show its token
		for i := range ops {
			ops[i].Fence = int64(r.IntN(5))
			if same {
				n, _ := ops[i].Arg.Num()
				ops[i].Fence = 1 + (n*7+int64(seed))%3 + int64(ops[i].Kind)%2
			}
			if chance(r, 10) {
				ops[i].Fence = 0
			}
		}
		ops = slices.DeleteFunc(ops, func(op history.Op) bool { return op.Kind == history.ReadState || op.Outcome == history.Refused })
		v := both(t, h, func() Monitor { return saleOf(h, variant.Fencing) }, ops)
		seen[v.Result]++
		if (smallRules{tokens: true}).fits(h, ops) {
			if legal[v.Result]++; v.Result == Violated {
				t.Fatalf("seed %d: %s, but an order is legal\n%s", seed, v.Why, show(h, ops))
			}
		} else if v.Result == Holds && (smallRules{}).fits(h, ops) {
			missed++
		}
	}
	t.Logf("%v, legal of these %v, %d missed", seen, legal, missed)
	if seen[Violated] == 0 || legal[Holds] == 0 {
		t.Errorf("the generator makes only one kind of history: %v", seen)
	}
}

// refundedTooOften reports whether an order has an answered and an unanswered refund. No-oversell then takes the
// earlier call of the two for the moment of the refund, although the answered one took effect.
func refundedTooOften(ops []history.Op) bool {
	return slices.ContainsFunc(ops, func(lost history.Op) bool {
		return lost.Kind == history.Refund && lost.Outcome == history.Unknown && slices.ContainsFunc(ops, func(op history.Op) bool {
			return op.Kind == history.Refund && op.Arg == lost.Arg && op.Outcome == history.OK && op.Reason != history.Repeated
		})
	})
}

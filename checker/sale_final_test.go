package checker

import (
	"math/rand/v2"
	"strings"
	"testing"

	"oversell/history"
	"oversell/variant"
)

// outcomes returns all ways in which the tries without an answer can have ended: for each way, how many effects every
// order had, and which operations had them. It leaves out a way in which an answer says that an order was counted
// before, but no operation of that order called by then had an effect.
func outcomes(ops []history.Op) (all []map[history.Value]int64, which []map[int]bool) {
	var lost []int
	for i := range ops {
		if ops[i].Outcome == history.Unknown {
			lost = append(lost, i)
		}
	}
	for chosen := range 1 << len(lost) {
		effects := make(map[int]bool)
		for i, op := range ops {
			effects[i] = op.Kind == history.Buy && op.Outcome == history.OK && op.Reason != history.Repeated
		}
		for bit, i := range lost {
			effects[i] = chosen>>bit&1 == 1
		}
		legal := true
		for _, r := range ops {
			if r.Reason != history.Repeated {
				continue
			}
			explained := false
			for i, op := range ops {
				explained = explained || effects[i] && op.Arg == r.Arg && op.Call <= r.Return
			}
			legal = legal && explained
		}
		if !legal {
			continue
		}
		orders := make(map[history.Value]int64)
		for i, op := range ops {
			if effects[i] {
				orders[op.Arg]++
			}
		}
		all, which = append(all, orders), append(which, effects)
	}
	return all, which
}

// explained reports whether these effects can explain all sold-out answers.
func explained(h *history.Header, ops []history.Op, effects map[int]bool) bool {
	for _, no := range ops {
		left := h.Stock
		for i, op := range ops {
			if effects[i] && op.Call <= no.Return {
				left--
			}
		}
		if no.Reason == history.SoldOut && left > 0 {
			return false
		}
	}
	return true
}

func sum(orders map[history.Value]int64) (n int64, twice bool) {
	for _, k := range orders {
		n += k
		twice = twice || k > 1
	}
	return n, twice
}

// TestCrossFinalReadings checks the verdicts about sales in which tries go unanswered, orders are sent again, and the
// stock is read in the end. It compares them with a trial of all ways in which the tries can have ended.
func TestCrossFinalReadings(t *testing.T) {
	var seen, violated [3]int
	for seed := range uint64(crossRuns() / 2) {
		r := rand.New(rand.NewPCG(seed, 77))
		h := &history.Header{Stock: int64(1 + r.IntN(4))}
		mix := saleMix{unknown: true, resend: true}
		var ops []history.Op
		if chance(r, 50) {
			ops = saleRun(r, h, 3+r.IntN(8), mix, chance(r, 50))
		} else {
			ops = saleNoise(r, h, 2+r.IntN(6), mix)
		}
		for i := range ops {
			ops[i].Amount = 1
		}
		asked := ops
		ops = toldOfItself(asked)
		ways, which := outcomes(ops)
		least, most := int64(1<<62), int64(0) // pieces sold
		mostOnce, surelyTwice := int64(0), true
		var mayBe [64]bool // mayBe[n]: n pieces can be sold without an order that has more than one effect, unless more are proven
		known := make(map[history.Value]int64)
		for id := range ways[0] {
			known[id] = 1 << 62
		}
		for _, way := range ways {
			n, twice := sum(way)
			least, most = min(least, n), max(most, n)
			surelyTwice = surelyTwice && twice
			once := int64(0)
			for _, k := range way {
				once += min(k, 1)
			}
			mostOnce = max(mostOnce, once)
			for id := range known {
				known[id] = min(known[id], way[id])
			}
		}
		for _, way := range ways {
			n, _ := sum(way)
			asKnown := true
			for id, k := range way {
				asKnown = asKnown && k <= max(1, known[id])
			}
			if asKnown {
				mayBe[n] = true
			}
		}
		left, sold := h.Stock-least-int64(r.IntN(int(most-least)+1)), int64(-1)
		if chance(r, 30) {
			left += int64(r.IntN(5)) - 2
		}
		end := ops[len(ops)-1].Return + 1
		reads := []history.Op{read("left", left, end)}
		if chance(r, 50) {
			sold = max(0, least+int64(r.IntN(4))-1)
			reads = append(reads, read("sold", sold, end+2))
		}
		whole := append(asked[:len(asked):len(asked)], reads...)

		over := least > h.Stock || sold > h.Stock
		once := surelyTwice || sold > mostOnce
		gone := h.Stock - left
		under := !bruteRefusals(h, ops) || gone < 0 || gone >= 64 || !mayBe[gone]
		if sold >= 0 && (sold < least || sold > most || sold < gone) { // "sold" was read after "left"
			under = true
		}
		told, taken := false, gone // the purchases that explain the refusals have left the stock by the end
		if sold >= 0 {
			taken = min(gone, sold)
		}
		for i, way := range ways {
			n, _ := sum(way)
			told = told || n == taken && explained(h, ops, which[i])
		}
		under = under || !told
		for i, c := range []struct {
			of  variant.Property
			bad bool
		}{{variant.NoOversell, over}, {variant.OncePerOrder, once}, {variant.NoUndersell, under}} {
			v := both(t, h, func() Monitor { return saleOf(h, c.of) }, whole)
			seen[i]++
			if c.bad {
				violated[i]++
			}
			if c.bad != (v.Result == Violated) {
				t.Fatalf("seed %d: %s is %v (%s), want violated=%v\nleft %d, sold %d, %d to %d sold\n%s", seed, c.of, v.Result, v.Why, c.bad, left, sold, least, most, show(h, whole))
			}
			if c.of == variant.OncePerOrder && v.Result == Holds {
				for _, way := range ways {
					if n, twice := sum(way); twice && n == gone && !surelyTwice {
						t.Fatalf("seed %d: %s holds (%s), and an order may have been counted twice\n%s", seed, c.of, v.Why, show(h, whole))
					}
				}
			}
		}
		m := saleOf(h, variant.NoOversell)
		feed(m, ops)
		if sure, more := m.(seller).SoldPieces(); sure != least || sure+more != most {
			t.Fatalf("seed %d: sold %d and %d perhaps, want %d to %d\n%s", seed, sure, more, least, most, show(h, ops))
		}
	}
	for i := range seen {
		if violated[i] == 0 || violated[i] == seen[i] {
			t.Errorf("property %d: %d of %d are violated", i, violated[i], seen[i])
		}
	}
	t.Logf("%v histories, %v violated", seen, violated)
}

// TestCrossWholeOrders compares no-undersell with a trial of all ways in which unanswered purchases and refunds of
// several pieces come before, between or after two readings.
func TestCrossWholeOrders(t *testing.T) {
	var results [3]int
	for seed := range uint64(crossRuns() / 4) {
		r := rand.New(rand.NewPCG(seed, 91))
		h := &history.Header{Stock: int64(4 + r.IntN(8))}
		var ops []history.Op
		var open []int64 // what the unanswered operations add to the stock
		left := h.Stock
		for i := range 2 + r.IntN(4) {
			op := pieces(bought(int32(i), int64(i), 1, 2), int32(1+r.IntN(3)))
			if chance(r, 60) {
				op.Outcome = history.Unknown
				open = append(open, -op.Pieces())
			} else {
				left -= op.Pieces()
				if chance(r, 30) {
					back := pieces(saleOp(history.Refund, int32(i), int64(i), 3, 4, history.Unknown, history.NoReason), op.Amount)
					open = append(open, op.Pieces())
					ops = append(ops, back)
				}
			}
			ops = append(ops, op)
		}
		ops = complete(ops)
		first, second := left+int64(r.IntN(5))-3, left+int64(r.IntN(5))-3
		a, b := read("left", first, 5), read("sold", h.Stock-second, 7)
		together := chance(r, 30)
		switch {
		case together:
			a.Return, b.Call = 7, 6
		case chance(r, 50):
			a, b = read("sold", h.Stock-first, 5), read("left", second, 7)
		}
		ops = append(ops, complete([]history.Op{a, b})...)
		legal := false
		ways := 1
		for range open {
			ways *= 3
		}
		for way := range ways {
			x, y := left, left
			for i, n := 0, way; i < len(open); i, n = i+1, n/3 {
				if n%3 == 0 {
					x += open[i]
				}
				if n%3 <= 1 {
					y += open[i]
				}
			}
			legal = legal || x == first && y == second || together && x == second && y == first
		}
		v := both(t, h, func() Monitor { return saleOf(h, variant.NoUndersell) }, ops)
		results[v.Result]++
		if v.Result == Unknown || legal != (v.Result == Holds) {
			t.Fatalf("seed %d: %v (%s), want legal=%v\n%s%d, then %d", seed, v.Result, v.Why, legal, show(h, ops), first, second)
		}
	}
	t.Logf("%v", results)
	if results[Holds] == 0 || results[Violated] == 0 {
		t.Errorf("the generator makes only one kind of history: %v", results)
	}
}

// TestSoldPiecesAfterTheFinalState checks that the final state decides how much was sold, where it can.
func TestSoldPiecesAfterTheFinalState(t *testing.T) {
	h := &history.Header{Stock: 3}
	ops := []history.Op{
		bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), bought(1, 3, 5, 6), lostBuyOp(3, 4, 7, 8), bought(1, 5, 9, 10),
	}
	for _, c := range []struct {
		name       string
		reads      []history.Op
		sure, more int64
		says       string
	}{
		{"nothing is known", nil, 3, 2, "sold 3 to 5 of 3"},
		{"neither took effect", []history.Op{read("left", 0, 20), read("reserved", 0, 22), read("sold", 3, 24)}, 3, 0, "sold 3 of 3"},
		{"one took effect", []history.Op{read("left", 0, 20), read("sold", 4, 24)}, 4, 0, ""},
	} {
		m := saleOf(h, variant.NoOversell)
		feed(m, append(ops[:len(ops):len(ops)], c.reads...))
		if sure, more := m.(seller).SoldPieces(); sure != c.sure || more != c.more {
			t.Errorf("%s: sold %d and perhaps %d more, want %d and %d", c.name, sure, more, c.sure, c.more)
		}
		if v := m.Verdict().Told(); !strings.HasPrefix(v.Why, c.says) {
			t.Errorf("%s: %q, want %q", c.name, v.Why, c.says)
		}
	}
}

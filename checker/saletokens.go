package checker

import (
	"fmt"
	"sort"
	"time"

	"oversell/history"
)

// acceptTokens judges that a sale never accepts an older fencing token after a
// newer one, and refuses none as stale without having been shown a newer one.
//
// In the order of their tokens the accepted purchases and refunds must fit the
// greedy schedule t = max(t, call) <= return; equal tokens fit in any order. A
// refusal of f needs an operation that showed some g > f and was called before
// the refusal returned; whether it was accepted does not matter, because a
// fenced sale registers tokens when it reads, too. An answer that an order had
// been counted before accepts nothing. The smallest bad histories:
//
//	client 2  buy  [3, 4]  fence 8  ok
//	client 1  buy  [5, 6]  fence 7  ok
//
//	client 1  buy  [1, 2]  fence 7  refused (stale)
//
// One opportunity is an accepted operation that met a rival with another token (see
// [contest]), which could have been accepted in the wrong order, or a token that was
// refused as stale after a newer one had been accepted from another client.
func acceptTokens(p *product) Verdict {
	if p.gate == nil {
		return Verdict{Why: "no operation of the sale showed a token"}
	}
	v := p.gate.verdict(p.ended)
	v.Opportunities = p.gate.chances
	return v
}

type gate struct {
	largest  rising
	newest   int64     // the largest token of any operation so far
	stale    []unshown // refusals that still need a newer token, by return
	accepted int64
	refused  int64
	chances  int64
	broken   int
	why      string
	witness  []history.Op
}

// unshown is a refusal for which no newer token was shown before it returned. An
// operation that was called by then and returns later may explain it. Such a one explains
// all refusals from some place on, and is entered there.
type unshown struct {
	op    history.Op
	newer int64 // the largest token shown to this one and all later ones
}

// show enters an operation with a token; met says that it met a rival with another one.
func (p *product) show(op *history.Op, met bool) {
	if p.gate == nil {
		p.gate = new(gate)
	}
	g := p.gate
	if n := len(g.stale); n > 0 && op.Call <= g.stale[n-1].op.Return {
		i := sort.Search(n, func(i int) bool { return g.stale[i].op.Return >= op.Call })
		g.stale[i].newer = max(g.stale[i].newer, op.Fence)
	}
	g.newest = max(g.newest, op.Fence)
	switch {
	case op.Outcome == history.OK && op.Reason == history.NoReason:
		g.accepted++
		if met {
			g.chances++
		}
		if newer := g.largest.before(op.Call); newer != nil && newer.value > op.Fence {
			g.fail(fmt.Sprintf("the sale accepted the token %s from %s between %s and %s, after it had accepted %s from %s by %s",
				count(op.Fence), client(op), at(op.Call), at(op.Return), count(newer.value), client(&newer.op), at(newer.op.Return)),
				newer.op, *op)
		}
		g.largest.add(op.Fence, op)
	case op.Outcome == history.Refused && op.Reason == history.Stale:
		g.refused++
		if last := g.largest.last(); last != nil && last.value > op.Fence && last.op.Client != op.Client {
			g.chances++
		}
		if g.newest <= op.Fence {
			g.stale = append(g.stale, unshown{op: *op})
		}
	}
}

func (g *gate) fail(why string, witness ...history.Op) {
	g.broken++
	if g.broken == 1 {
		g.why, g.witness = why, inOrder(witness...)
	}
}

// unjustified is the sentence about a refusal that nothing explains.
func unjustified(op *history.Op) string {
	return fmt.Sprintf("the sale refused the token %s of %s at %s as stale, though nobody had shown it a newer one",
		count(op.Fence), client(op), at(op.Return))
}

// advance decides the refusals that no operation can explain any more.
func (g *gate) advance(lowWater time.Duration) {
	g.largest.forget(lowWater)
	i := 0
	for newer := int64(0); i < len(g.stale) && g.stale[i].op.Return < lowWater; i++ {
		s := &g.stale[i]
		if newer = max(newer, s.newer); newer <= s.op.Fence {
			g.fail(unjustified(&s.op), s.op)
		}
		if i+1 < len(g.stale) {
			g.stale[i+1].newer = max(g.stale[i+1].newer, newer)
		}
	}
	if i > 0 {
		g.stale = append(g.stale[:0], g.stale[i:]...)
	}
}

func (g *gate) verdict(cut bool) Verdict {
	end := *g
	end.stale = append([]unshown(nil), g.stale...)
	end.largest = rising{} // not to be forgotten
	end.advance(history.Forever)
	open := end.broken - g.broken
	switch {
	case !cut && end.broken > 0:
		return Verdict{Result: Violated, Count: end.broken, Why: end.why, Witness: end.witness}
	case g.broken > 0:
		return Verdict{Result: Violated, Count: g.broken, Why: g.why, Witness: g.witness}
	case open > 0:
		return Verdict{Why: fmt.Sprintf("%s as stale without a newer token in sight: %s", many(open, "refusal"), cutOff)}
	case g.accepted == 0:
		return Verdict{Why: "the sale accepted no token"}
	}
	return Verdict{Result: Holds, say: func() string {
		return fmt.Sprintf("%s accepted, none seen after a newer one, and %s as stale: %s to go wrong",
			many(g.accepted, "token"), many(g.refused, "refusal"), many(g.chances, "chance"))
	}}
}

package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
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
type acceptTokens struct {
	sales keyed[gate]
	ended bool
}

type gate struct {
	key      history.Value
	largest  rising
	shown    int64        // the largest token of any operation so far
	stale    []history.Op // refusals that still need a newer token
	accepted int64
	refused  int64
	broken   int
	why      string
	witness  []history.Op
}

func newAcceptTokens() *acceptTokens {
	return &acceptTokens{sales: newKeyed(func(key history.Value) *gate { return &gate{key: key} })}
}

// Observe implements [Monitor].
func (m *acceptTokens) Observe(op *history.Op) {
	if (op.Kind == history.Buy || op.Kind == history.Refund) && op.Fence > 0 {
		m.sales.at(op.Key).show(op)
	}
}

func (g *gate) show(op *history.Op) {
	g.shown = max(g.shown, op.Fence)
	if len(g.stale) > 0 {
		g.justify(op)
	}
	switch {
	case op.Outcome == history.OK && op.Reason == history.NoReason:
		g.accepted++
		if newer := g.largest.before(op.Call); newer != nil && newer.value > op.Fence {
			g.fail(fmt.Sprintf("the sale accepted the token %s from %s between %s and %s, after it had accepted %s from %s by %s",
				count(op.Fence), client(op), at(op.Call), at(op.Return), count(newer.value), client(&newer.op), at(newer.op.Return)),
				newer.op, *op)
		}
		g.largest.add(op.Fence, op)
	case op.Outcome == history.Refused && op.Reason == history.Stale:
		g.refused++
		if g.shown <= op.Fence {
			g.stale = append(g.stale, *op)
		}
	}
}

// justify removes the refusals for which op is the newer token.
func (g *gate) justify(op *history.Op) {
	kept := g.stale[:0]
	for _, s := range g.stale {
		if !(op.Fence > s.Fence && op.Call <= s.Return) {
			kept = append(kept, s)
		}
	}
	g.stale = kept
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

// Advance implements [Monitor].
func (m *acceptTokens) Advance(lowWater time.Duration) {
	for _, g := range m.sales.all {
		g.largest.forget(lowWater)
		for len(g.stale) > 0 && g.stale[0].Return < lowWater {
			g.fail(unjustified(&g.stale[0]), g.stale[0])
			g.stale = g.stale[1:]
		}
	}
}

func (m *acceptTokens) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *acceptTokens) Verdict() Verdict {
	return m.sales.verdict(variant.Sale, variant.Fencing, "no operation of the sale showed a token", func(g *gate) Verdict {
		v := Verdict{Result: Violated, Count: g.broken, Why: g.why, Witness: g.witness}
		open := len(g.stale)
		switch {
		case open > 0 && !m.ended:
			v.Count += open
			if g.broken == 0 {
				v.Why, v.Witness = unjustified(&g.stale[0]), g.stale[:1:1]
			}
			return v
		case g.broken > 0:
			return v
		case open > 0:
			return Verdict{Why: fmt.Sprintf("%s as stale without a newer token in sight: %s", many(int64(open), "refusal"), cutOff)}
		case g.accepted == 0:
			return Verdict{Why: "the sale accepted no token"}
		}
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s accepted, none after a newer one; %s as stale", many(g.accepted, "token"), many(g.refused, "refusal"))}
	})
}

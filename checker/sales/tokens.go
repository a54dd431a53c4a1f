package sales

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// acceptTokens judges that a sale never accepts an older fencing token after a newer one, and refuses none as stale
// unless it was shown a newer one.
//
// In the order of their tokens the accepted purchases and refunds must fit the greedy
// schedule t = max(t, call) <= return; equal tokens fit in any order. A refusal of f needs
// an operation that showed some g > f and was called before the refusal returned; whether
// it was accepted does not matter, because a fenced sale registers tokens when it reads,
// too. From then on the smallest such g is the least that the sale can have registered, and
// nothing smaller may be accepted that was called later. An answer that the order had been counted before does not
// accept the token. The smallest bad histories:
//
//	client 2  buy  [3, 4]  fence 8  ok
//	client 1  buy  [5, 6]  fence 7  ok
//
//	client 1  buy  [1, 2]  fence 7  refused (stale)
//
//	client 3  buy  [1, 2]  fence 9  unknown
//	client 2  buy  [3, 4]  fence 7  refused (stale)
//	client 1  buy  [5, 6]  fence 8  ok
//
// One opportunity is an accepted operation that met a rival with another token (see
// [contest]), which could have been accepted in the wrong order, or a token that was
// refused as stale after a newer one had been accepted from another client.
func acceptTokens(p *product) monitor.Verdict {
	if p.gate == nil {
		return monitor.Verdict{Why: "no operation of the sale showed a token"}
	}
	v := p.gate.verdict(p.ended)
	v.Opportunities = p.gate.chances
	return v
}

type gate struct {
	largest monitor.Rising // of the accepted tokens
	implied monitor.Rising // of the tokens that refusals as stale show to be registered
	shown   []shown        // tokens larger than every accepted one, in order
	waiting []history.Op   // refusals that a later operation may explain, and what was accepted after them, by return

	accepted int64
	refused  int64
	chances  int64
	broken   int
	why      string
	witness  []history.Op
}

// shown is a token, and when it was shown first.
type shown struct {
	token int64
	call  time.Duration
}

func byToken(s shown, token int64) int { return cmp.Compare(s.token, token) }

// show enters an operation with a token; met says that it met a rival with another one.
func (p *product) show(op *history.Op, met bool) {
	if p.gate == nil {
		p.gate = new(gate)
	}
	g := p.gate
	newest := g.largest.Last()
	accepted := op.Outcome == history.OK && op.Reason == history.NoReason
	if len(g.waiting) > 0 || !accepted && (newest == nil || op.Fence > newest.Value) {
		g.note(op)
	}
	switch {
	case accepted:
		g.accepted++
		if met {
			g.chances++
		}
		if newer := g.largest.Before(op.Call); newer != nil && newer.Value > op.Fence {
			g.fail(fmt.Sprintf("the sale accepted the token %s from %s between %s and %s, after it had accepted %s from %s by %s",
				say.Count(op.Fence), say.Client(op), say.At(op.Call), say.At(op.Return), say.Count(newer.Value), say.Client(&newer.Op), say.At(newer.Op.Return)),
				newer.Op, *op)
		} else if len(g.waiting) > 0 {
			g.waiting = append(g.waiting, *op)
		} else {
			g.afterRefusals(op)
		}
		g.largest.Add(op.Fence, op)
	case op.Outcome == history.Refused && op.Reason == history.Stale:
		g.refused++
		if newest == nil || newest.Value <= op.Fence { // otherwise that one explains it, and implies no less
			g.waiting = append(g.waiting, *op)
		} else if newest.Op.Client != op.Client {
			g.chances++
		}
	}
}

// note enters the token of op among those that were shown.
func (g *gate) note(op *history.Op) {
	i, found := slices.BinarySearchFunc(g.shown, op.Fence, byToken)
	if !found {
		g.shown = slices.Insert(g.shown, i, shown{op.Fence, op.Call})
	}
	g.shown[i].call = min(g.shown[i].call, op.Call)
}

// afterRefusals judges an accepted operation by the refusals that returned before its call,
// all of which are decided.
func (g *gate) afterRefusals(op *history.Op) {
	if least := g.implied.Before(op.Call); least != nil && least.Value > op.Fence {
		g.fail(fmt.Sprintf("the sale accepted the token %s from %s between %s and %s, though it had refused %s of %s as stale by %s, and nobody had shown it a token between that and %s by then",
			say.Count(op.Fence), say.Client(op), say.At(op.Call), say.At(op.Return), say.Count(least.Op.Fence), say.Client(&least.Op), say.At(least.Op.Return), say.Count(least.Value)),
			least.Op, *op)
	}
}

func (g *gate) fail(why string, witness ...history.Op) {
	g.broken++
	if g.broken == 1 {
		g.why, g.witness = why, monitor.InOrder(witness...)
	}
}

// unjustified returns the sentence about a refusal that nothing explains.
func unjustified(op *history.Op) string {
	return fmt.Sprintf("the sale refused the token %s of %s at %s as stale, though nobody had shown it a newer one",
		say.Count(op.Fence), say.Client(op), say.At(op.Return))
}

// advance decides the refusals that no later operation can explain any more.
func (g *gate) advance(lowWater time.Duration) {
	g.decide(lowWater)
	g.largest.Forget(lowWater)
	if len(g.waiting) > 0 {
		return // the waiting operations were called before
	}
	g.implied.Forget(lowWater)
	if newest := g.largest.Last(); newest != nil && len(g.shown) > 0 && g.shown[0].token <= newest.Value {
		g.shown = slices.DeleteFunc(g.shown, func(s shown) bool { return s.token <= newest.Value })
	}
}

// decide judges the waiting operations that returned before lowWater, in the order of their
// returns.
func (g *gate) decide(lowWater time.Duration) {
	i := 0
	for ; i < len(g.waiting) && g.waiting[i].Return < lowWater; i++ {
		op := &g.waiting[i]
		if op.Outcome == history.OK {
			g.afterRefusals(op)
			continue
		}
		by, _ := slices.BinarySearchFunc(g.shown, op.Fence+1, byToken)
		for by < len(g.shown) && g.shown[by].call > op.Return {
			by++
		}
		if by == len(g.shown) {
			g.fail(unjustified(op), *op)
			continue
		}
		g.implied.Add(g.shown[by].token, op)
	}
	g.waiting = slices.Delete(g.waiting, 0, i)
}

func (g *gate) verdict(cut bool) monitor.Verdict {
	end := *g
	end.waiting, end.implied.Steps = slices.Clone(g.waiting), slices.Clone(g.implied.Steps)
	end.decide(history.Forever)
	open := end.broken - g.broken
	switch {
	case !cut && end.broken > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: end.broken, Why: end.why, Witness: end.witness}
	case g.broken > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: g.broken, Why: g.why, Witness: g.witness}
	case open > 0:
		return monitor.Undecided(end.why + "; but " + monitor.CutOff)
	case g.accepted == 0:
		return monitor.Verdict{Why: "the sale accepted no token"}
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string {
		return fmt.Sprintf("%s accepted, none seen after a newer one, and %s as stale: %s to go wrong",
			say.Many(g.accepted, "token"), say.Many(g.refused, "refusal"), say.Many(g.chances, "chance"))
	}}
}

package sales

import (
	"cmp"
	"fmt"
	"maps"
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
// too. The sale had registered that g when both the refusal and, if it had an answer, the
// operation had returned, and may accept nothing smaller that was called later. An answer that the order had been
// counted before does not accept the token. It shows that another operation did, as a refund does; see [proofs]. The
// smallest bad histories:
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
//	client 3  buy  [1, 2]  fence 9  refused (sold-out)
//	client 1  buy  [3, 4]  fence 7  ok
//	client 2  buy  [5, 6]  fence 8  refused (stale)
//
// One opportunity is an accepted operation that met a rival with another token (see
// [contention]), which could have been accepted in the wrong order, or a token that was
// refused as stale after a newer one had been accepted from another client.
func acceptTokens(p *product) monitor.Verdict {
	if p.gate == nil || !p.gate.any {
		return monitor.Verdict{Why: "no operation of the sale showed a token"}
	}
	v := p.gate.verdict(p.ended)
	v.Opportunities = p.gate.chances
	return v
}

type gate struct {
	proofs
	any      bool               // a token was shown
	largest  monitor.RunningMax // of the accepted tokens
	shown    []shown            // tokens larger than every accepted one, in order, those of one token by their calls
	waiting  []history.Op       // refusals that a later operation may explain, and what was accepted after them, by return
	last     history.Op         // the accepted operation that was called last; no kind: there is none
	refusals []explained        // those that a later accepted operation may contradict

	accepted int64
	refused  int64
	chances  int64
	broken   int
	why      string
	witness  []history.Op
}

// shown is a token, and the time of an operation that showed it.
type shown struct {
	token     int64
	call, end time.Duration
}

func byToken(s shown, token int64) int { return cmp.Compare(s.token, token) }

// explained is a refusal as stale, and the newer tokens that may explain it, in rising order. A larger token is in the
// list only if its time is later, too: a smaller token with a later time excludes less.
type explained struct {
	op *history.Op
	by []registered
}

// registered is a token, and when the sale had it registered at the latest.
type registered struct {
	token int64
	when  time.Duration
}

// show enters an operation with a token; met says that it met a rival with another one.
func (p *product) show(op *history.Op, met bool) {
	if p.gate == nil {
		p.gate = new(gate)
	}
	g := p.gate
	g.any = true
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
				say.Thousands(op.Fence), say.Client(op), say.At(op.Call), say.At(op.Return), say.Thousands(newer.Value), say.Client(&newer.Op), say.At(newer.Op.Return)),
				newer.Op, *op)
		} else if len(g.waiting) > 0 {
			g.waiting = append(g.waiting, *op)
		} else {
			g.accept(op)
		}
		g.largest.Add(op.Fence, op)
		g.proofs.accepted(op)
	case op.Outcome == history.Refused && op.Reason == history.Stale:
		g.refused++
		if newest == nil || newest.Value <= op.Fence { // otherwise that one explains it, and implies no less
			g.waiting = append(g.waiting, *op)
		} else if newest.Op.Client != op.Client {
			g.chances++
		}
	}
}

// note enters the token of op among those that were shown. Of two operations with the same token it keeps only the one
// that was called earlier and ended later, if that is one operation: it explains every refusal that the other explains.
func (g *gate) note(op *history.Op) {
	i, _ := slices.BinarySearchFunc(g.shown, op.Fence, byToken)
	for ; i < len(g.shown) && g.shown[i].token == op.Fence && g.shown[i].call <= op.Call; i++ {
		if g.shown[i].end >= op.End() {
			return
		}
	}
	to := i
	for to < len(g.shown) && g.shown[to].token == op.Fence && g.shown[to].end <= op.End() {
		to++
	}
	g.shown = slices.Replace(g.shown, i, to, shown{op.Fence, op.Call, op.End()})
}

// accept judges an accepted operation by the refusals that returned before it did, all of which are decided.
func (g *gate) accept(op *history.Op) {
	if g.last.Kind == history.NoKind || op.Call > g.last.Call {
		g.last = *op
	}
	if len(g.refusals) == 0 {
		return
	}
	kept := g.refusals[:0:0]
	for _, r := range g.refusals {
		if by := r.without(op); len(by) > 0 {
			kept = append(kept, explained{r.op, by})
		} else {
			g.contradict(r, op)
		}
	}
	g.refusals = kept
}

// without returns what may still explain a refusal when op was accepted.
func (r *explained) without(op *history.Op) []registered {
	excluded := func(by registered) bool { return by.when < op.Call && op.Fence < by.token }
	if !slices.ContainsFunc(r.by, excluded) {
		return r.by
	}
	return slices.DeleteFunc(slices.Clone(r.by), excluded)
}

// contradict reports a refusal that nothing explains any more, since op was accepted.
func (g *gate) contradict(r explained, op *history.Op) {
	by := r.by[len(r.by)-1]
	g.fail(fmt.Sprintf("the sale refused the token %s of %s between %s and %s as stale, so it had registered %s or a newer one by %s, by what it had been shown; but it accepted %s from %s between %s and %s",
		say.Thousands(r.op.Fence), say.Client(r.op), say.At(r.op.Call), say.At(r.op.Return), say.Thousands(by.token), say.At(by.when),
		say.Thousands(op.Fence), say.Client(op), say.At(op.Call), say.At(op.Return)), *r.op, *op)
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
		say.Thousands(op.Fence), say.Client(op), say.At(op.Return))
}

// advance decides the refusals that no later operation can explain any more.
func (g *gate) advance(lowWater time.Duration) {
	g.settle(lowWater)
	g.decide(lowWater)
	g.largest.Forget(lowWater)
	if len(g.waiting) > 0 {
		return // the waiting operations were called before
	}
	if newest := g.largest.Before(lowWater); newest != nil && len(g.refusals) > 0 { // what contradicts these comes after a newer token
		g.refusals = slices.DeleteFunc(g.refusals, func(r explained) bool { return r.by[0].token <= newest.Value })
	}
	newest := g.largest.Last()
	i := 0
	g.shown = slices.DeleteFunc(g.shown, func(s shown) bool {
		i++
		return newest != nil && s.token <= newest.Value ||
			i < len(g.shown) && g.shown[i].token == s.token && g.shown[i].call < lowWater // that one ends later
	})
}

// decide judges the waiting operations that returned before lowWater, in the order of their
// returns.
func (g *gate) decide(lowWater time.Duration) {
	i := 0
	for ; i < len(g.waiting) && g.waiting[i].Return < lowWater; i++ {
		op := &g.waiting[i]
		if op.Outcome == history.OK {
			g.accept(op)
			continue
		}
		r := explained{clone(op), g.explain(op)}
		if len(r.by) == 0 {
			g.fail(unjustified(op), *op)
			continue
		}
		by := r.by
		if g.last.Kind != history.NoKind {
			by = r.without(&g.last)
		}
		if len(by) == 0 {
			g.contradict(r, &g.last)
			continue
		}
		g.enter(explained{r.op, by})
	}
	g.waiting = slices.Delete(g.waiting, 0, i)
}

// explain returns what may explain a refusal.
func (g *gate) explain(op *history.Op) (by []registered) {
	from, _ := slices.BinarySearchFunc(g.shown, op.Fence+1, byToken)
	for _, s := range g.shown[from:] {
		if when := min(s.end, op.Return); s.call <= op.Return && (len(by) == 0 || when > by[len(by)-1].when) {
			if len(by) > 0 && by[len(by)-1].token == s.token {
				by = by[:len(by)-1]
			}
			by = append(by, registered{s.token, when})
		}
	}
	return by
}

// enter adds a refusal to those that may be contradicted, unless whatever contradicts it contradicts another one, too.
func (g *gate) enter(r explained) {
	covers := func(strict, r *explained) bool { // whatever contradicts r contradicts strict, too
		return !slices.ContainsFunc(strict.by, func(a registered) bool {
			return !slices.ContainsFunc(r.by, func(b registered) bool { return b.token <= a.token && b.when >= a.when })
		})
	}
	if slices.ContainsFunc(g.refusals, func(other explained) bool { return covers(&other, &r) }) {
		return
	}
	g.refusals = append(slices.DeleteFunc(slices.Clone(g.refusals), func(other explained) bool { return covers(&r, &other) }), r)
}

func (g *gate) verdict(cut bool) monitor.Verdict {
	end := *g
	end.waiting = slices.Clone(g.waiting)
	if len(end.open) > 0 {
		end.largest.Steps, end.proved.Steps = slices.Clone(end.largest.Steps), slices.Clone(end.proved.Steps)
		end.known = maps.Clone(g.known)
		end.settle(history.Forever)
	}
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
			say.Count(g.accepted, "token"), say.Count(g.refused, "refusal"), say.Count(g.chances, "chance"))
	}}
}

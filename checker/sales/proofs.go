package sales

import (
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// proofs finds tokens that the sale had accepted before an answer said so. A refund that took place shows that a purchase
// of its order had taken effect by then. An answer that an order had been counted shows that one of its tries had. So the
// token of that purchase had been accepted, even if its own answer comes later or never. A proof is judged when all
// operations are known that were called before its answer, since it may refer to any of them. It shows nothing if these did not
// all show the same token, or if the first of them is a repetition, whose earlier try may have shown another one. The
// smallest bad histories:
//
//	client 1  buy     [1, 9]  order 7  fence 5  ok
//	client 2  refund  [2, 3]  order 7  ok
//	client 3  buy     [4, 5]  order 8  fence 2  ok
//
//	client 3  buy     [1, 2]  order 8  fence 5  ok
//	client 1  buy     [3, 4]  order 7  fence 2  unknown
//	client 2  refund  [5, 6]  order 7  ok
type proofs struct {
	open     []proof
	lost     map[tryKey][]try   // the operations without an answer that showed a token, by order
	repeated map[tryKey]*try    // the first repetition of an order of which nothing else was answered
	known    map[tryKey]bool    // orders with a proof that was judged
	recent   []history.Op       // what was accepted since the first of the open proofs: from call to call, tokens rise
	proved   monitor.RunningMax // the tokens of proofs, by the returns of their answers
}

// tryKey is an order, and whether its purchases or its refunds are meant.
type tryKey struct {
	kind  history.Kind
	order history.Value
}

// try is an operation without an answer.
type try struct {
	op    history.Op
	newer *history.Op // of the operations that had returned before, the accepted one with the newest token, if that is newer
}

// proof is an answer which shows that an operation of an order had taken effect by then.
type proof struct {
	tryKey
	answer history.Op
	first  *try // of what it may refer to, the one that was called first; nil: none so far
	fresh  *history.Op
	vague  bool // not all of it showed the same token
}

// mayMean enters an operation that a proof may refer to.
func (p *proof) mayMean(t try) {
	if t.op.Call > p.answer.Return {
		return
	}
	p.vague = p.vague || t.op.Fence == 0 || p.first != nil && p.first.op.Fence != t.op.Fence
	if p.first == nil || t.op.Call < p.first.op.Call {
		p.first = &t
	}
	if t.op.Outcome == history.OK && t.op.Reason != history.Repeated {
		p.fresh = &t.op
	}
}

// prove enters an operation of a sale that may have had an effect, and what it shows.
func (p *product) prove(op *history.Op) {
	if op.Outcome == history.Refused {
		return
	}
	if g := p.gate; g != nil && (len(g.open) > 0 || op.Fence > 0 && op.Outcome == history.Unknown) {
		g.attempt(op)
	}
	if op.Kind == history.Refund && op.Outcome == history.OK {
		p.shows(history.Buy, op)
	}
	if op.Reason == history.Repeated {
		p.shows(op.Kind, op)
	}
}

// attempt notes an operation that an open proof, or a later one, may refer to.
func (g *gate) attempt(op *history.Op) {
	t := try{op: *op}
	if newer := g.largest.Before(op.Call); newer != nil && newer.Value > op.Fence {
		t.newer = clone(&newer.Op)
	}
	key := tryKey{op.Kind, op.Arg}
	for i := range g.open {
		if g.open[i].tryKey == key {
			g.open[i].mayMean(t)
		}
	}
	if op.Outcome == history.Unknown && op.Fence > 0 {
		if g.lost == nil {
			g.lost = make(map[tryKey][]try)
		}
		g.lost[key] = append(g.lost[key], t)
	}
}

// shows enters an answer which shows that a purchase of its order, or a refund, had taken effect.
func (p *product) shows(kind history.Kind, op *history.Op) {
	os := &p.sales.bought
	if kind == history.Refund {
		os = &p.sales.returned
	}
	o := os.of(p, op.Arg)
	if o.fresh { // it refers to that effect
		return
	}
	if p.gate == nil {
		p.gate = new(gate)
	}
	g, key := p.gate, tryKey{kind, op.Arg}
	if g.known[key] {
		return
	}
	shown := proof{tryKey: key, answer: *op}
	tries := g.lost[key]
	for _, t := range tries {
		shown.mayMean(t)
	}
	if o.tried > 0 && os.tried[o.tried-1].lost != int64(len(tries)) { // some showed none
		shown.vague = true
	}
	if op.Kind == kind { // its program may have sent it before
		if r := g.repeated[key]; r == nil || op.Call < r.op.Call {
			if g.repeated == nil {
				g.repeated = make(map[tryKey]*try)
			}
			g.repeated[key] = &try{op: *op}
		}
	}
	if r := g.repeated[key]; r != nil {
		shown.mayMean(*r)
	}
	g.open = append(g.open, shown)
}

// accepted enters a purchase or a refund that was accepted while proofs are open.
func (p *proofs) accepted(op *history.Op) {
	if len(p.open) == 0 || slices.ContainsFunc(p.recent, func(o history.Op) bool { return o.Call >= op.Call && o.Fence <= op.Fence }) {
		return
	}
	p.recent = append(slices.DeleteFunc(slices.Clone(p.recent), func(o history.Op) bool { return o.Call <= op.Call && o.Fence >= op.Fence }), *op)
}

// settle judges the proofs of which all is known that they may refer to.
func (g *gate) settle(lowWater time.Duration) {
	var open []proof
	for i := range g.open {
		shown := &g.open[i]
		if shown.answer.Return >= lowWater {
			open = append(open, *shown)
			continue
		}
		if shown.first != nil && shown.first.op.Reason != history.Repeated && !shown.vague && !g.known[shown.tryKey] { // an earlier proof says more
			if g.known == nil {
				g.known = make(map[tryKey]bool)
			}
			g.known[shown.tryKey] = true
			g.proven(shown)
		}
	}
	if g.open = open; len(open) == 0 {
		g.recent = nil
	}
}

// proven judges a token that was accepted by the time of a proof.
func (g *gate) proven(shown *proof) {
	op, by := &shown.first.op, shown.answer.Return
	until := history.Forever
	if shown.fresh != nil {
		until = shown.fresh.Return // what was called later has been compared with that
	}
	if until <= by {
		return
	}
	told := fmt.Sprintf("%s, as the answer to %s at %s shows", say.Thousands(op.Fence), say.Client(&shown.answer), say.At(by))
	newer := shown.first.newer
	for _, tokens := range []*monitor.RunningMax{&g.largest, &g.proved} {
		if s := tokens.Before(op.Call); s != nil && s.Value > op.Fence && (newer == nil || s.Value > newer.Fence) {
			newer = &s.Op
		}
	}
	if newer != nil && shown.fresh == nil {
		g.fail(fmt.Sprintf("the sale accepted the token %s; it came from %s only after %s, and the sale had accepted %s from %s by %s",
			told, say.Client(op), say.At(op.Call), say.Thousands(newer.Fence), say.Client(newer), say.At(newer.Return)), *newer, *op, shown.answer)
	}
	for i := range g.recent {
		if o := &g.recent[i]; o.Call > by && o.Call <= until && o.Fence < op.Fence {
			g.fail(fmt.Sprintf("the sale accepted the token %s from %s between %s and %s, after it had accepted %s, from %s",
				say.Thousands(o.Fence), say.Client(o), say.At(o.Call), say.At(o.Return), told, say.Client(op)), *op, shown.answer, *o)
			break
		}
	}
	early := *op
	early.Return = by
	g.largest.Insert(early.Fence, &early)
	g.proved.Insert(early.Fence, &early)
}

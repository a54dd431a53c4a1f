package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// nothingTaken is why nothing can be said.
const nothingTaken = "nobody was given a task"

// oneHolder judges that a task is held by one user at a time.
//
// A user surely holds a task from the return of the Take to the call of the
// Submit, or to the end of the hold if that comes first. Two such stretches of
// one task that share more than an instant are a violation. An opportunity is a
// Take that was answered with a task while another user asked for one, or whose
// task had been given to another user before. The smallest bad history:
//
//	client 1  take  [1, 2]  task 7  until 100
//	client 2  take  [3, 4]  task 7  until 100
type oneHolder struct {
	pools keyed[pool]
	ended bool
}

type pool struct {
	key   history.Value
	holds map[history.Value]*tenure
	tasks map[history.Value]*custody
	spans spares[span]
	takes int64

	met       contention // takes that were answered
	contended int64
}

// tenure is a hold that was not submitted so far.
type tenure struct {
	take history.Op
	span *span
}

// custody is what is known of a task.
type custody struct {
	task   history.Value
	client int32 // that was given it last
	spans  overlaps
}

func newOneHolder() *oneHolder {
	return &oneHolder{pools: newKeyed(func(key history.Value) *pool {
		return &pool{key: key, holds: make(map[history.Value]*tenure), tasks: make(map[history.Value]*custody)}
	})}
}

// Observe implements [Monitor].
func (m *oneHolder) Observe(op *history.Op) {
	switch {
	case op.Kind == history.Take && op.Outcome == history.OK:
		m.pools.at(op.Key).take(op)
	case op.Kind == history.Take && op.Outcome == history.Refused && op.Reason == history.Empty:
		p := m.pools.at(op.Key)
		p.met.add(op.Client, op.Return)
	case op.Kind == history.Submit:
		m.pools.at(op.Key).submit(op)
	}
}

func (p *pool) take(op *history.Op) {
	p.takes++
	contended := p.met.meets(op.Client, op.Call, op.Return)
	if t := p.tasks[op.Result]; contended || t != nil && t.client != op.Client {
		p.contended++
	}
	t := p.tasks[op.Result]
	if t == nil {
		t = &custody{task: op.Result, spans: overlaps{spare: &p.spans}}
		p.tasks[op.Result] = t
	}
	t.client = op.Client
	if h := p.holds[op.Session]; h != nil { // a number used twice: the first is over
		p.tasks[h.take.Result].spans.close(h.span, min(h.span.until, op.Call), nil)
	}
	p.holds[op.Session] = &tenure{*op, t.spans.start(op, int64(p.takes), leased(op))}
}

func (p *pool) submit(op *history.Op) {
	h := p.holds[op.Session]
	if h == nil {
		return
	}
	t := p.tasks[h.take.Result]
	// Without an answer the task may still be the user's; but it had given it up.
	t.spans.close(h.span, min(op.Call, h.span.until), op)
	delete(p.holds, op.Session)
}

// Advance implements [Monitor].
func (m *oneHolder) Advance(lowWater time.Duration) {
	for _, p := range m.pools.all {
		for _, t := range p.tasks {
			t.spans.advance(lowWater)
		}
	}
}

func (m *oneHolder) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *oneHolder) Verdict() Verdict {
	return m.pools.verdict(variant.Dispatch, variant.OneHolderPerTask, nothingTaken, func(p *pool) Verdict {
		return p.verdict(m.ended)
	})
}

func (p *pool) verdict(cut bool) Verdict {
	twice := 0
	var a, b *span
	var task history.Value
	for id, t := range p.tasks {
		n, x, y := t.spans.tally(cut)
		if twice += n; n > 0 && (b == nil || y.start < b.start || y.start == b.start && y.number < b.number) {
			a, b, task = x, y, id
		}
	}
	switch {
	case twice > 0:
		why, witness := heldTwice(task, a, b)
		return Verdict{Result: Violated, Count: twice, Opportunities: p.contended, Why: why, Witness: witness}
	case p.takes == 0:
		return Verdict{Why: nothingTaken}
	}
	return Verdict{Result: Holds, Opportunities: p.contended, Why: fmt.Sprintf("%s of %s, %s taken in contention, no two of one task at once", many(p.takes, "hold"), many(len(p.tasks), "task"), count(p.contended))}
}

// heldTwice is the sentence about two holds of a task that overlap.
func heldTwice(task history.Value, a, b *span) (string, []history.Op) {
	limit := ""
	if a.acq.Until > 0 {
		limit = fmt.Sprintf(" (until %s)", at(a.acq.Until))
	}
	end := "and never submitted it"
	if a.closed && a.rel.Kind == history.Submit {
		end = fmt.Sprintf("and submitted it only at %s", at(a.rel.Call))
	}
	return fmt.Sprintf("%s was given task %s at %s, while %s held it since %s%s %s", client(&b.acq), task, at(b.start), client(&a.acq), at(a.start), limit, end),
		inOrder(a.acq, a.rel, b.acq, b.rel)
}

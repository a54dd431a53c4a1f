package dispatch

import (
	"fmt"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// nothingTaken is the reason for having no verdict.
const nothingTaken = "nobody was given a task"

// oneHolder judges that a task is held by one user at a time.
//
// A user surely holds a task from the return of the Take to the call of the
// Submit, or to the end of the hold if that comes first. A user who calls Submit is done with the task, whatever the
// answer; but a Submit that is refused as stopped was not called, and ends nothing. If two users hold one task for more than
// an instant, that is a violation. A Take that names no user stands for a user of its own. An opportunity is a
// Take that was answered with a task while another user asked for one, or whose
// task had been given to another user before. The smallest bad histories:
//
//	client 1  take  [1, 2]  task 7  until 100
//	client 2  take  [3, 4]  task 7  until 100
//
//	client 1  take    [1, 2]  task 7  until 100
//	client 1  submit  [3, 4]  task 7  refused (stopped)
//	client 2  take    [5, 6]  task 7  until 100
func oneHolder(*monitor.Shared) monitor.Monitor {
	b := &monitor.Book[pool]{All: monitor.NewKeyed(func(history.Value) *pool {
		return &pool{holds: make(map[history.Value]*openHold), tasks: make(map[history.Value]*holderRecord)}
	}), Settle: (*pool).settle}
	b.Enter = func(op *history.Op) {
		switch {
		case op.Kind == history.Take && op.Outcome == history.OK:
			b.All.At(op.Key).take(op)
		case op.Kind == history.Take && op.Outcome == history.Refused && op.Reason == history.Empty:
			b.All.At(op.Key).met.Add(op.Client, op.Return)
		case op.Kind == history.Submit && op.Reason != history.Stopped:
			b.All.At(op.Key).submit(op)
		}
	}
	return aspect(b, variant.OneHolderPerTask, func(p *pool) monitor.Verdict { return p.verdict(b.Ended) })
}

type pool struct {
	holds map[history.Value]*openHold
	tasks map[history.Value]*holderRecord
	spans monitor.FreeList[monitor.Span]
	takes int64

	met       monitor.Contention // takes that were answered
	contended int64
}

// openHold is a hold that was not yet submitted.
type openHold struct {
	take history.Op
	span *monitor.Span
}

// holderRecord is the record of the holders of a task.
type holderRecord struct {
	client int32 // that was given it last
	spans  monitor.Overlaps
}

func (p *pool) take(op *history.Op) {
	p.takes++
	contended := p.met.Meets(op.Client, op.Call, op.Return)
	if t := p.tasks[op.Result]; contended || t != nil && t.client != op.Client {
		p.contended++
	}
	t := p.tasks[op.Result]
	if t == nil {
		t = &holderRecord{spans: monitor.Overlaps{Spare: &p.spans, Same: func(a, b *monitor.Span) bool { return sameUser(&a.Acq, &b.Acq) }}}
		p.tasks[op.Result] = t
	}
	t.client = op.Client
	if h := p.holds[op.Session]; h != nil { // a number used twice: the first is over
		p.tasks[h.take.Result].spans.Close(h.span, min(h.span.Until, op.Call), nil)
	}
	p.holds[op.Session] = &openHold{*op, t.spans.Start(op, int64(p.takes), monitor.Leased(op))}
}

func (p *pool) submit(op *history.Op) {
	h := p.holds[op.Session]
	if h == nil {
		return
	}
	t := p.tasks[h.take.Result]
	// Without an answer the user may still have the task; but it had given it up.
	t.spans.Close(h.span, min(op.Call, h.span.Until), op)
	delete(p.holds, op.Session)
}

func (p *pool) settle(lowWater time.Duration) {
	for _, t := range p.tasks {
		t.spans.Advance(lowWater)
	}
}

func (p *pool) verdict(cut bool) monitor.Verdict {
	twice := 0
	var a, b *monitor.Span
	var task history.Value
	for id, t := range p.tasks {
		n, x, y := t.spans.Tally(cut)
		if twice += n; n > 0 && (b == nil || y.Start < b.Start || y.Start == b.Start && y.Number < b.Number) {
			a, b, task = x, y, id
		}
	}
	switch {
	case twice > 0:
		why, witness := heldTwice(task, a, b)
		return monitor.Verdict{Result: monitor.Violated, Count: twice, Opportunities: p.contended, Why: why, Witness: witness}
	case p.takes == 0:
		return monitor.Verdict{Why: nothingTaken}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: p.contended, Why: fmt.Sprintf("%s of %s, %s taken in contention, no two of one task at once", say.Count(p.takes, "hold"), say.Count(len(p.tasks), "task"), say.Thousands(p.contended))}
}

// heldTwice returns the sentence about two holds of a task that overlap.
func heldTwice(task history.Value, a, b *monitor.Span) (string, []history.Op) {
	limit := ""
	if a.Acq.Until > 0 {
		limit = fmt.Sprintf(" (until %s)", say.At(a.Acq.Until))
	}
	end := "and never submitted it"
	if a.Closed && a.Rel.Kind == history.Submit {
		end = fmt.Sprintf("and submitted it only at %s", say.At(a.Rel.Call))
	}
	return fmt.Sprintf("%s was given task %s at %s, while %s held it since %s%s %s", say.Client(&b.Acq), task, say.At(b.Start), say.Client(&a.Acq), say.At(a.Start), limit, end),
		monitor.InOrder(a.Acq, a.Rel, b.Acq, b.Rel)
}

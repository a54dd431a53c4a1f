package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oversell/history"
	"oversell/variant"
)

// duplicates judges that between two deliveries of a task id there is an
// enqueue of it: nothing is handed out twice for one.
//
// Deliveries of an id are points in their intervals, enqueues too, one without an
// answer at any time after its call. For every stretch of time: the deliveries that
// lie in it are at most one more than the enqueues that may; and from the
// beginning on, at most as many as the enqueues called by then. Where that is
// broken, a task was surely handed out twice. A delivery that calls itself a
// repeated one counts: it is what the queues that redeliver do not promise. A
// pop without an answer handed nothing to anybody. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]  task 7
//	client 3  pop      [3, 5]  task 7
func (q *queue) duplicates() Verdict {
	var bad, announced int64
	var why string
	var witness []history.Op
	earliest := history.Forever
	for i := range q.tasks {
		t := &q.tasks[i]
		if t.pops < 2 {
			continue
		}
		a, b := q.twice(t)
		if a == nil {
			continue
		}
		bad++
		if b.attempt > 1 || a.attempt > 1 {
			announced++
		}
		if b.ret < earliest {
			earliest = b.ret
			why, witness = q.handedTwice(t, a, b)
		}
	}
	switch {
	case bad > 0 && q.ended:
		return Verdict{Why: why + "; but " + cutOff}
	case bad > 0:
		if bad > 1 || announced > 0 {
			why += fmt.Sprintf("; %s in all, %s of them announced as another attempt", many(bad, "task"), count(announced))
		}
		return Verdict{Result: Violated, Count: int(bad), Why: why, Witness: witness}
	case q.pops == 0:
		return Verdict{Why: "nobody was handed a task"}
	}
	return Verdict{Result: Holds, Why: deliveries(q.pops) + ", each after an enqueue of its own"}
}

// twice finds two deliveries of a task for one enqueue.
func (q *queue) twice(t *task) (a, b *record) {
	var pops, puts []*record
	q.each(t, func(r *record) {
		switch {
		case r.kind == history.Pop && r.outcome == history.OK:
			pops = append(pops, r)
		case r.fresh():
			puts = append(puts, r)
		}
	})
	// For stretches that begin with a call and end with a return; the shortest first.
	const most = 64 // deliveries of one id looked at in every combination
	for n := 2; n <= min(len(pops), most); n++ {
		for i := range min(len(pops), most) {
			from := pops[i].call
			inside := 0
			for j, p := range pops {
				if p.call < from {
					continue
				}
				if inside++; inside < n {
					continue
				}
				if inside-1 > between(puts, from, p.ret) {
					if j == i { // the last to return was called first
						return q.before(pops, j), p
					}
					return pops[i], p
				}
				break
			}
		}
	}
	for j, p := range pops {
		if j > 0 && j+1 > between(puts, -1<<63, p.ret) {
			return pops[j-1], p
		}
	}
	return nil, nil
}

// before is the delivery that returned last before pops[j], which lies within it.
func (q *queue) before(pops []*record, j int) *record {
	for i := j - 1; i >= 0; i-- {
		if pops[i].call >= pops[j].call {
			return pops[i]
		}
	}
	return pops[max(0, j-1)]
}

// between counts the enqueues that may have happened from one time to another.
func between(puts []*record, from, to time.Duration) int {
	n := 0
	for _, p := range puts {
		if p.call <= to && p.end() >= from {
			n++
		}
	}
	return n
}

func (q *queue) handedTwice(t *task, a, b *record) (string, []history.Op) {
	attempt := ""
	if b.attempt > 1 {
		attempt = fmt.Sprintf(" (as attempt %d)", b.attempt)
	}
	witness := []history.Op{q.op(a), q.op(b)}
	how := "and not enqueued in between"
	q.each(t, func(r *record) {
		if len(witness) == 2 && r.fresh() {
			witness = append(witness, q.op(r))
		}
	})
	if t.puts+t.maybePuts == 1 {
		how = "and enqueued once"
	}
	return fmt.Sprintf("task %s was handed to %s between %s and %s and to %s between %s and %s%s, %s", t.id,
		who(a), at(a.call), at(a.ret), who(b), at(b.call), at(b.ret), attempt, how), inOrder(witness...)
}

// effectsOnce judges that a task that was enqueued once takes effect once,
// however often it is handed out: of the effects of an id, those that were not
// told to be repetitions are at most as many as its enqueues. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  effect   [5, 6]  task 7
//	client 3  effect   [7, 8]  task 7
func (q *queue) effectsOnce() Verdict {
	var bad, doubtful, again int64
	var why string
	var witness []history.Op
	earliest := history.Forever
	for i := range q.tasks {
		t := &q.tasks[i]
		again += int64(t.repeated)
		allowed := max(1, t.puts+t.maybePuts)
		switch {
		case t.effects > allowed:
		case t.effects+t.maybeEffects > allowed:
			doubtful++
			continue
		default:
			continue
		}
		bad++
		var done []*record
		q.each(t, func(r *record) {
			if r.kind == history.Effect && r.outcome == history.OK && r.reason != history.Repeated {
				done = append(done, r)
			}
		})
		last := done[allowed]
		if last.ret >= earliest {
			continue
		}
		earliest = last.ret
		ops := make([]history.Op, 0, len(done))
		for _, r := range done[:allowed+1] {
			ops = append(ops, q.op(r))
		}
		times := "once"
		if allowed > 1 {
			times = count(allowed) + " times"
		}
		prev := done[allowed-1]
		why = fmt.Sprintf("task %s, enqueued %s, took effect %s times: by %s between %s and %s, and by %s between %s and %s", t.id, times, count(len(done)),
			who(prev), at(prev.call), at(prev.ret), who(last), at(last.call), at(last.ret))
		witness = inOrder(ops[max(0, len(ops)-4):]...)
	}
	switch {
	case bad > 0 && q.ended:
		return Verdict{Why: why + "; but " + cutOff}
	case bad > 0:
		return Verdict{Result: Violated, Count: int(bad), Why: why, Witness: witness}
	case q.effects+q.maybeEffects == 0:
		return Verdict{Why: "no effect of a task is known"}
	case doubtful > 0:
		return Verdict{Why: fmt.Sprintf("%s may have taken effect twice: not every effect was answered", many(doubtful, "task"))}
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("%s, none twice; %s told to be done already", many(q.effects, "effect"), count(again))}
}

// early judges that nothing is handed out before it is due.
//
// A first delivery is too early for certain when its return, with the drift that
// clocks may have added, lies before the earliest due time among the enqueues
// that it can stem from: those called by then, less those used up. An enqueue is
// used up for certain when a later one had returned before the pop was called,
// and when that was called as many first deliveries of the id had returned as
// there can have been enqueues; a queue that promises one entry per id or overwrites
// has replaced the entry, so that there the later enqueue alone is enough. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7  due 10
//	client 2  pop      [3, 4]  task 7
func (q *queue) early() Verdict {
	var bad, delayed int64
	var why string
	var witness []history.Op
	earliest := history.Forever
	for i := range q.tasks {
		t := &q.tasks[i]
		if !t.delayed || t.takes == 0 {
			continue
		}
		var puts, pops []*record
		q.each(t, func(r *record) {
			switch {
			case r.fresh():
				puts = append(puts, r)
			case r.kind == history.Pop && r.attempt <= 1:
				pops = append(pops, r)
			}
		})
		slices.SortStableFunc(puts, func(a, b *record) int { return cmp.Compare(a.call, b.call) })
		for _, p := range pops {
			put := q.source(p, puts, pops)
			if put == nil || put.due <= 0 {
				continue
			}
			if put.due > after(put.end(), q.h.Drift) {
				delayed++
			}
			if after(p.ret, q.h.Drift) >= put.due {
				continue
			}
			if bad++; p.ret < earliest {
				earliest = p.ret
				why = fmt.Sprintf("task %s was handed to %s between %s and %s, but was due only at %s (enqueued by %s by %s)", t.id,
					who(p), at(p.call), at(p.ret), at(put.due), who(put), at(put.ret))
				witness = inOrder(q.op(put), q.op(p))
			}
		}
	}
	switch {
	case bad > 0 && q.ended:
		return Verdict{Why: why + "; but " + cutOff}
	case bad > 0:
		return Verdict{Result: Violated, Count: int(bad), Why: why, Witness: witness}
	case q.takes == 0:
		return Verdict{Why: "nobody was handed a task"}
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("%s, %s of delayed tasks, none before it was due", first(q.takes), count(delayed))}
}

// source is, of the enqueues that a delivery can stem from, the one due first;
// nil if there is none. puts are sorted by their calls.
func (q *queue) source(p *record, puts, pops []*record) *record {
	replaces := q.h.Overwrite || q.h.Promised(variant.Queue, variant.OneEntryPerID)
	used := time.Duration(-1 << 63) // what had returned before this is used up
	for i, e := range puts {
		if e.end() >= p.call {
			continue
		}
		taken := 0
		for _, o := range pops {
			if o.ret < e.call {
				taken++
			}
		}
		if replaces || taken >= i {
			used = max(used, e.call)
		}
	}
	var out *record
	for _, e := range puts {
		if e.call <= p.ret && e.end() >= used && (out == nil || e.due < out.due) {
			out = e
		}
	}
	return out
}

// oneEntry judges that a queue holds at most one entry for each id: the final
// audit lists none twice as waiting, and no request is handed one twice at once.
// What was there in between, nobody saw. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 1  enqueue  [3, 4]  task 7
//	final audit: 7 waiting, 7 waiting
func (q *queue) oneEntry() Verdict {
	var bad int64
	var why string
	var witness []history.Op
	note := func(w string, ops ...history.Op) {
		if bad++; bad == 1 {
			why, witness = w, inOrder(ops...)
		}
	}
	for i := range q.tasks {
		t := &q.tasks[i]
		if t.waiting > 1 && !q.ended {
			var puts []history.Op
			q.each(t, func(r *record) {
				if r.fresh() && len(puts) < 4 {
					puts = append(puts, q.op(r))
				}
			})
			if len(puts) == 0 {
				puts = append(puts, history.Op{Kind: history.ReadState, Outcome: history.OK, Key: q.key, Arg: isWaiting, Result: t.id})
			}
			note(fmt.Sprintf("the final audit lists task %s %s times as waiting; it was enqueued %s times", t.id, count(t.waiting), count(t.puts+t.maybePuts)), puts...)
		}
		if a, b := q.atOnce(t); a != nil {
			note(fmt.Sprintf("%s was handed task %s twice by one request, between %s and %s", who(a), t.id, at(a.call), at(a.ret)), q.op(a), q.op(b))
		}
	}
	switch {
	case bad > 0:
		return Verdict{Result: Violated, Count: int(bad), Why: why, Witness: witness}
	case q.puts == 0:
		return Verdict{Why: "no task was enqueued for certain"}
	case !q.audited():
		return Verdict{Why: q.noAudit()}
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("%s enqueued, ids enqueued again %s; none is waiting twice", many(q.puts, "task"), times(q.again))}
}

// atOnce finds two deliveries of a task by one request.
func (q *queue) atOnce(t *task) (a, b *record) {
	if t.pops < 2 {
		return nil, nil
	}
	var pops []*record
	q.each(t, func(r *record) {
		if r.kind != history.Pop || r.session == 0 || a != nil {
			return
		}
		for _, o := range pops {
			if o.session == r.session && o.client == r.client && o.call == r.call {
				a, b = o, r
			}
		}
		pops = append(pops, r)
	})
	return a, b
}

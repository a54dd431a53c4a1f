package queues

import (
	"fmt"
	"strings"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// lost judges that every task that was accepted, and not withdrawn, is at the end done (its effect happened, or had
// happened) or still there: waiting, claimed by a consumer, or a dead letter, as the final audit lists them, or handed
// to a client that had not begun it when the run ended.
//
// An enqueue without an answer is not owed. An effect or a withdrawal that ended before
// the last enqueue was called does not count as one of that enqueue. Without an audit no task is surely lost; if all
// are done none is needed. Orders that came through a queue are done when the sale answered.
//
// An opportunity is an owed task that could have been lost on its way: an operation of it
// contended with another client's, see [queues], or it was handed out more than once. The
// smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]  task 7
//	client 2  fault    [5, 5]  crash
//	final audit: nothing
func (q *queue) lost() monitor.Verdict {
	var c struct{ owed, atRisk, done, dropped, waiting, claimed, dead, stopped, open int64 }
	var lost []task // the first ones
	missing := 0
	q.tasks.Each(func(_ int32, t *task) {
		if t.puts+t.repeats == 0 {
			return
		}
		c.owed++
		done, dropped, open := q.accounted(t)
		if (t.met || t.pops > 1) && (done || !t.stopped) {
			c.atRisk++
		}
		switch {
		case done:
			c.done++
		case dropped:
			c.dropped++
		case t.waiting > 0:
			c.waiting++
		case t.claimed > 0:
			c.claimed++
		case t.dead > 0:
			c.dead++
		case t.stopped:
			c.stopped++
		case open:
			c.open++
		default:
			if missing++; missing <= mostNamed {
				lost = append(lost, *t)
			}
		}
	})
	switch {
	case c.owed == 0:
		return monitor.Verdict{Why: "no task was enqueued for certain"}
	case missing > 0 && !q.audited():
		return monitor.Verdict{Open: true, Why: fmt.Sprintf("%s of %s neither done nor withdrawn as far as is known (%s), and %s",
			say.Thousands(missing), say.Count(c.owed, "task"), q.names(lost, missing, false), q.noAudit())}
	case missing > 0:
		var witness []history.Op
		for i := range lost[:min(3, len(lost))] {
			witness = append(witness, q.trace(&lost[i])...)
		}
		verb := "are"
		if missing == 1 {
			verb = "is"
		}
		return monitor.Verdict{Result: monitor.Violated, Count: missing, Opportunities: c.atRisk, Witness: monitor.InOrder(witness...),
			Why: fmt.Sprintf("%s of %s %s lost: %s", say.Thousands(missing), say.Count(c.owed, "task"), verb, q.names(lost, missing, true))}
	case c.open > 0:
		return monitor.Undecided(fmt.Sprintf("%s of %s only known from an effect or a withdrawal that had no answer", say.Thousands(c.open), say.Count(c.owed, "task")))
	}
	parts := []string{say.Thousands(c.done) + " done"}
	for _, p := range []struct {
		n    int64
		what string
	}{{c.dropped, "withdrawn"}, {c.waiting, "waiting"}, {c.claimed, "claimed"}, {c.dead, "dead"}, {c.stopped, "in a client's hands when the run ended"}} {
		if p.n > 0 {
			parts = append(parts, say.Thousands(p.n)+" "+p.what)
		}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: c.atRisk, Why: fmt.Sprintf("%s: %s; %s changed hands in contention", say.Count(c.owed, "task"), strings.Join(parts, ", "), say.Thousands(c.atRisk))}
}

// accounted reports whether a task is done, withdrawn, or perhaps one of these.
func (q *queue) accounted(t *task) (done, dropped, open bool) {
	if !t.doubted {
		return t.done > 0, false, false
	}
	from := time.Duration(-1)
	q.each(t, func(r *record) {
		if r.fresh() && r.outcome == history.OK {
			from = max(from, r.call)
		}
	})
	q.each(t, func(r *record) {
		switch {
		case r.kind == history.Dequeue && r.outcome == history.OK:
			dropped = dropped || r.ret >= from
		case r.kind == history.Effect || r.kind == history.Buy:
			done = done || r.outcome != history.Unknown && r.ret >= from
			open = open || r.outcome == history.Unknown
		case r.kind == history.Dequeue:
			open = true
		}
	})
	return done, dropped, open
}

// mostNamed is how many lost tasks a verdict names.
const mostNamed = 10

// names lists the first tasks of all that were lost, and says of some of them what happened last.
func (q *queue) names(first []task, of int, tell bool) string {
	const told = 3
	var out []string
	for i := range first {
		s := first[i].id.String()
		if tell && i < told {
			s += " (" + q.fate(&first[i]) + ")"
		}
		out = append(out, s)
	}
	if more := of - len(first); more > 0 {
		out = append(out, fmt.Sprintf("and %s more", say.Thousands(more)))
	}
	return strings.Join(out, ", ")
}

// lastPop returns the last delivery of a task, from the record or from the journal.
func (q *queue) lastPop(t *task) (last *record, told bool) {
	q.each(t, func(r *record) {
		if r.kind == history.Pop {
			last = r
		}
	})
	if last != nil || len(q.journal) == 0 {
		return last, true
	}
	me := *q.index.At(t.id) - 1
	for i := int32(0); i < q.records.Len(); i++ {
		if r := q.record(i); r.kind == history.Pop && r.outcome == history.Unknown {
			for _, took := range q.journal[r.session] {
				if took.task == me {
					return r, false
				}
			}
		}
	}
	return nil, false
}

// fate describes what happened to a lost task.
func (q *queue) fate(t *task) string {
	r, told := q.lastPop(t)
	switch {
	case r == nil:
		if n := q.unsettledPops(); n > 0 {
			return "handed to nobody, unless by " + say.Count(n, "pop") + " without an answer"
		}
		return "handed to nobody"
	case !told:
		return fmt.Sprintf("taken for %s, which asked at %s and had no answer", who(r), say.At(r.call))
	}
	s := fmt.Sprintf("handed to %s by %s", who(r), say.At(r.ret))
	if c, ok := q.died(r); ok {
		return s + ", which died at " + say.At(c.Return)
	}
	return s + ", which did not do it"
}

// unsettledPops is how many pops got no answer, so that nobody knows what they took; 0 if there is a journal.
func (q *queue) unsettledPops() (n int) {
	for i := int32(0); i < q.records.Len() && len(q.journal) == 0; i++ {
		if r := q.record(i); r.kind == history.Pop && r.outcome == history.Unknown {
			n++
		}
	}
	return n
}

// trace holds the known facts about a lost task.
func (q *queue) trace(t *task) []history.Op {
	var put *record
	q.each(t, func(r *record) {
		if r.kind == history.Enqueue && r.outcome == history.OK && (put == nil || r.fresh() || !put.fresh()) {
			put = r
		}
	})
	out := []history.Op{q.op(put)}
	if r, _ := q.lastPop(t); r != nil {
		out = append(out, q.op(r))
		if c, ok := q.died(r); ok {
			out = append(out, c)
		}
	}
	return out
}

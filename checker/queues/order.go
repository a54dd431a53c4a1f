package queues

import (
	"cmp"
	"fmt"
	"slices"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// inOrder judges that tasks are handed out in the order in which they are due. It reports only certain violations: a
// task is handed out while another one, surely due earlier, is there all the time. Only first deliveries are judged;
// see [sweep] for the procedure. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 1  enqueue  [3, 4]  task 8
//	client 2  pop      [5, 6]  task 8
func (q *queue) inOrder() monitor.Verdict {
	strict, lax := q.sweep.outcome()
	s := &strict.found[outOfOrder]
	f := &lax.found[outOfOrder]
	switch {
	case s.count > 0 && q.Ended:
		return monitor.Verdict{Opportunities: strict.choices, Why: s.why + "; but " + monitor.CutOff}
	case f.count > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: f.count, Opportunities: strict.choices, Why: f.why, Witness: f.witness}
	case s.count > 0:
		return monitor.Verdict{Opportunities: strict.choices, Why: s.why + "; but a pop without an answer may have taken that before"}
	case q.takes == 0:
		return monitor.Verdict{Why: "nobody was handed a task"}
	case 2*strict.judged < q.takes:
		return monitor.Verdict{Opportunities: strict.choices, Why: strict.mostlyLoose()}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: strict.choices, Why: fmt.Sprintf("%s, %s of them with another task at hand, none before a task surely due earlier%s", first(q.takes), say.Thousands(strict.choices), strict.aside())}
}

// linear judges that the answers of the queue fit one legal order of enqueues,
// pops, withdrawals and empty answers, each at a moment between its call and its
// return; see [sweep] for the object and the procedure.
//
// Tasks that the final audit lists as waiting must be left at the end, unless the queue hands tasks out again; whether
// it lists all that are left is judged by no-lost-task. An
// enqueue or a withdrawal that changed nothing is not judged, nor is a delivery that calls itself a repeated one. Pops
// without an answer that the journal does not settle leave it open only if no order is found in which they took
// nothing, and one may be in which they took tasks that are missing. An opportunity is an operation that contended with
// another client's, see [queues]. The smallest bad histories, besides that of [queue.inOrder]:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]  refused (empty)
//
//	client 2  pop      [1, 2]  task 7
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]  task 7
//	final audit: 7 waiting
func (q *queue) linear() monitor.Verdict {
	strict, lax := q.sweep.outcome()
	s, bad := strict.worst()
	f, count := lax.worst()
	if why, witness := q.leftOver(); why != "" {
		if count++; count == 1 {
			f = &findings{why: why, witness: witness}
		}
	}
	switch {
	case bad > 0 && q.Ended:
		return monitor.Undecided(s.why + "; but " + monitor.CutOff)
	case count > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: count, Opportunities: q.contended, Why: f.why, Witness: f.witness}
	case bad > 0:
		return monitor.Undecided(fmt.Sprintf("%s; but %s without an answer may have taken tasks", s.why, say.Count(q.asks, "pop")))
	case q.puts+q.takes+strict.polls.tries == 0:
		return monitor.Verdict{Why: "nobody enqueued a task or was handed one"}
	case 2*strict.judged < q.takes:
		return monitor.Undecided(strict.mostlyLoose())
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: q.contended, Why: fmt.Sprintf("%s, %s and %s fit one order, %s%s",
		say.Count(q.puts, "enqueue"), first(q.takes), refusedPops(strict.polls.tries), say.Count(q.contended, "contended operation"), strict.aside())}
}

// leftOver finds a task that the final audit lists as waiting although no client had enqueued it, or although it was
// taken after its every enqueue. A queue that hands a task out again may have put it back itself. This also holds for an audit that
// overlaps an operation without an answer, and so is not final.
func (q *queue) leftOver() (why string, witness []history.Op) {
	if q.Ended || q.handsOutAgain() {
		return "", nil
	}
	journal := q.journaled()
	for n, e := range slices.Concat(q.inAudit, q.overlapped) {
		t := q.tasks.At(e.task)
		if n < len(q.inAudit) && t.waiting == 0 {
			continue
		}
		puts := q.entries(t)
		read := history.Op{Kind: history.ReadState, Outcome: history.OK, Key: q.key, Arg: monitor.IsWaiting, Result: t.id, Due: e.when, Call: e.when, Return: e.when}
		if len(puts.calls) == 0 {
			return fmt.Sprintf("the final audit lists task %s as waiting, which nobody had enqueued", t.id), []history.Op{read}
		}
		takes := journal(e)
		q.each(t, func(r *record) {
			if r.outcome == history.OK && (r.kind == history.Pop || r.kind == history.Dequeue) && r.ret < e.when {
				takes = append(takes, r)
			}
		})
		slices.SortStableFunc(takes, func(a, b *record) int { return cmp.Compare(b.call, a.call) })
		for n, r := range takes {
			if n+1 > len(puts.ends)-puts.over(r.call) || n+1 == len(puts.ends) {
				return fmt.Sprintf("the final audit lists task %s as waiting, though %s, which asked at %s, had taken it and nobody can have enqueued it since", t.id, who(r), say.At(r.call)),
					monitor.InOrder(q.op(r), read)
			}
		}
	}
	return "", nil
}

// handsOutAgain reports whether tasks come back when a claim ends.
func (q *queue) handsOutAgain() bool { return q.redelivered > 0 || q.h.Visibility > 0 }

// journaled finds, for a task that was read as waiting, the pops without an answer that had
// taken it before, as the journal told by then.
func (q *queue) journaled() func(entryRead) []*record {
	type taker struct {
		by *record
		entryRead
	}
	takers := make(map[int32][]taker)
	for i := int32(0); i < q.records.Len() && len(q.journal) > 0; i++ {
		if r := q.record(i); r.kind == history.Pop && r.outcome == history.Unknown {
			for _, e := range q.journal[r.session] {
				takers[e.task] = append(takers[e.task], taker{r, e})
			}
		}
	}
	return func(read entryRead) (out []*record) {
		for _, t := range takers[read.task] {
			if t.when < read.when {
				out = append(out, t.by)
			}
		}
		return out
	}
}

// worst returns the findings that fit no order, and how many there are.
func (s *sweep) worst() (*findings, int) {
	out, n := &s.found[outOfOrder], 0
	for kind := range s.found[:stalled] {
		f := &s.found[kind]
		if f.count > 0 && (n == 0 || f.when < out.when) {
			out = f
		}
		n += f.count
	}
	return out, n - s.twice
}

// mostlyLoose returns why there is no verdict on an order of which most was not judged.
func (s *sweep) mostlyLoose() string {
	return fmt.Sprintf("only %s of %s could be judged exactly: the others are of ids enqueued again or handed out again meanwhile", say.Thousands(s.judged), first(s.q.takes))
}

// aside describes what the sweep omitted.
func (s *sweep) aside() string {
	out := ""
	if s.q.redelivered > 0 {
		out += fmt.Sprintf("; %s left out", say.Count(s.q.redelivered, "redelivery"))
	}
	if s.loose > 0 {
		out += fmt.Sprintf("; %s of ids enqueued again meanwhile judged loosely", say.Count(s.loose, "task"))
	}
	return out
}

func first(n int64) string {
	if n == 1 {
		return "1 first delivery"
	}
	return say.Thousands(n) + " first deliveries"
}

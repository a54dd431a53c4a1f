package queues

import (
	"fmt"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// polls counts, for the sweep, the requests for work and the deliveries.
type polls struct {
	hands    int           // deliveries in flight, and pops without an answer
	lastHand time.Duration // the end of the last one
	handed   int64
	tries    int64 // pops refused
	start    time.Duration
	last     time.Duration // they asked from start to last, with pauses up to a grace
	since    time.Duration // since when there has surely been work
	longest  time.Duration
	stuck    bool // this stretch has been counted
}

// handed enters the end of a delivery, or of a pop without an answer.
func (s *sweep) handed(r *record) {
	p := &s.polls
	p.hands--
	p.lastHand, p.stuck = max(p.lastHand, r.ret), false
	if r.outcome == history.OK {
		p.handed++
	}
}

// poll enters a pop that was refused because the queue was empty or its lock was held.
func (s *sweep) poll(r *record) {
	p, h := &s.polls, s.q.h
	if p.tries == 0 || r.call > monitor.After(p.last, h.Grace) {
		p.start = r.call
	}
	p.tries++
	p.start, p.last = min(p.start, r.call), r.ret
	if s.visible == 0 || p.hands > 0 {
		return
	}
	from := s.q.disturbed.Calm(max(p.start, p.since, p.lastHand), r.ret)
	switch d := r.ret - from; {
	case d <= monitor.Bound(h):
		p.longest = max(p.longest, d)
	case !p.stuck && d-s.q.disturbed.HeldUp(from, r.ret) > monitor.Bound(h):
		p.stuck = true
		s.fail(stalled, func() (string, []history.Op) { return s.stall(r, from) })
	}
}

func (s *sweep) stall(r *record, from time.Duration) (string, []history.Op) {
	op := s.q.op(r)
	what, witness := "work was due", []history.Op{op}
	if put, _ := s.earliest(); put >= 0 {
		y := s.record(put)
		what = fmt.Sprintf("task %s was there, due %s", s.q.tasks.At(y.task).id, s.states.At(y.task).due())
		witness = monitor.InOrder(s.q.op(y), op)
	}
	return fmt.Sprintf("nothing of %s was handed out for %s, from %s to %s, when %s was refused (%s), though consumers kept asking and %s; lease and grace are %s",
		say.Titled("queue", s.q.key), say.At(r.ret-from), say.At(from), say.At(r.ret), say.Client(&op), op.Reason, what, say.At(monitor.Bound(s.q.h))), witness
}

// progress judges that, while consumers ask, some task that is due is handed out
// within the lease plus a grace.
//
// A stall is a stretch longer than that in which some task was surely there and surely due at every moment,
// consumers asked (with pauses up to a grace), all were refused (no work, or the lock was held), and no task was
// handed out. Time for which faults held up clients, up to one lease each, does not count: those clients may have
// held the lock that the others waited for. A pop without an answer may have taken a task at any time, so each
// such pop excuses one stall. An opportunity is a delivery that contended with another client's operation, see
// [queues]: only a queue that several clients use at once can get stuck, and a delivery shows that it did not.
// The smallest bad history, with a lease of 0 and a grace of 10:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]    refused (empty)
//	client 2  pop      [14, 15]  refused (empty)
func (q *queue) progress() monitor.Verdict {
	strict, s := q.sweep.outcome()
	f := &s.found[stalled]
	switch {
	case monitor.Bound(q.h) <= 0:
		return monitor.Verdict{Why: "the history names neither a lease nor a grace"}
	case f.count > 0 && q.Ended:
		return monitor.Undecided(f.why + "; but " + monitor.CutOff)
	case int64(f.count) > q.asks:
		return monitor.Verdict{Result: monitor.Violated, Count: f.count, Opportunities: q.served + int64(f.count), Why: f.why, Witness: f.witness}
	case strict.found[stalled].count > 0:
		return monitor.Undecided(strict.found[stalled].why + "; but a pop without an answer may have been handed it")
	case s.polls.handed == 0:
		return monitor.Verdict{Why: fmt.Sprintf("nobody was handed a task; %s", refusedPops(s.polls.tries))}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: q.served, Why: fmt.Sprintf("%s, %s of them in contention; while consumers asked in vain, work was due for %s at the longest",
		deliveries(s.polls.handed), say.Thousands(q.served), say.At(s.polls.longest))}
}

func refusedPops(n int64) string {
	if n == 0 {
		return "nobody asked in vain"
	}
	return say.Count(n, "pop") + " refused"
}

func deliveries(n int64) string { return say.Count(n, "delivery") }

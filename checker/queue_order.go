package checker

import "fmt"

// inOrder judges that tasks are handed out in the order in which they are due,
// as far as that is certain: nobody is handed a task while another one, surely
// due earlier, is there all the time. Only first deliveries are judged; see
// [sweep] for the procedure. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 1  enqueue  [3, 4]  task 8
//	client 2  pop      [5, 6]  task 8
func (q *queue) inOrder() Verdict {
	strict, lax := q.sweep.outcome()
	s := &strict.found[outOfOrder]
	f := &lax.found[outOfOrder]
	switch {
	case s.count > 0 && q.ended:
		return Verdict{Why: s.why + "; but " + cutOff}
	case f.count > 0:
		return Verdict{Result: Violated, Count: f.count, Why: f.why, Witness: f.witness}
	case s.count > 0:
		return Verdict{Why: s.why + "; but a pop without an answer may have taken that before"}
	case q.takes == 0:
		return Verdict{Why: "nobody was handed a task"}
	case 2*strict.judged < q.takes:
		return Verdict{Why: strict.mostlyLoose()}
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("%s, none before a task surely due earlier%s", first(q.takes), strict.aside())}
}

// linear judges that the answers of the queue fit one legal order of enqueues,
// pops, withdrawals and empty answers, each at a moment between its call and its
// return; see [sweep] for the object and the procedure.
//
// An enqueue or a withdrawal that changed nothing is not judged, nor is a
// delivery that calls itself a repeated one. Pops without an answer that the journal
// does not settle leave it open only if no order is found in which they took
// nothing, and one may be in which they took tasks that are missing. The
// smallest bad histories, besides that of [queue.inOrder]:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]  refused (empty)
//
//	client 2  pop      [1, 2]  task 7
func (q *queue) linear() Verdict {
	strict, lax := q.sweep.outcome()
	s, bad := strict.worst()
	f, count := lax.worst()
	switch {
	case bad > 0 && q.ended:
		return Verdict{Why: s.why + "; but " + cutOff}
	case count > 0:
		return Verdict{Result: Violated, Count: count, Why: f.why, Witness: f.witness}
	case bad > 0:
		return Verdict{Why: fmt.Sprintf("%s; but %s without an answer may have taken tasks", s.why, many(q.asks, "pop"))}
	case q.puts+q.takes+strict.polls.tries == 0:
		return Verdict{Why: "nobody enqueued a task or was handed one"}
	case 2*strict.judged < q.takes:
		return Verdict{Why: strict.mostlyLoose()}
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("%s, %s and %s fit one order%s", many(q.puts, "enqueue"), first(q.takes), refusedPops(strict.polls.tries), strict.aside())}
}

// worst is the first thing that fits no order, and how many there are.
func (s *sweep) worst() (*findings, int) {
	out, n := &s.found[outOfOrder], 0
	for kind := range s.found[:stalled] {
		f := &s.found[kind]
		if f.count > 0 && (n == 0 || f.when < out.when) {
			out = f
		}
		n += f.count
	}
	return out, n
}

// mostlyLoose is why nothing is said of an order most of which was not judged.
func (s *sweep) mostlyLoose() string {
	return fmt.Sprintf("only %s of %s could be judged exactly: the others are of ids enqueued again or handed out again meanwhile", count(s.judged), first(s.q.takes))
}

// aside says what the sweep left out.
func (s *sweep) aside() string {
	out := ""
	if s.q.redelivered > 0 {
		out += fmt.Sprintf("; %s left out", many(s.q.redelivered, "redelivery"))
	}
	if s.loose > 0 {
		out += fmt.Sprintf("; %s of ids enqueued again meanwhile judged loosely", many(s.loose, "task"))
	}
	return out
}

func first(n int64) string {
	if n == 1 {
		return "1 first delivery"
	}
	return count(n) + " first deliveries"
}

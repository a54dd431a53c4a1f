package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/checker"
	"oversell/internal/edn"
	"oversell/internal/phrase"
	"oversell/variant"
)

// keyed formats an element or a task with the key of its object.
func keyed(op Op, v edn.Value) string {
	if op.Key == "" {
		return v.Canon()
	}
	return op.Key + " " + v.Canon()
}

// tally counts elements, and keeps the operation of the first one.
type tally struct {
	count map[string]int
	first map[string]Op
	order []string
}

func newTally() *tally { return &tally{count: map[string]int{}, first: map[string]Op{}} }

func (t *tally) add(op Op, element string) {
	if t.count[element]++; t.count[element] == 1 {
		t.first[element] = op
		t.order = append(t.order, element)
	}
}

// verdict returns a violation that names the first elements, or a verdict with the count.
func (t *tally) verdict(p variant.Property, of int64, broken, held string) checker.Verdict {
	v := checker.Verdict{Property: p, Opportunities: of, Result: checker.Holds, Why: held}
	if len(t.order) == 0 {
		return v
	}
	v.Result, v.Count = checker.Violated, len(t.order)
	named := slices.Clone(t.order[:min(len(t.order), 5)])
	op := t.first[t.order[0]]
	more := ""
	if len(t.order) > len(named) {
		more = ", …"
	}
	v.Why = fmt.Sprintf("%s: %s%s (the first one: process %s, line %d)", broken, strings.Join(named, ", "), more, op.Process, max(op.Line, op.End))
	return v
}

// answeredRead reports whether a read returned a value; nil is not a value.
func answeredRead(op Op) bool {
	return op.F == "read" && op.Outcome == OK && op.Result.Kind != edn.Nil
}

// judgeSet judges what Jepsen calls a set: the last read returns every element whose add was acknowledged before
// that read, and no read returns an element before an add of it began.
func judgeSet(ops []Op) []checker.Verdict {
	finals, begun := map[string]Op{}, map[string]Op{}
	for _, op := range ops {
		switch {
		case op.F == "add":
			if e := keyed(op, op.Arg); begun[e].Call == 0 {
				begun[e] = op
			}
		case answeredRead(op) && op.Return > finals[op.Key].Return:
			finals[op.Key] = op
		}
	}
	unexpected, read := newTally(), int64(0)
	found := map[string]bool{}
	for _, op := range ops {
		if !answeredRead(op) {
			continue
		}
		for _, v := range op.Result.Untagged().Items {
			e := keyed(op, v)
			read++
			if add, attempted := begun[e]; !attempted || add.Call > op.Return {
				unexpected.add(op, e)
			}
			if finals[op.Key].Call == op.Call {
				found[e] = true
			}
		}
	}
	lost, added := lostElements(ops, finals, found)
	what := phrase.Count(added, "acknowledged element")
	vs := []checker.Verdict{
		lost.verdict(NoLostElement, added, fmt.Sprintf("the last read lacks %d of %s", len(lost.order), what), "the last read found all of "+what),
		unexpected.verdict(NoUnexpectedElement, read, "a read found elements that no client had begun to add", fmt.Sprintf("reads found %s, all of them added", phrase.Count(read, "element"))),
	}
	if len(finals) == 0 {
		vs[0] = checker.Verdict{Property: NoLostElement, Why: "the set was never read with an answer: its content is unknown"}
	}
	return vs
}

// lostElements returns the elements that the last read did not return, although their adds were acknowledged before
// it was invoked.
func lostElements(ops []Op, finals map[string]Op, found map[string]bool) (lost *tally, added int64) {
	lost = newTally()
	for _, op := range ops {
		final, isRead := finals[op.Key]
		if op.F != "add" || op.Outcome != OK || !isRead || op.Return > final.Call {
			continue
		}
		added++
		if e := keyed(op, op.Arg); !found[e] {
			lost.add(op, e)
		}
	}
	return lost, added
}

// tasks holds facts about the tasks of some queues, each task with its key.
type tasks struct {
	attempts     map[string][]Op // in order of their calls
	acknowledged *tally
	drained      map[string]int64 // by key, the call of the last drain that returned its tasks
	unsure       map[string]int   // by key, how many tasks may have been dequeued without a record
	out          *tally
	dequeues     map[string][]Op // by task, the dequeues that returned it
}

// drain stands for any number of tasks, which a drain without a result may have taken.
const drain = 1 << 30

func tasksOf(ops []Op) *tasks {
	t := &tasks{map[string][]Op{}, newTally(), map[string]int64{}, map[string]int{}, newTally(), map[string][]Op{}}
	for _, op := range ops {
		silent := op.Outcome == Unknown || op.Result.Kind == edn.Nil // it did not return what it took
		switch {
		case op.F == "enqueue":
			t.enqueue(op, keyed(op, op.Arg))
		case op.Outcome == Failed:
		case silent && op.F == "drain":
			t.unsure[op.Key] = drain
		case silent:
			t.unsure[op.Key]++
		case op.F == "drain":
			t.drained[op.Key] = max(t.drained[op.Key], op.Call)
			for _, v := range op.Result.Untagged().Items {
				t.dequeue(op, keyed(op, v))
			}
		default:
			t.dequeue(op, keyed(op, op.Result))
		}
	}
	for _, out := range t.dequeues {
		slices.SortStableFunc(out, func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	}
	return t
}

func (t *tasks) dequeue(op Op, task string) {
	t.out.add(op, task)
	t.dequeues[task] = append(t.dequeues[task], op)
}

func (t *tasks) enqueue(op Op, task string) {
	t.attempts[task] = append(t.attempts[task], op)
	if op.Outcome == OK {
		t.acknowledged.add(op, task)
	}
}

// missing counts, by task, acknowledged enqueues without a dequeue: gone if a later drain of its queue should have
// returned it, there if it may still be in its queue.
func (t *tasks) missing(ops []Op) (gone, there map[string]int) {
	gone, there = map[string]int{}, map[string]int{}
	due := map[string]int{}
	for _, op := range ops {
		if op.F == "enqueue" && op.Outcome == OK && op.Return < t.drained[op.Key] {
			due[keyed(op, op.Arg)]++
		}
	}
	for _, task := range t.acknowledged.order {
		lacks := t.acknowledged.count[task] - t.out.count[task]
		if lacks <= 0 {
			continue
		}
		gone[task] = max(due[task]-t.out.count[task], 0)
		there[task] = lacks - gone[task]
	}
	return gone, there
}

// noLostTask judges acknowledged tasks. A dequeue without an answer, or with nil, may have taken a task, so for
// each such dequeue one task of the queue is not known to be lost.
func (t *tasks) noLostTask(ops []Op) checker.Verdict {
	gone, there := t.missing(ops)
	byKey := map[string]int{}
	for task, n := range gone {
		byKey[t.acknowledged.first[task].Key] += n
	}
	lost, taken, left := newTally(), 0, 0
	for _, task := range t.acknowledged.order {
		op := t.acknowledged.first[task]
		switch {
		case gone[task] > 0 && byKey[op.Key] > t.unsure[op.Key]:
			lost.add(op, task)
		case gone[task] > 0:
			taken++
		case there[task] > 0:
			left++
		}
	}
	n := int64(len(t.acknowledged.order))
	v := lost.verdict(variant.NoLostTask, n, "tasks were acknowledged and never dequeued", fmt.Sprintf("all of %s came out", phrase.Count(n, "acknowledged task")))
	if v.Result == checker.Violated || taken+left == 0 {
		return v
	}
	v = checker.Verdict{Property: variant.NoLostTask}
	switch {
	case taken > 0:
		v.Why = fmt.Sprintf("%s never came out, but a dequeue or a drain without a result may have taken what is missing", phrase.Count(taken, "acknowledged task"))
	case len(t.drained) == 0:
		v.Why = fmt.Sprintf("the queue was never drained: %s may still be in it", phrase.Count(left, "task"))
	default:
		v.Why = fmt.Sprintf("no drain of its queue came after it was acknowledged: %s may still be there", phrase.Count(left, "task"))
	}
	return v
}

// judgeQueue judges what Jepsen calls a total queue: every task whose enqueue was acknowledged before a drain of
// its queue is dequeued, and no task is dequeued that no client tried to enqueue. Tasks that are dequeued more
// often than enqueued are measured, but not promised.
func judgeQueue(ops []Op) []checker.Verdict {
	t := tasksOf(ops)
	unexpected, twice := newTally(), newTally()
	for _, e := range t.out.order {
		enqueues := t.attempts[e]
		for i, op := range t.dequeues[e] {
			switch {
			case len(enqueues) == 0 || enqueues[0].Call > op.Return:
				unexpected.add(op, e)
			case i >= len(enqueues) || enqueues[i].Call > op.Return:
				twice.add(op, e)
			}
		}
	}
	dequeued := int64(len(t.out.order))
	taken := phrase.Count(dequeued, "task") + " dequeued"
	return []checker.Verdict{
		t.noLostTask(ops),
		unexpected.verdict(NoUnexpectedTask, dequeued, "tasks were dequeued that no client had enqueued", taken+", all of them enqueued"),
		twice.verdict(variant.NoDuplicateDelivery, dequeued, "tasks were dequeued more often than enqueued", taken+", none more often than enqueued"),
	}
}

// judgeIDs finds numbers that were generated twice. An answer of nil does not report its number.
func judgeIDs(ops []Op) []checker.Verdict {
	given, twice := newTally(), newTally()
	n := int64(0)
	for _, op := range ops {
		if op.Outcome != OK || op.Result.Kind == edn.Nil {
			continue
		}
		n++
		e := keyed(op, op.Result)
		if given.add(op, e); given.count[e] > 1 {
			twice.add(op, e)
		}
	}
	return []checker.Verdict{twice.verdict(variant.UniqueIDs, n, "numbers were generated more than once", phrase.Count(n, "number")+", each generated once")}
}

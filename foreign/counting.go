package foreign

import (
	"fmt"
	"slices"
	"strings"

	"oversell/checker"
	"oversell/internal/edn"
	"oversell/internal/phrase"
	"oversell/variant"
)

// keyed is an element or a task of the object with a key.
func keyed(op Op, v edn.Value) string {
	if op.Key == "" {
		return v.String()
	}
	return op.Key + " " + v.String()
}

// tally counts elements, and remembers the operation of the first one.
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

// verdict is a violation that names the first elements, or says what was counted.
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

// judgeSet judges by what Jepsen calls a set: the last read finds every element whose add was
// acknowledged before it, and no read finds one that nobody had begun to add.
func judgeSet(ops []Op) []checker.Verdict {
	finals, begun := map[string]Op{}, map[string]Op{}
	for _, op := range ops {
		switch {
		case op.F == "add":
			if e := keyed(op, op.Arg); begun[e].Call == 0 {
				begun[e] = op
			}
		case op.Outcome == OK && op.Return > finals[op.Key].Return:
			finals[op.Key] = op
		}
	}
	unexpected, read := newTally(), int64(0)
	found := map[string]bool{}
	for _, op := range ops {
		if op.F != "read" || op.Outcome != OK {
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
		unexpected.verdict(NoUnexpectedElement, read, "a read found what nobody had begun to add", fmt.Sprintf("reads found %s, all of them added", phrase.Count(read, "element"))),
	}
	if len(finals) == 0 {
		vs[0] = checker.Verdict{Property: NoLostElement, Why: "the set was never read with an answer: what is in it is not known"}
	}
	return vs
}

// lostElements are those whose add was acknowledged before the last read was invoked, and
// that it did not find.
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

// judgeQueue judges by what Jepsen calls a total queue: every task whose enqueue was
// acknowledged is dequeued, and nothing is that nobody had tried to enqueue. Tasks that come
// out more often than they went in are measured, and not promised.
func judgeQueue(ops []Op) []checker.Verdict {
	attempts, acknowledged, out := map[string]int{}, newTally(), newTally()
	drained := false
	for _, op := range ops {
		e := keyed(op, op.Arg)
		switch {
		case op.F == "enqueue":
			attempts[e]++
			if op.Outcome == OK {
				acknowledged.add(op, e)
			}
		case op.Outcome != OK:
		case op.F == "drain":
			drained = true
			for _, v := range op.Result.Untagged().Items {
				out.add(op, keyed(op, v))
			}
		default:
			out.add(op, keyed(op, op.Result))
		}
	}
	lost, unexpected, twice := newTally(), newTally(), newTally()
	for _, e := range acknowledged.order {
		if out.count[e] < acknowledged.count[e] {
			lost.add(acknowledged.first[e], e)
		}
	}
	for _, e := range out.order {
		switch {
		case attempts[e] == 0:
			unexpected.add(out.first[e], e)
		case out.count[e] > attempts[e]:
			twice.add(out.first[e], e)
		}
	}
	enqueued, dequeued := int64(len(acknowledged.order)), int64(len(out.order))
	taken := phrase.Count(dequeued, "task") + " dequeued"
	vs := []checker.Verdict{
		lost.verdict(variant.NoLostTask, enqueued, "tasks were acknowledged and never dequeued", fmt.Sprintf("all of %s came out", phrase.Count(enqueued, "acknowledged task"))),
		unexpected.verdict(NoUnexpectedTask, dequeued, "tasks were dequeued that nobody had enqueued", taken+", all of them enqueued"),
		twice.verdict(variant.NoDuplicateDelivery, dequeued, "tasks were dequeued more often than enqueued", taken+", none more often than enqueued"),
	}
	if !drained && vs[0].Result == checker.Violated {
		vs[0] = checker.Verdict{Property: variant.NoLostTask, Why: fmt.Sprintf("the queue was never drained: %s may still be in it", phrase.Count(len(lost.order), "task"))}
	}
	return vs
}

// judgeIDs finds numbers that were given out twice.
func judgeIDs(ops []Op) []checker.Verdict {
	given, twice := newTally(), newTally()
	n := int64(0)
	for _, op := range ops {
		if op.Outcome != OK {
			continue
		}
		n++
		e := keyed(op, op.Result)
		if given.add(op, e); given.count[e] > 1 {
			twice.add(op, e)
		}
	}
	return []checker.Verdict{twice.verdict(variant.UniqueIDs, n, "numbers were given out more than once", phrase.Count(n, "number")+", each given out once")}
}

package foreign

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"oversell/checker"
	"oversell/internal/edn"
	"oversell/internal/phrase"
	"oversell/variant"
)

// Limits bounds the judging of a history.
type Limits struct {
	// Time bounds the search for a legal order. After that the verdict is unknown.
	Time time.Duration
}

// Judge judges a history by a model. Every key is an object of its own.
func Judge(h *History, m Model, l Limits) []checker.Verdict {
	var vs []checker.Verdict
	if m.linear != nil {
		vs = []checker.Verdict{linearOf(h, m, l)}
	} else {
		vs = m.judge(h.Ops)
	}
	for i := range vs {
		vs[i].Of = variant.Object(m.Name)
		if h.Cut > 0 {
			vs[i] = beforeCut(vs[i], h.Cut)
		}
	}
	return vs
}

// beforeCut returns a verdict for a history that was cut off. Violations stand, except for missing elements: they
// may follow in the rest.
func beforeCut(v checker.Verdict, line int) checker.Verdict {
	later := v.Property == NoLostElement || v.Property == variant.NoLostTask
	if v.Result == checker.Unknown || v.Result == checker.Violated && !later {
		return v
	}
	v.Result, v.Count = checker.Unknown, 0
	v.Why = fmt.Sprintf("the log was cut off: its last line, %d, has no end (if it is whole, end it with a newline)", line)
	return v
}

// byKey groups operations that took place, or may have, by key.
func byKey(h *History) (keys []string, groups map[string][]*Op) {
	groups = map[string][]*Op{}
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Outcome == Failed {
			continue
		}
		if groups[op.Key] == nil {
			keys = append(keys, op.Key)
		}
		groups[op.Key] = append(groups[op.Key], op)
	}
	return keys, groups
}

// linearOf decides whether there is a legal order of the operations on each key. All keys first get a little time,
// because one key without a legal order decides.
func linearOf(h *History, m Model, l Limits) checker.Verdict {
	deadline := time.Now().Add(l.Time)
	open, groups := byKey(h)
	v := checker.Verdict{Property: variant.Linearizable, Result: checker.Holds}
	for _, ops := range groups {
		v.Opportunities += answers(ops)
	}
	for _, each := range []time.Duration{l.Time / time.Duration(4*len(open)+1), l.Time} {
		var later []string
		for _, key := range open {
			switch search(m, groups[key], earlier(deadline, time.Now().Add(each))) {
			case illegalOrder:
				if v.Count++; v.Count == 1 {
					v.Result, v.Why = checker.Violated, illegal(m, key, groups[key], time.Now().Add(l.Time))
				}
			case undecided:
				later = append(later, key)
			}
		}
		if open = later; v.Result == checker.Violated || len(open) == 0 {
			break
		}
	}
	switch {
	case v.Result == checker.Violated:
	case len(open) > 0:
		v.Result = checker.Unknown
		v.Why = fmt.Sprintf("the search for a legal order of the operations%s did not end within %v: increase --time-limit", on(open[0]), l.Time)
	default:
		v.Why = fmt.Sprintf("there is a legal order of all operations, with %s that could have been wrong", phrase.Count(v.Opportunities, "answer"))
	}
	return v
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// answers counts the answers that could have been wrong: all except those of writes, and of reads without a result.
func answers(ops []*Op) (n int64) {
	for _, op := range ops {
		if op.Outcome != Unknown && !slices.Contains(told, op.F) && (op.F != "read" || op.Result.Kind != edn.Nil) && (op.F != "txn" || reads(op)) {
			n++
		}
	}
	return n
}

// reads reports whether a transaction has a result of its reads.
func reads(op *Op) bool {
	return slices.ContainsFunc(op.Result.Untagged().Items, func(v edn.Value) bool {
		m, _ := microOf(v)
		return !m.write && m.value != "nil"
	})
}

func on(key string) string {
	if key == "" {
		return ""
	}
	return " on key " + key
}

// search looks for a legal order.
func search(m Model, ops []*Op, deadline time.Time) found {
	if time.Until(deadline) <= 0 {
		return undecided
	}
	if m.linear.idle != nil {
		idle := m.linear.idle(ops)
		ops = slices.DeleteFunc(slices.Clone(ops), func(op *Op) bool { return op.Outcome == Unknown && idle(op) })
	}
	return legalOrder(m.linear, m.begin, ops, deadline)
}

// illegal finds the answer from which on a history has no legal order. A prefix of a history with a legal order has
// one, too, so binary search finds the answer.
func illegal(m Model, key string, ops []*Op, deadline time.Time) string {
	var ends []*Op
	for _, op := range ops {
		if op.Return != Open {
			ends = append(ends, op)
		}
	}
	sort.Slice(ends, func(i, j int) bool { return ends[i].Return < ends[j].Return })
	sure := true
	at := sort.Search(len(ends)-1, func(i int) bool {
		r := search(m, until(ops, ends[i].Return), deadline)
		sure = sure && r != undecided
		return r == illegalOrder
	})
	if !sure {
		return fmt.Sprintf("the operations%s have no legal order", on(key))
	}
	op := ends[at]
	if op.End <= ops[0].Line { // several events on one line
		return fmt.Sprintf("the operations%s have no legal order that has the answer at %v: process %s %s", on(key), place(*op, op.Result), op.Process, done(op))
	}
	return fmt.Sprintf("up to line %d there is a legal order of the operations%s, and none that has the answer of line %d: process %s %s", op.End-1, on(key), op.End, op.Process, done(op))
}

// until returns the operations up to and including an event.
func until(ops []*Op, event int64) (before []*Op) {
	for _, op := range ops {
		switch {
		case op.Call > event:
		case op.Return > event && op.Outcome != Unknown:
			open := *op
			open.Outcome, open.Return = Unknown, Open
			before = append(before, &open)
		default:
			before = append(before, op)
		}
	}
	return before
}

// done describes an operation as in its history.
func done(op *Op) string {
	words := []string{":ok", ":" + op.F}
	switch {
	case op.F == "read" || op.F == "get":
		words = append(words, op.Result.String())
	case op.Arg.String() != "nil":
		words = append(words, op.Arg.String())
	}
	return fmt.Sprintf("had `%.120s`, invoked on line %d", strings.Join(words, " "), op.Line)
}

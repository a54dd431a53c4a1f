package foreign

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"oversell/internal/edn"
)

// found is the result of a search.
type found uint8

const (
	undecided found = iota // the time limit was reached
	legal                  // there is a legal order
	illegalOrder
)

// order searches for a legal order of the operations on one object: all operations with an answer, and any of those
// without one. It is the algorithm of Wing and Gong with Lowe's memoization and these shortcuts, each of which
// keeps a legal order if there is one:
//
//   - A read that returned the current value is placed at once: it changes nothing.
//   - Of operations with the same effect, the one whose answer came first is placed first, and
//     one without an answer only when none with an answer is open, the earliest of them first.
//   - If a search fails after it has placed some operations without an answer, it also fails
//     after it has placed more of them.
//   - Operations without an answer need no place: the search ends when all others have one.
type order struct {
	s        *sequential
	answered []placing   // by return
	open     [][]int32   // by answered operation: the operations open just before its answer
	unsure   [][]placing // without an answer, by effect, each in order of the calls

	bound func(i, state int32, ahead []int32) bool // reports that the search cannot succeed from here; nil: never

	states   map[any]int32
	values   []any
	steps    map[uint64]int32   // by state and operation; see step
	visited  map[string][][]use // by placed operations and state: the operations without an answer that were used
	key      []byte
	nodes    int
	deadline time.Time
	late     bool
}

// placing is an operation that the search places.
type placing struct {
	*Op
	number int32 // index among all operations
	effect int32 // operations with the same number have the same effect
	reads  bool  // it changes nothing
}

// use is how many operations of one effect without an answer were placed.
type use struct{ effect, count int32 }

// impossible is the state after a step that is not legal.
const impossible = -1

// legalOrder looks for a legal order of operations from a state.
func legalOrder(s *sequential, begin any, ops []*Op, deadline time.Time) found {
	o := &order{s: s, states: map[any]int32{}, steps: map[uint64]int32{}, visited: map[string][][]use{}, deadline: deadline}
	effects := map[string]int32{}
	for i, op := range ops {
		name := effectOf(s, op)
		effect, known := effects[name]
		if !known {
			effect = int32(len(effects))
			effects[name] = effect
			o.unsure = append(o.unsure, nil)
		}
		p := placing{op, int32(i), effect, unchanging(op)}
		switch {
		case op.Outcome != Unknown:
			o.answered = append(o.answered, p)
		case !p.reads:
			o.unsure[effect] = append(o.unsure[effect], p)
		}
	}
	slices.SortStableFunc(o.answered, func(a, b placing) int { return cmp.Compare(a.Return, b.Return) })
	for _, each := range o.unsure {
		slices.SortStableFunc(each, func(a, b placing) int { return cmp.Compare(a.Call, b.Call) })
	}
	o.opens()
	if s.bound != nil {
		o.bound = s.bound(o)
	}
	switch ok := o.from(0, o.state(begin), nil, nil); {
	case ok:
		return legal
	case o.late:
		return undecided
	}
	return illegalOrder
}

// opens records for each answer the operations that are open just before it.
func (o *order) opens() {
	byCall := make([]int32, len(o.answered))
	for i := range byCall {
		byCall[i] = int32(i)
	}
	slices.SortFunc(byCall, func(a, b int32) int { return cmp.Compare(o.answered[a].Call, o.answered[b].Call) })
	o.open = make([][]int32, len(o.answered))
	var open []int32
	for i := range o.answered {
		for len(byCall) > 0 && o.answered[byCall[0]].Call < o.answered[i].Return {
			at, _ := slices.BinarySearch(open, byCall[0])
			open = slices.Insert(open, at, byCall[0])
			byCall = byCall[1:]
		}
		o.open[i] = slices.Clone(open)
		open = open[1:] // it is i itself
	}
}

// effectOf identifies the effect of an operation: equal effects are equal in every state.
func effectOf(s *sequential, op *Op) string {
	switch {
	case s.effect != nil:
		return op.F + "\n" + s.effect(op)
	case slices.Contains(told, op.F) || op.F == "cas":
		return op.F + "\n" + op.Arg.Canon()
	case op.Outcome == Unknown:
		return op.F + "\n?\n" + op.Arg.Canon()
	}
	return strings.Join([]string{op.F, op.Arg.Canon(), op.Result.Canon()}, "\n")
}

// unchanging reports whether an operation changes nothing in any state.
func unchanging(op *Op) bool {
	switch op.F {
	case "read", "get":
		return true
	case "txn":
		return !slices.ContainsFunc(op.Arg.Untagged().Items, func(v edn.Value) bool {
			m, _ := microOf(v)
			return m.write
		})
	}
	return false
}

// state returns the number of a state.
func (o *order) state(value any) int32 {
	n, known := o.states[value]
	if !known {
		n = int32(len(o.values))
		o.states[value] = n
		o.values = append(o.values, value)
	}
	return n
}

// step returns the state after an operation, or impossible.
func (o *order) step(state int32, p placing) int32 {
	at := uint64(state)<<32 | uint64(uint32(p.number))
	next, known := o.steps[at]
	if !known {
		next = impossible
		if value, right := o.s.step(o.values[state], p.Op); right {
			next = o.state(value)
		}
		o.steps[at] = next
	}
	return next
}

// from reports whether the rest can be placed: all answered operations from number i on, except those that were
// placed ahead. Both ahead and used are sorted.
func (o *order) from(i, state int32, ahead []int32, used []use) bool {
	for len(ahead) > 0 && ahead[0] == i {
		i, ahead = i+1, ahead[1:]
	}
	if int(i) == len(o.answered) {
		return true
	}
	if o.bound != nil && o.bound(i, state, ahead) || o.visit(i, state, ahead, used) || o.timeIsUp() {
		return false
	}
	var tried []int32 // effects
	var right []int32 // reads
	left := ahead
	for _, j := range o.open[i] {
		if len(left) > 0 && left[0] == j {
			left = left[1:]
			continue
		}
		switch p := o.answered[j]; {
		case p.reads && o.step(state, p) == state:
			right = append(right, j)
		case !p.reads && !slices.Contains(tried, p.effect):
			tried = append(tried, p.effect)
		}
	}
	if len(right) > 0 {
		return o.from(i, state, merged(ahead, right), used)
	}
	return o.answer(i, state, ahead, used, tried) || o.guess(i, state, ahead, used, tried)
}

// answer places an answered operation next: the first of each effect.
func (o *order) answer(i, state int32, ahead []int32, used []use, effects []int32) bool {
	left, done := ahead, 0
	for _, j := range o.open[i] {
		if len(left) > 0 && left[0] == j {
			left = left[1:]
			continue
		}
		p := o.answered[j]
		if p.reads || done == len(effects) || p.effect != effects[done] {
			continue // effects are in the order of their first operations
		}
		done++
		if next := o.step(state, p); next != impossible && o.from(i, next, merged(ahead, []int32{j}), used) {
			return true
		}
		if o.late {
			return false
		}
	}
	return false
}

// guess places an operation without an answer next, if it changes something and there is no answered operation with
// the same effect to place instead.
func (o *order) guess(i, state int32, ahead []int32, used []use, answered []int32) bool {
	if o.late {
		return false
	}
	limit, left := o.answered[i].Return, used
	for effect, ops := range o.unsure {
		at := 0
		for len(left) > 0 && int(left[0].effect) < effect {
			left = left[1:]
		}
		if len(left) > 0 && int(left[0].effect) == effect {
			at = int(left[0].count)
		}
		if at == len(ops) || ops[at].Call > limit || slices.Contains(answered, int32(effect)) {
			continue
		}
		next := o.step(state, ops[at])
		if next != impossible && next != state && o.from(i, next, ahead, with(used, int32(effect))) {
			return true
		}
		if o.late {
			return false
		}
	}
	return false
}

// with returns used with one more operation of an effect.
func with(used []use, effect int32) []use {
	at, there := slices.BinarySearchFunc(used, effect, func(u use, effect int32) int { return cmp.Compare(u.effect, effect) })
	more := slices.Clone(used)
	if !there {
		return slices.Insert(more, at, use{effect, 1})
	}
	more[at].count++
	return more
}

// merged merges two sorted lists.
func merged(a, b []int32) []int32 {
	all := make([]int32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// visit reports whether the search was here before, with at most the same operations without an answer, and records
// the visit.
func (o *order) visit(i, state int32, ahead []int32, used []use) bool {
	k := binary.AppendUvarint(o.key[:0], uint64(i))
	k = binary.AppendUvarint(k, uint64(state))
	for _, j := range ahead {
		k = binary.AppendUvarint(k, uint64(j-i))
	}
	o.key = k
	before := o.visited[string(k)]
	if slices.ContainsFunc(before, func(b []use) bool { return within(b, used) }) {
		return true
	}
	before = slices.DeleteFunc(before, func(b []use) bool { return within(used, b) })
	o.visited[string(k)] = append(before, used)
	return false
}

// within reports whether a has at most as many operations of each effect as b.
func within(a, b []use) bool {
	for _, u := range a {
		for len(b) > 0 && b[0].effect < u.effect {
			b = b[1:]
		}
		if len(b) == 0 || b[0].effect != u.effect || b[0].count < u.count {
			return false
		}
	}
	return true
}

func (o *order) timeIsUp() bool {
	if o.nodes++; o.nodes%256 == 0 && time.Now().After(o.deadline) {
		o.late = true
	}
	return o.late
}

// pastReads returns the bound for a counter that only rises, or only falls: once it has passed the value of a read
// that is not placed yet, that read cannot be placed.
func pastReads(o *order) func(i, state int32, ahead []int32) bool {
	sign := int64(0)
	for _, p := range slices.Concat(append(o.unsure, o.answered)...) {
		switch n, _ := p.Arg.Int(); {
		case p.reads || n == 0:
		case n > 0 && sign < 0 || n < 0 && sign > 0:
			return nil
		default:
			sign = int64(cmp.Compare(n, 0))
		}
	}
	least := func(so int64, p placing) int64 {
		if n, told := p.Result.Int(); p.reads && told {
			so = min(so, max(n, -math.MaxInt64)*sign)
		}
		return so
	}
	// later is the smallest read that was invoked after each answer.
	byCall := slices.SortedFunc(slices.Values(o.answered), func(a, b placing) int { return cmp.Compare(b.Call, a.Call) })
	later, so := make([]int64, len(o.answered)), int64(math.MaxInt64)
	for i := len(later) - 1; i >= 0; i-- {
		for len(byCall) > 0 && byCall[0].Call > o.answered[i].Return {
			so, byCall = least(so, byCall[0]), byCall[1:]
		}
		later[i] = so
	}
	return func(i, state int32, ahead []int32) bool {
		so := later[i]
		for _, j := range o.open[i] {
			if len(ahead) > 0 && ahead[0] == j {
				ahead = ahead[1:]
				continue
			}
			so = least(so, o.answered[j])
		}
		return o.values[state].(int64)*sign > so
	}
}

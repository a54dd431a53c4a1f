package sales

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"oversell/checker/say"
	"oversell/history"
)

// frontier decides exactly whether purchases, refunds and sold-out answers of
// a stock have a legal order. It visits the calls and returns in order of time and keeps every configuration that is
// still possible: the pieces left, and which of the operations in flight have taken effect. Time and memory are
// exponential only in the number of operations in flight at once, and small while stock lasts, because of four
// observations.
//
//  1. Effects may be delayed until a return forces them: at the return of an
//     operation that has not taken effect yet, the operations that take effect just
//     before it are chosen from those in flight, and only those that make a
//     difference to it. (Wing and Gong's search, just in time as in Lowe, "Testing
//     for linearizability", 2017.)
//  2. A sold-out answer has no effect, so it may be given at the first moment
//     at which too little is left.
//  3. Of two operations in flight that are the same but for their returns, the
//     one that returns first may go first; those without an answer, which never
//     return, go last. So a configuration takes them in that order.
//  4. An operation before the return of another one makes a difference to it only
//     by making it possible or, before a refund, by making a sold-out answer
//     possible that is not after it.
type frontier struct {
	items   []item // with an answer, in completion order; items[i] has number base+i
	base    int
	calls   []call   // not yet entered, to be sorted
	flight  [][]int  // per class: numbers of known operations in flight, ascending
	classes []class  // the kinds of operations
	amounts int      // different amounts bought
	mixed   bool     // not everything is about the same number of pieces
	spare   []int    // per class: operations without an answer, called so far
	refs    int      // sold-out answers in flight
	configs []config //
	steps   int      // numbers copied or compared, the main cost
	gaveUp  string
	stuck   *item // the operation that no configuration explains
}

// class is the common part of operations that differ only in their times.
type class struct {
	kind   itemKind
	pieces int64
}

type itemKind uint8

const (
	takes itemKind = iota
	gives
	finds // that too little is left
)

// item is a purchase, a refund or a sold-out answer.
type item struct {
	call, ret time.Duration
	arg       history.Value
	class     int
	client    int32
}

// call is the call of item number, or of an operation without an answer if number is negative.
type call struct {
	when   time.Duration
	number int
	class  int
}

// config is one possible configuration. Its slices are never changed.
type config struct {
	left    int64
	ahead   []int // purchases and refunds in flight that have taken effect, ascending
	waiting []int // sold-out answers in flight that cannot have been given yet, ascending
	used    []int // per class: operations without an answer that have taken effect
}

// The search gives up beyond these.
const (
	mostConfigs = 1 << 12
	mostSteps   = 1 << 23
	stepsPerOp  = 1 << 10 // more for each operation
)

func newFrontier(stock int64) *frontier {
	return &frontier{configs: []config{{left: stock}}}
}

// add enters an operation, in completion order.
func (f *frontier) add(op *history.Op, kind itemKind) {
	c := slices.Index(f.classes, class{kind, op.Pieces()})
	if c < 0 {
		c = len(f.classes)
		f.classes = append(f.classes, class{kind, op.Pieces()})
		f.flight = append(f.flight, nil)
		f.spare = append(f.spare, 0)
		if kind == takes {
			f.amounts++
		}
		f.mixed = f.mixed || op.Pieces() != f.classes[0].pieces
	}
	n := -1
	if op.Outcome != history.Unknown {
		n = f.base + len(f.items)
		f.items = append(f.items, item{op.Call, op.Return, op.Arg, c, op.Client})
	}
	f.calls = append(f.calls, call{op.Call, n, c})
}

// advance takes all calls and returns before lowWater.
func (f *frontier) advance(lowWater time.Duration) {
	slices.SortFunc(f.calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.number, b.number))
	})
	i, head := 0, 0
	for f.stuck == nil && f.gaveUp == "" {
		switch {
		case i < len(f.calls) && f.calls[i].when < lowWater && (head == len(f.items) || f.calls[i].when <= f.items[head].ret):
			f.begin(f.calls[i])
			i++
		case head < len(f.items) && f.items[head].ret < lowWater:
			f.finish(f.base+head, head)
			head++
		default:
			f.calls = append(f.calls[:0], f.calls[i:]...)
			f.items = append(f.items[:0], f.items[head:]...)
			f.base += head
			return
		}
	}
	f.calls, f.items, f.flight = nil, nil, nil // decided
}

func (f *frontier) item(number int) *item { return &f.items[number-f.base] }

// begin handles a call.
func (f *frontier) begin(c call) {
	if f.classes[c.class].kind == finds {
		f.refs++
		for i := range f.configs {
			if k := &f.configs[i]; k.left >= f.classes[c.class].pieces {
				k.waiting = insert(slices.Clone(k.waiting), c.number)
			}
		}
		return
	}
	if c.number < 0 {
		f.spare[c.class]++
		return
	}
	f.flight[c.class] = insert(f.flight[c.class], c.number)
}

// finish handles the return of the operation in flight that returns first.
func (f *frontier) finish(number, index int) {
	it := &f.items[index]
	var next []config
	var seen map[string]bool // made when there is another to compare with
	for _, c := range f.configs {
		if f.tooMany(it) {
			break
		}
		f.force(c, number, it, func(c config) {
			f.steps += c.size()
			c.ahead = without(c.ahead, number)
			if len(next) == 0 {
				next = append(next, c)
				return
			}
			if seen == nil {
				seen = map[string]bool{next[0].key(): true}
			}
			if k := c.key(); !seen[k] {
				seen[k] = true
				next = append(next, c)
			}
		})
	}
	if f.classes[it.class].kind == finds {
		f.refs--
	} else {
		f.flight[it.class] = remove(f.flight[it.class], number)
	}
	f.configs = next
	switch {
	case f.gaveUp != "":
	case len(next) == 0:
		stuck := *it
		f.stuck = &stuck
	case len(next) > mostConfigs:
		f.gaveUp = fmt.Sprintf("more than %s orders were possible at once", say.Thousands(mostConfigs))
	}
}

// force finds all configurations after c in which operation number has taken effect.
func (f *frontier) force(c config, number int, it *item, found func(config)) {
	cl := f.classes[it.class]
	if cl.kind == finds && !has(c.waiting, number) || has(c.ahead, number) {
		found(c)
		return
	}
	if cl.kind == gives && c.allFound() || cl.kind == takes && c.left >= cl.pieces && f.unhindered(c) {
		found(f.take(c, it.class, number))
		return
	}
	f.search(c, number, it, found)
}

// unhindered reports whether a purchase that can take effect now may take effect before everything else in flight. It
// can only delay refunds. It can also only delay purchases, unless they then need a refund that they did not need
// before; and that matters only if it hides a low stock from a sold-out answer. With only one amount, this purchase is
// the first of all purchases anyway.
func (f *frontier) unhindered(c config) bool {
	return f.amounts <= 1 || c.allFound() || !f.refundable(c)
}

// refundable reports whether a refund in flight has not taken effect.
func (f *frontier) refundable(c config) bool {
	for class, k := range f.classes {
		if k.kind == gives && f.next(c, class) {
			return true
		}
	}
	return false
}

// next reports whether some operation of a class in flight has not taken effect.
func (f *frontier) next(c config, class int) bool {
	for _, n := range f.flight[class] {
		if !has(c.ahead, n) {
			return true
		}
	}
	return f.spare[class] > 0 && (class >= len(c.used) || c.used[class] < f.spare[class])
}

// search tries everything that may take effect before operation number.
func (f *frontier) search(start config, number int, it *item, found func(config)) {
	type node struct {
		config
		news bool // the last step made a sold-out answer possible
	}
	cl := f.classes[it.class]
	// If all operations have the same number of pieces, refunds only delay the moment at which too little is left.
	detour := cl.kind == finds && !f.mixed
	seen := map[string]bool{start.key(): true}
	todo := []node{{start, true}}
	for len(todo) > 0 {
		if f.tooMany(it) || len(seen) > 8*mostConfigs {
			f.giveUp(it)
			return
		}
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case cl.kind == finds && !has(c.waiting, number):
			found(c.config)
			continue
		case cl.kind == takes && c.left >= cl.pieces:
			found(f.take(c.config, it.class, number))
			if f.unhindered(c.config) {
				continue
			}
		case cl.kind == gives && c.news:
			found(f.take(c.config, it.class, number))
		}
		if cl.kind == gives && c.allFound() {
			continue
		}
		for class := range f.classes {
			if class == it.class || f.classes[class].kind == finds || detour && f.classes[class].kind == gives {
				continue
			}
			f.move(c.config, class, func(d config) {
				f.steps += d.size()
				if k := d.key(); !seen[k] {
					seen[k] = true
					todo = append(todo, node{d, len(d.waiting) < len(c.waiting)})
				}
			})
		}
	}
}

// move lets the next operation of a class take effect, if there is one.
func (f *frontier) move(c config, class int, push func(config)) {
	if f.classes[class].kind == takes && c.left < f.classes[class].pieces {
		return
	}
	for _, n := range f.flight[class] {
		if !has(c.ahead, n) {
			push(f.take(c, class, n))
			return
		}
	}
	if f.next(c, class) {
		push(f.take(c, class, -1))
	}
}

// take returns c after one operation of a class, without an answer if number is negative.
func (f *frontier) take(c config, class, number int) config {
	cl := f.classes[class]
	if number >= 0 {
		c.ahead = insert(slices.Clone(c.ahead), number)
	} else {
		used := make([]int, max(len(c.used), class+1))
		copy(used, c.used)
		used[class]++
		c.used = used
	}
	if cl.kind == gives {
		c.left += cl.pieces
		return c
	}
	c.left -= cl.pieces
	enough := func(n int) bool { return c.left >= f.classes[f.item(n).class].pieces }
	if !slices.ContainsFunc(c.waiting, func(n int) bool { return !enough(n) }) {
		return c
	}
	var waiting []int
	for _, n := range c.waiting {
		if enough(n) {
			waiting = append(waiting, n)
		}
	}
	c.waiting = waiting
	return c
}

// allFound reports whether every sold-out answer in flight can have been given.
func (c *config) allFound() bool { return len(c.waiting) == 0 }

func (f *frontier) inFlight() int {
	n := f.refs
	for class := range f.flight {
		n += len(f.flight[class]) + f.spare[class]
	}
	return n
}

// tooMany gives up when the search has taken too many steps.
func (f *frontier) tooMany(it *item) bool {
	if f.steps > mostSteps+stepsPerOp*(f.base+len(f.items)) {
		f.giveUp(it)
	}
	return f.gaveUp != ""
}

func (f *frontier) giveUp(it *item) {
	f.gaveUp = fmt.Sprintf("too many sequences are possible of the %s in flight at %s; with fewer clients there are fewer", say.Count(int64(f.inFlight()), "operation"), say.At(it.ret))
}

// size returns the cost of copying or comparing a configuration.
func (c *config) size() int { return 8 + len(c.ahead) + len(c.waiting) + len(c.used) }

// idle reports whether nothing waits to be decided.
func (f *frontier) idle() bool { return len(f.items) == 0 && len(f.calls) == 0 }

// final returns the frontier as if the history ended now.
func (f *frontier) final() *frontier {
	end := *f
	end.items, end.calls = slices.Clone(f.items), slices.Clone(f.calls)
	end.spare, end.configs = slices.Clone(f.spare), slices.Clone(f.configs)
	end.flight = make([][]int, len(f.flight))
	for i := range f.flight {
		end.flight[i] = slices.Clone(f.flight[i])
	}
	end.advance(history.Forever)
	return &end
}

// key identifies a configuration.
func (c *config) key() string {
	b := make([]byte, 0, 8*(len(c.ahead)+len(c.waiting)+len(c.used)+2))
	for _, list := range [][]int{c.ahead, c.waiting} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, n := range list {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	last := len(c.used)
	for last > 0 && c.used[last-1] == 0 {
		last--
	}
	for _, n := range c.used[:last] {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return string(b)
}

// has reports whether n is in a sorted slice.
func has(s []int, n int) bool {
	_, ok := slices.BinarySearch(s, n)
	return ok
}

// insert adds n to a sorted slice, in place.
func insert(s []int, n int) []int {
	i, _ := slices.BinarySearch(s, n)
	return slices.Insert(s, i, n)
}

// remove removes n from a sorted slice, in place.
func remove(s []int, n int) []int {
	if i, ok := slices.BinarySearch(s, n); ok {
		return slices.Delete(s, i, i+1)
	}
	return s
}

// without returns a sorted slice without n; it leaves s alone.
func without(s []int, n int) []int {
	i, ok := slices.BinarySearch(s, n)
	if !ok {
		return s
	}
	if len(s) == 1 {
		return nil
	}
	return slices.Concat(s[:i], s[i+1:])
}

// unused returns the changes of operations without an answer that have not taken effect.
func (f *frontier) unused(c *config) (list []unanswered) {
	for class, n := range f.spare {
		k := f.classes[class]
		if class < len(c.used) {
			n -= c.used[class]
		}
		if k.kind == gives {
			k.pieces = -k.pieces
		}
		if n > 0 {
			list = append(list, unanswered{pieces: k.pieces, count: int64(n)})
		}
	}
	return list
}

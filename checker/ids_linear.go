package checker

import (
	"fmt"
	"slices"
	"time"

	"oversell/history"
	"oversell/variant"
)

// idLinear judges that the answers of a counter fit one legal order: each request
// counts up by one, at a moment between its call and its return, and gets the
// number that it reached, the first being 1; reading the last number gets the
// number reached. A request without an answer counts up at some moment after its
// call, or never.
//
// Numbers must be distinct. In the order of their numbers, a greedy schedule
// must fit, t = max(t, call) <= return, and each missing number uses up the
// request without an answer that was called first. The smallest bad histories:
//
//	client 1  next-id  [1, 2]  2
//
//	client 1  next-id  [1, 2]  2
//	client 2  next-id  [3, 4]  1
//
// A number is scheduled when lowWater has passed its return: what comes later can
// only be out of order. A request that was sent again may have got its number at
// any time since the first try, and if that number was missing, then from that try.
type idLinear struct {
	counters keyed[ladder]
	ended    bool
}

type ladder struct {
	key      history.Value
	requests requests
	numbers  table[slot]
	max      int64  // the largest number so far
	top      rung   // and its operation
	reads    []rung // of the last number
	open     []lostID
	sorted   bool
	n        int64

	next   int64         // number
	now    time.Duration // when the one before was scheduled
	last   rung          // what was scheduled then
	seen   history.Op    // or what was read since, if it was later
	filled map[int64]bool
	read   int // of reads
	stuck  bool
	why    string
	ops    []history.Op
}

// slot is who got a number.
type slot struct {
	call, ret time.Duration // from the first try on
	client    int32
	taken     bool
}

// rung is a number that was given out; or, among the reads, one that was read.
type rung struct {
	slot
	number int64
}

type lostID struct {
	call   time.Duration
	client int32
}

func newIDLinear() *idLinear {
	return &idLinear{counters: newKeyed(func(key history.Value) *ladder {
		return &ladder{key: key, next: 1, now: -1 << 63}
	})}
}

// Observe implements [Monitor].
func (m *idLinear) Observe(op *history.Op) {
	switch {
	case answered(op):
		m.counters.at(op.Key).give(op)
	case op.Kind == history.NextID && op.Outcome == history.Unknown:
		l := m.counters.at(op.Key)
		l.requests.lost(op)
		l.open = append(l.open, lostID{op.Call, op.Client})
		l.sorted = false
	case readsLast(op):
		l := m.counters.at(op.Key)
		if v, ok := op.Result.Num(); ok {
			l.reads = append(l.reads, rung{slot{op.Call, op.Return, op.Client, true}, v})
		}
	}
}

func (l *ladder) give(op *history.Op) {
	l.n++
	if l.stuck {
		return
	}
	v, ok := op.Result.Num()
	if !ok || v < 1 {
		l.fail(fmt.Sprintf("%s was given %s, which no counter reaches", client(op), op.Result), *op)
		return
	}
	r := l.numbers.at(op.Result)
	g := slot{l.requests.since(op), op.Return, op.Client, true}
	switch {
	case r.taken:
		l.fail(fmt.Sprintf("%s was given to %s between %s and %s, and to %s between %s and %s", count(v), r.who(), at(r.call), at(r.ret), client(op), at(op.Call), at(op.Return)), l.op(&rung{*r, v}), *op)
		return
	case v < l.next && l.filled[v] && g.call < op.Call: // the first try had got it
		delete(l.filled, v)
	case v < l.next:
		l.fail(fmt.Sprintf("%s asked for a number only at %s and was given %s, though %s had been given out by %s", client(op), at(op.Call), count(v), count(l.last.number), at(l.last.ret)), l.before(), *op)
		return
	}
	*r = g
	if v > l.max {
		l.max, l.top = v, rung{g, v}
	}
}

func (s *slot) who() string { return client(&history.Op{Client: s.client}) }

func (l *ladder) op(r *rung) history.Op {
	return history.Op{Client: r.client, Kind: history.NextID, Outcome: history.OK, Key: l.key, Result: history.Int(r.number), Due: r.call, Call: r.call, Return: r.ret}
}

// before is what was scheduled last.
func (l *ladder) before() history.Op {
	if !l.last.taken {
		return history.Op{}
	}
	return l.op(&l.last)
}

func (l *ladder) fail(why string, ops ...history.Op) {
	if !l.stuck {
		l.stuck, l.why, l.ops = true, why, inOrder(ops...)
	}
}

// Advance implements [Monitor].
func (m *idLinear) Advance(lowWater time.Duration) {
	for _, c := range m.counters.all {
		c.advance(lowWater)
	}
}

// advance schedules what had returned before lowWater.
func (l *ladder) advance(lowWater time.Duration) {
	if !l.sorted {
		slices.SortFunc(l.open, func(a, b lostID) int { return int(min(1, max(-1, a.call-b.call))) })
		l.sorted = true
	}
	if len(l.reads) > 1 {
		slices.SortStableFunc(l.reads[l.read:], func(a, b rung) int { return int(min(1, max(-1, a.number-b.number))) })
	}
	for !l.stuck {
		if l.read < len(l.reads) && l.reads[l.read].number < l.next { // next in line
			if r := l.reads[l.read]; r.ret >= lowWater || !l.look(r) {
				return
			}
			continue
		}
		if r := l.numbers.at(history.Int(l.next)); l.next <= l.max && r.taken {
			if r.ret >= lowWater {
				return
			}
			l.schedule(rung{*r, l.next})
			continue
		}
		if !l.fill(lowWater) {
			return
		}
	}
}

// look schedules a reading of the last number.
func (l *ladder) look(r rung) bool {
	l.read++
	op := history.Op{Client: r.client, Kind: history.ReadState, Outcome: history.OK, Key: l.key, Arg: theLast, Result: history.Int(r.number), Due: r.call, Call: r.call, Return: r.ret}
	switch {
	case r.number < l.next-1:
		l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though %s had been given out by %s", client(&op), at(r.call), at(r.ret),
			count(r.number), count(l.next-1), at(l.last.ret)), l.before(), op)
	case l.now > r.ret:
		l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though nobody can have asked for it before %s", client(&op), at(r.call), at(r.ret),
			count(r.number), at(l.now)), l.before(), op)
	case r.call > l.now:
		l.now, l.seen = r.call, op
	}
	return !l.stuck
}

func (l *ladder) schedule(r rung) {
	t := max(l.now, r.call)
	switch {
	case t > r.ret && l.seen.Kind != history.NoKind:
		l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though %s had been given %s by %s", client(&l.seen), at(l.seen.Call), at(l.seen.Return),
			l.seen.Result, r.who(), count(r.number), at(r.ret)), l.op(&r), l.seen)
		return
	case t > r.ret:
		l.fail(fmt.Sprintf("%s was given %s between %s and %s, though the number before it cannot have been given out before %s", r.who(), count(r.number), at(r.call), at(r.ret), at(t)),
			l.before(), l.op(&r))
		return
	}
	l.now, l.last, l.seen = t, r, history.Op{}
	l.next++
}

// fill uses up requests without an answer for the missing numbers from next on,
// if what comes after these had returned.
func (l *ladder) fill(lowWater time.Duration) bool {
	above, ok := l.above()
	if !ok || above.ret >= lowWater {
		return false
	}
	end := above.number
	for ; l.next < end; l.next++ {
		if len(l.open) == 0 || l.open[0].call > above.ret {
			return l.missing(above)
		}
		l.now = max(l.now, l.open[0].call)
		l.open = l.open[1:]
		if l.filled == nil {
			l.filled = make(map[int64]bool)
		}
		l.filled[l.next] = true
	}
	return true
}

// above is what the next missing numbers must come before: the first number
// after them, or a reading. Of more missing numbers than can be filled, it is the
// largest number so far.
func (l *ladder) above() (rung, bool) {
	limit := l.next + int64(len(l.open))
	read, reads := rung{}, l.read < len(l.reads)
	if reads {
		read = l.reads[l.read]
		read.number++ // it comes after that number, and before this
	}
	for v := l.next + 1; v <= l.max; v++ {
		if reads && v >= read.number {
			return read, true
		}
		if v > limit {
			return l.top, true
		}
		if r := l.numbers.at(history.Int(v)); r.taken {
			return rung{*r, v}, true
		}
	}
	return read, reads
}

func (l *ladder) missing(above rung) bool {
	if r := l.numbers.at(history.Int(above.number)); above.number <= l.max && *r == above.slot {
		l.fail(fmt.Sprintf("%s was given %s between %s and %s, though nobody can have been given %s by then", above.who(), count(above.number), at(above.call), at(above.ret), count(l.next)), l.op(&above))
		return false
	}
	l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though nobody can have been given it by then", above.who(), at(above.call), at(above.ret), count(above.number-1)),
		history.Op{Client: above.client, Kind: history.ReadState, Outcome: history.OK, Key: l.key, Arg: theLast, Result: history.Int(above.number - 1), Due: above.call, Call: above.call, Return: above.ret})
	return false
}

// final is the ladder as if the history ended now.
func (l *ladder) final() *ladder {
	end := *l
	end.open, end.reads = slices.Clone(l.open), slices.Clone(l.reads)
	end.filled = nil
	end.advance(history.Forever)
	return &end
}

func (m *idLinear) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *idLinear) Verdict() Verdict {
	return m.counters.verdict(variant.IDs, variant.Linearizable, nothingNumbered, func(l *ladder) Verdict {
		end := l.final()
		switch {
		case end.stuck && m.ended:
			return Verdict{Why: end.why + "; but " + cutOff}
		case end.stuck:
			return Verdict{Result: Violated, Count: 1, Why: end.why, Witness: end.ops}
		case l.n == 0:
			return Verdict{Why: nothingNumbered}
		}
		return Verdict{Result: Holds, Why: many(l.n, "number") + " fit one order"}
	})
}

package ids

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// linearization is the schedule of a counter's numbers; see [counter.linear].
type linearization struct {
	c      *counter
	reads  []rung // of the last number
	open   []lostID
	sorted bool

	next  int64         // number
	now   time.Duration // when the one before was scheduled
	last  rung          // the operation scheduled then
	seen  history.Op    // or the reading since, if it was later
	read  int           // of reads
	stuck bool
	why   string
	ops   []history.Op
}

type lostID struct {
	call   time.Duration
	client int32
}

// give takes a number that was given out, and its slot.
func (l *linearization) give(op *history.Op, s *slot) {
	if l.stuck {
		return
	}
	v, ok := op.Result.Num()
	switch {
	case !ok || v < 1:
		l.fail(fmt.Sprintf("%s was given %s, which no counter reaches", say.Client(op), op.Result), *op)
	case !s.taken && v < l.next:
		l.fail(fmt.Sprintf("%s asked for a number only at %s and was given %s, though %s had been given out by %s", say.Client(op), say.At(op.Call), say.Thousands(v), say.Thousands(l.last.number), say.At(l.last.ret)), l.before(), *op)
	}
}

// again notes that a number was given out again.
func (l *linearization) again(s *slot, op *history.Op) {
	l.fail(fmt.Sprintf("%s was given to %s between %s and %s, and to %s between %s and %s", op.Result, s.who(), say.At(s.call), say.At(s.ret), say.Client(op), say.At(op.Call), say.At(op.Return)), l.c.op(s, op.Result), *op)
}

func (l *linearization) lose(op *history.Op) {
	l.open = append(l.open, lostID{op.Call, op.Client})
	l.sorted = false
}

func (s *slot) who() string { return say.Client(&history.Op{Client: s.client}) }

// rungOp returns the operation of a rung.
func (l *linearization) rungOp(r *rung) history.Op { return l.c.op(&r.slot, history.Int(r.number)) }

// before returns the operation scheduled last.
func (l *linearization) before() history.Op {
	if !l.last.taken {
		return history.Op{}
	}
	return l.rungOp(&l.last)
}

func (l *linearization) fail(why string, ops ...history.Op) {
	if !l.stuck {
		l.stuck, l.why, l.ops = true, why, monitor.InOrder(ops...)
	}
}

// pass schedules the operations that had returned before lowWater.
func (l *linearization) pass(lowWater time.Duration) {
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
		if r := l.c.numbers.At(history.Int(l.next)); l.next <= l.c.top.number && r.taken {
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
func (l *linearization) look(r rung) bool {
	l.read++
	op := history.Op{Client: r.client, Kind: history.ReadState, Outcome: history.OK, Key: l.c.key, Arg: monitor.TheLast, Result: history.Int(r.number), Due: r.call, Call: r.call, Return: r.ret}
	switch {
	case r.number < l.next-1:
		l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though %s had been given out by %s", say.Client(&op), say.At(r.call), say.At(r.ret),
			say.Thousands(r.number), say.Thousands(l.next-1), say.At(l.last.ret)), l.before(), op)
	case l.now > r.ret:
		l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though nobody can have asked for it before %s", say.Client(&op), say.At(r.call), say.At(r.ret),
			say.Thousands(r.number), say.At(l.now)), l.before(), op)
	case r.call > l.now:
		l.now, l.seen = r.call, op
	}
	return !l.stuck
}

func (l *linearization) schedule(r rung) {
	t := max(l.now, r.call)
	switch {
	case t > r.ret && l.seen.Kind != history.NoKind:
		l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though %s had been given %s by %s", say.Client(&l.seen), say.At(l.seen.Call), say.At(l.seen.Return),
			l.seen.Result, r.who(), say.Thousands(r.number), say.At(r.ret)), l.rungOp(&r), l.seen)
		return
	case t > r.ret:
		l.fail(fmt.Sprintf("%s was given %s between %s and %s, though the number before it cannot have been given out before %s", r.who(), say.Thousands(r.number), say.At(r.call), say.At(r.ret), say.At(t)),
			l.before(), l.rungOp(&r))
		return
	}
	l.now, l.last, l.seen = t, r, history.Op{}
	l.next++
}

// fill uses up requests without an answer for the missing numbers from next on, if the number after these had returned.
func (l *linearization) fill(lowWater time.Duration) bool {
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
	}
	return true
}

// above returns the bound of the next missing numbers: the first number after them, or a reading. If more numbers are
// missing than can be filled, it is the largest number so far.
func (l *linearization) above() (rung, bool) {
	limit := l.next + int64(len(l.open))
	read, reads := rung{}, l.read < len(l.reads)
	if reads {
		read = l.reads[l.read]
		read.number = min(read.number, math.MaxInt64-1) + 1 // it comes after that number, and before this
	}
	for v := l.next + 1; v <= l.c.top.number; v++ {
		if reads && v >= read.number {
			return read, true
		}
		if v > limit {
			return l.c.top, true
		}
		if r := l.c.numbers.At(history.Int(v)); r.taken {
			return rung{*r, v}, true
		}
	}
	return read, reads
}

func (l *linearization) missing(above rung) bool {
	if r := l.c.numbers.At(history.Int(above.number)); above.number <= l.c.top.number && *r == above.slot {
		l.fail(fmt.Sprintf("%s was given %s between %s and %s, though nobody can have been given %s by then", above.who(), say.Thousands(above.number), say.At(above.call), say.At(above.ret), say.Thousands(l.next)), l.rungOp(&above))
		return false
	}
	l.fail(fmt.Sprintf("%s read between %s and %s that %s was the last number, though nobody can have been given it by then", above.who(), say.At(above.call), say.At(above.ret), say.Thousands(above.number-1)),
		history.Op{Client: above.client, Kind: history.ReadState, Outcome: history.OK, Key: l.c.key, Arg: monitor.TheLast, Result: history.Int(above.number - 1), Due: above.call, Call: above.call, Return: above.ret})
	return false
}

// final returns the linearization as if the history ended now.
func (l *linearization) final() *linearization {
	end := *l
	end.open, end.reads = slices.Clone(l.open), slices.Clone(l.reads)
	end.pass(history.Forever)
	return &end
}

// linear judges that the answers of a counter fit one legal order: each request
// counts up by one, at a moment between its call and its return, and gets the
// number that it reached, the first being 1; reading the last number gets the
// number reached. A request without an answer counts up at some moment after its
// call, or never.
//
// Numbers must be distinct. In the order of their numbers, a greedy schedule
// must fit, t = max(t, call) <= return, and each missing number uses up the
// request without an answer that was called first. An opportunity is a contended
// number, see [counters]. The smallest bad histories:
//
//	client 1  next-id  [1, 2]  2
//
//	client 1  next-id  [1, 2]  2
//	client 2  next-id  [3, 4]  1
//
// A number is scheduled when lowWater has passed its return: later ones can only be out of order. A request that was
// sent again may have got its number at any time since the first try, so nothing after a request without an answer is
// scheduled before the end. Whether the first try also used up a number of its own depends on whether the generator
// knows requests, and is left open.
func (c *counter) linear() monitor.Verdict {
	end := c.ladder.final()
	if a := c.later(); a != nil {
		end.again(c.numbers.At(a.Result), a)
	}
	unclear := c.unclear()
	switch {
	case unclear != "" && c.twice.count == 0 && c.later() == nil:
		return monitor.Undecided(unclear)
	case end.stuck && c.Ended:
		return monitor.Undecided(end.why + "; but " + monitor.CutOff)
	case end.stuck:
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Opportunities: c.contended, Why: end.why, Witness: end.ops}
	case c.n == 0:
		return monitor.Verdict{Why: nothingNumbered}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: c.contended, Why: fmt.Sprintf("%s fit one order, in %s", say.Count(c.n, "number"), c.inContention())}
}

package checker

import (
	"time"

	"oversell/history"
	"oversell/variant"
)

// mutualExclusion judges that no two clients hold a lock at once within the
// validity each was promised.
//
// A session surely holds the lock from the return of its grant to the call of
// its release, or to the end of its lease as last extended if that comes first.
// Two of these cores that share more than an instant are a violation; see
// [overlaps] for why an instant is none. The smallest bad history:
//
//	client 1  acquire  [1, 2]  until 100
//	client 2  acquire  [3, 4]  until 100
//
// A lease that was over when an extension of it returned gives two cores with a
// gap between them. A background renewal is no operation; it is known from the
// release, and taken to have left no gap.
//
// An acquire of unknown outcome has no core: its client does not act on it.
type mutualExclusion struct {
	locks keyed[cores]
	ended bool
}

type cores struct {
	key    history.Value
	spans  overlaps
	open   map[int64]*span
	grants int64
}

func newMutualExclusion() *mutualExclusion {
	return &mutualExclusion{locks: newKeyed(func(key history.Value) *cores {
		return &cores{key: key, open: make(map[int64]*span)}
	})}
}

// Observe implements [Monitor].
func (m *mutualExclusion) Observe(op *history.Op) {
	switch op.Kind {
	case history.Acquire:
		if op.Outcome == history.OK {
			m.locks.at(op.Key).acquire(op)
		}
	case history.Extend:
		m.locks.at(op.Key).extend(op)
	case history.Release:
		m.locks.at(op.Key).release(op)
	}
}

func (c *cores) acquire(op *history.Op) {
	c.grants++
	n := session(op)
	if s := c.open[n]; s != nil { // a number used twice: the first is over
		c.spans.close(s, min(s.until, op.Call), nil)
	}
	c.open[n] = c.spans.start(op, n, leased(op))
}

func (c *cores) extend(op *history.Op) {
	n := session(op)
	s := c.open[n]
	if s == nil {
		return
	}
	switch {
	case op.Outcome == history.OK && op.Return <= s.until:
		c.spans.prolong(s, s.start, leased(op))
	case op.Outcome == history.OK:
		c.spans.close(s, s.until, nil)
		c.open[n] = c.spans.start(op, n, leased(op))
	case op.Outcome == history.Refused && op.Reason == history.Lost:
		c.spans.close(s, min(s.until, op.Call), op)
		delete(c.open, n)
	}
}

func (c *cores) release(op *history.Op) {
	n := session(op)
	if s := c.open[n]; s != nil {
		c.spans.close(s, min(op.Call, max(s.until, op.Until)), op)
		delete(c.open, n)
	}
}

// Advance implements [Monitor].
func (m *mutualExclusion) Advance(lowWater time.Duration) {
	for _, c := range m.locks.all {
		c.spans.advance(lowWater)
	}
}

func (m *mutualExclusion) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *mutualExclusion) Verdict() Verdict {
	return m.locks.verdict(variant.Lock, variant.MutualExclusion, "nobody obtained the lock", func(c *cores) Verdict {
		n, a, b := c.spans.tally(m.ended)
		switch {
		case n > 0:
			why, witness := overlapped(c.key, a, b)
			return Verdict{Result: Violated, Count: n, Why: why, Witness: witness}
		case c.grants == 0:
			return Verdict{Why: "nobody obtained the lock"}
		case c.grants == 1:
			return Verdict{Result: Holds, Why: "1 grant, and no other"}
		}
		return Verdict{Result: Holds, Why: many(c.grants, "grant") + ", no two at once"}
	})
}

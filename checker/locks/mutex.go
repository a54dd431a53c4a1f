package locks

import (
	"fmt"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// cores judges that no two clients hold a lock at once within the validity each was
// promised: mutual exclusion.
//
// A session surely holds the lock from the return of its grant to the call of its release,
// or to the end of its lease as last extended if that comes first. Two of these cores that
// share more than an instant are a violation; see [monitor.Overlaps] for why sharing one instant
// is not. The smallest bad history:
//
//	client 1  acquire  [1, 2]  until 100
//	client 2  acquire  [3, 4]  until 100
//
// A client that calls release is done with its section, whatever the answer. A release that is refused as stopped was not
// called; the lock is still held. A refused extend ends a section only if its client was told that the lock is lost.
//
// A lease that was over when an extension of it returned gives two cores with a gap
// between them. A background renewal is not recorded as an operation. It is inferred from
// the release, and assumed to have left no gap.
//
// An acquire of unknown outcome has no core: its client does not act on it. An extension without an answer promises
// nothing. One that succeeds promises its lease, even in a session whose acquire or release had no answer, or whose
// client got the answer that its lock is lost: a core begins with its answer.
//
// An opportunity is a grant or a refusal of a lock that another client held during the acquire: a lock without mutual
// exclusion would have let both in. See [encounters]. The smallest history with one, a contended hand-over:
//
//	client 1  acquire  [1, 2]  ok
//	client 2  acquire  [3, 6]  ok
//	client 1  release  [4, 5]  ok
type cores struct {
	spans monitor.Overlaps
}

func openCores(ls *locks, l *lock) { l.cores = &cores{monitor.Overlaps{Spare: &ls.spans}} }

func (c *cores) observe(op *history.Op, t *lockSession) {
	switch {
	case t == nil:
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		if t.core != nil { // a number used twice: the first is over
			c.spans.Close(t.core, min(t.core.Until, op.Call), nil)
		}
		t.core = c.spans.Start(op, 0, monitor.Leased(op))
	case op.Kind == history.Extend:
		c.extend(op, t)
	case op.Kind == history.Release:
		if t.core != nil {
			c.spans.Close(t.core, min(op.Call, max(t.core.Until, op.Until)), op)
			t.core = nil
		}
		t.told = 0
	}
}

func (c *cores) extend(op *history.Op, t *lockSession) {
	s := t.core
	switch {
	case s == nil:
		if op.Outcome == history.OK && (t.doubtful || t.told > 0 && op.Call > t.told) {
			t.core = c.spans.Start(op, 0, monitor.Leased(op))
		}
	case op.Outcome == history.OK && op.Return <= s.Until:
		c.spans.Prolong(s, s.Start, monitor.Leased(op))
	case op.Outcome == history.OK:
		c.spans.Close(s, s.Until, nil)
		t.core = c.spans.Start(op, 0, monitor.Leased(op))
	case op.Reason == history.Lost:
		c.spans.Close(s, min(s.Until, op.Return), op) // until then its client relies on it
		t.core, t.told = nil, op.Return
	}
}

// exclusion returns the verdict on mutual exclusion.
func (l *lock) exclusion(ls *locks) monitor.Verdict {
	handovers, refusals := l.exclusive()
	v := monitor.Verdict{Opportunities: handovers + refusals}
	switch n, a, b := l.cores.spans.Tally(ls.ended); {
	case n > 0:
		v.Result, v.Count = monitor.Violated, n
		v.Why, v.Witness = monitor.Overlapped(l.key, a, b)
	case l.grants == 0:
		v.Why, v.Idle = "nobody obtained the lock", true
	case v.Opportunities == 0:
		v.Result, v.Say = monitor.Holds, func() string {
			return say.Count(l.grants, "grant") + ", no two at once; no acquire with an answer came while another client held the lock"
		}
	default:
		v.Result, v.Say = monitor.Holds, func() string {
			return fmt.Sprintf("no two holders at once in %s and %s", say.Count(handovers, "contended hand-over"), say.Count(refusals, "refusal"))
		}
	}
	return v
}

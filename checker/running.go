package checker

import (
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// Running judges a run under way: it reports promises that are surely broken, whatever operations follow. It is for one
// goroutine.
//
// It reports a violation in two cases. First, if the promise is broken in the history so
// far, judged as a history that was cut off there, so that nothing is concluded from the
// absence of an operation: two clients held the lock at once, or more was sold than there
// was. Second, if the promise is broken when no further operation comes, and every operation
// that was called before the last operation of the witness returned has been seen: then no
// later operation can explain it. A task that was handed out twice is reported in this way,
// because a second enqueue that explains it must have been called before.
//
// Violations that only the end shows (a lost task, a lock that no client obtained any more,
// a number that is never given out) are left to [Judge]; see [AtEnd].
type Running struct {
	monitors []Monitor
	low      time.Duration
}

// NewRunning returns a Running for the header of a run. It judges only promises; other properties can wait.
func NewRunning(h history.Header) *Running {
	r := &Running{monitors: Monitors(h)}
	r.monitors = slices.DeleteFunc(r.monitors, func(m Monitor) bool {
		v := m.Verdict()
		return !h.Promised(v.Of, v.Property) || AtEnd(v.Of, v.Property)
	})
	return r
}

// AtEnd reports whether a property can be judged only at the end of a run.
func AtEnd(of variant.Object, p variant.Property) bool {
	_, judged := find(of, p)
	return !judged || slices.Contains(atEnd, p)
}

// atEnd lists the properties that are violated by an event that never happens.
var atEnd = []variant.Property{variant.Progress, variant.NoLostTask, variant.NoGaps, variant.TaskReturns}

// Observe takes the next operation in completion order.
func (r *Running) Observe(op *history.Op) {
	for _, m := range r.monitors {
		m.Observe(op)
	}
}

// Advance says that no operation called before lowWater is still to come, as in [Monitor].
func (r *Running) Advance(lowWater time.Duration) {
	if lowWater <= r.low {
		return
	}
	r.low = lowWater
	for _, m := range r.monitors {
		m.Advance(lowWater)
	}
}

// Broken returns the promises that were found broken since the last call. It reports each once, and does not judge it
// again. For some monitors its cost grows with the run: do not call it for every operation.
func (r *Running) Broken() (vs []Verdict) {
	r.monitors = slices.DeleteFunc(r.monitors, func(m Monitor) bool {
		v := r.ask(m)
		if v.Result != Violated {
			return false
		}
		vs = append(vs, v)
		return true
	})
	return vs
}

// ask asks a monitor for a violation that is certain whatever follows.
func (r *Running) ask(m Monitor) Verdict {
	c, cuts := m.(monitor.CutAware)
	if !cuts {
		return m.Verdict()
	}
	c.Cut(true)
	v := m.Verdict()
	c.Cut(false)
	if v.Result == Violated {
		return v
	}
	if v = m.Verdict(); v.Result == Violated && r.settled(v.Witness) {
		return v
	}
	return Verdict{}
}

// settled reports whether every operation that was called before all of the witness had returned has been seen.
func (r *Running) settled(witness []history.Op) bool {
	for i := range witness {
		if witness[i].Return >= r.low {
			return false
		}
	}
	return len(witness) > 0
}

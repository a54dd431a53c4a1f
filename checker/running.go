package checker

import (
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// Running judges a run that is still going on: it tells which promises are broken for
// good, whatever may come. It is for one goroutine.
//
// A violation is told in either of two cases. Taking what it has seen for a history that
// was cut off there, so that nothing is concluded from the absence of an operation, the
// promise is broken: two clients held the lock at once, more was sold than there was. Or the
// promise is broken if no further operation comes, and no further operation was called
// before the last operation of the witness returned: then none that comes can explain it. A
// task that was handed out twice is told so, since whatever enqueued it a second time was
// called before that.
//
// What only the end shows (a task that is lost, a lock that nobody obtained any more, a
// number that is never given out) is left to [Judge]; see [AtEnd].
type Running struct {
	monitors []Monitor
	low      time.Duration
}

// NewRunning returns the judgement of a run by its header. Only what was promised is
// judged; the rest is a measurement, which can wait.
func NewRunning(h history.Header) *Running {
	r := &Running{monitors: Monitors(h)}
	r.monitors = slices.DeleteFunc(r.monitors, func(m Monitor) bool {
		v := m.Verdict()
		return !h.Promised(v.Of, v.Property) || AtEnd(v.Of, v.Property)
	})
	return r
}

// AtEnd tells whether a property can be judged at the end of a run only.
func AtEnd(of variant.Object, p variant.Property) bool {
	_, judged := find(of, p)
	return !judged || slices.Contains(atEnd, p)
}

// atEnd are the properties that rest on what never happens.
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

// Broken returns the promises that were found broken since the last call. Each is told
// once, and not judged from then on. Some monitors take a time for this that grows with
// the run: it is not to be called for every operation.
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

// ask asks a monitor for what is certain whatever comes.
func (r *Running) ask(m Monitor) Verdict {
	c, cuts := m.(monitor.Cutter)
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

// settled tells whether no operation that is still to come was called before all of the
// witness had returned.
func (r *Running) settled(witness []history.Op) bool {
	for i := range witness {
		if witness[i].Return >= r.low {
			return false
		}
	}
	return len(witness) > 0
}

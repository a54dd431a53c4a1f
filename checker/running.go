package checker

import (
	"slices"

	"oversell/history"
)

// Running judges a run that is still going on: it tells which promises are broken for
// good, whatever may come. It is for one goroutine.
//
// It takes what it has seen for a history that was cut off there: operations are in
// flight, so that nothing is concluded from the absence of one. What remains are the
// violations that two answers, or a count of them, prove: two clients that held the
// lock at once, more sold than there was. Those that rest on something missing (a lock
// that nobody obtained, pieces that vanished) are left to [Judge], at the end. The
// monitors are never advanced, because nobody knows which operations are in flight; they
// remember more than those of a saved history, at worst some hundred bytes an
// operation.
type Running struct {
	monitors []Monitor
}

// NewRunning returns the judgement of a run by its header. Only what was promised is
// judged; the rest is a measurement, which can wait.
func NewRunning(h history.Header) *Running {
	r := &Running{monitors: Monitors(h)}
	r.monitors = slices.DeleteFunc(r.monitors, func(m Monitor) bool {
		v := m.Verdict()
		return !h.Promised(v.Of, v.Property)
	})
	return r
}

// Observe takes the next operation in completion order.
func (r *Running) Observe(op *history.Op) {
	for _, m := range r.monitors {
		m.Observe(op)
	}
}

// Broken returns the promises that were found broken since the last call. Each is told
// once, and not judged from then on. Some monitors take a time for this that grows with
// the run: it is not to be called for every operation.
func (r *Running) Broken() (vs []Verdict) {
	r.monitors = slices.DeleteFunc(r.monitors, func(m Monitor) bool {
		if c, ok := m.(cutter); ok {
			c.cut() // again each time: some mark the state that there is at the moment
		}
		v := m.Verdict()
		if v.Result != Violated {
			return false
		}
		vs = append(vs, v)
		return true
	})
	return vs
}

package monitor

import (
	"slices"
	"sort"
	"time"

	"oversell/history"
)

// RunningMax returns the largest value among the operations that had returned before a time, for operations that
// Add takes in the order of their returns, and Insert in any order. It keeps only values larger than all before, so both the times and the values rise, and a
// binary search finds the answer.
type RunningMax struct {
	Steps []Step
}

// Step is a value that was the largest so far, and the operation that had it.
type Step struct {
	returned time.Duration
	Value    int64
	Op       history.Op
}

// Add notes value for an operation that returned at op.Return.
func (r *RunningMax) Add(value int64, op *history.Op) {
	if n := len(r.Steps); n == 0 || value > r.Steps[n-1].Value {
		r.Steps = append(r.Steps, Step{op.Return, value, *op})
	}
}

// Insert notes value for an operation that returned at op.Return, perhaps before others that were added.
func (r *RunningMax) Insert(value int64, op *history.Op) {
	i := sort.Search(len(r.Steps), func(i int) bool { return r.Steps[i].returned > op.Return })
	if i > 0 && r.Steps[i-1].Value >= value {
		return
	}
	j := i
	for j < len(r.Steps) && r.Steps[j].Value <= value {
		j++
	}
	r.Steps = slices.Replace(r.Steps, i, j, Step{op.Return, value, *op})
}

// Before returns the step with the largest value that returned strictly
// before t, or nil. Strictly, because calls sort before returns at equal times:
// an operation called at t may come before one that returned at t.
func (r *RunningMax) Before(t time.Duration) *Step {
	n := len(r.Steps)
	if n > 0 && r.Steps[n-1].returned < t {
		return &r.Steps[n-1]
	}
	i := sort.Search(n, func(i int) bool { return r.Steps[i].returned >= t })
	if i == 0 {
		return nil
	}
	return &r.Steps[i-1]
}

// Last returns the step with the largest value of all, or nil.
func (r *RunningMax) Last() *Step {
	if n := len(r.Steps); n > 0 {
		return &r.Steps[n-1]
	}
	return nil
}

// Forget drops the steps that no query for a time of lowWater or later needs.
func (r *RunningMax) Forget(lowWater time.Duration) {
	i := sort.Search(len(r.Steps), func(i int) bool { return r.Steps[i].returned >= lowWater })
	if i > 1 {
		r.Steps = slices.Delete(r.Steps, 0, i-1)
	}
}

package checker

import (
	"slices"
	"sort"
	"time"

	"oversell/history"
)

// rising answers "which is the largest value among the operations that had
// returned before t?" for operations that are added in the order of their
// returns. Only values larger than all before are kept, so both the times and
// the values rise, and a binary search finds the answer.
type rising struct {
	steps []step
}

type step struct {
	returned time.Duration
	value    int64
	op       history.Op
}

// add notes value for an operation that returned at op.Return.
func (r *rising) add(value int64, op *history.Op) {
	if n := len(r.steps); n == 0 || value > r.steps[n-1].value {
		r.steps = append(r.steps, step{op.Return, value, *op})
	}
}

// before returns the step with the largest value that returned strictly
// before t, or nil. Strictly, because calls sort before returns at equal times:
// an operation called at t may come before one that returned at t.
func (r *rising) before(t time.Duration) *step {
	n := len(r.steps)
	if n > 0 && r.steps[n-1].returned < t {
		return &r.steps[n-1]
	}
	i := sort.Search(n, func(i int) bool { return r.steps[i].returned >= t })
	if i == 0 {
		return nil
	}
	return &r.steps[i-1]
}

// last is the step with the largest value of all, or nil.
func (r *rising) last() *step {
	if n := len(r.steps); n > 0 {
		return &r.steps[n-1]
	}
	return nil
}

// forget drops what no question about a time of lowWater or later needs.
func (r *rising) forget(lowWater time.Duration) {
	i := sort.Search(len(r.steps), func(i int) bool { return r.steps[i].returned >= lowWater })
	if i > 1 {
		r.steps = slices.Delete(r.steps, 0, i-1)
	}
}

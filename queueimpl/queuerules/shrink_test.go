package queuerules

import (
	"slices"
	"testing"
)

// TestLeaveOut checks that only the steps remain without which a walk finds nothing.
func TestLeaveOut(t *testing.T) {
	var steps []step
	for n := range 9 {
		steps = append(steps, step{count: n})
	}
	counts := func() (all []int) {
		for _, s := range steps {
			all = append(all, s.count)
		}
		return all
	}
	try := func(_ plan, fewer []step) bool {
		is := func(n int) bool { return slices.ContainsFunc(fewer, func(s step) bool { return s.count == n }) }
		if !is(2) || !is(7) {
			return false
		}
		steps = fewer
		return true
	}
	always := func() bool { return true }
	for _, c := range []struct {
		size    int
		shorter bool
		left    []int
	}{{4, true, []int{0, 1, 2, 3, 4, 5, 6, 7}}, {2, true, []int{2, 3, 6, 7}}, {1, true, []int{2, 7}}, {1, false, []int{2, 7}}} {
		shorter := leaveOut(plan{}, func() []step { return steps }, c.size, try, always)
		if got := counts(); shorter != c.shorter || !slices.Equal(got, c.left) {
			t.Errorf("without %d steps at a time: %v left, shorter: %t; want %v, %t", c.size, got, shorter, c.left, c.shorter)
		}
	}
	if leaveOut(plan{}, func() []step { return steps }, 1, func(plan, []step) bool { t.Error("a step was left out though the time is over"); return true }, func() bool { return false }) {
		t.Error("the walk became shorter though the time is over")
	}
}

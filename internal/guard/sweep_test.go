package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestSweepTwice checks that nothing must be found twice in a row, whatever was found before, and that errors end it.
func TestSweepTwice(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name  string
		found []int // by one sweep after the other; -1 is an error
		want  error
	}{
		{"nothing", []int{0, 0}, nil},
		{"once", []int{3, 0, 0}, nil},
		{"between two clean ones", []int{0, 1, 0, 0}, nil},
		{"twice", []int{0, 1, 0, 2, 0, 0}, nil},
		{"an error", []int{0, -1}, failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sweeps := 0
				err := SweepTwice(t.Context(), func(context.Context) (int, error) {
					n := c.found[sweeps]
					sweeps++
					if n < 0 {
						return 0, failed
					}
					return n, nil
				})
				if err != c.want || sweeps != len(c.found) {
					t.Errorf("%d sweeps, %v; want %d, %v", sweeps, err, len(c.found), c.want)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := SweepTwice(ctx, func(context.Context) (int, error) { cancel(); return 0, nil }); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

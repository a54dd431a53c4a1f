// Package clock is the source of time of the shipped variants, and of any code that a search or a moved clock is to
// control.
//
// Variants (locks, sales, queues) never call package time directly: they use a [Clock]. On real connections it is
// [Real]; in tests it is a [Virtual] clock, which stands still until it is advanced, so that a lease of 15 seconds ends
// within microseconds and always at the same point of the schedule. In a search it is a clock of package coro, which the
// schedule advances.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time. Readings of one clock never go backwards, unless a fault moves the clock.
	Now() time.Time
	// Sleep waits for d, or until ctx is done, in which case it returns the
	// cause. A sleep of d <= 0 returns at once.
	Sleep(ctx context.Context, d time.Duration) error
	// WithTimeout is like context.WithTimeout, on this clock.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Real is the machine's clock. Its readings have Go's monotonic part, so steps of the wall clock do not affect
// their differences.
type Real struct{}

// Now returns time.Now().
func (Real) Now() time.Time { return time.Now() }

// Sleep waits on a timer.
func (Real) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithTimeout calls context.WithTimeout.
func (Real) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// Shifted is a clock that is ahead of another by a fixed duration, or behind it.
type Shifted struct {
	Clock
	By time.Duration
}

// Now returns the time of the other clock plus By.
func (s Shifted) Now() time.Time { return s.Clock.Now().Add(s.By) }

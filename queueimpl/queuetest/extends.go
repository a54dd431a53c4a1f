package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/internal/phrase"
	"oversell/queueimpl"
	"oversell/variant"
)

// extends is how often a claim is extended, and after what part of its timeout each time.
type extends struct {
	times int
	after float64
}

// extendLasts: an extend that was answered with success holds until the end that it told, whether it came
// early or late, and however many came before it.
func extendLasts(ctx context.Context, b bench) error {
	const hidden = 400 * time.Millisecond
	var mu sync.Mutex
	var first error
	var wg sync.WaitGroup
	for i, e := range []extends{{1, 0.1}, {1, 0.4}, {1, 0.6}, {1, 0.85}, {2, 0.6}, {4, 0.6}, {12, 0.2}} {
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
		try := func() {
			if err := e.hold(ctx, own, hidden); err != nil {
				mu.Lock()
				defer mu.Unlock()
				first = err
			}
		}
		if b.Pass != nil {
			try()
		} else {
			wg.Go(try)
		}
	}
	wg.Wait()
	return first
}

// longExtends extends claims of minutes and hours.
func longExtends(ctx context.Context, b bench) error {
	short := func(b bench) error {
		if err := shortTimes(ctx)(b); err != nil {
			return err
		}
		b.Queue += "-extended"
		return extends{1, 0.5}.hold(ctx, b, 10*visibility)
	}
	return b.OnVirtualClock(short, func(b bench) error {
		for i, hidden := range []time.Duration{queueimpl.DefaultVisibility, 20 * time.Minute, 26 * time.Hour} {
			for j, e := range []extends{{1, 0.01}, {1, 0.4}, {1, 0.6}, {1, 0.95}, {2, 0.6}, {150, 0.3}} {
				own := b
				own.Queue = fmt.Sprintf("%s-%d-%d", b.Queue, i, j)
				if err := e.hold(ctx, own, hidden); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// hold extends the claim of a task, and has another client look for that until it comes.
func (e extends) hold(ctx context.Context, b bench, hidden time.Duration) error {
	lasting := func(o *queueimpl.Options) { o.Visibility = hidden }
	c, other := b.Client(lasting), b.Client(lasting)
	had, err := c.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	t := had[0]
	what := fmt.Sprintf("a claim of %v was extended %s, each time after %.0f %% of that", hidden, phrase.Count(e.times, "time"), 100*e.after)
	for n := range e.times {
		b.Passes(ctx, time.Duration(e.after*float64(hidden)))
		start := c.Env.Clock.Now()
		longer, err := c.Queue.(queueimpl.Extender).Extend(ctx, c.Name, t)
		switch {
		case errors.Is(err, queueimpl.ErrLost) && !b.Before(c, t.Until.Add(-grain)):
			return nil // a machine so busy that the claim is over
		case errors.Is(err, queueimpl.ErrLost):
			return broken(variant.NoDuplicateDelivery, "%s: extend %d answered %q, %v before the claim was to end", what, n+1, err, t.Until.Sub(start))
		case err != nil:
			return broken(theInterface, "%s: extend %d answered %q", what, n+1, err)
		case longer.Until.Before(start.Add(hidden * 9 / 10)):
			return broken(theInterface, "%s: extend %d told an end in %v; it starts the timeout again", what, n+1, longer.Until.Sub(start))
		}
		t = longer
	}
	if b.Pass == nil {
		if _, err := other.ExpectNext(ctx, variant.Progress, "a"); err != nil {
			return fmt.Errorf("%s, and ran out: %w", what, err)
		}
		if err := early(other, t, variant.NoDuplicateDelivery); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	gone := time.Duration(0)
	for _, at := range parts(hidden) {
		b.Pass(at - gone)
		gone = at
		if _, err := other.ExpectTake(ctx, variant.NoDuplicateDelivery, 1); err != nil {
			return fmt.Errorf("%s, and %v after the last time: %w", what, at, err)
		}
	}
	b.Pass(hidden - gone + grain)
	if _, err := other.ExpectNext(ctx, variant.Progress, "a"); err != nil {
		return fmt.Errorf("%s, and ran out: %w", what, err)
	}
	return nil
}

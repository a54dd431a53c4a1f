package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// shortTimes returns a check that a queue works on a virtual clock with short delays and claims.
func shortTimes(ctx context.Context) func(bench) error {
	return func(b bench) error {
		if can[queueimpl.Delayer](b.Variant) {
			if err := delayOf(ctx, b, 20*time.Millisecond); err != nil {
				return err
			}
		}
		if lends(b.Variant) {
			return claimOf(ctx, b, "claimed", visibility)
		}
		return nil
	}
}

// longDelays delays tasks for longer than a test on the real clock can wait.
func longDelays(ctx context.Context, b bench) error {
	return b.OnVirtualClock(shortTimes(ctx), func(b bench) error {
		for _, after := range []time.Duration{1900 * time.Millisecond, 90 * time.Second, 16 * time.Minute, 61*time.Minute + 30*time.Second, 100 * time.Minute, 26 * time.Hour, 40 * 24 * time.Hour, 60 * 24 * time.Hour} {
			if err := delayOf(ctx, b, after); err != nil {
				return fmt.Errorf("with a delay of %v: %w", after, err)
			}
		}
		return nil
	})
}

// parts returns the moments of a long time at which a rule checks that the time has not ended too early.
func parts(of time.Duration) []time.Duration {
	all := []time.Duration{of / 1000, of / 60, of / 4, of / 2, of * 9 / 10, of - of/1000 - time.Millisecond}
	slices.Sort(all)
	return all
}

func delayOf(ctx context.Context, b bench, after time.Duration) error {
	c := b.Client()
	id := fmt.Sprintf("delayed-by-%d-ms", after.Milliseconds())
	in, err := c.EnterAfter(ctx, variant.NotEarly, after, id)
	if err != nil {
		return err
	}
	due := dueIn(c, in[0], after)
	gone := time.Duration(0)
	for _, at := range parts(after) {
		b.Pass(at - gone)
		gone = at
		if _, err := c.ExpectTake(ctx, variant.NotEarly, 1); err != nil {
			return fmt.Errorf("after %v: %w", at, err)
		}
		if err := peeksAhead(ctx, c, after-at); err != nil {
			return fmt.Errorf("after %v: %w", at, err)
		}
	}
	b.Pass(due - gone + grain)
	tasks, err := c.ExpectTake(ctx, variant.Progress, 1, id)
	if err != nil {
		return err
	}
	return c.Done(ctx, tasks...)
}

// peeksAhead expects that a peek shows nothing: the first task is due in some time.
func peeksAhead(ctx context.Context, c *client, in time.Duration) error {
	p, ok := c.Queue.(queueimpl.Peeker)
	if !ok {
		return nil
	}
	shown, err := p.Peek(ctx, c.Name, 5)
	if err != nil {
		return broken(theInterface, "peek of 5 answered %q", err)
	}
	if len(shown) > 0 {
		return broken(variant.NotEarly, "peek of 5 showed %q, which is due in %v; want what is due", idsOf(shown), in)
	}
	return nil
}

// longClaims hides tasks for longer than a test on the real clock can wait.
func longClaims(ctx context.Context, b bench) error {
	return b.OnVirtualClock(shortTimes(ctx), func(b bench) error {
		for _, hidden := range []time.Duration{1900 * time.Millisecond, 90 * time.Second, 16 * time.Minute, 100*time.Minute + 30*time.Second, 26 * time.Hour, 60 * 24 * time.Hour} {
			if err := claimOf(ctx, b, fmt.Sprintf("hidden-for-%d-ms", hidden.Milliseconds()), hidden); err != nil {
				return fmt.Errorf("with a visibility timeout of %v: %w", hidden, err)
			}
		}
		return nil
	})
}

func claimOf(ctx context.Context, b bench, id string, hidden time.Duration) error {
	lasting := func(o *queueimpl.Options) { o.Visibility = hidden }
	c, other := b.Client(lasting), b.Client(lasting)
	if _, err := c.Enter(ctx, theInterface, id); err != nil {
		return err
	}
	if _, err := c.ExpectTake(ctx, theInterface, 1, id); err != nil {
		return err
	}
	gone := time.Duration(0)
	for _, at := range parts(hidden) {
		b.Pass(at - gone)
		gone = at
		if _, err := other.ExpectTake(ctx, variant.NoDuplicateDelivery, 1); err != nil {
			return fmt.Errorf("%v after the beginning of a claim of %v: %w", at, hidden, err)
		}
	}
	b.Pass(hidden - gone + grain)
	tasks, err := other.ExpectTake(ctx, variant.NoLostTask, 1, id)
	if err != nil {
		return fmt.Errorf("after it was over: %w", err)
	}
	b.Pass(hidden * 49 / 50)
	if err := other.Done(ctx, tasks...); err != nil {
		return fmt.Errorf("%v before the end of a claim of %v: %w", hidden/50, hidden, err)
	}
	return nil
}

// manyDeliveries has the claims of one task run out again and again. No limit was asked for.
func manyDeliveries(ctx context.Context, b bench) error {
	const deliveries = 300
	return b.OnVirtualClock(shortTimes(ctx), func(b bench) error {
		c := b.Client(impatient)
		if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
			return err
		}
		start := time.Now()
		var old []queueimpl.Task
		for n := 1; n <= deliveries; n++ {
			tasks, err := c.ExpectTake(ctx, variant.NoLostTask, 1, "a")
			if err != nil {
				var w *suitetest.Breach
				if n > 2 && errors.As(err, &w) {
					return broken(w.Promise, "delivery %d of a task whose claims run out: %w", n, w.How)
				}
				return err
			}
			if n == deliveries || time.Since(start) > patience/2 { // calls may take their time
				if err := stale(ctx, c, old, "the claims of a task ran out, many times"); err != nil {
					return err
				}
				return c.Done(ctx, tasks...)
			}
			old = append(old, tasks...)
			b.Pass(visibility + grain)
		}
		return nil
	})
}

// everythingLasts: what is in a queue stays there until somebody takes it. A journal must last for an hour.
func everythingLasts(ctx context.Context, b bench) error {
	return b.OnVirtualClock(shortTimes(ctx), func(b bench) error {
		first := b
		first.Queue += "-first"
		if err := lasts(ctx, first); err != nil {
			return nil // the emulation does not understand some command
		}
		return lasts(ctx, b, 6*time.Minute, 53*time.Minute, 23*time.Hour, 39*24*time.Hour)
	})
}

// lasts puts one task in each state, and compares what is there after each of some times.
func lasts(ctx context.Context, b bench, times ...time.Duration) error {
	c := b.Client(func(o *queueimpl.Options) { o.Visibility = 100 * 24 * time.Hour })
	letters, keepsDead := c.Queue.(queueimpl.DeadLetters)
	if keepsDead = keepsDead && lends(b.Variant); keepsDead {
		if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
			return err
		}
		if _, _, err := deadOut(ctx, b); err != nil {
			return err
		}
	}
	if d, ok := c.Queue.(queueimpl.Delayer); ok {
		if _, err := d.EnqueueAfter(ctx, c.Name, 99*24*time.Hour, "later"); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
	}
	var took []queueimpl.Task
	var err error
	j, journals := c.Queue.(queueimpl.Journaler)
	if _, err := c.Enter(ctx, theInterface, "taken"); err != nil {
		return err
	}
	if journals {
		took, err = j.PopAs(ctx, c.Name, c.Request(0), 1)
	} else {
		_, err = c.Pop(ctx, c.Name, 1)
	}
	if err != nil {
		return broken(theInterface, "pop answered %q", err)
	}
	if _, err := c.Enter(ctx, theInterface, "waits"); err != nil {
		return err
	}
	was, err := c.State(ctx, c.Name)
	if err != nil {
		return broken(theInterface, "state answered %q", err)
	}
	var gone time.Duration
	for _, d := range append([]time.Duration{0}, times...) {
		b.Pass(d)
		gone += d
		if err := c.ExpectState(ctx, variant.NoLostTask, idsOf(was.Waiting), idsOf(was.Claimed)); err != nil {
			return fmt.Errorf("after %v: %w", gone, err)
		}
		if keepsDead {
			if dead, err := letters.Dead(ctx, c.Name); err != nil || !slices.Equal(idsOf(dead), []string{"a"}) {
				return broken(variant.NoLostTask, "after %v the dead letters are %q (%s); want %q", gone, idsOf(dead), say(err), "a")
			}
		}
		if journals && gone < time.Hour {
			if err := c.Journal(ctx, c.Request(0), took); err != nil {
				return fmt.Errorf("after %v: %w", gone, err)
			}
		}
		if !can[queueimpl.Deduper](b.Variant) {
			continue
		}
		if in, err := c.Enqueue(ctx, c.Name, "waits"); err != nil || len(in) > 0 {
			return broken(variant.OneEntryPerID, "after %v, enqueue of an id that waits entered %q (%s); want that it is ignored", gone, idsOf(in), say(err))
		}
	}
	if _, err := c.ExpectTake(ctx, variant.NoLostTask, 1, "waits"); err != nil {
		return fmt.Errorf("after %v: %w", gone, err)
	}
	return nil
}

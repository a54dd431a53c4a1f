package queuetest

import (
	"context"
	"fmt"
	"time"

	"oversell/internal/interrupt"
	"oversell/internal/phrase"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file have a client die in a call, with its task in each state that a task can be in.

// overwriterDies: a producer dies as it enqueues an id again that waits, is due later, or is claimed.
// The earlier entry is there, or the later one.
func overwriterDies(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for i, state := range []string{"waits", "is not due", "is claimed"} {
			own := b
			own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
			c := own.Client()
			var err error
			switch d, delays := c.Queue.(queueimpl.Delayer); {
			case i == 0:
				_, err = c.Enter(ctx, theInterface, "a")
			case i == 1 && delays:
				_, err = d.EnqueueAfter(ctx, c.Name, time.Hour, "a")
			case i == 2 && lends(b.Variant):
				_, err = c.Given(ctx, theInterface)
			default:
				continue
			}
			if err != nil {
				return err
			}
			doomed, line := own.Interrupted(ctx, overwriting)
			if !line.DiesAt(n, a, func() { _, _ = doomed.Enqueue(ctx, own.Queue, "a") }) {
				continue
			}
			if there, err := c.Found(ctx, "a"); err != nil {
				return err
			} else if !there {
				return broken(variant.NoLostTask, "a producer died as it enqueued an id again, to overwrite an entry that %s, and neither the earlier entry nor the later one is there", state)
			}
		}
		return nil
	})
}

// popperDies: a consumer dies in a pop of one while another task waits that is not due. The pop would
// not have handed out that one.
func popperDies(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for _, due := range []bool{false, true} {
			own := b
			own.Queue = fmt.Sprintf("%s-%t", b.Queue, due)
			c := own.Client()
			if _, err := c.EnterAfter(ctx, theInterface, time.Hour, "later"); err != nil {
				return err
			}
			if due {
				if _, err := c.Enter(ctx, theInterface, "now"); err != nil {
					return err
				}
			}
			doomed, line := own.Interrupted(ctx)
			if !line.DiesAt(n, a, func() { _, _ = doomed.Pop(ctx, own.Queue, 2) }) {
				continue
			}
			if there, err := c.Found(ctx, "later"); err != nil {
				return err
			} else if !there {
				return broken(variant.NoLostTask, "a consumer died in a pop, and a task that is due in an hour is lost")
			}
		}
		return nil
	})
}

// buryingDies: a client dies as it ends the claim of a task that has had all its attempts.
func buryingDies(ctx context.Context, b bench) error {
	last := func(o *queueimpl.Options) { o.MaxAttempts = 1 }
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.Interrupted(ctx, last)
		if _, err := doomed.Given(ctx, theInterface); err != nil {
			return err
		}
		b.Passes(ctx, claim*5/4)
		bury := func() { _, _ = doomed.Pop(ctx, b.Queue, 1) }
		if r, ok := doomed.Queue.(queueimpl.Reclaimer); ok && n%2 == 1 {
			bury = func() { _, _ = r.Reclaim(ctx, b.Queue) }
		}
		if !line.DiesAt(n, a, bury) {
			return nil
		}
		c := b.Client(claims, last)
		for waited := time.Duration(0); ; waited += claim / 5 {
			there, err := c.Found(ctx, "a")
			if there || err != nil {
				return err
			}
			if waited > patienceForClaims {
				return broken(variant.NoLostTask, "a client died as it ended the claim of a task that had had all its attempts: the task does not wait, is not claimed, and is no dead letter")
			}
			if got, err := c.Take(ctx, 1); err != nil || len(got) > 0 {
				return err
			}
			b.Passes(ctx, claim/5)
		}
	})
}

// withdrawerDies: a client dies as it withdraws a task, or extends its claim. The id is still of use.
func withdrawerDies(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		if can[queueimpl.Dequeuer](b.Variant) {
			own := b
			own.Queue += "-dequeue"
			doomed, line := own.Interrupted(ctx)
			in, err := doomed.Enter(ctx, theInterface, "a")
			if err != nil {
				return err
			}
			if line.DiesAt(n, a, func() { _ = doomed.Queue.(queueimpl.Dequeuer).Dequeue(ctx, own.Queue, "a", in[0].Score) }) {
				if err := own.Other().Usable(ctx, "after the death of a client in its dequeue", "a"); err != nil {
					return err
				}
			}
		}
		if !lends(b.Variant) || !can[queueimpl.Extender](b.Variant) {
			return nil
		}
		doomed, line := b.Interrupted(ctx)
		t, err := doomed.Given(ctx, theInterface)
		if err != nil {
			return err
		}
		if !line.DiesAt(n, a, func() { _, _ = doomed.Queue.(queueimpl.Extender).Extend(ctx, b.Queue, t[0]) }) {
			return nil
		}
		return b.Other().ExpectAll(ctx, "after the death of a consumer in its extend", "a")
	})
}

// besideDeadLetters: a pop that puts dead letters aside hands out what waits beside them. ErrEmpty would say that nothing
// is due.
func besideDeadLetters(ctx context.Context, b bench) error {
	for _, letters := range []int{1, 3} {
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, letters)
		c := own.Client(claims, func(o *queueimpl.Options) { o.MaxAttempts = 1 })
		ids := numbered(letters)
		if _, err := c.Enter(ctx, theInterface, ids...); err != nil {
			return err
		}
		had, err := c.ExpectTake(ctx, variant.NoLostTask, letters, ids...)
		if err != nil {
			return err
		}
		for _, t := range had {
			if err := own.Ended(ctx, c, t.Until); err != nil {
				return err
			}
		}
		if _, err := c.Enter(ctx, theInterface, "now"); err != nil {
			return err
		}
		got, err := c.Take(ctx, 1)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return broken(theInterface, "a pop of 1 answered %q; %s had had all attempts, and another one was due", queueimpl.ErrEmpty, phrase.Count(letters, "task"))
		}
	}
	return nil
}

package queuetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/internal/interrupt"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file have a client die in a call, with its task in each possible state.

// found reports whether a task is in the queue: it waits, is claimed, or is a dead letter.
func (c *client) found(ctx context.Context, id string) (bool, error) {
	s, err := c.State(ctx, c.name)
	if err != nil {
		return false, broken(theInterface, "state answered %q", err)
	}
	if slices.Contains(idsOf(s.Waiting), id) || slices.Contains(idsOf(s.Claimed), id) {
		return true, nil
	}
	if d, ok := c.Queue.(queueimpl.DeadLetters); ok {
		dead, err := d.Dead(ctx, c.name)
		return slices.Contains(idsOf(dead), id), err
	}
	return false, nil
}

// overwriterDies: a producer dies as it enqueues an id again that waits, is due later, or is claimed. The earlier entry
// or the later one must be there.
func overwriterDies(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for i, state := range []string{"waits", "is not due", "is claimed"} {
			own := b
			own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
			c := own.client()
			var err error
			switch d, delays := c.Queue.(queueimpl.Delayer); {
			case i == 0:
				_, err = c.enqueue(ctx, theInterface, "a")
			case i == 1 && delays:
				_, err = d.EnqueueAfter(ctx, c.name, time.Hour, "a")
			case i == 2 && lends(b.v):
				_, err = c.given(ctx, theInterface)
			default:
				continue
			}
			if err != nil {
				return err
			}
			doomed, line := own.interrupted(ctx, overwriting)
			if !line.DiesAt(n, a, func() { _, _ = doomed.Enqueue(ctx, own.Queue, "a") }) {
				continue
			}
			if there, err := c.found(ctx, "a"); err != nil {
				return err
			} else if !there {
				return broken(variant.NoLostTask, "a producer died as it enqueued an id again, to overwrite an entry that %s, and neither the earlier entry nor the later one is there", state)
			}
		}
		return nil
	})
}

// popperDies: a consumer dies in a pop of one while another task waits that is not due. The pop must not lose that
// task.
func popperDies(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for _, due := range []bool{false, true} {
			own := b
			own.Queue = fmt.Sprintf("%s-%t", b.Queue, due)
			c := own.client()
			if _, err := c.enqueueAfter(ctx, theInterface, time.Hour, "later"); err != nil {
				return err
			}
			if due {
				if _, err := c.enqueue(ctx, theInterface, "now"); err != nil {
					return err
				}
			}
			doomed, line := own.interrupted(ctx)
			if !line.DiesAt(n, a, func() { _, _ = doomed.Pop(ctx, own.Queue, 2) }) {
				continue
			}
			if there, err := c.found(ctx, "later"); err != nil {
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
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.interrupted(ctx, last)
		if _, err := doomed.given(ctx, theInterface); err != nil {
			return err
		}
		b.passes(ctx, claim*5/4)
		if !line.DiesAt(n, a, func() { doomed.endsClaims(ctx, n) }) {
			return nil
		}
		c := b.client(claims, last)
		for waited := time.Duration(0); ; waited += claim / 5 {
			there, err := c.found(ctx, "a")
			if there || err != nil {
				return err
			}
			if waited > patienceForClaims {
				return broken(variant.NoLostTask, "a client died as it ended the claim of a task that had had all its attempts: the task does not wait, is not claimed, and is no dead letter")
			}
			if got, err := c.pop(ctx, 1); err != nil || len(got) > 0 {
				return err
			}
			b.passes(ctx, claim/5)
		}
	})
}

// withdrawerDies: a client dies as it withdraws a task, or extends its claim. The id is still usable.
func withdrawerDies(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		if can[queueimpl.Dequeuer](b.v) {
			own := b
			own.Queue += "-dequeue"
			doomed, line := own.interrupted(ctx)
			in, err := doomed.enqueue(ctx, theInterface, "a")
			if err != nil {
				return err
			}
			if line.DiesAt(n, a, func() { _ = doomed.Queue.(queueimpl.Dequeuer).Dequeue(ctx, own.Queue, "a", in[0].Score) }) {
				if err := own.other().usable(ctx, "after the death of a client in its dequeue", "a"); err != nil {
					return err
				}
			}
		}
		if !lends(b.v) || !can[queueimpl.Extender](b.v) {
			return nil
		}
		doomed, line := b.interrupted(ctx)
		t, err := doomed.given(ctx, theInterface)
		if err != nil {
			return err
		}
		if !line.DiesAt(n, a, func() { _, _ = doomed.Queue.(queueimpl.Extender).Extend(ctx, b.Queue, t[0]) }) {
			return nil
		}
		return b.other().getsAll(ctx, "after the death of a consumer in its extend", "a")
	})
}

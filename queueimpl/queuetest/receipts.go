package queuetest

import (
	"context"
	"fmt"
	"time"

	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file use old receipts, and look for tasks that no consumer has.

// stale expects ErrLost for the receipts of earlier deliveries of a task that another client has claimed.
func stale(ctx context.Context, c *client, old []queueimpl.Task, what string) error {
	for i, t := range old {
		if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, t); err == nil {
			return broken(variant.NoLostTask, "%s: an ack with the receipt of delivery %d, of %d before the one that somebody has, was answered with success; want %q", what, i+1, len(old), queueimpl.ErrLost)
		}
	}
	if err := c.ExpectState(ctx, variant.NoLostTask, nil, []string{"a"}); err != nil {
		return fmt.Errorf("%s, and the receipts of %d deliveries before the one that somebody has were shown: %w", what, len(old), err)
	}
	return nil
}

// manyReceipts has one id delivered and done again and again: no receipt comes a second time.
func manyReceipts(ctx context.Context, b bench) error {
	c := b.Client()
	n := b.Fits(ctx, 300, 20, 2*time.Second)
	const what = "an id was enqueued again when it was done, many times"
	var old []queueimpl.Task
	by := map[string]queueimpl.Task{} // receipts
	for i := range n {
		had, err := c.Given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		if i == n-1 {
			break
		}
		if earlier, there := by[had[0].Receipt]; there {
			if err := stale(ctx, c, []queueimpl.Task{earlier}, what); err != nil {
				return err
			}
		}
		by[had[0].Receipt] = had[0]
		if err := c.Done(ctx, had...); err != nil {
			return err
		}
		old = append(old, had...)
	}
	return stale(ctx, c, old, what)
}

// oldReceipts shows receipts after a time in which nobody used the queue.
func oldReceipts(ctx context.Context, b bench) error {
	return b.OnVirtualClock(shortTimes(ctx), func(b bench) error {
		for i, gone := range []time.Duration{90 * time.Second, 61 * time.Minute, 25 * time.Hour, 8 * 24 * time.Hour, 40 * 24 * time.Hour} {
			for _, done := range []bool{true, false} {
				own := b
				own.Queue = fmt.Sprintf("%s-%d-%t", b.Queue, i, done)
				c, what := own.Client(), "an id was enqueued again when it was done, %v later"
				if !done {
					c, what = own.Client(impatient), "the claim of a task had run out, and it was delivered again %v later"
				}
				old, err := c.Given(ctx, theInterface)
				if err != nil {
					return err
				}
				if done {
					if err := c.Done(ctx, old...); err != nil {
						return err
					}
				}
				own.Pass(gone)
				c = own.Client(long)
				if done {
					_, err = c.Given(ctx, variant.NoLostTask)
				} else {
					_, err = c.ExpectNext(ctx, variant.NoLostTask, "a")
				}
				if err != nil {
					return err
				}
				if err := stale(ctx, c, old, fmt.Sprintf(what, gone)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// ranOutIsThere: a task whose claim has run out is in the state, or among the dead letters, when nobody has
// popped since.
func ranOutIsThere(ctx context.Context, b bench) error {
	_, dead := b.Client().Queue.(queueimpl.DeadLetters)
	for attempts := range 2 {
		if attempts > 0 && !dead {
			break
		}
		c := b.Client(claims, func(o *queueimpl.Options) { o.MaxAttempts = attempts })
		c.Name = fmt.Sprintf("%s-%d", b.Queue, attempts)
		had, err := c.Given(ctx, theInterface)
		if err != nil {
			return err
		}
		for range 3 { // before its end, after it, and later
			if there, err := c.Found(ctx, "a"); err != nil {
				return err
			} else if !there {
				return broken(variant.NoLostTask, "a consumer has a task until %v, it is %v, and nobody has popped since: the task does not wait, is not claimed, and is no dead letter", had[0].Until, c.Env.Clock.Now())
			}
			b.Passes(ctx, claim*3/4)
		}
	}
	return nil
}

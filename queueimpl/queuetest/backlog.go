package queuetest

import (
	"context"
	"fmt"
	"maps"
	"time"

	"oversell/variant"
)

// The rules in this file have a task come due while others wait, and one more is enqueued for each that is
// taken.

// claimInBacklog: the task of a consumer that died comes back although others wait.
func claimInBacklog(ctx context.Context, b bench) error {
	had, err := b.Client(claims).Given(ctx, theInterface)
	if err != nil {
		return err
	}
	return comesInBacklog(ctx, b.Client(claims), "a", had[0].Until, fmt.Sprintf("the claim of a consumer that died, of %v, was over", claim))
}

// delayedInBacklog: a delayed task comes although others wait.
func delayedInBacklog(ctx context.Context, b bench) error {
	const after = 150 * time.Millisecond
	c := b.Client()
	in, err := c.EnterAfter(ctx, theInterface, after, "later")
	if err != nil {
		return err
	}
	return comesInBacklog(ctx, c, "later", c.Env.Clock.Now().Add(dueIn(c, in[0], after)), fmt.Sprintf("a task with a delay of %v was due", after))
}

// comesInBacklog expects a task that is due at a time. It is late when all tasks that waited a grace after
// that time have been delivered, and many more. In a queue that has no order it may come somewhat later by
// chance; where those that waited do not come either, as on a stack, it is the queue's order that keeps it back.
func comesInBacklog(ctx context.Context, c *client, id string, due time.Time, what string) error {
	b := c.Bench
	n := b.Fits(ctx, 120, 12, time.Second/2)
	waits := map[string]bool{}
	enter := func(id string) error {
		waits[id] = true
		_, err := c.Enter(ctx, variant.NoLostTask, id)
		return err
	}
	for i := range n {
		if err := enter(fmt.Sprint("waits-", i)); err != nil {
			return err
		}
	}
	most := n
	if !keeps(b.Variant, variant.InOrder) {
		most = 8 * n
	}
	var first map[string]bool // those that waited when it was late already
	more := 0
	for start, i := time.Now(), 0; time.Since(start) < longEnough; i++ {
		got, err := c.Take(ctx, 1)
		if err != nil {
			return err
		}
		if err := c.Done(ctx, got...); err != nil {
			return err
		}
		for _, t := range got {
			if t.ID == id {
				return nil
			}
			delete(waits, t.ID)
			delete(first, t.ID)
			if err := enter(fmt.Sprint("new-", i)); err != nil {
				return err
			}
		}
		late := c.Env.Clock.Now().Sub(due)
		if first == nil && late > lateness {
			first = maps.Clone(waits)
		} else if first != nil && len(first) == 0 {
			more += len(got)
		}
		if first == nil || b.Pass != nil || len(got) == 0 {
			b.Passes(ctx, look) // in no hurry yet
		}
		if more <= most || late < 2*lateness {
			continue
		}
		of := variant.Progress
		if there, err := c.Found(ctx, id); err == nil && !there {
			of = variant.NoLostTask
		}
		return broken(of, "%s, and it was not delivered for %v, while a consumer took one task after the other: all that waited %v after that time, and %d that were enqueued later",
			what, late.Round(time.Millisecond), lateness, more)
	}
	return nil // calls take their time
}

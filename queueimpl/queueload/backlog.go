package queueload

import (
	"context"
	"fmt"
	"maps"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// In the rules of this file a task becomes due in a queue with a backlog, which never gets shorter: another task is enqueued
// for each that is popped.

// ClaimInBacklog expects the task of a dead consumer to be delivered again despite a backlog.
func ClaimInBacklog(ctx context.Context, b queueclient.Bench) error {
	had, err := b.Client(queueclient.SetVisibility).Given(ctx, queueclient.TheInterface)
	if err != nil {
		return err
	}
	return comesInBacklog(ctx, b.Client(queueclient.SetVisibility), "a", had[0].Until, fmt.Sprintf("the claim of a consumer that died, of %v, was over", queueclient.Claim))
}

// DelayedInBacklog expects a delayed task to be delivered despite a backlog.
func DelayedInBacklog(ctx context.Context, b queueclient.Bench) error {
	const after = 150 * time.Millisecond
	c := b.Client()
	in, err := c.EnterAfter(ctx, queueclient.TheInterface, after, "later")
	if err != nil {
		return err
	}
	return comesInBacklog(ctx, c, "later", c.Env.Clock.Now().Add(queueclient.DueIn(c, in[0], after)), fmt.Sprintf("a task with a delay of %v was due", after))
}

// SoonerThanSeen has a consumer find only a task that is due later. It must get a task that is enqueued after that and is
// due sooner.
func SoonerThanSeen(ctx context.Context, b queueclient.Bench) error {
	const later, soon = time.Minute, 150 * time.Millisecond
	producer, consumer := b.Client(), b.Client()
	if _, err := producer.EnterAfter(ctx, queueclient.TheInterface, later, "later"); err != nil {
		return err
	}
	for range 3 {
		if _, err := consumer.ExpectTake(ctx, variant.NotEarly, 1); err != nil {
			return err
		}
	}
	for _, after := range []time.Duration{0, soon} {
		id := fmt.Sprint("after-", after)
		if _, err := producer.EnterAfter(ctx, queueclient.TheInterface, after, id); err != nil {
			return err
		}
		got, err := consumer.ExpectNext(ctx, variant.Progress, id)
		if err != nil {
			return fmt.Errorf("a consumer had found only a task that is due in %v; then another one was enqueued, due in %v: %w", later, after, err)
		}
		if err := consumer.Done(ctx, got); err != nil {
			return err
		}
	}
	return nil
}

// comesInBacklog expects delivery of a task that is due at a time. The task is late if all tasks that were waiting a grace
// period after that time have been delivered, and many newer ones. A queue without an order may deliver it somewhat later
// by chance. If the other waiting tasks are not delivered either, as in a stack, the task is not called late.
func comesInBacklog(ctx context.Context, c *queueclient.Client, id string, due time.Time, what string) error {
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
	if !queueclient.Keeps(b.Variant, variant.InOrder) {
		most = 8 * n
	}
	var first map[string]bool // those that waited when it was late already
	more := 0
	for start, i := time.Now(), 0; time.Since(start) < queueclient.LongEnough; i++ {
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
		if first == nil && late > queueclient.Lateness {
			first = maps.Clone(waits)
		} else if first != nil && len(first) == 0 {
			more += len(got)
		}
		if first == nil || b.Pass != nil || len(got) == 0 {
			b.Passes(ctx, queueclient.Look) // in no hurry yet
		}
		if more <= most || late < 2*queueclient.Lateness {
			continue
		}
		of := variant.Progress
		if there, err := c.Found(ctx, id); err == nil && !there {
			of = variant.NoLostTask
		}
		return suitetest.Broken(of, "%s, and it was not delivered for %v, while a consumer took one task after the other: all that waited %v after that time, and %d that were enqueued later",
			what, late.Round(time.Millisecond), queueclient.Lateness, more)
	}
	return nil // calls take their time
}

package queuerules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// oddNames returns names, made from n, that code may misread which uses them as patterns, splits, quotes or cuts them, or ignores
// case.
func oddNames(n string) []string {
	return []string{
		n + "[a]", n + "[^a]", "[" + n + "]", n + "*", n + "?", n + `\`, n + `\*`, n + "%", n + " b", n + "\n", n + "'", n + `"`, n + ",b", n + "|b", n + "/b", n + ".b", n + "#b",
		"é" + n, "\xff" + n, n + strings.Repeat("x", 300), strings.ToUpper(n),
	}
}

// ByName enqueues tasks in several queues with unusual names. In each queue, a task whose claim has run out must be delivered again,
// and a task with a delay must be delivered when it is due.
func ByName(ctx context.Context, b queueclient.Bench) error {
	const delay = queueclient.Claim
	c := b.Client(queueclient.SetVisibility)
	d, delays := c.Queue.(queueimpl.Delayer)
	lends := queueclient.Lends(b.Variant)
	var all []*queueclient.Client
	var late []queueimpl.Task
	for _, name := range b.SomeOf(ctx, oddNames(b.Queue), queueclient.Lateness) {
		in := *c
		in.Name = name
		if _, err := in.Queue.Enqueue(ctx, name, "a"); errors.Is(err, queueimpl.ErrBadCall) {
			continue // it does not take such names
		} else if err != nil {
			return fmt.Errorf("enqueue in the queue %q: %w", name, err)
		}
		if delays {
			entered, err := d.EnqueueAfter(ctx, name, delay, "late")
			if err != nil {
				return fmt.Errorf("enqueue with a delay in the queue %q: %w", name, err)
			}
			late = entered
		}
		if lends {
			if _, err := in.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
				return fmt.Errorf("in the queue %q: %w", name, err)
			}
		}
		all = append(all, &in)
	}
	c.PassesUntilDue(ctx, late, delay)
	for _, in := range all {
		want := []string{"a"}
		if delays {
			want = append(want, "late")
		}
		if err := eachComes(ctx, in, want); err != nil {
			return err
		}
	}
	return nil
}

// eachComes pops until each task has come, and acknowledges it.
func eachComes(ctx context.Context, c *queueclient.Client, left []string) error {
	err := c.Bench.Until(ctx, "the delivery of all tasks", func() (bool, error) {
		got, err := c.Take(ctx, len(left))
		if err != nil {
			return false, err
		}
		ids := queueclient.IDsOf(got)
		left = slices.DeleteFunc(left, func(id string) bool { return slices.Contains(ids, id) })
		return len(left) == 0, c.Done(ctx, got...)
	})
	if never := new(queueclient.Never); errors.As(err, &never) && ctx.Err() == nil {
		return c.Lost(ctx, left, "in the queue %q, %q has not been delivered for %v", c.Name, left, never.After.Round(time.Millisecond))
	}
	return err
}

package queuerules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// Batches pops three tasks at once, and acknowledges only the last one, or extends only its claim, again and again. The claims of
// the other two run out, and another consumer must get these tasks.
func Batches(ctx context.Context, b queueclient.Bench) error {
	for _, extends := range []bool{false, true} {
		if extends && !queueclient.Can[queueimpl.Extender](b.Variant) {
			continue
		}
		own := b
		own.Queue = fmt.Sprintf("%s-%v", b.Queue, extends)
		if err := batch(ctx, own, extends); err != nil {
			return err
		}
	}
	return nil
}

func batch(ctx context.Context, b queueclient.Bench, extends bool) error {
	const lasts = time.Second // enough for a busy machine to extend a claim in time
	lasting := func(o *queueimpl.Options) { o.Visibility = lasts }
	c, other := b.Client(lasting), b.Client(lasting)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a", "b", "c"); err != nil {
		return err
	}
	tasks, err := c.All(ctx, 3, 3)
	if err != nil || len(tasks) < 3 {
		return err // another rule's business
	}
	last, left := tasks[2], queueclient.IDsOf(tasks[:2])
	what := fmt.Sprintf("of three tasks that were popped at once, only %q was extended, again and again", last.ID)
	if !extends {
		what = fmt.Sprintf("of three tasks that were popped at once, only %q was acknowledged", last.ID)
		if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, last); err != nil {
			return nil // on a busy machine the claim may have run out; other errors are another rule's business
		}
	}
	for end := c.Env.Clock.Now().Add(queueclient.Claim + queueclient.PatienceForClaims); ; b.Passes(ctx, 10*queueclient.Look) {
		if extends {
			m, err := c.Queue.(queueimpl.Extender).Extend(ctx, c.Name, last)
			if err != nil {
				return nil // as for the ack
			}
			last = m
		}
		got, err := other.Take(ctx, 3)
		if err != nil {
			return err
		}
		ids := queueclient.IDsOf(got)
		left = slices.DeleteFunc(left, func(id string) bool { return slices.Contains(ids, id) })
		if len(left) == 0 || slices.Contains(ids, last.ID) {
			return nil // all came back, or on a busy machine the claim of the last one ran out, too
		}
		if c.Env.Clock.Now().After(end) {
			return c.Lost(ctx, left, "%s, and %v later %q had not been delivered again", what, lasts+queueclient.PatienceForClaims, left)
		}
	}
}

// Delayed enqueues unusual ids with a delay. Each is delivered unchanged, and its first delivery is attempt 1.
func Delayed(ctx context.Context, b queueclient.Bench) error {
	const delay = queueclient.Claim
	c := b.Client()
	ids, err := b.Accepted(ctx, b.SomeOf(ctx, queueclient.StrangeIDs, queueclient.Lateness))
	if err != nil {
		return err
	}
	in, err := c.EnterAfter(ctx, variant.NoLostTask, delay, ids...)
	if err != nil {
		return err
	}
	c.PassesUntilDue(ctx, in, delay)
	got, err := c.All(ctx, len(ids), len(ids))
	if err != nil {
		return err
	}
	for _, t := range got {
		if t.Attempt > 1 {
			return suitetest.Broken(queueclient.TheInterface, "the first delivery of %.40q, which was enqueued with a delay of %v, is called attempt %d", t.ID, delay, t.Attempt)
		}
	}
	if err := c.Done(ctx, got...); err != nil && !errors.Is(err, queueimpl.ErrLost) {
		return err
	}
	there := queueclient.IDsOf(got)
	if missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(there, id) }); len(missing) > 0 {
		if err := c.ExpectAll(ctx, fmt.Sprintf("%d ids were enqueued with a delay of %v", len(ids), delay), missing...); err != nil {
			return err
		}
	}
	if queueclient.Lends(b.Variant) || queueclient.Can[queueimpl.Deduper](b.Variant) || !queueclient.Keeps(b.Variant, variant.NoDuplicateDelivery) {
		return nil
	}
	return delayedTwice(ctx, b)
}

// delayedTwice enqueues an id twice with a delay, in a queue that keeps several entries with one id.
func delayedTwice(ctx context.Context, b queueclient.Bench) error {
	const delay = queueclient.Claim
	c := b.Client()
	c.Name += "-twice"
	var all []queueimpl.Task
	for range 2 {
		in, err := c.EnterAfter(ctx, queueclient.TheInterface, delay, "a")
		if err != nil {
			return err
		}
		all = append(all, in...)
	}
	c.PassesUntilDue(ctx, all, delay)
	times, err := c.Settled(ctx)
	if err == nil && times["a"] < 2 {
		err = c.Lost(ctx, nil, "an id was enqueued twice with a delay, which entered two tasks, and delivered %d times", times["a"])
	}
	return err
}

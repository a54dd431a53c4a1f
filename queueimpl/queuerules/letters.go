package queuerules

import (
	"context"
	"errors"
	"slices"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
)

// LetterAcked returns a step that delivers the only task of a queue, "a", as often as MaxAttempts allows, calls put,
// which may turn it into a dead letter (see [ByPop], [ByReclaim] and [NotYet]), and then acknowledges the last
// delivery. The step returns the id and the deliveries, or no id if the queue does not accept the ack.
func LetterAcked(put func(context.Context, *queueclient.Client) error) func(context.Context, queueclient.Bench) (string, []queueimpl.Task, error) {
	return func(ctx context.Context, b queueclient.Bench) (string, []queueimpl.Task, error) {
		const attempts = 2
		c := b.Client(queueclient.SetVisibility, func(o *queueimpl.Options) { o.MaxAttempts = attempts })
		var had []queueimpl.Task
		for range attempts {
			t, err := c.ExpectNext(ctx, queueclient.TheInterface, "a")
			if err != nil {
				return "", nil, err
			}
			if err := b.Ended(ctx, c, t.Until); err != nil {
				return "", nil, err
			}
			had = append(had, t)
		}
		if err := put(ctx, c); err != nil {
			return "", nil, err
		}
		switch err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, had[attempts-1]); {
		case errors.Is(err, queueimpl.ErrLost):
			return "", nil, nil // then it stays a dead letter
		case err != nil:
			return "", nil, suitetest.Broken(queueclient.TheInterface, "a late ack of a task that had had all attempts answered %q; want success, or %q", err, queueimpl.ErrLost)
		}
		return "a", had, nil
	}
}

// ByPop has a pop put the dead letter aside.
func ByPop(ctx context.Context, c *queueclient.Client) error {
	return aside(ctx, c, func() error { _, err := c.ExpectTake(ctx, queueclient.TheInterface, 1); return err })
}

// ByReclaim is ByPop with the call Reclaim.
func ByReclaim(ctx context.Context, c *queueclient.Client) error {
	return aside(ctx, c, func() error { _, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name); return err })
}

// NotYet leaves the task where it is.
func NotYet(context.Context, *queueclient.Client) error { return nil }

// aside makes a call until "a" is a dead letter.
func aside(ctx context.Context, c *queueclient.Client, call func() error) error {
	return c.Bench.Until(ctx, "the dead letter", func() (bool, error) {
		if err := call(); err != nil {
			return false, err
		}
		letters, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
		return slices.Contains(queueclient.IDsOf(letters), "a"), err
	})
}

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

// ClaimedAgain enqueues the id of a task that a consumer has claimed. If the queue enters it, it is another task, which must be
// delivered although the first one is acknowledged.
func ClaimedAgain(ctx context.Context, b queueclient.Bench) error {
	const of = queueclient.TheInterface
	c := b.Client()
	if _, err := c.Enter(ctx, of, "a"); err != nil {
		return err
	}
	had, err := c.ExpectTake(ctx, of, 1, "a")
	if err != nil {
		return err
	}
	in, err := c.Enqueue(ctx, c.Name, "a")
	if err != nil {
		return suitetest.Broken(of, "enqueue of the id of a task that a client has answered %q", err)
	}
	if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, had[0]); err != nil && (!errors.Is(err, queueimpl.ErrLost) || len(in) == 0) {
		return suitetest.Broken(of, "ack of a task whose id had been enqueued again answered %q", err)
	}
	if len(in) == 0 {
		return c.Usable(ctx, "after the id of a task was enqueued while a client had it, and the task was done", "a")
	}
	return c.ExpectAll(ctx, "its id was entered again while a client had the task, and that task was done", "a")
}

// RepeatsAmongMany enqueues ids again that wait at the beginning, in the middle and at the end of a long queue.
func RepeatsAmongMany(ctx context.Context, b queueclient.Bench) error {
	const batch = 100
	n := b.Fits(ctx, 3000, 12*batch, 4*time.Second)
	if b.Pass != nil {
		n = min(n, 3*batch) // an emulation takes its time
	}
	c := b.Client()
	ids := make([]string, n/batch*batch)
	for i := range ids {
		ids[i] = fmt.Sprintf("task-%05d", i)
	}
	for all := range slices.Chunk(ids, batch) {
		if _, err := c.Enter(ctx, queueclient.TheInterface, all...); err != nil {
			return err
		}
	}
	for _, i := range []int{0, len(ids) / 2, len(ids) - 1} {
		in, err := c.Enqueue(ctx, c.Name, ids[i])
		if err != nil {
			return suitetest.Broken(queueclient.TheInterface, "enqueue of an id that waits among %d answered %q", len(ids), err)
		}
		if len(in) > 0 {
			return suitetest.Broken(variant.OneEntryPerID, "%q was entered again while it waited as number %d of %d", ids[i], i+1, len(ids))
		}
	}
	return nil
}

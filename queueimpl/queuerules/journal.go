package queuerules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// IDsInJournal enqueues unusual ids and pops them under requests. The journal returns them unchanged.
func IDsInJournal(ctx context.Context, b queueclient.Bench) error {
	c := b.Client()
	j := c.Queue.(queueimpl.Journaler)
	ids, err := b.Accepted(ctx, b.SomeOf(ctx, queueclient.StrangeIDs, time.Second))
	if err != nil {
		return err
	}
	for i, id := range ids {
		request := c.Request(i)
		if _, err := c.Enter(ctx, variant.NoLostTask, id); err != nil {
			return err
		}
		for range 2 {
			got, err := j.PopAs(ctx, c.Name, request, 1)
			if err != nil || len(got) != 1 || got[0].ID != id {
				return suitetest.Broken(variant.NoLostTask, "a pop under a request, sent twice, answered %q (%s); the queue held %q", queueclient.IDsOf(got), queueclient.Say(err), id)
			}
			if took, err := j.Popped(ctx, c.Name, request); err != nil || !slices.EqualFunc(took, got, queueclient.Same) {
				return suitetest.Broken(variant.NoLostTask, "the journal says that a request took %q (%s); it took %q", queueclient.IDsOf(took), queueclient.Say(err), id)
			}
		}
	}
	return nil
}

// RequestAgain sends a request three times, while a second task waits.
func RequestAgain(ctx context.Context, b queueclient.Bench) error {
	c := b.Client()
	j := c.Queue.(queueimpl.Journaler)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a", "b"); err != nil {
		return err
	}
	var first []queueimpl.Task
	for try := range 3 {
		got, err := j.PopAs(ctx, c.Name, c.Request(0), 1)
		if err != nil {
			return suitetest.Broken(queueclient.TheInterface, "pop under a request answered %q", err)
		}
		if try == 0 {
			first = got
		}
		if len(got) != 1 || !slices.EqualFunc(got, first, queueclient.Same) {
			return suitetest.Broken(queueclient.TheInterface, "the request took %+v, and sent again %+v", first, got)
		}
	}
	_, err := c.ExpectTake(ctx, queueclient.TheInterface, 2, "b")
	return err
}

// RequestAfterAck sends a request again when its task is acknowledged. It must get the same task, and take no other.
func RequestAfterAck(ctx context.Context, b queueclient.Bench) error {
	const of = queueclient.TheInterface
	c := b.Client(long)
	j := c.Queue.(queueimpl.Journaler)
	if _, err := c.Enter(ctx, of, "a", "b"); err != nil {
		return err
	}
	first, err := j.PopAs(ctx, c.Name, c.Request(0), 1)
	if err != nil || len(first) != 1 {
		return suitetest.Broken(of, "pop of 1 under a request, of 2 tasks, answered %q and %s", queueclient.IDsOf(first), queueclient.Say(err))
	}
	if err := c.Done(ctx, first...); err != nil {
		return err
	}
	if err := c.Journal(ctx, c.Request(0), first); err != nil {
		return fmt.Errorf("after the task of a request was done: %w", err)
	}
	again, err := j.PopAs(ctx, c.Name, c.Request(0), 1)
	if err != nil || !slices.EqualFunc(again, first, queueclient.Same) {
		return suitetest.Broken(of, "a request took %+v and, sent again after the ack, %+v, and answered %s", first, again, queueclient.Say(err))
	}
	left := "b"
	if first[0].ID == "b" {
		left = "a"
	}
	return c.ExpectState(ctx, of, []string{left}, nil)
}

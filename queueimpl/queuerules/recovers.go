package queuerules

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
)

// Recovers has calls of a client fail, or end early. Afterwards the client enqueues and pops like any other: nothing that it remembers
// of those calls keeps it from that, and no late answer is taken for that to another call.
func Recovers(ctx context.Context, b queueclient.Bench) error {
	for i, t := range interrupt.Troubles {
		for n, call := range []string{"enqueue", "pop", "ack"} {
			if call == "ack" && !queueclient.Lends(b.Variant) {
				continue
			}
			own := b
			own.Queue = fmt.Sprintf("%s-%d-%d", b.Queue, i, n)
			if err := recovers(ctx, own, t, call); err != nil {
				return err
			}
		}
	}
	return nil
}

func recovers(ctx context.Context, b queueclient.Bench, t interrupt.Trouble, call string) error {
	c, line := b.Interrupted(ctx, long)
	if t.First { // a client that has made no call
		c.Queue = b.Variant.New(c.Env, queueimpl.Options{})
	}
	other := b.Client(long)
	if _, err := other.Enter(ctx, queueclient.TheInterface, "a", "b", "c"); err != nil {
		return err
	}
	var had []queueimpl.Task
	if call == "ack" {
		var err error
		if had, err = other.Take(ctx, 1); err != nil || len(had) == 0 {
			return err
		}
	}
	made := 0
	b.Calls("%s, %s", call, t.What)
	met := t.Makes(ctx, line, rand.IntN, func(ctx context.Context) {
		switch made++; call {
		case "enqueue":
			_, _ = c.Queue.Enqueue(ctx, c.Name, fmt.Sprint("x", made))
		case "pop":
			_, _ = c.Queue.Pop(ctx, c.Name, 1)
		case "ack":
			_ = c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, had[0])
		}
	})
	if !met {
		return nil // the call sends no command
	}
	what := fmt.Sprintf("a client made calls of %s, %s", call, t.What)
	done, err := drained(ctx, other)
	if err != nil {
		return err
	}
	if got, err := c.Queue.Pop(ctx, c.Name, 1); err == nil && len(got) > 0 && slices.Contains(done, got[0].ID) {
		return suitetest.Broken(queueclient.TheInterface, "%s; then another client took and finished all tasks, among them %q, and a pop by the first client returned that", what, got[0].ID)
	}
	entered := errors.New("not tried")
	if err := b.Until(ctx, "success of an enqueue, after "+what, func() (bool, error) {
		_, entered = c.Queue.Enqueue(ctx, c.Name, "mine")
		return entered == nil, nil
	}); err != nil {
		return suitetest.Broken(b.Waiting(), "%s; then its enqueues fail, the last one with %v, and those of another client do not: %w", what, entered, err)
	}
	if _, err := other.Enter(ctx, queueclient.TheInterface, "yours"); err != nil {
		return err
	}
	var popped error
	if err := b.Until(ctx, "a task, popped after "+what, func() (bool, error) {
		var got []queueimpl.Task
		got, popped = c.Queue.Pop(ctx, c.Name, 1)
		return popped == nil && len(got) > 0, nil
	}); err != nil {
		return suitetest.Broken(b.Waiting(), "%s; then two tasks wait, and its pops return none, the last one with %v: %w", what, popped, err)
	}
	return nil
}

// drained takes and finishes all tasks that wait, and returns their ids.
func drained(ctx context.Context, c *queueclient.Client) (done []string, err error) {
	const most = 1000
	for len(done) < most {
		got, err := c.Take(ctx, 10)
		if err != nil || len(got) == 0 {
			return done, err
		}
		if err := c.Done(ctx, got...); err != nil {
			return done, err
		}
		done = append(done, queueclient.IDsOf(got)...)
	}
	return done, nil
}

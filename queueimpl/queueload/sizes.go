// Package queueload holds the rules of package queuetest that put many tasks into a queue. They look for size limits, and
// for tasks that are delivered late because of a backlog.
package queueload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// entersMany enqueues up to most tasks in batches, fewer if calls are slow. It returns the size of a batch and the number of
// tasks. order is told of each batch.
func entersMany(ctx context.Context, c *queueclient.Client, most int, order *queueclient.Order) (batch, n int, _ error) {
	const toEnter = 3500 * time.Millisecond
	b := c.Bench
	batch = b.Fits(ctx, 1000, 10, time.Second)
	for start := time.Now(); n < most && time.Since(start) < toEnter && (b.Pass == nil || n == 0); n += batch {
		if in, err := c.Enqueue(ctx, c.Name, queueclient.Numbered(n + batch)[n:]...); timedOut(err) {
			return batch, n, &suitetest.TooSlow{Why: fmt.Sprintf("enqueue of %d tasks answered %q", batch, err)}
		} else if err != nil || len(in) != batch {
			return batch, n, suitetest.Broken(variant.NoLostTask, "enqueue of %d tasks entered %d of them and answered %s, with %d in the queue", batch, len(in), queueclient.Say(err), n)
		} else {
			order.Entered(in)
		}
	}
	return batch, n, nil
}

// TenThousand pops ten thousand tasks in one call. A queue may deliver fewer, or refuse the call.
func TenThousand(ctx context.Context, b queueclient.Bench) error { return inOnePop(ctx, b, 10_000) }

// FiveThousand is TenThousand with half as many: a script that passes the ids to a command by unpack may do so twice, and with
// ten thousand fail at the first, before it has changed anything.
func FiveThousand(ctx context.Context, b queueclient.Bench) error { return inOnePop(ctx, b, 5_000) }

func inOnePop(ctx context.Context, b queueclient.Bench, most int) error {
	c := b.Client()
	_, n, err := entersMany(ctx, c, most, &queueclient.Order{})
	if err != nil {
		return err
	}
	got, err := c.Pop(ctx, c.Name, n)
	of := variant.NoLostTask
	if queueclient.Keeps(b.Variant, variant.Progress) {
		of = variant.Progress
	}
	switch {
	case timedOut(err):
		return &suitetest.TooSlow{Why: fmt.Sprintf("pop of %d tasks answered %q", n, err)}
	case errors.Is(err, queueimpl.ErrBadCall):
		return nil
	case err != nil:
		if s, e := c.State(ctx, c.Name); e == nil && len(s.Waiting)+len(s.Claimed) < n {
			return suitetest.Broken(variant.NoLostTask, "pop of %d tasks, which were all due, answered %q, and the state has %d of them", n, err, len(s.Waiting)+len(s.Claimed))
		}
		return suitetest.Broken(of, "pop of %d tasks, which were all due, answered %q", n, err)
	}
	seen := map[string]bool{}
	for _, t := range got {
		if seen[t.ID] {
			return suitetest.Broken(variant.NoDuplicateDelivery, "a pop of %d tasks delivered %q twice", n, t.ID)
		}
		seen[t.ID] = true
	}
	if queueclient.Keeps(b.Variant, variant.InOrder) {
		return queueclient.Sorted(got)
	}
	return nil
}

// AllInOneCall enqueues more tasks in one call than unpack accepts in a Lua script. A queue may refuse the call, but must
// then accept the same tasks in smaller calls.
func AllInOneCall(ctx context.Context, b queueclient.Bench) error {
	const all, smaller, least = 9000, 500, 200
	if b.Fits(ctx, least, 1, time.Second) < least {
		return nil // calls are slow
	}
	c := b.Client()
	ids := queueclient.Numbered(all)
	if in, err := c.Enqueue(ctx, c.Name, ids...); timedOut(err) {
		return &suitetest.TooSlow{Why: fmt.Sprintf("enqueue of %d tasks answered %q", all, err)}
	} else if err == nil && len(in) != all {
		return suitetest.Broken(queueclient.TheInterface, "enqueue of %d new ids said that it entered %d of them", all, len(in))
	} else if err != nil {
		for some := range slices.Chunk(ids, smaller) {
			if _, again := c.Enqueue(ctx, c.Name, some...); errors.Is(again, queueimpl.ErrBadCall) {
				return nil // it takes even fewer
			} else if again != nil {
				return suitetest.Broken(variant.NoLostTask, "enqueue of %d tasks answered %q; then enqueue of %d of them answered %q", all, err, smaller, again)
			}
		}
	}
	s, err := c.State(ctx, c.Name)
	switch {
	case timedOut(err):
		return &suitetest.TooSlow{Why: fmt.Sprintf("state of %d tasks answered %q", all, err)}
	case err != nil || len(s.Waiting) < all:
		return suitetest.Broken(variant.NoLostTask, "%d tasks were enqueued, at first in one call, and %d of them wait; state answered %s", all, len(s.Waiting), queueclient.Say(err))
	}
	return nil
}

// TwentyThousand enqueues and pops twenty thousand tasks, fewer if calls are slow, and lets their claims run out if the
// queue has claims.
func TwentyThousand(ctx context.Context, b queueclient.Bench) error {
	const lasting, toTake = 4 * time.Second, 2500 * time.Millisecond
	c := b.Client(func(o *queueimpl.Options) { o.Visibility = lasting })
	var order queueclient.Order
	batch, n, err := entersMany(ctx, c, 20_000, &order)
	if err != nil {
		return err
	}
	holds := func(want int, when string) error {
		s, err := c.State(ctx, c.Name)
		if timedOut(err) {
			return &suitetest.TooSlow{Why: fmt.Sprintf("state of %d tasks answered %q", want, err)}
		} else if all := len(s.Waiting) + len(s.Claimed); err != nil || all != want {
			return suitetest.Broken(variant.NoLostTask, "%d tasks were enqueued, and %s the state has %d and answers %s", n, when, all, queueclient.Say(err))
		}
		return nil
	}
	if err := holds(n, "before any pop"); err != nil {
		return err
	}
	taken := map[string]bool{}
	for start := time.Now(); len(taken) < n && time.Since(start) < toTake; {
		got, err := c.Pop(ctx, c.Name, batch)
		if timedOut(err) {
			return &suitetest.TooSlow{Why: fmt.Sprintf("pop of %d tasks answered %q", batch, err)}
		} else if err != nil && !errors.Is(err, queueimpl.ErrEmpty) {
			return suitetest.Broken(queueclient.TheInterface, "pop of %d, of %d tasks, answered %q", batch, n, err)
		}
		if err := order.Next(b, got); err != nil {
			return err
		}
		for _, t := range got {
			taken[t.ID] = true
		}
		if len(got) == 0 {
			return c.Lost(ctx, nil, "of %d tasks, %d were delivered", n, len(taken))
		}
	}
	if !queueclient.Can[queueimpl.Acker](b.Variant) {
		return holds(n-len(taken), fmt.Sprintf("after %d were taken", len(taken)))
	}
	if !queueclient.Lends(b.Variant) {
		return nil
	}
	b.Passes(ctx, lasting+queueclient.Grain)
	if err := b.Until(ctx, "the return of a task", func() (bool, error) {
		got, err := c.Pop(ctx, c.Name, 1)
		if err != nil && !timedOut(err) && !errors.Is(err, queueimpl.ErrEmpty) {
			return false, suitetest.Broken(variant.NoLostTask, "%d claims had run out, and no task came back: pop of 1 answered %q", len(taken), err)
		}
		return len(got) > 0, nil
	}); err != nil {
		return err
	}
	return holds(n, fmt.Sprintf("after %d claims had run out", len(taken)))
}

// timedOut reports whether a call failed with a network timeout. Its outcome is then unknown.
func timedOut(err error) bool {
	n := net.Error(nil)
	return errors.As(err, &n) && n.Timeout()
}

// ManyRequests makes many pops under request ids, and expects the journal to hold each of them.
func ManyRequests(ctx context.Context, b queueclient.Bench) error {
	c := b.Client()
	j := c.Queue.(queueimpl.Journaler)
	n := b.Fits(ctx, 400, 120, queueclient.Patience/2)
	var took [][]queueimpl.Task
	for i := range n {
		if _, err := c.Enter(ctx, queueclient.TheInterface, fmt.Sprint("task-", i)); err != nil {
			return err
		}
		got, err := j.PopAs(ctx, c.Name, c.Request(i), 1)
		if err != nil {
			return suitetest.Broken(queueclient.TheInterface, "pop under a request answered %q", err)
		}
		took = append(took, got)
	}
	for i := range n {
		if err := c.Journal(ctx, c.Request(i), took[i]); err != nil {
			return fmt.Errorf("after %d requests: %w", n, err)
		}
	}
	return nil
}

// LongIDs enqueues ids of up to a megabyte that differ only in the last character.
func LongIDs(ctx context.Context, b queueclient.Bench) error {
	c := b.Client()
	for _, size := range []int{300, 70_000, 1 << 20} {
		for _, end := range []string{"a", "b"} {
			id := strings.Repeat("x", size-1) + end
			in, err := c.Enqueue(ctx, c.Name, id)
			if errors.Is(err, queueimpl.ErrBadCall) {
				return nil // it may refuse long ones
			}
			if err != nil || len(in) != 1 || in[0].ID != id {
				return suitetest.Broken(variant.NoLostTask, "enqueue of an id of %d bytes entered %d tasks, and answered %s; a queue may refuse a long id by %q", size, len(in), queueclient.Say(err), queueimpl.ErrBadCall)
			}
			if end == "a" {
				continue
			}
			tasks, err := c.All(ctx, 2, 2)
			if err != nil {
				return err
			}
			if len(tasks) != 2 || len(tasks[0].ID) != size || len(tasks[1].ID) != size || tasks[0].ID == tasks[1].ID {
				return suitetest.Broken(variant.NoLostTask, "two ids of %d bytes were enqueued that differ in the last one, and they were not delivered as they were", size)
			}
			if err := c.Done(ctx, tasks...); err != nil {
				return err
			}
		}
	}
	return nil
}

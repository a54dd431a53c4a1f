package queuetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"oversell/queueimpl"
	"oversell/variant"
)

// entersMany enters so many tasks, or fewer where calls take their time, and tells how many in one call and
// in all.
func entersMany(ctx context.Context, c *client, most int) (batch, n int, _ error) {
	const toEnter = 3500 * time.Millisecond
	b := c.Bench
	batch = b.Fits(ctx, 1000, 10, time.Second)
	for start := time.Now(); n < most && time.Since(start) < toEnter && (b.Pass == nil || n == 0); n += batch {
		if in, err := c.Enqueue(ctx, c.Name, numbered(n + batch)[n:]...); timedOut(err) {
			return batch, n, &tooSlow{Why: fmt.Sprintf("enqueue of %d tasks answered %q", batch, err)}
		} else if err != nil || len(in) != batch {
			return batch, n, broken(variant.NoLostTask, "enqueue of %d tasks entered %d of them and answered %s, with %d in the queue", batch, len(in), say(err), n)
		}
	}
	return batch, n, nil
}

// tenThousand are asked for in one pop: a queue may hand out fewer, or refuse so many.
func tenThousand(ctx context.Context, b bench) error {
	c := b.Client()
	_, n, err := entersMany(ctx, c, 10_000)
	if err != nil {
		return err
	}
	got, err := c.Pop(ctx, c.Name, n)
	of := variant.NoLostTask
	if keeps(b.Variant, variant.Progress) {
		of = variant.Progress
	}
	switch {
	case timedOut(err):
		return &tooSlow{Why: fmt.Sprintf("pop of %d tasks answered %q", n, err)}
	case errors.Is(err, queueimpl.ErrBadCall):
		return nil
	case err != nil:
		return broken(of, "pop of %d tasks, which were all due, answered %q", n, err)
	}
	seen := map[string]bool{}
	for _, t := range got {
		if seen[t.ID] {
			return broken(variant.NoDuplicateDelivery, "a pop of %d tasks delivered %q twice", n, t.ID)
		}
		seen[t.ID] = true
	}
	if keeps(b.Variant, variant.InOrder) {
		return sorted(got)
	}
	return nil
}

// twentyThousand are entered and taken, and, where tasks are lent, have their claims run out. Where calls
// take their time they are fewer.
func twentyThousand(ctx context.Context, b bench) error {
	const lasting, toTake = 4 * time.Second, 2500 * time.Millisecond
	c := b.Client(func(o *queueimpl.Options) { o.Visibility = lasting })
	batch, n, err := entersMany(ctx, c, 20_000)
	if err != nil {
		return err
	}
	holds := func(want int, when string) error {
		s, err := c.State(ctx, c.Name)
		if timedOut(err) {
			return &tooSlow{Why: fmt.Sprintf("state of %d tasks answered %q", want, err)}
		} else if all := len(s.Waiting) + len(s.Claimed); err != nil || all != want {
			return broken(variant.NoLostTask, "%d tasks were enqueued, and %s the state has %d and answers %s", n, when, all, say(err))
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
			return &tooSlow{Why: fmt.Sprintf("pop of %d tasks answered %q", batch, err)}
		} else if err != nil && !errors.Is(err, queueimpl.ErrEmpty) {
			return broken(theInterface, "pop of %d, of %d tasks, answered %q", batch, n, err)
		}
		for _, t := range got {
			taken[t.ID] = true
		}
		if len(got) == 0 {
			return c.Lost(ctx, nil, "of %d tasks, %d were delivered", n, len(taken))
		}
	}
	if !can[queueimpl.Acker](b.Variant) {
		return holds(n-len(taken), fmt.Sprintf("after %d were taken", len(taken)))
	}
	if !lends(b.Variant) {
		return nil
	}
	b.Passes(ctx, lasting+grain)
	if err := b.Until(ctx, "the return of a task", func() (bool, error) {
		got, err := c.Pop(ctx, c.Name, 1)
		if err != nil && !timedOut(err) && !errors.Is(err, queueimpl.ErrEmpty) {
			return false, broken(variant.NoLostTask, "%d claims had run out, and no task came back: pop of 1 answered %q", len(taken), err)
		}
		return len(got) > 0, nil
	}); err != nil {
		return err
	}
	return holds(n, fmt.Sprintf("after %d claims had run out", len(taken)))
}

// timedOut reports whether a call ran into the client's time-out, which leaves it open what it did.
func timedOut(err error) bool {
	n := net.Error(nil)
	return errors.As(err, &n) && n.Timeout()
}

// manyRequests are all in the journal.
func manyRequests(ctx context.Context, b bench) error {
	c := b.Client()
	j := c.Queue.(queueimpl.Journaler)
	n := b.Fits(ctx, 400, 120, patience/2)
	var took [][]queueimpl.Task
	for i := range n {
		if _, err := c.Enter(ctx, theInterface, fmt.Sprint("task-", i)); err != nil {
			return err
		}
		got, err := j.PopAs(ctx, c.Name, fmt.Sprint("request-", i), 1)
		if err != nil {
			return broken(theInterface, "pop under a request answered %q", err)
		}
		took = append(took, got)
	}
	for i := range n {
		if err := c.Journal(ctx, fmt.Sprint("request-", i), took[i]); err != nil {
			return fmt.Errorf("after %d requests: %w", n, err)
		}
	}
	return nil
}

// longIDs are ids of up to a megabyte, of which each two differ in the last character.
func longIDs(ctx context.Context, b bench) error {
	c := b.Client()
	for _, size := range []int{300, 70_000, 1 << 20} {
		for _, end := range []string{"a", "b"} {
			id := strings.Repeat("x", size-1) + end
			in, err := c.Enqueue(ctx, c.Name, id)
			if errors.Is(err, queueimpl.ErrBadCall) {
				return nil // it may refuse long ones
			}
			if err != nil || len(in) != 1 || in[0].ID != id {
				return broken(variant.NoLostTask, "enqueue of an id of %d bytes entered %d tasks, and answered %s; a queue may refuse a long id by %q", size, len(in), say(err), queueimpl.ErrBadCall)
			}
			if end == "a" {
				continue
			}
			tasks, err := c.All(ctx, 2, 2)
			if err != nil {
				return err
			}
			if len(tasks) != 2 || len(tasks[0].ID) != size || len(tasks[1].ID) != size || tasks[0].ID == tasks[1].ID {
				return broken(variant.NoLostTask, "two ids of %d bytes were enqueued that differ in the last one, and they were not delivered as they were", size)
			}
			if err := c.Done(ctx, tasks...); err != nil {
				return err
			}
		}
	}
	return nil
}

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

// tenThousand are asked for by one call, where calls are quick: a queue may hand out fewer, or refuse so many.
const tenThousand = 10_000

// takesMany pops so many at once, and tells what it got.
func takesMany(ctx context.Context, c *client, of, count int) ([]queueimpl.Task, error) {
	got, err := c.Pop(ctx, c.Name, count)
	switch {
	case timedOut(err):
		return nil, &tooSlow{Why: fmt.Sprintf("pop of %d tasks answered %q", count, err)}
	case errors.Is(err, queueimpl.ErrEmpty), count == tenThousand && errors.Is(err, queueimpl.ErrBadCall):
		return nil, nil
	case err != nil && keeps(c.Bench.Variant, variant.Progress):
		return nil, broken(variant.Progress, "pop of %d, of %d tasks, answered %q", count, of, err)
	case err != nil:
		return nil, broken(theInterface, "pop of %d, of %d tasks, answered %q", count, of, err)
	}
	return got, nil
}

// twentyThousand are entered and taken, and, where tasks are lent, have their claims run out. Where calls
// take their time they are fewer.
func twentyThousand(ctx context.Context, b bench) error {
	const most, lasting, toEnter, toTake = 20_000, 4 * time.Second, 3500 * time.Millisecond, 2500 * time.Millisecond
	batch, n := b.Fits(ctx, 1000, 10, time.Second), 0
	c := b.Client(func(o *queueimpl.Options) { o.Visibility = lasting })
	for start := time.Now(); n < most && time.Since(start) < toEnter && (b.Pass == nil || n == 0); n += batch {
		ids := numbered(n + batch)[n:]
		if in, err := c.Enqueue(ctx, c.Name, ids...); timedOut(err) {
			return &tooSlow{Why: fmt.Sprintf("enqueue of %d tasks answered %q", batch, err)}
		} else if err != nil || len(in) != batch {
			return broken(variant.NoLostTask, "enqueue of %d tasks entered %d of them and answered %s, with %d in the queue", batch, len(in), say(err), n)
		}
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
	count := batch
	if n > tenThousand && !lends(b.Variant) {
		count = tenThousand
	}
	for start := time.Now(); len(taken) < n && time.Since(start) < toTake; {
		got, err := takesMany(ctx, c, n, count)
		if err != nil {
			return err
		}
		for _, t := range got {
			taken[t.ID] = true
		}
		if refused := len(got) == 0 && count > batch; !refused && len(got) == 0 {
			return c.Lost(ctx, nil, "of %d tasks, %d were delivered", n, len(taken))
		}
		count = batch
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
	if err := holds(n, fmt.Sprintf("after %d claims had run out", len(taken))); err != nil || n <= tenThousand {
		return err
	}
	_, err := takesMany(ctx, c, n, tenThousand)
	return err
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

// Package queuerules holds rules of package queuetest about calls in an order that few clients make: a pop is held up while its
// task is taken and enqueued again, or while tasks move; a task is withdrawn months before it is due; dead letters become old. It also has
// random walks, whose answers are compared with a model of the contract ([RandomWalks]).
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

// long is a visibility timeout that does not run out within a rule.
func long(o *queueimpl.Options) { o.Visibility = 0 }

// Rescheduled holds up a pop while another client takes the task, finishes it, and enqueues its id again, to be due in an
// hour. The pop must neither deliver nor remove the later entry.
func Rescheduled(ctx context.Context, b queueclient.Bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b queueclient.Bench, n int) error {
		slow, line := b.Interrupted(ctx, long)
		c := b.Client(long)
		if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
			return err
		}
		var mine []queueimpl.Task
		s := line.Stalled(ctx, n, func() { mine, _ = slow.Pop(ctx, b.Queue, 1) })
		if s == nil {
			return nil
		}
		again, err := postponed(ctx, c)
		s.GoOn()
		if err != nil || !again {
			return err
		}
		if len(mine) > 0 {
			return suitetest.Broken(variant.NotEarly, "a pop was held up before command %d while its task was taken by another client, and its id enqueued again, to be due in an hour: then the pop delivered it", n)
		}
		if err := c.ExpectState(ctx, variant.NoLostTask, []string{"a"}, nil); err != nil {
			return fmt.Errorf("a pop was held up before command %d while its task was taken by another client, and its id enqueued again, to be due in an hour: %w", n, err)
		}
		return nil
	})
}

// postponed takes the task, finishes it, and enqueues its id again with a delay. It reports false if another has the task.
func postponed(ctx context.Context, c *queueclient.Client) (bool, error) {
	got, err := c.Take(ctx, 1)
	if err != nil || len(got) == 0 {
		return false, err
	}
	if err := c.Done(ctx, got...); err != nil {
		return false, err
	}
	_, err = c.EnterAfter(ctx, queueclient.TheInterface, time.Hour, got[0].ID)
	return err == nil, err
}

// Moving stops a pop while another client enqueues tasks and takes one task after each of them, so that a task is due
// at every moment. The pop must not return ErrEmpty. If a pop searches the parts of a queue one after the other, the
// ids decide whether the task moves to a part that the pop has already searched, so there are several tries.
func Moving(ctx context.Context, b queueclient.Bench) error {
	const tries = 6
	return b.Stalls(ctx, func(ctx context.Context, b queueclient.Bench, n int) error {
		for try := range tries {
			own := b
			own.Queue = fmt.Sprintf("%s-%d", b.Queue, try)
			if err := moving(ctx, own, n, try); err != nil {
				return err
			}
		}
		return nil
	})
}

// moving is one try of Moving. The number of the try makes ids of its own.
func moving(ctx context.Context, b queueclient.Bench, n, try int) error {
	const moves = 4
	slow, line := b.Interrupted(ctx, long)
	c := b.Client(long)
	if _, err := c.Enter(ctx, queueclient.TheInterface, fmt.Sprintf("task-%d", try)); err != nil {
		return err
	}
	var mine []queueimpl.Task
	err := errors.New("the call has not returned")
	s := line.Stalled(ctx, n, func() { mine, err = slow.Pop(ctx, b.Queue, 1) })
	if s == nil {
		return nil
	}
	e := func() error {
		for i := range moves {
			if _, err := c.Enter(ctx, queueclient.TheInterface, fmt.Sprintf("moved-%d-%d", try, i)); err != nil {
				return err
			}
			got, err := c.Take(ctx, 1)
			if err != nil {
				return err
			}
			if err := c.Done(ctx, got...); err != nil {
				return err
			}
		}
		return nil
	}()
	s.GoOn()
	if e != nil || len(mine) > 0 || !errors.Is(err, queueimpl.ErrEmpty) {
		return e
	}
	if left, err := c.Take(ctx, 1); err != nil || len(left) == 0 {
		return err // that a task is lost is another rule's business
	}
	return suitetest.Broken(variant.Linearizable, "a pop that was held up before command %d answered %q: other calls had enqueued %d tasks meanwhile, each before they took one, so that a task was due all the time", n, queueimpl.ErrEmpty, moves)
}

// Withdrawn withdraws tasks hours and months before they are due. They are gone for good.
func Withdrawn(ctx context.Context, b queueclient.Bench) error {
	return b.OnVirtualClock(func(b queueclient.Bench) error { return withdrawn(ctx, b, time.Second) }, func(b queueclient.Bench) error {
		for _, after := range []time.Duration{90 * time.Minute, 49 * time.Hour, 40 * day, 400 * day} {
			if err := withdrawn(ctx, b, after); err != nil {
				return err
			}
		}
		return nil
	})
}

const day = 24 * time.Hour

// withdrawn withdraws a task that is due after a time, which passes.
func withdrawn(ctx context.Context, b queueclient.Bench, after time.Duration) error {
	c := b.Client()
	id := "withdrawn-" + after.String()
	in, err := c.EnterAfter(ctx, queueclient.TheInterface, after, id)
	if err != nil {
		return err
	}
	due := queueclient.DueIn(c, in[0], after)
	if err := c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, c.Name, id, in[0].Score); err != nil {
		return suitetest.Broken(queueclient.TheInterface, "dequeue of a task that is due in %v answered %q", after, err)
	}
	for _, pass := range []time.Duration{due / 2, due - due/2 + queueclient.Grain, due} {
		b.Pass(pass)
		if got, err := c.Take(ctx, 1); err != nil {
			return err
		} else if len(got) > 0 {
			return suitetest.Broken(queueclient.TheInterface, "a task was withdrawn %v before it was due, and was delivered when it was due", after)
		}
		if err := c.ExpectState(ctx, queueclient.TheInterface, nil, nil); err != nil {
			return fmt.Errorf("a task was withdrawn %v before it was due: %w", after, err)
		}
	}
	return nil
}

// OldLetters makes a dead letter, and another one months later. Both are there.
func OldLetters(ctx context.Context, b queueclient.Bench) error {
	return b.OnVirtualClock(func(b queueclient.Bench) error { return oldLetters(ctx, b, time.Second) }, func(b queueclient.Bench) error {
		return oldLetters(ctx, b, 40*day, 91*day, 400*day)
	})
}

func oldLetters(ctx context.Context, b queueclient.Bench, ages ...time.Duration) error {
	c := b.Client(queueclient.SetVisibility, func(o *queueimpl.Options) { o.MaxAttempts = 1 })
	ids := []string{"letter"}
	if err := buried(ctx, c, ids); err != nil {
		return err
	}
	for _, age := range ages {
		b.Pass(age)
		ids = append(ids, "letter-after-"+age.String())
		if err := buried(ctx, c, ids); err != nil {
			return fmt.Errorf("%v after a dead letter came another: %w", age, err)
		}
	}
	return nil
}

// buried lets the only attempt of the last of some tasks run out, and expects all of them as dead letters.
func buried(ctx context.Context, c *queueclient.Client, ids []string) error {
	id := ids[len(ids)-1]
	if _, err := c.Enter(ctx, queueclient.TheInterface, id); err != nil {
		return err
	}
	if _, err := c.ExpectTake(ctx, queueclient.TheInterface, 1, id); err != nil {
		return err
	}
	c.Bench.Pass(queueclient.Claim + queueclient.Grain)
	var dead []string
	err := c.Bench.Until(ctx, "the dead letter", func() (bool, error) {
		if _, err := c.Take(ctx, 1); err != nil {
			return false, err
		}
		letters, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
		dead = queueclient.IDsOf(letters)
		return slices.Contains(dead, id), err
	})
	slices.Sort(dead)
	if want := slices.Sorted(slices.Values(ids)); err == nil && !slices.Equal(dead, want) {
		return suitetest.Broken(variant.NoLostTask, "the dead letters are %q; want %q", dead, want)
	}
	return err
}

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

// ExtendOfDone holds up an extend while the same consumer acknowledges the task, as when a heartbeat runs beside the work.
// The task must stay away, and the queue must stay usable.
func ExtendOfDone(ctx context.Context, b queueclient.Bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b queueclient.Bench, n int) error {
		slow, line := b.Interrupted(ctx, queueclient.SetVisibility)
		c := b.Client(queueclient.SetVisibility)
		had, err := slow.Given(ctx, queueclient.TheInterface)
		if err != nil {
			return err
		}
		s := line.Stalled(ctx, n, func() { _, _ = slow.Queue.(queueimpl.Extender).Extend(ctx, slow.Name, had[0]) })
		if s == nil {
			return nil
		}
		const when = "an extend was held up while its task was acknowledged"
		err = c.ExpectAck(ctx, queueclient.TheInterface, had[0], nil) // it counts, even if the claim is over: nobody has popped
		s.GoOn()
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		// The end of a claim that the extend has made.
		b.Passes(ctx, queueclient.Claim+queueclient.Lateness)
		again, err := c.Take(ctx, 1)
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		if len(again) > 0 {
			return suitetest.Broken(variant.EffectOnce, "%s: then the task was delivered again", when)
		}
		if err := c.ExpectState(ctx, queueclient.TheInterface, nil, nil); err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		return c.Usable(ctx, when, "a")
	})
}

// SlowExtends extends a claim by a client whose answers are slow. The new end counts from before the call.
func SlowExtends(ctx context.Context, b queueclient.Bench) error {
	const by = 60 * time.Millisecond
	if b.Pass != nil {
		return nil // a virtual clock stands still meanwhile
	}
	c, other := b.Slow(by).Client(queueclient.SetVisibility), b.Client(queueclient.SetVisibility)
	had, err := c.Given(ctx, variant.NoLostTask)
	if err != nil {
		return err
	}
	t, err := c.Queue.(queueimpl.Extender).Extend(ctx, c.Name, had[0])
	if err != nil {
		return nil // a machine so busy that the claim is over; others are about that
	}
	if _, err := other.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
		return err
	}
	if err := queueclient.ExpectNotEarly(other, t, variant.NoDuplicateDelivery); err != nil {
		return fmt.Errorf("the answer to an extend took %v: %w", by, err)
	}
	return nil
}

// AckAfterReclaim ends a claim by Reclaim. The consumer's ack counts, since no other consumer has the task.
func AckAfterReclaim(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(queueclient.SetVisibility)
	had, err := c.Given(ctx, queueclient.TheInterface)
	if err != nil {
		return err
	}
	if err := reclaimed(ctx, c, had[0]); err != nil {
		return err
	}
	if err := c.ExpectAck(ctx, queueclient.TheInterface, had[0], nil); err != nil {
		return fmt.Errorf("a reclaim put the task back, and no other consumer has had it: %w", err)
	}
	return c.ExpectState(ctx, queueclient.TheInterface, nil, nil)
}

// ReclaimsAll lets many claims run out, and then calls Reclaim once.
func ReclaimsAll(ctx context.Context, b queueclient.Bench) error {
	const most = 150
	c := b.Client(queueclient.SetVisibility)
	ids := queueclient.Numbered(b.Fits(ctx, most, 10, time.Second))
	if _, err := c.Enter(ctx, queueclient.TheInterface, ids...); err != nil {
		return err
	}
	had, err := c.All(ctx, len(ids), len(ids))
	if err != nil {
		return err
	}
	last := had[0].Until
	for _, t := range had {
		if t.Until.After(last) {
			last = t.Until
		}
	}
	if err := b.Ended(ctx, c, last.Add(queueclient.Lateness)); err != nil {
		return err
	}
	if _, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name); err != nil {
		return suitetest.Broken(queueclient.TheInterface, "reclaim answered %q", err)
	}
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return suitetest.Broken(queueclient.TheInterface, "state answered %q", err)
	}
	if len(s.Claimed) > 0 {
		return suitetest.Broken(queueclient.TheInterface, "%d claims had run out, and after a reclaim the state has %d of these tasks as claimed; want 0", len(had), len(s.Claimed))
	}
	return nil
}

// RepeatOfDelayed enqueues the id of a task that is not due yet. The queue must ignore it: the task stays as it is.
func RepeatOfDelayed(ctx context.Context, b queueclient.Bench) error {
	const of = variant.OneEntryPerID
	c := b.Client()
	first, err := c.EnterAfter(ctx, of, time.Hour, "a")
	if err != nil {
		return err
	}
	for _, again := range []struct {
		what    string
		enqueue func() ([]queueimpl.Task, error)
	}{
		{"at once", func() ([]queueimpl.Task, error) { return c.Enqueue(ctx, c.Name, "a") }},
		{"with a shorter delay", func() ([]queueimpl.Task, error) {
			return c.Queue.(queueimpl.Delayer).EnqueueAfter(ctx, c.Name, time.Minute, "a")
		}},
		{"with a longer delay", func() ([]queueimpl.Task, error) {
			return c.Queue.(queueimpl.Delayer).EnqueueAfter(ctx, c.Name, 2*time.Hour, "a")
		}},
	} {
		if in, err := again.enqueue(); err != nil || len(in) > 0 {
			return suitetest.Broken(of, "the id of a task that is due in an hour, enqueued %s, entered %q and answered %s; want no entry", again.what, queueclient.IDsOf(in), queueclient.Say(err))
		}
		s, err := c.State(ctx, c.Name)
		if err != nil {
			return suitetest.Broken(queueclient.TheInterface, "state answered %q", err)
		}
		if len(s.Waiting) != 1 || s.Waiting[0].Score != first[0].Score {
			return suitetest.Broken(of, "the id of a task that is due in an hour was enqueued %s, and ignored: then %+v waits; want %+v", again.what, s.Waiting, first)
		}
		if got, err := c.Take(ctx, 1); err != nil || len(got) > 0 {
			return suitetest.Broken(of, "the id of a task that is due in an hour was enqueued %s, and ignored: then a pop handed out %q and answered %s", again.what, queueclient.IDsOf(got), queueclient.Say(err))
		}
	}
	return nil
}

// RepeatOfRunOut enqueues the id of a task whose claim has run out and that waits again, if a pop of another task has put it back.
func RepeatOfRunOut(ctx context.Context, b queueclient.Bench) error {
	const of = variant.OneEntryPerID
	c := b.Client(queueclient.SetVisibility)
	if _, err := c.Enter(ctx, of, "a", "b"); err != nil {
		return err
	}
	had, err := c.All(ctx, 2, 2)
	if err != nil || len(had) != 2 {
		return err
	}
	for _, t := range had {
		if err := b.Ended(ctx, c, t.Until); err != nil {
			return err
		}
	}
	other := b.Client(long)
	var given []queueimpl.Task
	if err := b.Until(ctx, "delivery of one of them to another client", func() (bool, error) {
		given, err = other.Take(ctx, 1)
		return len(given) == 1, err
	}); err != nil {
		return err
	}
	rest := had[0].ID
	if rest == given[0].ID {
		rest = had[1].ID
	}
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return suitetest.Broken(queueclient.TheInterface, "state answered %q", err)
	}
	if !slices.Contains(queueclient.IDsOf(s.Waiting), rest) {
		return nil // it is claimed still: a queue may enter an id that a consumer has
	}
	if in, err := c.Enqueue(ctx, c.Name, rest); err != nil || len(in) > 0 {
		return suitetest.Broken(of, "the id of a task whose claim has run out, and that waits, was enqueued again: that entered %q and answered %s; want no entry", queueclient.IDsOf(in), queueclient.Say(err))
	}
	return nil
}

// StateInOrder reads the state of a queue whose tasks are due at different times.
func StateInOrder(ctx context.Context, b queueclient.Bench) error {
	c := b.Client()
	ids := []string{"c", "a", "d", "b"}
	for i, id := range ids {
		var err error
		if queueclient.Can[queueimpl.Delayer](b.Variant) {
			_, err = c.EnterAfter(ctx, queueclient.TheInterface, time.Duration(len(ids)-i)*time.Hour, id)
		} else {
			_, err = c.Enter(ctx, queueclient.TheInterface, id)
			b.Passes(ctx, 2*time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return suitetest.Broken(queueclient.TheInterface, "state answered %q", err)
	}
	for i := 1; i < len(s.Waiting); i++ {
		if t, before := s.Waiting[i], s.Waiting[i-1]; t.Score < before.Score {
			return suitetest.Broken(queueclient.TheInterface, "the state lists the waiting task %q, due at %f, after %q, due at %f", t.ID, t.Score, before.ID, before.Score)
		}
	}
	return nil
}

// PeekOfDelayed peeks until a delayed task shows that is due.
func PeekOfDelayed(ctx context.Context, b queueclient.Bench) error {
	const delay = 30 * time.Millisecond
	c := b.Client()
	in, err := c.EnterAfter(ctx, queueclient.TheInterface, delay, "a")
	if err != nil {
		return err
	}
	c.PassesUntilDue(ctx, in, delay)
	var shown []queueimpl.Task
	err = b.Until(ctx, "a peek that shows it", func() (bool, error) {
		shown, err = c.Queue.(queueimpl.Peeker).Peek(ctx, c.Name, 1)
		return len(shown) > 0, err
	})
	if err != nil {
		return suitetest.Broken(queueclient.TheInterface, "a delayed task was due, and a peek did not show it: %w", err)
	}
	return nil
}

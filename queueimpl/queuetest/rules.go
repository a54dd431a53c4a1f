package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"oversell/internal/closed"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

func emptySaysSo(ctx context.Context, b bench) error {
	c := b.Client()
	for range 2 {
		if tasks, err := c.Pop(ctx, c.Name, 1); !errors.Is(err, queueimpl.ErrEmpty) || len(tasks) > 0 {
			return broken(theInterface, "pop from a queue that nobody used answered %v and %s; want %q", tasks, say(err), queueimpl.ErrEmpty)
		}
	}
	return c.ExpectState(ctx, theInterface, nil, nil)
}

func poppedOnce(ctx context.Context, b bench) error {
	const of = variant.NoLostTask
	producer, consumer := b.Client(), b.Client()
	scores := map[string]float64{}
	for _, id := range []string{"a", "b", "c"} {
		in, err := producer.Enter(ctx, of, id)
		if err != nil {
			return err
		}
		scores[id] = in[0].Score
	}
	for range 3 {
		tasks, err := consumer.Take(ctx, 1)
		if err != nil {
			return err
		}
		if len(tasks) == 0 {
			return consumer.Lost(ctx, slices.Collect(maps.Keys(scores)), "pop answered that nothing is due, and %d tasks had not been delivered", len(scores))
		}
		t := tasks[0]
		score, wanted := scores[t.ID]
		switch {
		case !wanted:
			return broken(variant.NoDuplicateDelivery, "%q was delivered again, or never enqueued", t.ID)
		case score != t.Score && score != 0 && t.Score != 0:
			return broken(theInterface, "%q was entered with the score %v and delivered with %v", t.ID, score, t.Score)
		case t.Attempt != 1 && t.Attempt != 0:
			return broken(theInterface, "the first delivery of %q is attempt %d", t.ID, t.Attempt)
		}
		delete(scores, t.ID)
		if err := consumer.Done(ctx, t); err != nil {
			return err
		}
	}
	return firstOf(
		func() error { _, err := consumer.ExpectTake(ctx, variant.NoDuplicateDelivery, 1); return err },
		func() error { return consumer.ExpectState(ctx, variant.NoDuplicateDelivery, nil, nil) },
	)
}

func upToCount(ctx context.Context, b bench) error {
	c := b.Client()
	if _, err := c.Enter(ctx, variant.NoLostTask, "a", "b", "c", "d", "e"); err != nil {
		return err
	}
	var had []queueimpl.Task
	missing := map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true}
	take := func() error {
		for {
			tasks, err := c.Take(ctx, 3)
			if err != nil || len(tasks) == 0 {
				return err
			}
			for _, t := range tasks {
				if !missing[t.ID] {
					return broken(variant.NoDuplicateDelivery, "%q was delivered twice, the second time while the first consumer had it", t.ID)
				}
				delete(missing, t.ID)
			}
			had = append(had, tasks...)
		}
	}
	if err := take(); err != nil || len(missing) == 0 {
		return err
	}
	// The missing tasks are lost, or blocked by tasks that consumers hold.
	without := keysOf(missing)
	if err := c.Done(ctx, had...); err != nil {
		return err
	}
	if err := take(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return c.Lost(ctx, keysOf(missing), "of 5 tasks these were not delivered: %q", keysOf(missing))
	}
	return broken(b.Waiting(), "%q were not delivered until the tasks before them had been acknowledged", without)
}

func inOrder(ctx context.Context, b bench) error {
	c := b.Client()
	ids := []string{"b", "a10", "c", "a9", "B"}
	if _, err := c.Enter(ctx, variant.NoLostTask, ids...); err != nil {
		return err
	}
	return drained(ctx, c, len(ids))
}

// drained pops and acknowledges one task after the other and expects them in order.
func drained(ctx context.Context, c *client, n int) error {
	var got []queueimpl.Task
	for range n {
		t, err := c.Next(ctx)
		if err != nil {
			return err
		}
		got = append(got, t)
	}
	return sorted(got)
}

func inOrderOfDue(ctx context.Context, b bench) error {
	c := b.Client()
	const far = 30 * time.Millisecond
	for i, after := range []time.Duration{far, far / 3, 2 * far / 3, 0} {
		if _, err := c.EnterAfter(ctx, variant.NoLostTask, after, fmt.Sprint("task-", i)); err != nil {
			return err
		}
	}
	var got []queueimpl.Task
	err := b.Until(ctx, "delivery of all tasks", func() (bool, error) {
		tasks, err := c.Take(ctx, 4)
		if err == nil {
			err = c.Done(ctx, tasks...)
		}
		got = append(got, tasks...)
		return len(got) == 4, err
	})
	if err != nil {
		return err
	}
	return sorted(got)
}

// due checks a delivery against the clock.
func due(c *client, t queueimpl.Task) error {
	now := float64(c.Env.Clock.Now().UnixMicro()) / 1e6
	if now < t.Score-grain.Seconds() {
		return broken(variant.NotEarly, "%q was delivered %.6f s before it was due", t.ID, t.Score-now)
	}
	return nil
}

func notEarly(ctx context.Context, b bench) error {
	c := b.Client()
	const after = 200 * time.Millisecond
	start := float64(c.Env.Clock.Now().UnixMicro()) / 1e6
	in, err := c.EnterAfter(ctx, variant.NotEarly, after, "later")
	if err != nil {
		return err
	}
	if score := in[0].Score; score != 0 && score < start+(after-grain).Seconds() {
		return broken(variant.NotEarly, "a task enqueued at %f with a delay of %v has the score %f", start, after, score)
	}
	if err := peeksAhead(ctx, c, after); err != nil && (b.Pass != nil || float64(c.Env.Clock.Now().UnixMicro())/1e6 < start+(after-grain).Seconds()) {
		return err
	}
	if b.Pass != nil {
		due := dueIn(c, in[0], after)
		b.Pass(after - time.Millisecond)
		if _, err := c.ExpectTake(ctx, variant.NotEarly, 1); err != nil {
			return err
		}
		b.Pass(due - after + time.Millisecond)
		_, err := c.ExpectTake(ctx, variant.NotEarly, 1, "later")
		return err
	}
	t, err := c.ExpectNext(ctx, variant.NotEarly, "later")
	if err != nil {
		return err
	}
	return due(c, t)
}

func delayedComes(ctx context.Context, b bench) error {
	c := b.Client()
	if _, err := c.EnterAfter(ctx, variant.Progress, 10*time.Millisecond, "later"); err != nil {
		return err
	}
	if err := c.ExpectState(ctx, variant.NoLostTask, []string{"later"}, nil); err != nil {
		return err
	}
	_, err := c.ExpectNext(ctx, variant.Progress, "later")
	return err
}

func repeatIgnored(ctx context.Context, b bench) error {
	const of = variant.OneEntryPerID
	c := b.Client()
	first, err := c.Enter(ctx, of, "a")
	if err != nil {
		return err
	}
	again, err := c.Enqueue(ctx, c.Name, "a", "b", "b")
	if err != nil {
		return broken(of, "enqueue of a repeated id answered %q", err)
	}
	if got := idsOf(again); !slices.Equal(got, []string{"b"}) {
		return broken(of, `enqueue of "a", "b" and "b" after "a" entered %q; want "b" alone`, got)
	}
	tasks, err := c.ExpectTake(ctx, of, 5, "a", "b")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.ID == "a" && t.Score != first[0].Score {
			return broken(of, `"a" has the score %f of the repeat; want the first one's %f`, t.Score, first[0].Score)
		}
	}
	return nil
}

func repeatOverwrites(ctx context.Context, b bench) error {
	const of = variant.OneEntryPerID
	c := b.Client(overwriting)
	first, err := c.Enter(ctx, of, "a")
	if err != nil {
		return err
	}
	second, err := c.Overwrite(ctx, 20*time.Millisecond, first[0])
	if err != nil {
		return err
	}
	t, err := c.ExpectNext(ctx, of, "a")
	if err != nil {
		return err
	}
	if t.Score != second.Score {
		return broken(of, `"a" was delivered with the score %f; want that of the overwriting entry, %f`, t.Score, second.Score)
	}
	if err := c.Done(ctx, t); err != nil {
		return err
	}
	return c.ExpectState(ctx, of, nil, nil)
}

func againWhenDone(ctx context.Context, b bench) error {
	c := b.Client()
	for range 3 {
		if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
			return err
		}
		t, err := c.Next(ctx)
		if err != nil {
			return err
		}
		if t.Attempt > 1 {
			return broken(theInterface, "the first delivery of a new entry is attempt %d", t.Attempt)
		}
	}
	return c.ExpectState(ctx, theInterface, nil, nil)
}

func stateAddsUp(ctx context.Context, b bench) error {
	c := b.Client()
	in, err := c.Enter(ctx, theInterface, "a", "b", "c")
	if err != nil {
		return err
	}
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return broken(theInterface, "state answered %q", err)
	}
	for _, t := range s.Waiting {
		if !slices.ContainsFunc(in, func(e queueimpl.Task) bool { return e.ID == t.ID && e.Score == t.Score }) {
			return broken(theInterface, "the state has %+v; %+v were entered", t, in)
		}
	}
	if err := c.ExpectState(ctx, theInterface, []string{"a", "b", "c"}, nil); err != nil {
		return err
	}
	tasks, err := c.Take(ctx, 1)
	if err != nil {
		return err
	}
	if len(tasks) == 0 {
		return c.Lost(ctx, nil, "pop answered that nothing is due, and three tasks were")
	}
	rest := slices.DeleteFunc([]string{"a", "b", "c"}, func(id string) bool { return id == tasks[0].ID })
	if b.Variant.AtLeastOnce {
		if err := c.ExpectState(ctx, theInterface, rest, idsOf(tasks)); err != nil {
			return err
		}
		if s, err = c.State(ctx, c.Name); err != nil {
			return broken(theInterface, "state answered %q", err)
		}
		for _, t := range s.Claimed {
			if !slices.ContainsFunc(in, func(e queueimpl.Task) bool { return e.ID == t.ID && (e.Score == t.Score || t.Score == 0) }) {
				return broken(theInterface, "the state has the claimed task %+v; %+v were entered", t, in)
			}
		}
	}
	if err := c.Done(ctx, tasks...); err != nil {
		return err
	}
	return c.ExpectState(ctx, theInterface, rest, nil)
}

func dequeueNeedsScore(ctx context.Context, b bench) error {
	c := b.Client(overwriting)
	d := c.Queue.(queueimpl.Dequeuer)
	expect := func(id string, score float64, want error) func() error {
		return func() error {
			if err := d.Dequeue(ctx, c.Name, id, score); !errors.Is(err, want) {
				return broken(theInterface, "dequeue of %q with the score %f answered %s; want %s", id, score, say(err), say(want))
			}
			return nil
		}
	}
	in, err := c.Enter(ctx, theInterface, "a", "b")
	if err != nil {
		return err
	}
	score := in[0].Score
	return firstOf(
		expect("a", score+0.001, queueimpl.ErrChanged),
		expect("absent", score, queueimpl.ErrChanged),
		func() error { return c.ExpectState(ctx, theInterface, []string{"a", "b"}, nil) },
		expect("a", score, nil),
		expect("a", score, queueimpl.ErrChanged),
		func() error { return c.ExpectState(ctx, theInterface, []string{"b"}, nil) },
		func() error { _, err := c.ExpectTake(ctx, theInterface, 2, "b"); return err },
		func() error {
			if !b.Variant.AtLeastOnce && !once(b.Variant) {
				return nil // not taken by the pop
			}
			return expect("b", in[1].Score, queueimpl.ErrChanged)()
		},
	)
}

func peekChangesNothing(ctx context.Context, b bench) error {
	c := b.Client()
	p := c.Queue.(queueimpl.Peeker)
	peek := func(count int, want ...string) func() error {
		return func() error {
			tasks, err := p.Peek(ctx, c.Name, count)
			if err != nil {
				return broken(theInterface, "peek of %d answered %q", count, err)
			}
			got := idsOf(tasks)
			if !keeps(b.Variant, variant.InOrder) {
				slices.Sort(got)
				want = slices.DeleteFunc(slices.Clone(want), func(id string) bool { return len(got) > 0 && !slices.Contains(got, id) })
			}
			if len(got) > count || len(got) > len(want) || len(got) == 0 && len(want) > 0 || !slices.Equal(got, want[:len(got)]) {
				return broken(theInterface, "peek of %d answered %q; want %q, or the first of them", count, got, want)
			}
			return nil
		}
	}
	return firstOf(
		peek(3),
		func() error { _, err := c.Enter(ctx, theInterface, "a", "b"); return err },
		peek(1, "a", "b"), peek(3, "a", "b"), peek(3, "a", "b"),
		func() error { return c.ExpectState(ctx, theInterface, []string{"a", "b"}, nil) },
		func() error { _, err := c.ExpectTake(ctx, theInterface, 2, "a", "b"); return err },
	)
}

func lockedIsNotEmpty(ctx context.Context, b bench) error {
	c := b.Client(soundLock(b))
	if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	var o queueimpl.Options
	soundLock(b)(&o)
	o.LockOptions.TTL = time.Minute
	other := o.Lock(b.Env())
	l, err := other.Acquire(ctx, "Queue:"+c.Name, o.LockOptions)
	if err != nil {
		return fmt.Errorf("take the queue's lock: %w", err)
	}
	if _, err := c.Pop(ctx, c.Name, 1); !errors.Is(err, queueimpl.ErrLocked) || errors.Is(err, queueimpl.ErrEmpty) {
		return broken(theInterface, "pop from a locked queue answered %s; want %q", say(err), queueimpl.ErrLocked)
	}
	if err := other.Release(ctx, l); err != nil {
		return err
	}
	_, err = c.ExpectTake(ctx, theInterface, 1, "a")
	return err
}

func ackOnce(ctx context.Context, b bench) error {
	c := b.Client()
	tasks, err := c.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	return firstOf(
		func() error { return c.ExpectAck(ctx, theInterface, tasks[0], nil) },
		func() error { return c.ExpectAck(ctx, theInterface, tasks[0], queueimpl.ErrLost) },
		func() error { return c.ExpectState(ctx, theInterface, nil, nil) },
	)
}

// lent makes one client take the only task, with a claim that will run out.
func lent(ctx context.Context, b bench, change func(*queueimpl.Options)) (*client, queueimpl.Task, error) {
	c := b.Client(change)
	if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
		return nil, queueimpl.Task{}, err
	}
	tasks, err := c.ExpectTake(ctx, theInterface, 1, "a")
	if err != nil {
		return nil, queueimpl.Task{}, err
	}
	return c, tasks[0], nil
}

func claimHides(ctx context.Context, b bench) error {
	const of = variant.NoLostTask
	_, t, err := lent(ctx, b, impatient)
	if err != nil {
		return err
	}
	other := b.Client(impatient)
	if b.Pass != nil {
		b.Pass(visibility - time.Millisecond)
		if _, err := other.ExpectTake(ctx, theInterface, 1); err != nil {
			return fmt.Errorf("just before the visibility timeout was over: %w", err)
		}
		b.Pass(time.Millisecond + grain)
		if _, err := other.ExpectTake(ctx, of, 1, "a"); err != nil {
			return fmt.Errorf("when the visibility timeout was over: %w", err)
		}
		return nil
	}
	again, err := other.ExpectNext(ctx, of, "a")
	if err != nil {
		return err
	}
	if err := early(other, t, theInterface); err != nil {
		return err
	}
	if (again.Attempt != 2 && again.Attempt != 0) || again.Score != t.Score {
		return broken(theInterface, "after %+v it was delivered as %+v; want attempt 2 and the same score", t, again)
	}
	return nil
}

func lateAck(ctx context.Context, b bench) error {
	c, first, err := lent(ctx, b, impatient)
	if err != nil {
		return err
	}
	other := b.Client(impatient)
	second, err := other.ExpectNext(ctx, variant.NoLostTask, "a")
	if err != nil {
		return err
	}
	if err := c.ExpectAck(ctx, theInterface, first, queueimpl.ErrLost); err != nil {
		return fmt.Errorf("after another was given the task: %w", err)
	}
	ignored, err := ignoresClaimed(ctx, b)
	if err != nil {
		return err
	}
	if ignored && keeps(b.Variant, variant.OneEntryPerID) {
		if in, err := c.Enqueue(ctx, c.Name, "a"); err == nil && len(in) > 0 && b.Before(other, second.Until.Add(-grain)) {
			return broken(variant.OneEntryPerID, "after a late ack of a task that another client has, its id was entered again")
		}
	}
	if err := b.Until(ctx, "the end of the claim", func() (bool, error) { return !b.Before(other, second.Until), nil }); err != nil {
		return err
	}
	return firstOf(
		func() error { return other.ExpectAck(ctx, theInterface, second, nil) }, // late, but no client has received it since
		func() error { return other.ExpectState(ctx, theInterface, nil, nil) },
	)
}

// ignoresClaimed reports whether the queue ignores the id of a task that a client has. It need not: such a task does not wait
// in the queue.
func ignoresClaimed(ctx context.Context, b bench) (bool, error) {
	if !ignoresRepeats(b.Variant) {
		return false, nil
	}
	b.Queue += "-claimed"
	c, _, err := lent(ctx, b, func(*queueimpl.Options) {})
	if err != nil {
		return false, err
	}
	in, err := c.Enqueue(ctx, c.Name, "a")
	return err == nil && len(in) == 0, nil
}

// bothHad has a client pop two tasks, neither of which comes back before both are there: a machine
// that is held up between two pops for longer than the visibility timeout begins again, on another
// queue and with a longer one. lasts changes the options accordingly.
func bothHad(ctx context.Context, b bench) (c *client, had []queueimpl.Task, lasts func(*queueimpl.Options), _ error) {
	for try := range 5 {
		hidden := visibility << try
		lasts = func(o *queueimpl.Options) { o.Visibility = hidden }
		c = b.Client(lasts)
		c.Name = fmt.Sprintf("%s-%d", b.Queue, try)
		if _, err := c.Enter(ctx, variant.NoLostTask, "a", "b"); err != nil {
			return nil, nil, nil, err
		}
		byID := map[string]queueimpl.Task{}
		again := false
		if err := b.Until(ctx, "delivery of both tasks", func() (bool, error) {
			tasks, err := c.Take(ctx, 1)
			for _, t := range tasks {
				if first, there := byID[t.ID]; there {
					again = true
					err = errors.Join(err, early(c, first, variant.NoDuplicateDelivery))
				}
				byID[t.ID] = t
			}
			return len(byID) == 2 || again, err
		}); err != nil {
			return nil, nil, nil, err
		}
		if !again {
			return c, []queueimpl.Task{byID["a"], byID["b"]}, lasts, nil
		}
	}
	return nil, nil, nil, &suitetest.TooSlow{Why: "of two tasks, one comes back before the other one was delivered, with each timeout that was tried"}
}

// lateAckBeside makes one client pop one of two tasks after both claims have run out: the ack of the other task
// counts.
func lateAckBeside(ctx context.Context, b bench) error {
	c, had, lasts, err := bothHad(ctx, b)
	if err != nil {
		return err
	}
	last := had[0].Until
	if had[1].Until.After(last) {
		last = had[1].Until
	}
	if err := b.Ended(ctx, c, last); err != nil {
		return err
	}
	other := b.Client(lasts)
	other.Name = c.Name
	var given []queueimpl.Task
	if err := b.Until(ctx, "delivery of one of them to another client", func() (bool, error) {
		tasks, err := other.Take(ctx, 1)
		given = tasks
		return len(given) == 1, err
	}); err != nil {
		return err
	}
	for _, t := range had {
		if t.ID == given[0].ID {
			continue
		}
		if err := c.ExpectAck(ctx, theInterface, t, nil); err != nil {
			return fmt.Errorf("after the claims of two tasks had run out, and another client was given the other one: %w", err)
		}
	}
	return nil
}

func ackedStaysAway(ctx context.Context, b bench) error {
	c, t, err := lent(ctx, b, impatient)
	if err != nil {
		return err
	}
	if err := c.ExpectAck(ctx, theInterface, t, nil); err != nil {
		return err
	}
	// Several timeouts later there is nothing.
	for end := c.Env.Clock.Now().Add(2 * visibility); b.Before(c, end); {
		if _, err := c.ExpectTake(ctx, variant.EffectOnce, 1); err != nil {
			return err
		}
		if b.Pass != nil {
			b.Pass(visibility / 2)
		}
	}
	return nil
}

func overwritingEndsClaim(ctx context.Context, b bench) error {
	c := b.Client(overwriting)
	old, err := c.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	if _, err := c.Overwrite(ctx, 0, old[0]); err != nil {
		return err
	}
	if err := c.ExpectAck(ctx, theInterface, old[0], queueimpl.ErrLost); err != nil {
		return fmt.Errorf("after the id was enqueued again: %w", err)
	}
	return c.ExpectState(ctx, variant.NoLostTask, []string{"a"}, nil)
}

func extended(ctx context.Context, b bench) error {
	c, t, err := lent(ctx, b, impatient)
	if err != nil {
		return err
	}
	x := c.Queue.(queueimpl.Extender)
	if b.Pass != nil {
		b.Pass(visibility / 2)
	}
	longer, err := x.Extend(ctx, c.Name, t)
	if errors.Is(err, queueimpl.ErrLost) && !b.Before(c, t.Until.Add(-grain)) {
		return nil // a machine so busy that the claim is over: true, and nothing to see
	}
	if err != nil {
		return broken(theInterface, "extend of %+v answered %q", t, err)
	}
	if !longer.Until.After(t.Until) {
		return broken(theInterface, "extend moved the end of the claim from %v to %v", t.Until, longer.Until)
	}
	other := b.Client(impatient)
	if _, err := other.ExpectNext(ctx, variant.Progress, "a"); err != nil {
		return fmt.Errorf("the claim of a task, of %v, was extended, and ran out: %w", visibility, err)
	}
	if err := early(other, longer, theInterface); err != nil {
		return fmt.Errorf("a claim was extended: %w", err)
	}
	if _, err := x.Extend(ctx, c.Name, longer); !errors.Is(err, queueimpl.ErrLost) {
		return broken(theInterface, "extend after another was given the task answered %s; want %q", say(err), queueimpl.ErrLost)
	}
	return nil
}

func reclaimReturns(ctx context.Context, b bench) error {
	c, ids, _, err := manyLent(ctx, b, 40)
	if err != nil {
		return err
	}
	tasks := len(ids)
	returned := 0
	b.Passes(ctx, 2*claim)
	err = b.Until(ctx, "the return of all tasks", func() (bool, error) {
		n, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name)
		if err != nil {
			return false, broken(theInterface, "reclaim answered %q", err)
		}
		returned += n
		return returned >= tasks, nil
	})
	if err != nil {
		return err
	}
	if returned != tasks {
		return broken(theInterface, "reclaim ended %d claims of %d", returned, tasks)
	}
	return c.ExpectState(ctx, variant.NoLostTask, ids, nil)
}

func deadLetter(ctx context.Context, b bench) error {
	c := b.Client(threeTimes)
	d := c.Queue.(queueimpl.DeadLetters)
	in, err := c.Enter(ctx, theInterface, "a")
	if err != nil {
		return err
	}
	for attempt := 1; attempt <= 3; attempt++ {
		t, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
		if err != nil {
			return err
		}
		if t.Attempt != attempt && t.Attempt != 0 {
			return broken(theInterface, "delivery %d is called attempt %d", attempt, t.Attempt)
		}
	}
	err = b.Until(ctx, "the dead letter", func() (bool, error) {
		if _, err := c.ExpectTake(ctx, theInterface, 1); err != nil {
			return false, fmt.Errorf("after all attempts: %w", err)
		}
		dead, err := d.Dead(ctx, c.Name)
		if err != nil {
			return false, broken(theInterface, "dead letters: %q", err)
		}
		if len(dead) == 0 {
			return false, nil
		}
		if len(dead) != 1 || dead[0].ID != "a" {
			return false, broken(variant.NoLostTask, `the dead letters are %q; want "a"`, idsOf(dead))
		}
		if a := dead[0]; a.Attempt != 3 && a.Attempt != 0 || a.Score != in[0].Score && a.Score != 0 {
			return false, broken(theInterface, `the dead letter "a" has %d attempts and the score %f; want 3 and %f, or 0 where the queue does not know`, a.Attempt, a.Score, in[0].Score)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if err := c.ExpectState(ctx, theInterface, nil, nil); err != nil {
		return err
	}
	again, err := c.Enqueue(ctx, c.Name, "a")
	if err != nil {
		return broken(theInterface, "enqueue of a dead letter's id answered %q", err)
	}
	if len(again) == 0 && can[queueimpl.Deduper](b.Variant) {
		return nil // the id is there, as a dead letter
	}
	tasks, err := c.ExpectTake(ctx, theInterface, 1, "a")
	if err == nil && tasks[0].Attempt != 1 && tasks[0].Attempt != 0 {
		err = broken(theInterface, "a dead letter's id, enqueued again, begins with attempt %d", tasks[0].Attempt)
	}
	return err
}

// manyLent has a client take many tasks, of which none comes back before all are taken: they are
// fewer, the farther away the server is.
func manyLent(ctx context.Context, b bench, most int) (c *client, ids []string, taken []queueimpl.Task, err error) {
	const lasting = 2 * claim
	c = b.Client(func(o *queueimpl.Options) { o.Visibility = lasting })
	ids = numbered(b.Fits(ctx, most, most/4, lasting/2))
	if _, err := c.Enter(ctx, theInterface, ids...); err != nil {
		return nil, nil, nil, err
	}
	start := time.Now()
	taken, err = c.ExpectTake(ctx, theInterface, len(ids), slices.Clone(ids)...)
	if took := time.Since(start); err != nil && b.Pass == nil && took > lasting {
		err = &suitetest.TooSlow{Why: fmt.Sprintf("%d tasks were taken in %v, longer than a claim lasts", len(ids), took)}
	}
	return c, ids, taken, err
}

func manyRunOut(ctx context.Context, b bench) error {
	c, ids, taken, err := manyLent(ctx, b, 60) // more than one step of anything
	if err != nil {
		return err
	}
	tasks := len(ids)
	other := b.Client() // with a long timeout only for what follows
	if err := b.Ended(ctx, c, taken[len(taken)-1].Until); err != nil {
		return err
	}
	// The queue may use either timeout: the one of the client that claimed a task, or the one of the next
	// client.
	again := map[string]bool{}
	return b.Until(ctx, "the return of all tasks", func() (bool, error) {
		for _, q := range []*client{other, c} {
			got, err := q.Take(ctx, 1)
			if err != nil {
				return false, err
			}
			for _, t := range got {
				again[t.ID] = true
				if err := q.Done(ctx, t); err != nil {
					return false, err
				}
			}
		}
		return len(again) == tasks, nil
	})
}

func journalTells(ctx context.Context, b bench) error {
	c := b.Client()
	j := c.Queue.(queueimpl.Journaler)
	if _, err := c.Enter(ctx, theInterface, "a", "b", "c"); err != nil {
		return err
	}
	took, err := j.PopAs(ctx, c.Name, c.Request(1), 2)
	if err != nil {
		return broken(theInterface, "pop under a request answered %q", err)
	}
	return firstOf(
		func() error { return c.Journal(ctx, c.Request(1), took) },
		func() error { return c.Journal(ctx, c.Request(2), nil) },
		func() error {
			rest := slices.DeleteFunc([]string{"a", "b", "c"}, func(id string) bool { return slices.Contains(idsOf(took), id) })
			_, err := c.ExpectTake(ctx, theInterface, 3, rest...)
			return err
		},
		func() error { return c.Journal(ctx, c.Request(1), took) },
		func() error {
			if _, err := j.PopAs(ctx, c.Name, c.Request(3), 2); !errors.Is(err, queueimpl.ErrEmpty) {
				return broken(theInterface, "pop under a request from an empty queue answered %s; want %q", say(err), queueimpl.ErrEmpty)
			}
			return nil
		},
		func() error { return c.Journal(ctx, c.Request(3), nil) },
	)
}

// crowd lets producers and consumers work at once, and tells how often each task
// was delivered, of how many that were entered.
func crowd(ctx context.Context, b bench) (deliveries map[string]int, enqueued int, err error) {
	const producers, consumers, each = 4, 6, 15
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	deliveries = map[string]int{}
	var mu sync.Mutex
	var working sync.WaitGroup
	var made sync.WaitGroup
	all := make(chan struct{})
	for p := range producers {
		c := b.Client(soundLock(b))
		made.Add(1)
		working.Go(func() {
			defer made.Done()
			for i := range each {
				id := fmt.Sprintf("task-%d-%d", p, i)
				if _, err := c.Enter(ctx, variant.NoLostTask, id); err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				deliveries[id] += 0 // known, if not delivered
				mu.Unlock()
			}
		})
	}
	working.Go(func() { made.Wait(); close(all) })
	for k := range consumers {
		c := b.Client(soundLock(b))
		working.Go(func() {
			for {
				ended := closed.Is(all) // looked at before the pop that may find nothing
				tasks, err := c.Pop(ctx, c.Name, 1+k%3)
				if errors.Is(err, queueimpl.ErrLocked) {
					continue
				}
				if errors.Is(err, queueimpl.ErrEmpty) {
					if ended {
						return
					}
					continue
				}
				if err != nil {
					cancel(broken(theInterface, "pop answered %q", err))
					return
				}
				mu.Lock()
				for _, t := range tasks {
					deliveries[t.ID]++
				}
				mu.Unlock()
				if err := c.Done(ctx, tasks...); err != nil && once(b.Variant) {
					cancel(err)
					return
				}
			}
		})
	}
	working.Wait()
	return deliveries, producers * each, context.Cause(ctx)
}

func crowdLosesNothing(ctx context.Context, b bench) error {
	deliveries, enqueued, err := crowd(ctx, b)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Collect(maps.Keys(deliveries)), func(id string) bool { return deliveries[id] > 0 })
	if len(missing) > 0 {
		return b.Client().Lost(ctx, missing, "%d tasks were entered, and %d delivered", enqueued, enqueued-len(missing))
	}
	return b.Client().ExpectState(ctx, variant.NoLostTask, nil, nil)
}

func crowdGetsNothingTwice(ctx context.Context, b bench) error {
	deliveries, _, err := crowd(ctx, b)
	if err != nil {
		return err
	}
	for id, n := range deliveries {
		if n > 1 {
			return broken(variant.NoDuplicateDelivery, "%q was delivered %d times, within the visibility timeout if there is one", id, n)
		}
	}
	return nil
}

func copiesAtOnce(ctx context.Context, b bench) error {
	const copies = 8
	var mu sync.Mutex
	var in []queueimpl.Task
	var failed error
	var wg sync.WaitGroup
	for range copies {
		c := b.Client(soundLock(b))
		wg.Go(func() {
			tasks, err := c.Enqueue(ctx, c.Name, "a")
			mu.Lock()
			defer mu.Unlock()
			in = append(in, tasks...)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return broken(theInterface, "enqueue answered %q", failed)
	}
	if len(in) != 1 {
		return broken(variant.OneEntryPerID, "%d of %d producers were told that they entered the id; want 1", len(in), copies)
	}
	tasks, err := b.Client().ExpectTake(ctx, variant.OneEntryPerID, 2, "a")
	if err == nil && tasks[0].Score != in[0].Score {
		err = broken(variant.OneEntryPerID, "the id was entered with the score %f and is there with %f", in[0].Score, tasks[0].Score)
	}
	return err
}

func twoQueues(ctx context.Context, b bench) error {
	c := b.Client()
	other := *c
	other.Name += "2"
	return firstOf(
		func() error { _, err := c.Enter(ctx, theInterface, "a", "b"); return err },
		func() error { _, err := other.Enter(ctx, theInterface, "a"); return err },
		func() error { return c.ExpectState(ctx, theInterface, []string{"a", "b"}, nil) },
		func() error { t, err := other.Next(ctx); return errors.Join(err, isTask(t, "a")) },
		func() error { _, err := other.ExpectTake(ctx, theInterface, 1); return err },
		func() error { return c.ExpectState(ctx, theInterface, []string{"a", "b"}, nil) },
		func() error { _, err := c.ExpectTake(ctx, theInterface, 3, "a", "b"); return err },
	)
}

func isTask(t queueimpl.Task, id string) error {
	if t.ID != id {
		return broken(theInterface, "%q was delivered; want %q", t.ID, id)
	}
	return nil
}

func badCalls(ctx context.Context, b bench) error {
	c := b.Client()
	type call struct {
		what string
		do   func() error
	}
	try := func(what string, do func() error) call { return call{what, do} }
	calls := []call{
		try("enqueue into no queue", func() error { _, err := c.Enqueue(ctx, "", "a"); return err }),
		try("enqueue of nothing", func() error { _, err := c.Enqueue(ctx, c.Name); return err }),
		try("enqueue of an empty id", func() error { _, err := c.Enqueue(ctx, c.Name, ""); return err }),
		try("pop from no queue", func() error { _, err := c.Pop(ctx, "", 1); return err }),
		try("pop of 0", func() error { _, err := c.Pop(ctx, c.Name, 0); return err }),
		try("pop of -1", func() error { _, err := c.Pop(ctx, c.Name, -1); return err }),
		try("state of no queue", func() error { _, err := c.State(ctx, ""); return err }),
	}
	if !b.Variant.TakesAnything {
		calls = append(calls, try("enqueue of an empty id among others", func() error { _, err := c.Enqueue(ctx, c.Name, "a", ""); return err }))
	}
	if d, ok := c.Queue.(queueimpl.Delayer); ok {
		if !b.Variant.TakesAnything {
			calls = append(calls, try("a negative delay", func() error { _, err := d.EnqueueAfter(ctx, c.Name, -time.Nanosecond, "a"); return err }))
		}
		calls = append(calls,
			try("a delay into no queue", func() error { _, err := d.EnqueueAfter(ctx, "", time.Second, "a"); return err }),
			try("a delay of an empty id", func() error { _, err := d.EnqueueAfter(ctx, c.Name, time.Second, ""); return err }))
	}
	if d, ok := c.Queue.(queueimpl.Dequeuer); ok {
		calls = append(calls,
			try("dequeue from no queue", func() error { return d.Dequeue(ctx, "", "a", 1) }),
			try("dequeue of an empty id", func() error { return d.Dequeue(ctx, c.Name, "", 1) }),
			try("dequeue of NaN", func() error { return d.Dequeue(ctx, c.Name, "a", math.NaN()) }),
			try("dequeue of +Inf", func() error { return d.Dequeue(ctx, c.Name, "a", math.Inf(1)) }),
			try("dequeue of -Inf", func() error { return d.Dequeue(ctx, c.Name, "a", math.Inf(-1)) }))
	}
	if p, ok := c.Queue.(queueimpl.Peeker); ok {
		calls = append(calls,
			try("peek into no queue", func() error { _, err := p.Peek(ctx, "", 1); return err }),
			try("peek of -1", func() error { _, err := p.Peek(ctx, c.Name, -1); return err }))
	}
	if a, ok := c.Queue.(queueimpl.Acker); ok {
		calls = append(calls,
			try("ack in no queue", func() error { return a.Ack(ctx, "", queueimpl.Task{ID: "a", Receipt: "1"}) }),
			try("ack of no task", func() error { return a.Ack(ctx, c.Name, queueimpl.Task{Receipt: "1"}) }),
			try("ack without a receipt", func() error { return a.Ack(ctx, c.Name, queueimpl.Task{ID: "a"}) }))
	}
	if x, ok := c.Queue.(queueimpl.Extender); ok {
		calls = append(calls,
			try("extend in no queue", func() error { _, err := x.Extend(ctx, "", queueimpl.Task{ID: "a", Receipt: "1"}); return err }),
			try("extend without a receipt", func() error { _, err := x.Extend(ctx, c.Name, queueimpl.Task{ID: "a"}); return err }))
	}
	if r, ok := c.Queue.(queueimpl.Reclaimer); ok {
		calls = append(calls, try("reclaim in no queue", func() error { _, err := r.Reclaim(ctx, ""); return err }))
	}
	if d, ok := c.Queue.(queueimpl.DeadLetters); ok {
		calls = append(calls, try("dead letters of no queue", func() error { _, err := d.Dead(ctx, ""); return err }))
	}
	if j, ok := c.Queue.(queueimpl.Journaler); ok {
		calls = append(calls,
			try("pop without a request", func() error { _, err := j.PopAs(ctx, c.Name, "", 1); return err }),
			try("journal of no request", func() error { _, err := j.Popped(ctx, c.Name, ""); return err }),
			try("journal of no queue", func() error { _, err := j.Popped(ctx, "", "request"); return err }))
	}
	for _, bad := range calls {
		// An error that is no declared answer will do; so will success, if it does no harm.
		err := bad.do()
		for _, d := range []error{queueimpl.ErrLocked, queueimpl.ErrChanged, queueimpl.ErrLost} {
			if errors.Is(err, d) && !errors.Is(err, queueimpl.ErrBadCall) && strings.HasPrefix(bad.what, "enqueue") {
				return broken(theInterface, "%s answered %s; want %q", bad.what, say(err), queueimpl.ErrBadCall)
			}
		}
	}
	if _, err := c.Settled(ctx); err != nil {
		return fmt.Errorf("after bad calls: %w", err)
	}
	return c.Usable(ctx, "after bad calls")
}

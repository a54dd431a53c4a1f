package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/interrupt"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// The rules in this file act on one command among those of a call: they hold a client up
// before it, lose its request or its answer, or have the client die there.

// producerDies: what a dead producer leaves must not keep others from entering the task.
func producerDies(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.Interrupted(ctx)
		if !line.DiesAt(n, a, func() { _, _ = doomed.Enqueue(ctx, b.Queue, "a") }) {
			return nil
		}
		c := b.Other()
		if _, err := c.Enqueue(ctx, b.Queue, "a"); err != nil {
			return broken(variant.NoLostTask, "after the death of a producer, enqueue of the same id answered %q", err)
		}
		if _, err := c.Enqueue(ctx, b.Queue, "b"); err != nil {
			return broken(variant.NoLostTask, "after the death of a producer, enqueue of another id answered %q", err)
		}
		if err := c.ExpectAll(ctx, "after the death of a producer in its enqueue", "a", "b"); err != nil {
			return err
		}
		return c.Usable(ctx, "after the death of a producer in its enqueue", "a", "b")
	})
}

// consumerDies: tasks that a consumer did not take must come, and where tasks are lent, all.
func consumerDies(ctx context.Context, b bench) error {
	lost := 0
	if loses(b.Variant, variant.NoLostTask, variant.Crash) {
		lost = 1
	}
	inTurn, err := b.InTurn(ctx)
	if err != nil {
		return err
	}
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		c := b.Other()
		ids := []string{"a", "b", "c", "d"}
		const after = 20 * time.Millisecond
		var delayed []queueimpl.Task
		for i, id := range ids { // some of them delayed, so that they are moved when they are due
			if d, ok := c.Queue.(queueimpl.Delayer); ok && i%2 == 1 {
				in, err := d.EnqueueAfter(ctx, b.Queue, after, id)
				if err != nil {
					return broken(theInterface, "enqueue answered %q", err)
				}
				delayed = append(delayed, in...)
			} else if _, err := c.Enqueue(ctx, b.Queue, id); err != nil {
				return broken(theInterface, "enqueue answered %q", err)
			}
		}
		c.PassesUntilDue(ctx, delayed, after)
		doomed, line := b.Interrupted(ctx)
		if !line.DiesAt(n, a, func() { _, _ = doomed.Pop(ctx, b.Queue, 1) }) {
			return nil
		}
		got, err := c.Settled(ctx)
		if err != nil {
			return err
		}
		if len(got) < len(ids)-lost {
			missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return got[id] > 0 })
			hint := ""
			if !b.Variant.AtLeastOnce {
				hint = "; if the queue removes a task as it hands it out (at most once), declare the flaws of no-lost-task under crash and drop-reply in Variant.Flaws"
			}
			return c.Lost(ctx, missing, "a consumer died in a pop of 1, and %q were not delivered after that%s", missing, hint)
		}
		// What a dead consumer was handed may be lost, but not what it would not have been handed.
		for _, id := range ids[1:] {
			if got[id] == 0 && inTurn && keeps(b.Variant, variant.InOrder) {
				return broken(variant.NoLostTask, "a consumer died in a pop of 1, which was to have %q, and %q was not delivered after that; delivered were %s", ids[0], id, queueclient.Deliveries(got))
			}
		}
		for id, times := range got {
			if times > 1 && !b.Variant.AtLeastOnce && !loses(b.Variant, variant.NoDuplicateDelivery, variant.Crash) {
				return broken(variant.NoDuplicateDelivery, "a consumer died in a pop of 1, and %q was delivered %d times after that", id, times)
			}
		}
		return c.Usable(ctx, "after the death of a consumer in its pop", ids...)
	})
}

// lostRequest: a pop of several tasks of which a command was never executed. All other tasks that
// it had taken by then must come back.
func lostRequest(ctx context.Context, b bench) error {
	return b.Each(ctx, []interrupt.Action{interrupt.LoseRequest}, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		c, line := b.Interrupted(ctx)
		ids := []string{"a", "b", "c", "d"}
		if _, err := c.Enqueue(ctx, b.Queue, ids...); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
		line.Arm(n, a)
		first, err := c.Pop(ctx, b.Queue, len(ids))
		line.Plan(nil)
		if err := c.Done(ctx, first...); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
		got, e := b.Other().Settled(ctx)
		if e != nil {
			return e
		}
		for _, t := range first {
			got[t.ID]++
		}
		for _, id := range ids {
			if got[id] == 0 {
				return broken(variant.NoLostTask, "a pop of %d, of which a command was not executed, answered %q, and %q was never delivered; delivered were %s", len(ids), err, id, queueclient.Deliveries(got))
			}
		}
		return b.Other().Usable(ctx, "after a pop of which a command was not executed", ids...)
	})
}

// ackerDies: the ack of a consumer that dies in it either counts or lets the task come again.
func ackerDies(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.Interrupted(ctx)
		tasks, err := doomed.Given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		if !line.DiesAt(n, a, func() { _ = doomed.Done(ctx, tasks...) }) {
			return nil
		}
		c := b.Other()
		if _, err := c.Settled(ctx); err != nil {
			return err
		}
		if err := c.ExpectState(ctx, variant.NoLostTask, nil, nil); err != nil {
			return fmt.Errorf("after the death of a consumer in its ack, and everything else was done: %w", err)
		}
		if _, err := c.Enqueue(ctx, b.Queue, "a"); err != nil {
			return broken(variant.NoLostTask, "the id of a task whose consumer died in its ack cannot be enqueued again: %v", err)
		}
		return c.ExpectAll(ctx, "after the death of an earlier consumer in its ack", "a")
	})
}

// reclaimerDies: no task is lost when a client dies as it ends claims that have run out.
func reclaimerDies(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.Interrupted(ctx)
		ids := []string{"a", "b", "c"}
		if _, err := doomed.Enqueue(ctx, b.Queue, ids...); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
		if _, err := doomed.ExpectTake(ctx, variant.NoLostTask, 3, slices.Clone(ids)...); err != nil {
			return err
		}
		b.Passes(ctx, claim*5/4)
		reclaim := func() { _, _ = doomed.Pop(ctx, b.Queue, 1) }
		if r, ok := doomed.Queue.(queueimpl.Reclaimer); ok && n%2 == 1 {
			reclaim = func() { _, _ = r.Reclaim(ctx, b.Queue) }
		}
		if !line.DiesAt(n, a, reclaim) {
			return nil
		}
		c := b.Other()
		if err := c.ExpectAll(ctx, "after the death of a client that ended claims which had run out", ids...); err != nil {
			return err
		}
		return c.Usable(ctx, "after the death of a client that ended claims which had run out", ids...)
	})
}

// lostAnswers: calls that had no answer are made again. One command of one call is lost.
func lostAnswers(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for _, call := range []string{"enqueue", "pop", "ack"} {
			own := b
			own.Queue += "-" + call
			if err := lostAnswer(ctx, own, call, n, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// lostAnswer takes a task through the queue, and loses a command of one call.
func lostAnswer(ctx context.Context, b bench, lost string, n int, a interrupt.Action) error {
	c, line := b.Interrupted(ctx)
	call := func(name string, do func() error) error {
		if name == lost {
			line.Arm(n, a)
			defer line.Plan(nil)
		}
		return do()
	}
	if err := call("enqueue", func() error { _, err := c.Enqueue(ctx, b.Queue, "a"); return err }); err != nil {
		if _, err := c.Enqueue(ctx, b.Queue, "a"); err != nil {
			return broken(variant.NoLostTask, "enqueue, sent again, answered %q", err)
		}
	}
	var first []queueimpl.Task
	popErr := call("pop", func() (err error) { first, err = c.Pop(ctx, b.Queue, 1); return err })
	if popErr != nil {
		first = nil
	}
	acked := len(first) > 0
	if err := call("ack", func() error { return c.Done(ctx, first...) }); err != nil && lost == "ack" {
		if err := c.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, first[0]); err != nil && !errors.Is(err, queueimpl.ErrLost) {
			return broken(theInterface, "an ack, sent again, answered %q", err)
		}
	} else if err != nil {
		return err
	}
	more, err := b.Other().Settled(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(first)+more["a"] == 0 && !(popErr != nil && loses(b.Variant, variant.NoLostTask, variant.DropReply)):
		hint := ""
		if !b.Variant.AtLeastOnce {
			hint = "; if the queue removes a task as it hands it out (at most once), declare the flaw of no-lost-task under drop-reply in Variant.Flaws"
		}
		return broken(variant.NoLostTask, "a command of the %s of a task was lost, and the task was never delivered%s", lost, hint)
	case acked && more["a"] > 0 && (lost != "enqueue" || can[queueimpl.Deduper](b.Variant)): // an enqueue that is sent again makes two entries
		return broken(variant.EffectOnce, "a command of the %s of a task was lost and the call made again, and the task was delivered again after it was done", lost)
	}
	return b.Other().Usable(ctx, fmt.Sprintf("after a command of the %s of a task was lost", lost), "a")
}

// stalledPop holds up a consumer while another one takes everything.
func stalledPop(ctx context.Context, b bench) error {
	return stalledPops(ctx, b, func(*interrupt.Interceptor) {})
}

// scriptsForgotten: a call whose script the server has forgotten, for example in a restart, does what it
// does otherwise.
func scriptsForgotten(ctx context.Context, b bench) error {
	c, line := b.Interrupted(ctx, long)
	var got []queueimpl.Task
	calls := map[string]func() error{
		"enqueue": func() error { _, err := c.Enqueue(ctx, c.Name, "a"); return err },
		"pop":     func() (err error) { got, err = c.Pop(ctx, c.Name, 1); return err },
		"ack":     func() error { return c.Done(ctx, got...) },
	}
	for _, name := range []string{"enqueue", "pop", "ack"} {
		line.ForgetScripts()
		err := calls[name]()
		for again := 0; again < 2 && err != nil; again++ {
			err = calls[name]()
		}
		if err != nil {
			return broken(b.Waiting(), "the server forgot its scripts, and the %s, tried three times, answered %q", name, err)
		}
	}
	return stalledPops(ctx, b, (*interrupt.Interceptor).ForgetScripts)
}

// stalledPops prepares the line of the consumer that is held up.
func stalledPops(ctx context.Context, b bench, prepare func(*interrupt.Interceptor)) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		for theirs := 1; theirs <= 3; theirs += 2 {
			own := b
			own.Queue = fmt.Sprintf("%s-%d", b.Queue, theirs)
			if err := stalledBeside(ctx, own, n, theirs, prepare); err != nil {
				return err
			}
		}
		return nil
	})
}

// stalledBeside enqueues three tasks and holds up a pop of two before its n-th command, while another consumer takes one or more (others).
func stalledBeside(ctx context.Context, b bench, n, others int, prepare func(*interrupt.Interceptor)) error {
	slow, line := b.Interrupted(ctx, long)
	prepare(line)
	c := b.Client()
	ids := []string{"a", "b", "c"}
	now := ids
	const after = 20 * time.Millisecond
	var delayed []queueimpl.Task
	if can[queueimpl.Delayer](b.Variant) { // some of them are moved when they are due
		now = ids[:1]
		var err error
		if delayed, err = c.EnterAfter(ctx, theInterface, after, ids[1:]...); err != nil {
			return err
		}
	}
	if _, err := c.Enqueue(ctx, b.Queue, now...); err != nil {
		return broken(theInterface, "enqueue answered %q", err)
	}
	c.PassesUntilDue(ctx, delayed, after)
	var mine []queueimpl.Task
	var err error
	s := line.Stalled(ctx, n, func() { mine, err = slow.Pop(ctx, b.Queue, 2) })
	if s == nil {
		return nil
	}
	theirs, popErr := c.All(ctx, others, others)
	if popErr == nil {
		popErr = c.Done(ctx, theirs...)
	}
	// A task that comes after these is not one of those that the pop saw.
	var again []queueimpl.Task
	if popErr == nil && len(theirs) == others {
		again, popErr = c.Enqueue(ctx, b.Queue, "d")
	}
	s.GoOn()
	if popErr != nil {
		return popErr
	}
	if err != nil && !errors.Is(err, queueimpl.ErrEmpty) && !errors.Is(err, queueimpl.ErrLocked) {
		return broken(theInterface, "a pop that was held up answered %q", err)
	}
	count := map[string]int{}
	for _, t := range append(slices.Clone(mine), theirs...) {
		if count[t.ID]++; count[t.ID] > 1 {
			return broken(variant.NoDuplicateDelivery, "%q was delivered to two consumers, one of which was held up in its pop", t.ID)
		}
	}
	if err := slow.Done(ctx, mine...); err != nil {
		return fmt.Errorf("of a pop that was held up: %w", err)
	}
	more, err := c.Settled(ctx)
	if err != nil {
		return err
	}
	for _, t := range again {
		ids = append(ids, t.ID)
	}
	for _, id := range ids {
		if count[id]+more[id] == 0 {
			return broken(variant.NoLostTask, "%q was delivered to nobody, after two pops at once", id)
		}
	}
	return c.Usable(ctx, "after two pops at once, and all tasks done", ids...)
}

func long(o *queueimpl.Options) { o.Visibility = 0 }

// stalledEnqueue holds up a producer while another one enters the same id.
func stalledEnqueue(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.Interrupted(ctx)
		c := b.Other()
		var mine []queueimpl.Task
		var err error
		s := line.Stalled(ctx, n, func() { mine, err = slow.Enqueue(ctx, b.Queue, "a") })
		if s == nil {
			return nil
		}
		theirs, e := c.Enqueue(ctx, b.Queue, "a")
		s.GoOn()
		if err = errors.Join(err, e); err != nil {
			return broken(theInterface, "one of two producers at once was answered %q", err)
		}
		if len(mine)+len(theirs) != 1 {
			return broken(variant.OneEntryPerID, "of two producers of one id at once, %d were told that they entered it; want 1", len(mine)+len(theirs))
		}
		got, err := c.ExpectTake(ctx, variant.OneEntryPerID, 5, "a")
		if err == nil {
			err = c.Done(ctx, got...)
		}
		if err != nil {
			return err
		}
		return c.Usable(ctx, "after two producers of one id at once", "a")
	})
}

// stalledAck holds up a consumer in its ack until another has the task.
func stalledAck(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.Interrupted(ctx)
		tasks, err := slow.Given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		s := line.Stalled(ctx, n, func() { err = slow.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, tasks[0]) })
		if s == nil {
			return nil
		}
		next := b.Client() // with a long timeout
		var again []queueimpl.Task
		soon, cancel := context.WithTimeout(ctx, 8*claim)
		defer cancel()
		e := b.Until(soon, "the return of a task whose ack was held up", func() (bool, error) {
			got, err := next.Take(ctx, 1)
			again = append(again, got...)
			return len(again) > 0, err
		})
		s.GoOn()
		if e != nil {
			return nil // the ack had counted before
		}
		if !errors.Is(err, queueimpl.ErrLost) {
			return broken(theInterface, "an ack that was held up until another had the task answered %s; want %q", say(err), queueimpl.ErrLost)
		}
		if err := next.ExpectAck(ctx, variant.NoLostTask, again[0], nil); err != nil {
			return fmt.Errorf("after a late ack by an earlier consumer: %w", err)
		}
		if err := next.ExpectState(ctx, variant.NoLostTask, nil, nil); err != nil {
			return err
		}
		return next.Usable(ctx, "after a late ack by an earlier consumer", "a")
	})
}

// stalledReclaim holds up a client that ends claims, while their tasks are taken and done.
func stalledReclaim(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.Interrupted(ctx)
		holder := b.Other()
		tasks, err := holder.Given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		b.Passes(ctx, claim*5/4)
		var mine []queueimpl.Task
		s := line.Stalled(ctx, n, func() { mine, err = slow.Pop(ctx, b.Queue, 1) })
		if s == nil {
			return nil
		}
		late := holder.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, tasks[0]) // counts unless another was given the task
		s.GoOn()
		if late != nil {
			return nil
		}
		if len(mine) > 0 && err == nil {
			return broken(variant.EffectOnce, "a task was delivered again after its late ack had counted, by a pop that was held up before command %d", n)
		}
		got, err := b.Other().Settled(ctx)
		if err == nil && len(got) > 0 {
			err = broken(variant.EffectOnce, "a task was delivered again after its late ack had counted: %v", got)
		}
		if err != nil {
			return err
		}
		return b.Other().Usable(ctx, "after a late ack that had counted, and a pop that was held up", tasks[0].ID)
	})
}

// stalledDequeue holds up a producer that withdraws a task, while a consumer takes it.
func stalledDequeue(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.Interrupted(ctx)
		in, err := slow.Enqueue(ctx, b.Queue, "a")
		if err != nil || len(in) != 1 {
			return broken(theInterface, "enqueue answered %v and %v", in, err)
		}
		s := line.Stalled(ctx, n, func() { err = slow.Queue.(queueimpl.Dequeuer).Dequeue(ctx, b.Queue, "a", in[0].Score) })
		if s == nil {
			return nil
		}
		c := b.Other()
		got, e := c.Take(ctx, 1)
		s.GoOn()
		if e != nil {
			return e
		}
		if err == nil && len(got) > 0 {
			return broken(variant.NoDuplicateDelivery, "a task was withdrawn and delivered as well: the dequeue was held up before command %d", n)
		}
		if err := c.Done(ctx, got...); err != nil {
			return err
		}
		return c.Usable(ctx, "after a dequeue that was held up while a consumer popped", "a")
	})
}

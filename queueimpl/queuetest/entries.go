package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file follow one entry through what can happen to it, and many entries through
// what happens to many.

// mixedDue: beside a task that is due are others that are not.
func mixedDue(ctx context.Context, b bench) error {
	for i, lateFirst := range []bool{false, true} {
		c := b.Client()
		c.Name = fmt.Sprintf("%s-%d", b.Queue, i)
		steps := []func() error{
			func() error { _, err := c.Enter(ctx, variant.NotEarly, "now", "too"); return err },
			func() error {
				_, err := c.EnterAfter(ctx, variant.NotEarly, time.Hour, "later", "latest")
				return err
			},
		}
		if lateFirst {
			slices.Reverse(steps)
		}
		if err := firstOf(steps...); err != nil {
			return err
		}
		if p, ok := c.Queue.(queueimpl.Peeker); ok {
			tasks, err := p.Peek(ctx, c.Name, 5)
			if err != nil {
				return broken(theInterface, "peek of 5 answered %q", err)
			}
			for _, t := range tasks {
				if t.ID == "later" || t.ID == "latest" {
					return broken(theInterface, "peek of 5 showed %q, which is due in an hour; want what is due", idsOf(tasks))
				}
			}
		}
		got, err := c.All(ctx, 5, 2)
		if err != nil {
			return err
		}
		for _, t := range got {
			if t.ID == "later" || t.ID == "latest" {
				return broken(variant.NotEarly, "pop of 5 answered %q, and %q is due in an hour", idsOf(got), t.ID)
			}
		}
		if len(got) != 2 {
			return broken(variant.NoLostTask, "pop of 5 answered %q; want the two that are due", idsOf(got))
		}
		if err := c.Done(ctx, got...); err != nil {
			return err
		}
		if err := c.ExpectState(ctx, variant.NoLostTask, []string{"later", "latest"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// overwriteEarlier: the latest entry of an id counts, whether it is due before the one that it replaces
// or after it.
func overwriteEarlier(ctx context.Context, b bench) error {
	const of = variant.OneEntryPerID
	c := b.Client(overwriting)
	was, err := c.EnterAfter(ctx, of, time.Hour, "a")
	if err != nil {
		return err
	}
	now, err := c.Overwrite(ctx, 0, was[0])
	if err != nil {
		return err
	}
	tasks, err := c.ExpectTake(ctx, of, 2, "a")
	if err != nil {
		return fmt.Errorf("an id that was due in an hour was enqueued again, to be due at once: %w", err)
	}
	if tasks[0].Score != now.Score {
		return broken(of, "an id was enqueued again with the score %f, and delivered with %f", now.Score, tasks[0].Score)
	}
	if err := c.Done(ctx, tasks...); err != nil {
		return err
	}
	if was, err = c.Enter(ctx, of, "a"); err != nil {
		return err
	}
	if _, err := c.Overwrite(ctx, time.Hour, was[0]); err != nil {
		return err
	}
	if _, err := c.ExpectTake(ctx, of, 2); err != nil {
		return fmt.Errorf("an id that was due at once was enqueued again, to be due in an hour: %w", err)
	}
	return c.ExpectState(ctx, of, []string{"a"}, nil)
}

// ownReceipts: a client that is given an id twice has two receipts, and the earlier one is of no more
// use to it than to another.
func ownReceipts(ctx context.Context, b bench) error {
	c := b.Client()
	earlier := func(old queueimpl.Task, what string) error {
		if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, old); err == nil {
			return broken(variant.NoLostTask, "an ack with the receipt of an earlier delivery, to the same client, %s, was answered with success; want %q", what, queueimpl.ErrLost)
		}
		if x, ok := c.Queue.(queueimpl.Extender); ok {
			if _, err := x.Extend(ctx, c.Name, old); err == nil {
				return broken(variant.EffectOnce, "an extend with the receipt of an earlier delivery, to the same client, %s, was answered with success; want %q", what, queueimpl.ErrLost)
			}
		}
		return c.ExpectState(ctx, variant.NoLostTask, nil, []string{"b"})
	}
	if _, err := c.Enter(ctx, theInterface, "b"); err != nil {
		return err
	}
	old, err := c.Next(ctx)
	if err != nil {
		return err
	}
	if _, err := c.Enter(ctx, theInterface, "b"); err != nil {
		return err
	}
	now, err := c.ExpectTake(ctx, variant.NoLostTask, 1, "b")
	if err != nil {
		return err
	}
	return firstOf(
		func() error { return earlier(old, "of an entry that is done") },
		func() error { return c.ExpectAck(ctx, variant.NoLostTask, now[0], nil) },
		func() error { return c.ExpectState(ctx, variant.NoLostTask, nil, nil) },
	)
}

// waitsAgain lets the claims of two tasks run out. Then another client has one of the tasks, and the other one, had,
// waits. had is nil if the queue's state does not list a task that waits again.
func waitsAgain(ctx context.Context, b bench, change ...func(*queueimpl.Options)) (holder, other *client, had *queueimpl.Task, _ error) {
	holder = b.Client(append([]func(*queueimpl.Options){claims}, change...)...)
	if _, err := holder.Enter(ctx, theInterface, "first", "second"); err != nil {
		return nil, nil, nil, err
	}
	taken, err := holder.ExpectTake(ctx, theInterface, 2, "first", "second")
	if err != nil {
		return nil, nil, nil, err
	}
	b.Passes(ctx, claim*5/4)
	other = b.Client(append([]func(*queueimpl.Options){func(o *queueimpl.Options) { o.Visibility = 4 * claim }}, change...)...)
	if r, ok := other.Queue.(queueimpl.Reclaimer); ok {
		if _, err := r.Reclaim(ctx, b.Queue); err != nil {
			return nil, nil, nil, broken(theInterface, "reclaim answered %q", err)
		}
	}
	var given []queueimpl.Task
	if err := b.Until(ctx, "the delivery of a task whose claim has run out", func() (bool, error) {
		given, err = other.Take(ctx, 1)
		return len(given) > 0, err
	}); err != nil {
		return nil, nil, nil, err
	}
	s, err := other.State(ctx, b.Queue)
	if err != nil {
		return nil, nil, nil, broken(theInterface, "state answered %q", err)
	}
	for _, t := range taken {
		if t.ID != given[0].ID && slices.Contains(idsOf(s.Waiting), t.ID) {
			return holder, other, &t, nil
		}
	}
	return nil, nil, nil, nil
}

// attemptsCount: nothing that happens to a task between two deliveries resets the count of its deliveries, or delays
// that the task becomes a dead letter.
func attemptsCount(ctx context.Context, b bench) error {
	dead, ignores := can[queueimpl.DeadLetters](b.Variant), ignoresRepeats(b.Variant)
	const most = 3
	limited := func(o *queueimpl.Options) {
		o.Visibility = 2 * visibility
		if dead {
			o.MaxAttempts = most
		}
	}
	whats := []string{"nothing", "being extended", "being enqueued again, which is ignored, while somebody has it", "being enqueued again, which is ignored, while it waits"}
whats:
	for i, what := range whats {
		if i == 1 && !can[queueimpl.Extender](b.Variant) || i > 1 && !ignores || i == 3 && !can[queueimpl.Reclaimer](b.Variant) {
			continue
		}
		c := b.Client(limited)
		c.Name = fmt.Sprintf("%s-%d", b.Queue, i)
		if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
			return err
		}
		for n := 1; n <= most; n++ {
			t, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
			if err != nil {
				return err
			}
			if t.Attempt != n && t.Attempt != 0 {
				of := theInterface
				if i > 1 && keeps(b.Variant, variant.OneEntryPerID) {
					of = variant.OneEntryPerID // an ignored enqueue changes nothing
				}
				return broken(of, "delivery %d of a task is called attempt %d; what happened to it in between is %s", n, t.Attempt, what)
			}
			switch i {
			case 1:
				_, _ = c.Queue.(queueimpl.Extender).Extend(ctx, c.Name, t)
			case 2, 3:
				if n == most {
					break // it may be a dead letter by now, and begin a new life
				}
				if i == 2 {
					if in, err := c.Enqueue(ctx, c.Name, "a"); err == nil && len(in) > 0 {
						continue whats // a claimed task is not in the queue: the id waits there anew
					}
					break
				}
				if err := b.Until(ctx, "the end of a claim", func() (bool, error) {
					n, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name)
					return n > 0, err
				}); err != nil {
					return err
				}
				if in, err := c.Enqueue(ctx, c.Name, "a"); err != nil || len(in) > 0 {
					return broken(variant.OneEntryPerID, "enqueue of an id that waits again answered %q and %v; want that it is ignored", idsOf(in), err)
				}
			}
		}
		if !dead {
			continue
		}
		if err := b.Until(ctx, "a dead letter", func() (bool, error) {
			if got, err := c.Take(ctx, 1); err != nil || len(got) > 0 {
				if err == nil {
					err = broken(theInterface, "a task was delivered %d times, and the most is %d; what happened to it in between is %s", most+1, most, what)
				}
				return false, err
			}
			letters, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
			return len(letters) > 0, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// repeatsKept reports whether a queue keeps several entries with one id.
func repeatsKept(v queueimpl.Variant) bool { return !can[queueimpl.Deduper](v) }

// sameIDs: each of two entries with the same id is delivered, independently of the other.
func sameIDs(ctx context.Context, b bench) error {
	c := b.Client()
	for range 2 {
		in, err := c.Enqueue(ctx, c.Name, "a")
		if err != nil {
			return broken(theInterface, "enqueue of an id that is in the queue answered %q", err)
		}
		if len(in) != 1 {
			return nil // it keeps one
		}
	}
	had, err := c.All(ctx, 2, 2)
	if err != nil {
		return err
	}
	if len(had) != 2 {
		return broken(variant.NoLostTask, "an id was entered twice, and %d of the two were delivered", len(had))
	}
	if !lends(b.Variant) {
		return nil
	}
	if err := c.ExpectAck(ctx, theInterface, had[0], nil); err != nil {
		return err
	}
	if err := c.ExpectState(ctx, variant.NoLostTask, nil, []string{"a"}); err != nil {
		return fmt.Errorf("of two entries with one id, both delivered, one was acknowledged: %w", err)
	}
	if err := c.ExpectAck(ctx, variant.NoLostTask, had[1], nil); err != nil {
		return fmt.Errorf("of two entries with one id, both delivered, one was acknowledged: %w", err)
	}
	if _, err := c.Enqueue(ctx, c.Name, "a", "a"); err != nil {
		return broken(theInterface, "enqueue answered %q", err)
	}
	for range 2 {
		if _, err := c.Next(ctx); err != nil {
			return fmt.Errorf("of two entries with one id: %w", err)
		}
	}
	if err := c.ExpectState(ctx, variant.NoLostTask, nil, nil); err != nil {
		return err
	}
	return oneOfTwins(ctx, b.Client(claims))
}

// oneOfTwins enters two tasks with one id in one call, and has the consumer of one die.
func oneOfTwins(ctx context.Context, c *client) error {
	c.Name += "-twins"
	if _, err := c.Enqueue(ctx, c.Name, "a", "a"); err != nil {
		return broken(theInterface, "enqueue answered %q", err)
	}
	had, err := c.All(ctx, 2, 2)
	if err != nil || len(had) != 2 {
		return err // other rules are about that
	}
	if err := c.ExpectAck(ctx, theInterface, had[0], nil); err != nil {
		return err
	}
	again, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
	if err != nil {
		return fmt.Errorf("two tasks with one id were enqueued in one call and delivered, and one was acknowledged; the other: %w", err)
	}
	return c.ExpectAck(ctx, theInterface, again, nil)
}

// lateExtend: a claim that has run out is over, whether anybody has taken the task since or not.
func lateExtend(ctx context.Context, b bench) error {
	c := b.Client(claims)
	x := c.Queue.(queueimpl.Extender)
	if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	start := c.Env.Clock.Now()
	taken, err := c.ExpectTake(ctx, theInterface, 1, "a")
	if err != nil {
		return err
	}
	took := c.Env.Clock.Now().Sub(start)
	if err := b.Ended(ctx, c, taken[0].Until.Add(took+claim/5)); err != nil {
		return err
	}
	if _, err := x.Extend(ctx, c.Name, taken[0]); !errors.Is(err, queueimpl.ErrLost) {
		return broken(theInterface, "extend of a claim that had run out, of a task that nobody was given since, answered %s; want %q", say(err), queueimpl.ErrLost)
	}
	own := b
	own.Queue += "-again"
	holder, other, had, err := waitsAgain(ctx, own)
	if err != nil || had == nil {
		return err
	}
	if _, err := x.Extend(ctx, holder.Name, *had); !errors.Is(err, queueimpl.ErrLost) {
		return broken(theInterface, "extend of a claim that had run out, of a task that waits again, answered %s; want %q", say(err), queueimpl.ErrLost)
	}
	_, err = other.ExpectNext(ctx, variant.NoLostTask, had.ID)
	return err
}

// extendOften: an extend starts the timeout again, and does not add to it.
func extendOften(ctx context.Context, b bench) error {
	const times = 12
	c := b.Client(claims)
	x := c.Queue.(queueimpl.Extender)
	start := c.Env.Clock.Now()
	taken, err := c.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	t := taken[0]
	claim := max(claim, t.Until.Sub(start)) // a queue may round it up
	for range times {
		if t, err = x.Extend(ctx, c.Name, t); err != nil {
			return nil // a machine so busy that the claim is over; other rules extend, too
		}
	}
	now := c.Env.Clock.Now()
	if t.Until.After(now.Add(claim + grain)) {
		return broken(theInterface, "a claim of %v was extended %d times, and its end is said to be in %v", claim, times, t.Until.Sub(now))
	}
	other := b.Client(claims)
	end := now.Add(claim)
	if _, err := other.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
		return err
	}
	if late := other.Env.Clock.Now().Sub(end); late > 2*lateness {
		return broken(variant.Progress, "a claim of %v was extended %d times in a row, and ended %v after the last one was over: an extend starts the timeout again, and does not add to it", claim, times, late.Round(time.Millisecond))
	}
	return nil
}

// slowAnswers: the end of a claim counts from before the call, so that after a slow answer a consumer does
// not believe that it holds the task for longer than the server does.
func slowAnswers(ctx context.Context, b bench) error {
	const by = 60 * time.Millisecond
	if b.Pass != nil {
		return nil // a virtual clock stands still meanwhile
	}
	c := b.Slow(by).Client(claims)
	taken, err := c.Given(ctx, variant.NoLostTask)
	if err != nil {
		return err
	}
	other := b.Client(claims)
	if _, err := other.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
		return err
	}
	if err := early(other, taken[0], variant.NoDuplicateDelivery); err != nil {
		return fmt.Errorf("the answers to a consumer took %v: %w", by, err)
	}
	return nil
}

// dequeueAgain: a task that waits again after its claim has run out can be dequeued.
func dequeueAgain(ctx context.Context, b bench) error {
	_, other, had, err := waitsAgain(ctx, b)
	if err != nil || had == nil {
		return err
	}
	if err := other.Queue.(queueimpl.Dequeuer).Dequeue(ctx, b.Queue, had.ID, had.Score); err != nil {
		return broken(theInterface, "dequeue of a task that waits again after its claim has run out, with its score, answered %q; want success", err)
	}
	got, err := other.Take(ctx, 2)
	if err == nil && slices.Contains(idsOf(got), had.ID) {
		err = broken(variant.NoDuplicateDelivery, "%q was withdrawn and delivered as well", had.ID)
	}
	return err
}

// deadAck: the last consumer of a dead letter acknowledges it after all. It counts, and then the letter
// is gone, or it does not.
func deadAck(ctx context.Context, b bench) error {
	c := b.Client(func(o *queueimpl.Options) { o.Visibility, o.MaxAttempts = visibility, 1 })
	d := c.Queue.(queueimpl.DeadLetters)
	taken, err := c.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	var dead []queueimpl.Task
	if err := b.Until(ctx, "the dead letter", func() (bool, error) {
		if _, err := c.ExpectTake(ctx, theInterface, 1); err != nil {
			return false, err
		}
		dead, err = d.Dead(ctx, c.Name)
		return len(dead) > 0, err
	}); err != nil {
		return err
	}
	late := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, taken[0])
	if dead, err = d.Dead(ctx, c.Name); err != nil {
		return broken(theInterface, "dead letters: %q", err)
	}
	if late == nil && len(dead) > 0 {
		return broken(variant.EffectOnce, "a late ack of a dead letter was answered with success, and it is a dead letter still")
	}
	if late != nil && len(dead) == 0 {
		return broken(variant.NoLostTask, "a late ack of a dead letter was answered %q, and the dead letter is gone", late)
	}
	return nil
}

// manyDead: all tasks that have had their attempts are dead letters, and count as claims that were ended.
func manyDead(ctx context.Context, b bench) error {
	const lasting = 4 * claim
	c := b.Client(func(o *queueimpl.Options) { o.Visibility, o.MaxAttempts = lasting, 1 })
	n := b.Fits(ctx, 1500, 100, 2*lasting)
	if b.Pass != nil {
		n = 250 // an emulation takes its time
	}
	for ; ; n /= 2 { // fewer, if so many cannot be taken while a claim lasts
		ids := numbered(n)
		c.Name = fmt.Sprintf("%s-%d", b.Queue, n)
		if _, err := c.Enter(ctx, theInterface, ids...); err != nil {
			return err
		}
		start := time.Now()
		got, err := c.All(ctx, n, n)
		if err != nil {
			return err
		}
		if b.Pass == nil && time.Since(start) > lasting {
			if n < 12 {
				return &suitetest.TooSlow{Why: fmt.Sprintf("%d tasks were not taken while a claim lasts", n)}
			}
			continue
		}
		if len(got) != n {
			return broken(variant.NoLostTask, "of %d tasks, %d were delivered", n, len(got))
		}
		break
	}
	b.Passes(ctx, lasting+grain)
	ended := 0
	r, reclaims := c.Queue.(queueimpl.Reclaimer)
	if err := b.Until(ctx, "the end of all claims", func() (bool, error) {
		if reclaims {
			more, err := r.Reclaim(ctx, c.Name)
			if ended += more; err != nil {
				return false, broken(theInterface, "reclaim answered %q", err)
			}
		} else if _, err := c.Take(ctx, 1); err != nil {
			return false, err
		}
		s, err := c.State(ctx, c.Name)
		return len(s.Claimed)+len(s.Waiting) == 0, err
	}); err != nil {
		return err
	}
	dead, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
	if err != nil {
		return broken(theInterface, "dead letters: %q", err)
	}
	if len(dead) != n {
		return broken(variant.NoLostTask, "%d tasks had all their attempts, and Dead returned %d", n, len(dead))
	}
	if reclaims && ended != n {
		return broken(theInterface, "reclaim said that it ended %d claims of %d; those of dead letters count, too", ended, n)
	}
	return nil
}

// manyAtOnce asks for all tasks at once.
func manyAtOnce(ctx context.Context, b bench) error {
	producer, c := b.Client(), b.Client()
	n := b.Fits(ctx, 1200, 60, 3*time.Second)
	if b.Pass != nil {
		n = min(n, 260)
	}
	want, ids := map[string]bool{}, numbered(n)
	for _, id := range ids {
		want[id] = true
	}
	if _, err := producer.Enter(ctx, variant.NoLostTask, ids...); err != nil {
		return err
	}
	var had []queueimpl.Task
	for {
		got, err := c.Take(ctx, n)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			break
		}
		for _, t := range got {
			if !want[t.ID] {
				return broken(variant.NoDuplicateDelivery, "%q was delivered twice", t.ID)
			}
			delete(want, t.ID)
		}
		had = append(had, got...)
	}
	if len(want) > 0 {
		return broken(variant.NoLostTask, "of %d tasks, asked for by pops of %d, %d were not delivered, such as %q", n, n, len(want), keysOf(want))
	}
	for _, t := range had[:min(len(had), 100)] {
		if err := c.Done(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// batchInOrder asks for many tasks at once. Their ids are in another order than their due times.
func batchInOrder(ctx context.Context, b bench) error {
	c := b.Client()
	n := b.Fits(ctx, 150, 20, time.Second)
	at := map[string]int{}
	var in []queueimpl.Task
	for i := range n {
		id := fmt.Sprintf("task-%03d", n-i)
		at[id] = i
		one, err := c.Enter(ctx, variant.NoLostTask, id)
		if err != nil {
			return err
		}
		in = append(in, one...)
		if b.Pass != nil {
			b.Pass(time.Millisecond)
		}
	}
	got, err := c.All(ctx, n, n)
	if err != nil {
		return err
	}
	if err := sorted(got); err != nil {
		return err
	}
	for i := 1; i < len(got); i++ {
		p, t := at[got[i-1].ID], at[got[i].ID]
		if in[p].Score > in[t].Score {
			return broken(variant.InOrder, "in a pop of %d, %q, due at %f, was delivered after %q, due at %f", n, got[i].ID, in[t].Score, got[i-1].ID, in[p].Score)
		}
		if in[p].Score == 0 && in[t].Score == 0 && p > t && !can[queueimpl.Delayer](b.Variant) {
			return broken(variant.InOrder, "in a pop of %d, %q was delivered after %q, and was enqueued before it", n, got[i].ID, got[i-1].ID)
		}
	}
	return nil
}

// journalInterrupted: what a pop under a request took is in the journal, wherever the pop was interrupted.
func journalInterrupted(ctx context.Context, b bench) error {
	return b.Each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.Interrupted(ctx, long)
		c := b.Client()
		ids := []string{"a", "b", "c"}
		if _, err := c.Enter(ctx, variant.NoLostTask, ids...); err != nil {
			return err
		}
		if !line.DiesAt(n, a, func() { _, _ = doomed.Queue.(queueimpl.Journaler).PopAs(ctx, b.Queue, c.Request(0), 2) }) {
			return nil
		}
		j := c.Queue.(queueimpl.Journaler)
		took, err := j.Popped(ctx, b.Queue, c.Request(0))
		if err != nil {
			return broken(theInterface, "journal of a request answered %q", err)
		}
		rest, err := c.All(ctx, len(ids), len(ids))
		if err != nil {
			return err
		}
		there := append(idsOf(took), idsOf(rest)...)
		slices.Sort(there)
		if !slices.Equal(there, ids) {
			return broken(variant.NoLostTask, "a consumer died in a pop under a request: the journal says that it took %q, and %q are left of %q", idsOf(took), idsOf(rest), ids)
		}
		if len(took) == 0 {
			return nil
		}
		again, err := j.PopAs(ctx, b.Queue, c.Request(0), 2)
		if err != nil || !slices.EqualFunc(again, took, same) {
			return broken(variant.NoLostTask, "a request whose consumer died took %q by its journal, and sent again %q (%v)", idsOf(took), idsOf(again), err)
		}
		return nil
	})
}

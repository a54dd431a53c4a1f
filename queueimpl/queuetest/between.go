package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/internal/interrupt"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file hold a client up between two commands of a call, while other clients go on.

// held is a client that is held up before the n-th command of a call, and another client of the
// same queue.
type held struct {
	*client
	line  *interrupt.Line
	n     int
	other *client
}

// heldUp makes both, on a queue of their own.
func heldUp(ctx context.Context, b bench, n int, what string, change ...func(*queueimpl.Options)) *held {
	b.Queue += "-" + what
	c, line := b.Interrupted(ctx, change...)
	return &held{c, line, n, b.Client(change...)}
}

// while has something else happen while a call is held up. It reports false if the call has fewer
// commands.
func (h *held) while(ctx context.Context, call func(), others func() error) (bool, error) {
	s := h.line.Stalled(ctx, h.n, call)
	if s == nil {
		return false, nil
	}
	err := others()
	s.GoOn()
	return true, err
}

// whileOthersEnter holds up an ack while another task is entered.
func whileOthersEnter(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		h := heldUp(ctx, b, n, "ack", long)
		had, err := h.Given(ctx, theInterface)
		if err != nil {
			return err
		}
		there, err := h.while(ctx, func() { _ = h.Done(ctx, had...) }, func() error {
			_, err := h.other.Enter(ctx, variant.NoLostTask, "b")
			return err
		})
		if err != nil || !there {
			return err
		}
		if _, err := h.other.Takes(ctx, variant.NoLostTask, 1, "b"); err != nil {
			return fmt.Errorf("the ack of a task was held up while another task was entered: %w", err)
		}
		return nil
	})
}

// dequeueOfEarlier holds up a dequeue while its task is done, and the id enqueued again. The new entry
// has another score.
func dequeueOfEarlier(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		h := heldUp(ctx, b, n, "dequeue", long)
		in, err := h.Enter(ctx, theInterface, "a")
		if err != nil {
			return err
		}
		taken, again := false, []queueimpl.Task(nil)
		there, err := h.while(ctx, func() { _ = h.Queue.(queueimpl.Dequeuer).Dequeue(ctx, h.Name, "a", in[0].Score) }, func() error {
			b.Passes(ctx, grain)
			got, err := h.other.Take(ctx, 1)
			if err != nil || len(got) == 0 {
				return err
			}
			if err := h.other.Done(ctx, got...); err != nil {
				return err
			}
			taken = true
			again, err = h.other.Enter(ctx, theInterface, "a")
			return err
		})
		if err != nil || !there || !taken || again[0].Score == in[0].Score {
			return err
		}
		if err := h.other.Holds(ctx, variant.NoLostTask, []string{"a"}, nil); err != nil {
			return fmt.Errorf("a dequeue was held up before command %d while its task was done, and the id enqueued again with another score: %w", n, err)
		}
		return nil
	})
}

// overwrittenMeanwhile holds up each call that concerns an entry while that is overwritten, to be due later. The
// later entry is there, whichever came first.
func overwrittenMeanwhile(ctx context.Context, b bench) error {
	type step func(ctx context.Context, h *held, had queueimpl.Task) error
	pop := func(ctx context.Context, h *held, _ queueimpl.Task) error {
		got, _ := h.Pop(ctx, h.Name, 1)
		for _, t := range got {
			if now := float64(h.Env.Clock.Now().UnixMicro()) / 1e6; t.Score > now+60 {
				return broken(variant.NotEarly, "it delivered %q, which is due in %.0f s", t.ID, t.Score-now)
			}
		}
		return nil
	}
	calls := []struct {
		name  string
		on    func(queueimpl.Variant) bool
		taken bool // the task was taken before
		ended bool // and its claim has run out
		do    step
	}{
		{"a pop", nil, false, false, pop},
		{"a pop after the end of its claim", lends, true, true, pop},
		{"its ack", lends, true, false, func(ctx context.Context, h *held, had queueimpl.Task) error {
			_ = h.Queue.(queueimpl.Acker).Ack(ctx, h.Name, had)
			return nil
		}},
		{"its extend", both(lends, can[queueimpl.Extender]), true, false, func(ctx context.Context, h *held, had queueimpl.Task) error {
			_, _ = h.Queue.(queueimpl.Extender).Extend(ctx, h.Name, had)
			return nil
		}},
		{"its dequeue", can[queueimpl.Dequeuer], false, false, func(ctx context.Context, h *held, had queueimpl.Task) error {
			_ = h.Queue.(queueimpl.Dequeuer).Dequeue(ctx, h.Name, had.ID, had.Score)
			return nil
		}},
	}
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		for _, call := range calls {
			if call.on != nil && !call.on(b.Variant) {
				continue
			}
			lasting := long
			if call.ended {
				lasting = claims
			}
			h := heldUp(ctx, b, n, strings.ReplaceAll(call.name, " ", "-"), lasting, overwriting)
			had, err := h.Enter(ctx, theInterface, "a")
			if err == nil && call.taken {
				had, err = h.Takes(ctx, theInterface, 1, "a")
			}
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s was held up before command %d while the entry was overwritten, to be due in an hour", call.name, n)
			if call.ended {
				b.Passes(ctx, claim*5/4)
			}
			var done error
			var in []queueimpl.Task
			there, err := h.while(ctx, func() { done = call.do(ctx, h, had[0]) }, func() (err error) {
				in, err = h.other.Queue.(queueimpl.Delayer).EnqueueAfter(ctx, h.Name, time.Hour, "a")
				return err
			})
			if err != nil {
				return err
			}
			if !there || len(in) == 0 {
				continue
			}
			if done != nil {
				return fmt.Errorf("%s: %w", what, done)
			}
			s, err := h.other.State(ctx, h.Name)
			if err != nil {
				return broken(theInterface, "state answered %q", err)
			}
			if !slices.ContainsFunc(s.Waiting, func(t queueimpl.Task) bool { return t.ID == "a" && t.Score == in[0].Score }) {
				return broken(variant.NoLostTask, "%s: the later entry does not wait", what)
			}
		}
		return nil
	})
}

// claimTakenMeanwhile holds up an extend, or a pop after the end of a claim, until another client is
// given the task. Both clients have the same time-out: where claims end by idle time, that of the
// next client counts.
func claimTakenMeanwhile(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		if err := extendHeldUp(ctx, b, n); err != nil {
			return err
		}
		return popHeldUp(ctx, b, n)
	})
}

// givenTo has a client pop until it is given the task, for some time.
func givenTo(ctx context.Context, b bench, c *client) (got []queueimpl.Task, err error) {
	for range 20 {
		if got, err = c.Take(ctx, 1); err != nil || len(got) > 0 {
			return got, err
		}
		b.Passes(ctx, claim/10)
	}
	return nil, nil
}

func extendHeldUp(ctx context.Context, b bench, n int) error {
	if !can[queueimpl.Extender](b.Variant) {
		return nil
	}
	h := heldUp(ctx, b, n, "extend", claims)
	had, err := h.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	var extended error
	var theirs []queueimpl.Task
	there, err := h.while(ctx, func() { _, extended = h.Queue.(queueimpl.Extender).Extend(ctx, h.Name, had[0]) }, func() (err error) {
		b.Passes(ctx, claim*5/4)
		theirs, err = givenTo(ctx, b, h.other)
		return err
	})
	if err != nil || !there || len(theirs) == 0 {
		return err
	}
	if extended == nil {
		return broken(variant.EffectOnce, "an extend was held up before command %d until another client was given the task, and answered success; want %q", n, queueimpl.ErrLost)
	}
	return nil
}

func popHeldUp(ctx context.Context, b bench, n int) error {
	h := heldUp(ctx, b, n, "pop", claims)
	if _, err := h.Given(ctx, theInterface); err != nil {
		return err
	}
	b.Passes(ctx, claim*5/4)
	var mine, theirs []queueimpl.Task
	there, err := h.while(ctx, func() { mine, _ = h.Pop(ctx, h.Name, 1) }, func() (err error) {
		theirs, err = givenTo(ctx, b, h.other)
		return err
	})
	if err != nil || !there || len(theirs) == 0 || len(mine) == 0 {
		return err
	}
	now := h.Env.Clock.Now()
	if now.Before(theirs[0].Until) && now.Before(mine[0].Until) { // a pop may be held up for longer than its own claim
		return broken(variant.NoDuplicateDelivery, "a pop was held up before command %d while another client was given the task, and was given the task, too, while that claim went on", n)
	}
	return nil
}

// copiesOfRequest holds up a pop under a request while the same request is sent again.
func copiesOfRequest(ctx context.Context, b bench) error {
	return b.Stalls(ctx, func(ctx context.Context, b bench, n int) error {
		h := heldUp(ctx, b, n, "request", long)
		if _, err := h.Enter(ctx, theInterface, "a", "b"); err != nil {
			return err
		}
		var first, second []queueimpl.Task
		var firstErr error
		there, err := h.while(ctx, func() { first, firstErr = h.Queue.(queueimpl.Journaler).PopAs(ctx, h.Name, "request", 1) }, func() (err error) {
			second, err = h.other.Queue.(queueimpl.Journaler).PopAs(ctx, h.Name, "request", 1)
			return err
		})
		if !there || err != nil || firstErr != nil {
			return nil // an error leaves it open what a request took
		}
		if !slices.EqualFunc(first, second, same) {
			return broken(theInterface, "one request was sent twice at once, and took %q and %q; want the same tasks", idsOf(first), idsOf(second))
		}
		return nil
	})
}

// contended is before how many commands of a call another client acts.
const contended = 24

// underContention has another client enqueue before each command of a call. The declared answers are
// true all the same.
func underContention(ctx context.Context, b bench) error {
	c, line := b.Interrupted(ctx, long)
	other := b.Client(long)
	const before = 5
	ids := numbered(before)
	in, err := c.Enter(ctx, theInterface, ids...)
	if err != nil {
		return err
	}
	entered := 0
	during := func(call func() error) error {
		line.Plan(func(nth int) interrupt.Action {
			if nth <= contended {
				if _, err := other.Enqueue(ctx, b.Queue, fmt.Sprint("other-", entered)); err == nil {
					entered++
				}
			}
			return interrupt.Pass
		})
		defer line.Plan(nil)
		return call()
	}
	var got []queueimpl.Task
	err = during(func() (err error) { got, err = c.Pop(ctx, c.Name, 1); return err })
	if declared := declaredAs(err); declared != nil {
		return broken(theInterface, "a pop, before each command of which another client enqueued a task, answered %q, and %d tasks were due", declared, before)
	}
	if a, ok := c.Queue.(queueimpl.Acker); ok && len(got) == 1 {
		err := during(func() error { return a.Ack(ctx, c.Name, got[0]) })
		if declared := declaredAs(err); declared != nil {
			return broken(theInterface, "an ack, before each command of which another client enqueued a task, answered %q, and the task was the caller's", declared)
		}
	}
	d, ok := c.Queue.(queueimpl.Dequeuer)
	if last := in[before-1]; ok && !slices.Contains(idsOf(got), last.ID) {
		err := during(func() error { return d.Dequeue(ctx, c.Name, last.ID, last.Score) })
		if declared := declaredAs(err); declared != nil {
			return broken(theInterface, "a dequeue, before each command of which another client enqueued a task, answered %q, and no other client had touched the task", declared)
		}
	}
	err = during(func() error { _, err := c.Enqueue(ctx, c.Name, "new"); return err })
	if declared := declaredAs(err); declared != nil {
		return broken(theInterface, "an enqueue, before each command of which another client enqueued another task, answered %q", declared)
	}
	return nil
}

// asNewAfterwards: an id that has left the queue, by whatever operation, counts as a new id.
func asNewAfterwards(ctx context.Context, b bench) error {
	ways := []struct {
		name string
		on   func(queueimpl.Variant) bool
		out  func(context.Context, bench) error // takes "a" out of the queue
	}{
		{"its ack", can[queueimpl.Acker], func(ctx context.Context, b bench) error {
			_, err := b.Client(long).Next(ctx)
			return err
		}},
		{"a late ack", lends, lateOut},
		{"its dequeue", can[queueimpl.Dequeuer], dequeuedOut},
		{"its dequeue after the end of a claim", both(lends, both(can[queueimpl.Dequeuer], can[queueimpl.Reclaimer])), dequeuedAfterClaim},
		{"the ack of an entry that overwrote it while it was claimed", both(lends, overwrites), overwrittenOut},
		{"its end as a dead letter", both(lends, can[queueimpl.DeadLetters]), deadOut},
	}
	for i, way := range ways {
		if way.on != nil && !way.on(b.Variant) {
			continue
		}
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
		c := own.Client()
		if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
			return err
		}
		if err := way.out(ctx, own); err != nil {
			return err
		}
		in, err := c.Enqueue(ctx, c.Name, "a")
		if err != nil {
			return broken(variant.NoLostTask, "enqueue of an id after %s answered %q", way.name, err)
		}
		if len(in) == 0 {
			if dead, ok := c.Queue.(queueimpl.DeadLetters); ok {
				if letters, err := dead.Dead(ctx, c.Name); err == nil && slices.Contains(idsOf(letters), "a") {
					continue // the id counts as there
				}
			}
			return broken(variant.NoLostTask, "enqueue of an id after %s entered nothing", way.name)
		}
		t, err := c.Next(ctx)
		if err != nil {
			return fmt.Errorf("an id was enqueued after %s: %w", way.name, err)
		}
		if t.Attempt > 1 {
			return broken(theInterface, "an id was enqueued after %s, and its first delivery is attempt %d", way.name, t.Attempt)
		}
	}
	return nil
}

// ranOut takes "a", and waits until the claim is over.
func ranOut(ctx context.Context, b bench) (*client, queueimpl.Task, error) {
	c := b.Client(impatient)
	tasks, err := c.Takes(ctx, theInterface, 1, "a")
	if err != nil {
		return nil, queueimpl.Task{}, err
	}
	return c, tasks[0], b.Ended(ctx, c, tasks[0].Until)
}

func lateOut(ctx context.Context, b bench) error {
	c, t, err := ranOut(ctx, b)
	if err != nil {
		return err
	}
	return c.Acks(ctx, theInterface, t, nil)
}

func dequeuedOut(ctx context.Context, b bench) error {
	c := b.Client()
	s, err := c.State(ctx, c.Name)
	if err != nil || len(s.Waiting) != 1 {
		return broken(theInterface, "state answered %+v and %s; want one task that waits", s, say(err))
	}
	if err := c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, c.Name, "a", s.Waiting[0].Score); err != nil {
		return broken(theInterface, "dequeue of a task that waits, with its score, answered %q; want success", err)
	}
	return nil
}

func dequeuedAfterClaim(ctx context.Context, b bench) error {
	c, _, err := ranOut(ctx, b)
	if err != nil {
		return err
	}
	if err := b.Until(ctx, "the end of a claim", func() (bool, error) {
		n, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name)
		return n > 0, err
	}); err != nil {
		return err
	}
	return dequeuedOut(ctx, b)
}

func overwrittenOut(ctx context.Context, b bench) error {
	c := b.Client(overwriting)
	tasks, err := c.Takes(ctx, theInterface, 1, "a")
	if err != nil {
		return err
	}
	if _, err := c.Overwrite(ctx, 0, tasks[0]); err != nil {
		return err
	}
	t, err := c.Next(ctx)
	if err == nil && t.Attempt > 1 {
		err = broken(theInterface, "the first delivery of an entry that overwrote a claimed one is attempt %d", t.Attempt)
	}
	return err
}

func deadOut(ctx context.Context, b bench) error {
	c := b.Client(func(o *queueimpl.Options) { o.Visibility, o.MaxAttempts = visibility, 1 })
	if _, err := c.Takes(ctx, theInterface, 1, "a"); err != nil {
		return err
	}
	return b.Until(ctx, "the dead letter", func() (bool, error) {
		if _, err := c.Takes(ctx, theInterface, 1); err != nil {
			return false, err
		}
		dead, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
		return len(dead) > 0, err
	})
}

// namesAndIDs enters tasks of which the queue's name and the id, joined by a separator, are the
// same text. They are tasks of their own.
func namesAndIDs(ctx context.Context, b bench) error {
	c := b.Client()
	for i := byte('!'); i <= '~'; i++ {
		sign := string(i)
		if letter := i|0x20 >= 'a' && i|0x20 <= 'z' || i >= '0' && i <= '9' || sign == "{" || sign == "}"; letter {
			continue
		}
		for _, sign := range []string{sign, sign + sign} {
			first, second := *c, *c
			second.Name = c.Name + sign + "x"
			id := "x" + sign + "y"
			if _, err := first.Enqueue(ctx, first.Name, id); errors.Is(err, queueimpl.ErrBadCall) {
				continue
			} else if err != nil {
				return broken(variant.NoLostTask, "enqueue of %q into %q answered %q", id, first.Name, err)
			}
			in, err := second.Enqueue(ctx, second.Name, "y")
			if errors.Is(err, queueimpl.ErrBadCall) {
				continue
			}
			if err != nil || len(in) != 1 {
				return broken(variant.NoLostTask, "enqueue of %q into %q, with %q in %q, entered %q and answered %s", "y", second.Name, id, first.Name, idsOf(in), say(err))
			}
			t, err := second.Next(ctx)
			if err != nil {
				return fmt.Errorf("%q was enqueued into %q, with %q in %q: %w", "y", second.Name, id, first.Name, err)
			}
			if err := isTask(t, "y"); err != nil {
				return err
			}
		}
	}
	return nil
}

// longOver has claims that ran out long ago, and ends them one at a time, with pauses.
func longOver(ctx context.Context, b bench) error {
	const tasks, hidden = 8, 2 * visibility
	lasting := func(o *queueimpl.Options) { o.Visibility = hidden }
	c, other := b.Client(lasting), b.Client(lasting)
	missing := map[string]bool{}
	for _, id := range numbered(tasks) {
		missing[id] = true
		if _, err := c.Enter(ctx, theInterface, id); err != nil {
			return err
		}
		if _, err := c.Take(ctx, 1); err != nil {
			return err
		}
	}
	b.Passes(ctx, 10*hidden)
	err := b.Until(ctx, "the return of all tasks", func() (bool, error) {
		got, err := other.Take(ctx, 1)
		if err == nil {
			err = other.Done(ctx, got...)
		}
		for _, t := range got {
			delete(missing, t.ID)
		}
		b.Passes(ctx, hidden/8)
		return len(missing) == 0, err
	})
	if n := new(never); errors.As(err, &n) {
		return broken(variant.NoLostTask, "the claims of %d tasks had run out long before, and were ended one at a time: %q were not delivered again in %v", tasks, keysOf(missing), n.After.Round(time.Millisecond))
	}
	return err
}

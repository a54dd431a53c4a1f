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
	"oversell/queueimpl/queuerules"
	"oversell/variant"
)

// The rules in this file hold a client up between two commands of a call, while other clients go on.

// held is a client that is held up before the n-th command of a call, and another client of the
// same queue.
type held struct {
	*client
	line  *interrupt.Interceptor
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
		got, err := h.other.ExpectTake(ctx, variant.NoLostTask, 1, "b")
		if err == nil {
			err = h.other.Done(ctx, got...)
		}
		if err != nil {
			return fmt.Errorf("the ack of a task was held up while another task was entered: %w", err)
		}
		return h.other.Usable(ctx, "after an ack that was held up while another task was entered", "a", "b")
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
		if err := h.other.ExpectState(ctx, variant.NoLostTask, []string{"a"}, nil); err != nil {
			return fmt.Errorf("a dequeue was held up before command %d while its task was done, and the id enqueued again with another score: %w", n, err)
		}
		return nil
	})
}

// overwrittenMeanwhile stops each call that concerns an entry while another client overwrites the entry with a later
// due time. Afterwards the new entry is in the queue, whichever of the two took effect first.
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
				had, err = h.ExpectTake(ctx, theInterface, 1, "a")
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
// given the task. Both clients have the same timeout: where claims end by idle time, that of the
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
		there, err := h.while(ctx, func() { first, firstErr = h.Queue.(queueimpl.Journaler).PopAs(ctx, h.Name, h.Request(0), 1) }, func() (err error) {
			second, err = h.other.Queue.(queueimpl.Journaler).PopAs(ctx, h.Name, h.Request(0), 1)
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

// departure is how a task leaves the queue, or waits in it, before its id is enqueued anew.
type departure struct {
	name string
	on   func(queueimpl.Variant) bool // unless nil: whether the queue can do that
	// out makes the waiting task "a", or another task, leave the queue, and returns its id and the deliveries that it
	// had. The id is empty if the queue does not have this kind of departure.
	out func(context.Context, bench) (id string, earlier []queueimpl.Task, err error)
	// anew are the options of the client that enqueues the id.
	anew []func(*queueimpl.Options)
}

var departures = []departure{
	{name: "its ack", on: can[queueimpl.Acker], out: func(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
		t, err := b.Client(long).Next(ctx)
		return "a", []queueimpl.Task{t}, err
	}},
	{name: "a late ack", on: lends, out: lateOut},
	{name: "its dequeue", on: can[queueimpl.Dequeuer], out: func(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
		return "a", nil, dequeuedOut(ctx, b, "a")
	}},
	{name: "its dequeue after the end of a claim", on: both(lends, can[queueimpl.Dequeuer]), out: func(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
		id, earlier, err := outAgain(ctx, b)
		if err == nil && id != "" {
			err = dequeuedOut(ctx, b, id)
		}
		return id, earlier, err
	}},
	{name: "the ack of an entry that overwrote it while it was claimed", on: both(lends, overwrites), out: overwrittenOut},
	{name: "its end as a dead letter", on: both(lends, can[queueimpl.DeadLetters]), out: deadOut},
	{name: "the late ack of its dead letter", on: both(lends, can[queueimpl.DeadLetters]), out: queuerules.LetterAcked(queuerules.ByPop)},
	{name: "the late ack of its dead letter, which a reclaim had put aside,", on: both(lends, both(can[queueimpl.DeadLetters], can[queueimpl.Reclaimer])), out: queuerules.LetterAcked(queuerules.ByReclaim)},
	{name: "the late ack of its last attempt", on: both(lends, can[queueimpl.DeadLetters]), out: queuerules.LetterAcked(queuerules.NotYet)},
	{name: "it was claimed, to overwrite it", on: both(lends, overwrites), anew: []func(*queueimpl.Options){overwriting}, out: func(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
		taken, err := b.Client(long).ExpectTake(ctx, theInterface, 1, "a")
		return "a", taken, err
	}},
	{name: "its claim had run out and it waited again, to overwrite it", on: both(lends, overwrites), anew: []func(*queueimpl.Options){overwriting}, out: outAgain},
}

// asNewAfterwards: an id that has left the queue, by whatever operation, counts as a new id, and an entry that overwrites
// another one counts as a new entry.
func asNewAfterwards(ctx context.Context, b bench) error {
	for i, d := range departures {
		if d.on != nil && !d.on(b.Variant) {
			continue
		}
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
		if err := d.isForgotten(ctx, own); err != nil {
			return err
		}
	}
	return nil
}

// isForgotten enqueues an id anew: its deliveries are counted from 1, and the receipts of earlier ones are of no use.
func (d departure) isForgotten(ctx context.Context, b bench) error {
	if _, err := b.Client().Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	id, earlier, err := d.out(ctx, b)
	if err != nil || id == "" {
		return err
	}
	c := b.Client(d.anew...)
	in, err := c.Enqueue(ctx, c.Name, id)
	if err != nil {
		return broken(variant.NoLostTask, "enqueue of an id after %s answered %q", d.name, err)
	}
	if len(in) == 0 {
		if dead, ok := c.Queue.(queueimpl.DeadLetters); ok {
			if letters, err := dead.Dead(ctx, c.Name); err == nil && slices.Contains(idsOf(letters), id) {
				return nil // the id counts as there
			}
		}
		return broken(variant.NoLostTask, "enqueue of an id after %s entered nothing", d.name)
	}
	if !lends(b.Variant) {
		t, err := c.Next(ctx)
		if err != nil {
			return fmt.Errorf("an id was enqueued after %s: %w", d.name, err)
		}
		return d.counts(t, 1)
	}
	if err := d.uselessReceipts(ctx, b, earlier, "while it waits"); err != nil {
		return err
	}
	const most = 2
	consumer := b.Client(impatient)
	if can[queueimpl.DeadLetters](b.Variant) {
		consumer = b.Client(impatient, func(o *queueimpl.Options) { o.MaxAttempts = most })
	}
	for n := 1; n <= most; n++ {
		t, err := d.comes(ctx, consumer, id)
		if err != nil {
			return fmt.Errorf("an id was enqueued after %s, and delivered %d times since: %w", d.name, n-1, err)
		}
		if err := d.counts(t, n); err != nil {
			return err
		}
		if err := d.uselessReceipts(ctx, b, earlier, "while another client has it"); err != nil {
			return err
		}
	}
	return nil
}

// comes is Comes for a queue in which another task may have been left.
func (d departure) comes(ctx context.Context, c *client, id string) (got queueimpl.Task, _ error) {
	err := c.Bench.Until(ctx, fmt.Sprintf("delivery of %q", id), func() (bool, error) {
		tasks, err := c.Take(ctx, 1)
		if err != nil || len(tasks) == 0 {
			return false, err
		}
		if got = tasks[0]; got.ID != id {
			return false, c.Done(ctx, got)
		}
		return true, nil
	})
	if n := new(never); errors.As(err, &n) && ctx.Err() == nil {
		err = c.Lost(ctx, []string{id}, "%q was not delivered in %v", id, n.After.Round(time.Millisecond))
	}
	return got, err
}

// counts judges the number of a delivery.
func (d departure) counts(t queueimpl.Task, n int) error {
	if t.Attempt == n || t.Attempt == 0 {
		return nil
	}
	return broken(theInterface, "an id was enqueued after %s, and delivery %d of the new entry is attempt %d", d.name, n, t.Attempt)
}

// uselessReceipts shows the receipts of an earlier entry.
func (d departure) uselessReceipts(ctx context.Context, b bench, earlier []queueimpl.Task, when string) error {
	c := b.Client()
	for _, t := range earlier {
		if a, ok := c.Queue.(queueimpl.Acker); ok {
			if err := a.Ack(ctx, c.Name, t); err == nil {
				return broken(variant.NoLostTask, "an id was enqueued after %s, and an ack with the receipt of its earlier entry, %s, was answered with success; want %q", d.name, when, queueimpl.ErrLost)
			}
		}
		if x, ok := c.Queue.(queueimpl.Extender); ok {
			if _, err := x.Extend(ctx, c.Name, t); err == nil {
				return broken(variant.EffectOnce, "an id was enqueued after %s, and an extend with the receipt of its earlier entry, %s, was answered with success; want %q", d.name, when, queueimpl.ErrLost)
			}
		}
	}
	return nil
}

// outAgain has the claim of another task run out, and that task wait again.
func outAgain(ctx context.Context, b bench) (id string, earlier []queueimpl.Task, _ error) {
	if _, err := b.Client(long).Next(ctx); err != nil {
		return "", nil, err
	}
	_, _, had, err := waitsAgain(ctx, b)
	if err != nil || had == nil {
		return "", nil, err
	}
	return had.ID, []queueimpl.Task{*had}, nil
}

func lateOut(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
	c := b.Client(impatient)
	taken, err := c.ExpectTake(ctx, theInterface, 1, "a")
	if err != nil {
		return "", nil, err
	}
	if err := b.Ended(ctx, c, taken[0].Until); err != nil {
		return "", nil, err
	}
	return "a", taken, c.ExpectAck(ctx, theInterface, taken[0], nil)
}

// dequeuedOut withdraws a task that waits.
func dequeuedOut(ctx context.Context, b bench, id string) error {
	c := b.Client()
	s, err := c.State(ctx, c.Name)
	i := slices.IndexFunc(s.Waiting, func(t queueimpl.Task) bool { return t.ID == id })
	if err != nil || i < 0 {
		return broken(theInterface, "state answered %+v and %s; want that %q waits", s, say(err), id)
	}
	if err := c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, c.Name, id, s.Waiting[i].Score); err != nil {
		return broken(theInterface, "dequeue of a task that waits, with its score, answered %q; want success", err)
	}
	return nil
}

func overwrittenOut(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
	c := b.Client(overwriting)
	taken, err := c.ExpectTake(ctx, theInterface, 1, "a")
	if err != nil {
		return "", nil, err
	}
	if _, err := c.Overwrite(ctx, 0, taken[0]); err != nil {
		return "", nil, err
	}
	t, err := c.Next(ctx)
	return "a", append(taken, t), err
}

func deadOut(ctx context.Context, b bench) (string, []queueimpl.Task, error) {
	c := b.Client(func(o *queueimpl.Options) { o.Visibility, o.MaxAttempts = visibility, 1 })
	taken, err := c.ExpectTake(ctx, theInterface, 1, "a")
	if err != nil {
		return "", nil, err
	}
	return "a", taken, b.Until(ctx, "the dead letter", func() (bool, error) {
		if _, err := c.ExpectTake(ctx, theInterface, 1); err != nil {
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

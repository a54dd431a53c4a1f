package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file act on one command among those of a call: they hold a client up
// before it, lose its request or its answer, or have the client die there.

// steps is the last command of a call that they act on.
const steps = 5

// claim is the visibility time-out in these rules: long enough for a busy machine.
const claim = 250 * time.Millisecond

func claims(o *queueimpl.Options) { o.Visibility = claim }

// interrupted makes a client with commands that can be dropped or delayed. It has made every call
// once, so that scripts are loaded.
func (b bench) interrupted(ctx context.Context, change ...func(*queueimpl.Options)) (*client, *interrupt.Line) {
	var o queueimpl.Options
	if b.v.AtLeastOnce {
		claims(&o)
	}
	for _, c := range change {
		c(&o)
	}
	env, line := interrupt.On(b.Env())
	c := &client{Queue: b.v.New(env, o), b: b, env: env, name: b.Queue}
	practice := *c
	practice.name += "-practice"
	practice.practise(ctx)
	return c, line
}

// practise makes every call once.
func (c *client) practise(ctx context.Context) {
	_, _ = c.Enqueue(ctx, c.name, "p", "q")
	if d, ok := c.Queue.(queueimpl.Dequeuer); ok {
		_ = d.Dequeue(ctx, c.name, "p", 1)
	}
	if p, ok := c.Queue.(queueimpl.Peeker); ok {
		_, _ = p.Peek(ctx, c.name, 1)
	}
	if j, ok := c.Queue.(queueimpl.Journaler); ok {
		_, _ = j.PopAs(ctx, c.name, "practice", 1)
		_, _ = j.Popped(ctx, c.name, "practice")
	}
	if tasks, err := c.pop(ctx, 1); err == nil && len(tasks) > 0 {
		if x, ok := c.Queue.(queueimpl.Extender); ok {
			_, _ = x.Extend(ctx, c.name, tasks[0])
		}
		_ = c.done(ctx, tasks...)
	}
	if r, ok := c.Queue.(queueimpl.Reclaimer); ok {
		_, _ = r.Reclaim(ctx, c.name)
	}
	_, _ = c.pop(ctx, 1)
	_, _ = c.State(ctx, c.name)
}

// other makes another client with the same time-out.
func (b bench) other() *client {
	if b.v.AtLeastOnce {
		return b.client(claims)
	}
	return b.client()
}

// passes lets time pass.
func (b bench) passes(ctx context.Context, d time.Duration) {
	if b.Pass != nil {
		b.Pass(d)
		return
	}
	_ = clock.Real{}.Sleep(ctx, d)
}

// lateness is how late a claim may end, for example by a reaper that looks twice a second.
// patienceForClaims is how long after the end of its claim a task may be missing before it counts as lost.
const (
	lateness          = 700 * time.Millisecond
	patienceForClaims = 4 * lateness
)

// settled acknowledges and returns all deliveries, until none came for longer than a claim lasts. It waits longer while
// the server holds tasks.
func (c *client) settled(ctx context.Context) (map[string]int, error) {
	got := map[string]int{}
	idle := time.Duration(0)
	for {
		if idle >= claim*3/2 {
			s, err := c.State(ctx, c.name)
			if err != nil {
				return got, broken(theInterface, "state answered %q", err)
			}
			if len(s.Waiting)+len(s.Claimed) == 0 || idle >= patienceForClaims {
				return got, nil
			}
		}
		tasks, err := c.pop(ctx, 1)
		if err != nil {
			return got, err
		}
		for _, t := range tasks {
			got[t.ID]++
			if err := c.done(ctx, t); err != nil {
				return got, err
			}
		}
		switch {
		case len(tasks) > 0:
			idle = 0
		case !c.b.v.AtLeastOnce:
			return got, nil
		default:
			c.b.passes(ctx, claim/10)
			idle += claim / 10
		}
	}
}

// loses reports whether a flaw of this promise is declared for a fault.
func loses(v queueimpl.Variant, p variant.Property, faults ...variant.Fault) bool {
	return !keeps(v, p) || slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Property == p && slices.Contains(faults, f.Fault)
	})
}

// each runs a case for every step and action, on a queue of its own, side by side on a
// real clock.
func (b bench) each(ctx context.Context, actions []interrupt.Action, check func(ctx context.Context, b bench, n int, a interrupt.Action) error) error {
	var mu sync.Mutex
	var first error
	var wg sync.WaitGroup
	for n := 1; n <= steps; n++ {
		for _, a := range actions {
			own := b
			own.Queue = fmt.Sprintf("%s-%d-%d", b.Queue, n, a)
			try := func() {
				if err := check(ctx, own, n, a); err != nil {
					mu.Lock()
					defer mu.Unlock()
					if first == nil {
						first = fmt.Errorf("at command %d%s: %w", n, said[a], err)
					}
				}
			}
			if b.Pass != nil {
				try()
			} else {
				wg.Go(try)
			}
		}
	}
	wg.Wait()
	return first
}

// stalls is each for rules that hold a client up.
func (b bench) stalls(ctx context.Context, check func(ctx context.Context, b bench, n int) error) error {
	return b.each(ctx, []interrupt.Action{interrupt.Pass}, func(ctx context.Context, b bench, n int, _ interrupt.Action) error { return check(ctx, b, n) })
}

var said = map[interrupt.Action]string{interrupt.Pass: "", interrupt.LoseRequest: " (not executed)", interrupt.LoseReply: " (executed, not answered)", interrupt.Refuse: " (refused by the server)"}

var bothWays = []interrupt.Action{interrupt.LoseRequest, interrupt.LoseReply}

// producerDies: data left by a dead producer must not keep others from entering the task.
func producerDies(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.interrupted(ctx)
		if !line.DiesAt(n, a, func() { _, _ = doomed.Enqueue(ctx, b.Queue, "a") }) {
			return nil
		}
		c := b.other()
		if _, err := c.Enqueue(ctx, b.Queue, "a"); err != nil {
			return broken(variant.NoLostTask, "after the death of a producer, enqueue of the same id answered %q", err)
		}
		if _, err := c.Enqueue(ctx, b.Queue, "b"); err != nil {
			return broken(variant.NoLostTask, "after the death of a producer, enqueue of another id answered %q", err)
		}
		return c.getsAll(ctx, "after the death of a producer in its enqueue", "a", "b")
	})
}

// getsAll expects that each of these tasks is delivered in the end.
func (c *client) getsAll(ctx context.Context, after string, ids ...string) error {
	got, err := c.settled(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if got[id] == 0 {
			return c.lost(ctx, []string{id}, "%s, %q was not delivered for %v, but %v (deliveries by id)", after, id, patienceForClaims, got)
		}
	}
	return nil
}

// consumerDies: tasks that a consumer did not take must be delivered and, if tasks are lent, all.
func consumerDies(ctx context.Context, b bench) error {
	lost := 0
	if loses(b.v, variant.NoLostTask, variant.Crash) {
		lost = 1
	}
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		c := b.other()
		ids := []string{"a", "b", "c", "d"}
		for i, id := range ids { // some of them delayed, so that they are moved when they are due
			if d, ok := c.Queue.(queueimpl.Delayer); ok && i%2 == 1 {
				if _, err := d.EnqueueAfter(ctx, b.Queue, 20*time.Millisecond, id); err != nil {
					return broken(theInterface, "enqueue answered %q", err)
				}
			} else if _, err := c.Enqueue(ctx, b.Queue, id); err != nil {
				return broken(theInterface, "enqueue answered %q", err)
			}
		}
		b.passes(ctx, 40*time.Millisecond)
		doomed, line := b.interrupted(ctx)
		if !line.DiesAt(n, a, func() { _, _ = doomed.Pop(ctx, b.Queue, 1) }) {
			return nil
		}
		got, err := c.settled(ctx)
		if err != nil {
			return err
		}
		if len(got) < len(ids)-lost {
			missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return got[id] > 0 })
			hint := ""
			if !b.v.AtLeastOnce {
				hint = "; if the queue removes a task as it hands it out (at most once), declare the flaws of no-lost-task under crash and drop-reply in Variant.Flaws"
			}
			return c.lost(ctx, missing, "a consumer died in a pop of 1, and %q were not delivered after that%s", missing, hint)
		}
		// A task handed to the dead consumer may be lost, but no other.
		for _, id := range ids[1:] {
			if got[id] == 0 && keeps(b.v, variant.InOrder) {
				return broken(variant.NoLostTask, "a consumer died in a pop of 1, which was to have %q, and %q was not delivered after that, but %v", ids[0], id, got)
			}
		}
		for id, times := range got {
			if times > 1 && !b.v.AtLeastOnce && !loses(b.v, variant.NoDuplicateDelivery, variant.Crash) {
				return broken(variant.NoDuplicateDelivery, "a consumer died in a pop of 1, and %q was delivered %d times after that", id, times)
			}
		}
		return c.usable(ctx, "after the death of a consumer in its pop", ids...)
	})
}

// usable enqueues and pops a new task, and tasks with used ids.
func (c *client) usable(ctx context.Context, after string, ids ...string) error {
	ids = append(ids, "afterwards")
	if _, err := c.Enqueue(ctx, c.name, ids...); err != nil {
		return broken(variant.NoLostTask, "%s, enqueue of %q answered %q", after, ids, err)
	}
	return c.getsAll(ctx, after+", and enqueued again", ids...)
}

// lostRequest: one command of a pop of several tasks is never executed. All tasks that it does not return must come
// back.
func lostRequest(ctx context.Context, b bench) error {
	return b.each(ctx, []interrupt.Action{interrupt.LoseRequest}, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		c, line := b.interrupted(ctx)
		ids := []string{"a", "b", "c", "d"}
		if _, err := c.Enqueue(ctx, b.Queue, ids...); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
		line.Arm(n, a)
		first, err := c.Pop(ctx, b.Queue, len(ids))
		line.Plan(nil)
		if err := c.done(ctx, first...); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
		got, e := b.other().settled(ctx)
		if e != nil {
			return e
		}
		for _, t := range first {
			got[t.ID]++
		}
		for _, id := range ids {
			if got[id] == 0 {
				return broken(variant.NoLostTask, "a pop of %d, of which a command was not executed, answered %q, and %q was never delivered, but %v (deliveries by id)", len(ids), err, id, got)
			}
		}
		return nil
	})
}

// ackerDies: an ack counts or has no effect.
func ackerDies(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.interrupted(ctx)
		tasks, err := doomed.given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		if !line.DiesAt(n, a, func() { _ = doomed.done(ctx, tasks...) }) {
			return nil
		}
		c := b.other()
		if _, err := c.settled(ctx); err != nil {
			return err
		}
		if err := c.holds(ctx, variant.NoLostTask, nil, nil); err != nil {
			return fmt.Errorf("after the death of a consumer in its ack, and everything else was done: %w", err)
		}
		if _, err := c.Enqueue(ctx, b.Queue, "a"); err != nil {
			return broken(variant.NoLostTask, "the id of a task whose consumer died in its ack cannot be enqueued again: %v", err)
		}
		return c.getsAll(ctx, "after the death of an earlier consumer in its ack", "a")
	})
}

// reclaimerDies: the same for a reclaim.
func reclaimerDies(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		doomed, line := b.interrupted(ctx)
		ids := []string{"a", "b", "c"}
		if _, err := doomed.Enqueue(ctx, b.Queue, ids...); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
		if _, err := doomed.popped(ctx, variant.NoLostTask, 3, slices.Clone(ids)...); err != nil {
			return err
		}
		b.passes(ctx, claim*5/4)
		if !line.DiesAt(n, a, func() { doomed.endsClaims(ctx, n) }) {
			return nil
		}
		return b.other().getsAll(ctx, "after the death of a client that ended claims which had run out", ids...)
	})
}

// endsClaims makes a call that ends claims which have run out: a pop, or at every other n a reclaim.
func (c *client) endsClaims(ctx context.Context, n int) {
	if r, ok := c.Queue.(queueimpl.Reclaimer); ok && n%2 == 1 {
		_, _ = r.Reclaim(ctx, c.name)
		return
	}
	_, _ = c.Pop(ctx, c.name, 1)
}

// lostAnswers: calls that had no answer are made again. One command of one call is lost.
func lostAnswers(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for _, call := range []string{"enqueue", "pop", "ack"} {
			own := b
			own.Queue += "-" + call
			if err := own.lostAnswer(ctx, call, n, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// lostAnswer takes a task through the queue, and loses a command of one call.
func (b bench) lostAnswer(ctx context.Context, lost string, n int, a interrupt.Action) error {
	c, line := b.interrupted(ctx)
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
	if err := call("ack", func() error { return c.done(ctx, first...) }); err != nil && lost == "ack" {
		if err := c.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, first[0]); err != nil && !errors.Is(err, queueimpl.ErrLost) {
			return broken(theInterface, "an ack, sent again, answered %q", err)
		}
	} else if err != nil {
		return err
	}
	more, err := b.other().settled(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(first)+more["a"] == 0 && !(popErr != nil && loses(b.v, variant.NoLostTask, variant.DropReply)):
		hint := ""
		if !b.v.AtLeastOnce {
			hint = "; if the queue removes a task as it hands it out (at most once), declare the flaw of no-lost-task under drop-reply in Variant.Flaws"
		}
		return broken(variant.NoLostTask, "a command of the %s of a task was lost, and the task was never delivered%s", lost, hint)
	case acked && more["a"] > 0 && (lost != "enqueue" || can[queueimpl.Deduper](b.v)): // a repeated enqueue makes two entries
		return broken(variant.EffectOnce, "a command of the %s of a task was lost and the call made again, and the task was delivered again after it was done", lost)
	}
	return nil
}

// stalledPop holds up a consumer while another one takes everything.
func stalledPop(ctx context.Context, b bench) error {
	return b.stalledPops(ctx, func(*interrupt.Line) {})
}

// scriptsForgotten: a call whose script the server has forgotten, for example in a restart, has the same effect.
func scriptsForgotten(ctx context.Context, b bench) error {
	c, line := b.interrupted(ctx, long)
	var got []queueimpl.Task
	calls := map[string]func() error{
		"enqueue": func() error { _, err := c.Enqueue(ctx, c.name, "a"); return err },
		"pop":     func() (err error) { got, err = c.Pop(ctx, c.name, 1); return err },
		"ack":     func() error { return c.done(ctx, got...) },
	}
	for _, name := range []string{"enqueue", "pop", "ack"} {
		line.ForgetScripts()
		err := calls[name]()
		for again := 0; again < 2 && err != nil; again++ {
			err = calls[name]()
		}
		if err != nil {
			return broken(variant.Progress, "the server forgot its scripts, and the %s, tried three times, answered %q", name, err)
		}
	}
	return b.stalledPops(ctx, (*interrupt.Line).ForgetScripts)
}

// stalledPops prepares the connection of the consumer that is held up.
func (b bench) stalledPops(ctx context.Context, prepare func(*interrupt.Line)) error {
	return b.stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.interrupted(ctx, long)
		prepare(line)
		c := b.client()
		ids := []string{"a", "b", "c"}
		now := ids
		if d, ok := c.Queue.(queueimpl.Delayer); ok { // some of them are moved when they are due
			now = ids[:1]
			if _, err := d.EnqueueAfter(ctx, b.Queue, 20*time.Millisecond, ids[1:]...); err != nil {
				return broken(theInterface, "enqueue answered %q", err)
			}
		}
		if _, err := c.Enqueue(ctx, b.Queue, now...); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
		b.passes(ctx, 40*time.Millisecond)
		var mine []queueimpl.Task
		var err error
		s := line.Stalled(ctx, n, func() { mine, err = slow.Pop(ctx, b.Queue, 2) })
		if s == nil {
			return nil
		}
		theirs, popErr := c.all(ctx, 3, 3)
		if popErr == nil {
			popErr = c.done(ctx, theirs...)
		}
		// A task that was taken and done may come again as a new task.
		var again []queueimpl.Task
		if popErr == nil && len(theirs) == 3 {
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
		if err := slow.done(ctx, mine...); err != nil {
			return fmt.Errorf("of a pop that was held up: %w", err)
		}
		more, err := c.settled(ctx)
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
		return nil
	})
}

func long(o *queueimpl.Options) { o.Visibility = 0 }

// stalledEnqueue holds up a producer while another one enters the same id.
func stalledEnqueue(ctx context.Context, b bench) error {
	return b.stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.interrupted(ctx)
		c := b.other()
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
		_, err = c.popped(ctx, variant.OneEntryPerID, 5, "a")
		return err
	})
}

// stalledAck holds up a consumer in its ack until another has the task.
func stalledAck(ctx context.Context, b bench) error {
	return b.stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.interrupted(ctx)
		tasks, err := slow.given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		s := line.Stalled(ctx, n, func() { err = slow.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, tasks[0]) })
		if s == nil {
			return nil
		}
		next := b.client() // with a long time-out
		var again []queueimpl.Task
		soon, cancel := context.WithTimeout(ctx, 8*claim)
		defer cancel()
		e := b.until(soon, "the return of a task whose ack was held up", func() (bool, error) {
			got, err := next.pop(ctx, 1)
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
		if err := next.ack(ctx, variant.NoLostTask, again[0], nil); err != nil {
			return fmt.Errorf("after a late ack by an earlier consumer: %w", err)
		}
		return next.holds(ctx, variant.NoLostTask, nil, nil)
	})
}

// stalledReclaim holds up a client that ends claims, while their tasks are taken and done.
func stalledReclaim(ctx context.Context, b bench) error {
	return b.stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.interrupted(ctx)
		holder := b.other()
		tasks, err := holder.given(ctx, variant.NoLostTask)
		if err != nil {
			return err
		}
		b.passes(ctx, claim*5/4)
		var mine []queueimpl.Task
		s := line.Stalled(ctx, n, func() { mine, err = slow.Pop(ctx, b.Queue, 1) })
		if s == nil {
			return nil
		}
		late := holder.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, tasks[0]) // counts unless another consumer was given the task
		s.GoOn()
		if late != nil {
			return nil
		}
		if len(mine) > 0 && err == nil {
			return broken(variant.EffectOnce, "a task was delivered again after its late ack had counted, by a pop that was held up before command %d", n)
		}
		got, err := b.other().settled(ctx)
		if err == nil && len(got) > 0 {
			err = broken(variant.EffectOnce, "a task was delivered again after its late ack had counted: %v", got)
		}
		return err
	})
}

// stalledDequeue holds up a producer that withdraws a task, while a consumer takes it.
func stalledDequeue(ctx context.Context, b bench) error {
	return b.stalls(ctx, func(ctx context.Context, b bench, n int) error {
		slow, line := b.interrupted(ctx)
		in, err := slow.Enqueue(ctx, b.Queue, "a")
		if err != nil || len(in) != 1 {
			return broken(theInterface, "enqueue answered %v and %v", in, err)
		}
		s := line.Stalled(ctx, n, func() { err = slow.Queue.(queueimpl.Dequeuer).Dequeue(ctx, b.Queue, "a", in[0].Score) })
		if s == nil {
			return nil
		}
		c := b.other()
		got, e := c.pop(ctx, 1)
		s.GoOn()
		if e != nil {
			return e
		}
		if err == nil && len(got) > 0 {
			return broken(variant.NoDuplicateDelivery, "a task was withdrawn and delivered as well: the dequeue was held up before command %d", n)
		}
		return nil
	})
}

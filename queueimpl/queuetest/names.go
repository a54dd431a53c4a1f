package queuetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/clock"
	"oversell/internal/alike"
	"oversell/internal/keyname"
	"oversell/internal/phrase"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

func idsAreOpaque(ctx context.Context, b bench) error {
	producer, consumer := b.Client(), b.Client()
	ids, err := b.Accepted(ctx, b.SomeOf(ctx, queueclient.StrangeIDs, 3*time.Second))
	if err != nil {
		return err
	}
	for _, all := range []bool{false, true} {
		want := map[string]bool{}
		if all {
			if _, err := producer.Enter(ctx, variant.NoLostTask, ids...); err != nil {
				return err
			}
		}
		for _, id := range ids {
			if !all {
				if _, err := producer.Enter(ctx, variant.NoLostTask, id); err != nil {
					return err
				}
			}
			want[id] = true
		}
		for len(want) > 0 {
			tasks, err := consumer.Take(ctx, 3)
			if err != nil {
				return err
			}
			if len(tasks) == 0 {
				return consumer.Lost(ctx, keysOf(want), "pop answered that nothing is due, and these were not delivered: %q", keysOf(want))
			}
			for _, t := range tasks {
				if !want[t.ID] {
					return broken(variant.NoLostTask, "%q was delivered, which was not enqueued, or delivered before; missing are %q", t.ID, keysOf(want))
				}
				delete(want, t.ID)
				if err := consumer.Done(ctx, t); err != nil {
					return err
				}
			}
		}
		if err := consumer.ExpectState(ctx, theInterface, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(m map[string]bool) (all []string) {
	for k := range m {
		if all = append(all, k); len(all) == 5 {
			break
		}
	}
	return all
}

// namesAreOpaque fills queues with names that resemble each other, and ids that would
// make up for the difference.
func namesAreOpaque(ctx context.Context, b bench) error {
	n := b.Queue
	names := []string{
		n, n + "2", n + "-", n[:len(n)-1], strings.ToUpper(n), n + ":", n + ":a", n + ":a:b", n + "*", n + "?", n[:len(n)-1] + "?", n + "[a]", n + " ", n + "\n", n + "\x00", n + "%",
		n + strings.Repeat("x", 300), n + strings.Repeat("x", 300) + "y",
	}
	names = slices.Concat(names, alike.Between(n), alike.Numbers(n))
	c := b.Client()
	var shared error
	// The keys tell of names that would use the same.
	first := *c
	first.Name += "-keys"
	if _, err := first.Enter(ctx, theInterface, "a", "b"); err != nil {
		return err
	}
	if _, err := first.Take(ctx, 1); err != nil {
		return err
	}
	if rdb := c.Env.Redis; len(rdb) > 0 {
		found, err := keyname.Of(ctx, rdb[0], first.Name)
		if err != nil {
			return err
		}
		if others := keyname.Collisions(found, first.Name, n); len(others) > 0 {
			shared = &suitetest.Remark{Text: keyname.Remark("queue", n, others)}
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
		}
	}
	same, err := b.Accepted(ctx, []string{"shared", "a:b", "b"})
	if err != nil {
		return err
	}
	ids := func(i int) []string { return append([]string{fmt.Sprintf("task-%d", i)}, same...) }
	refused := map[string]bool{}
	for i, name := range names {
		on := *c
		on.Name = name
		if _, err := on.Enter(ctx, theInterface, ids(i)...); err != nil {
			if _, err := on.Enqueue(ctx, name, ids(i)[0]); name != n && errors.Is(err, queueimpl.ErrBadCall) {
				refused[name] = true
				continue
			}
			return fmt.Errorf("with queues of similar names, in %q: %w", name, err)
		}
	}
	for i, name := range names {
		if refused[name] {
			continue
		}
		on := *c
		on.Name = name
		tasks, err := on.All(ctx, 10, len(ids(i)))
		if err != nil && keeps(b.Variant, variant.NoLostTask) {
			return broken(variant.NoLostTask, "with queues of similar names, the tasks in %q cannot be taken: %w", name, err)
		}
		if err != nil {
			return fmt.Errorf("with queues of similar names, from %q: %w", name, err)
		}
		got, want := idsOf(tasks), ids(i)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return broken(theInterface, "with queues of similar names, pop from %q answered %q; want %q", name, got, want)
		}
		if err := on.Done(ctx, tasks...); err != nil {
			return fmt.Errorf("with queues of similar names, in %q: %w", name, err)
		}
	}
	return shared
}

// oneOfThree enters three tasks into each queue, and takes one of them.
func oneOfThree(ctx context.Context, queues []*client) ([]queueimpl.Task, error) {
	for _, c := range queues {
		if _, err := c.Enter(ctx, theInterface, "a", "b", "c"); err != nil {
			return nil, err
		}
	}
	taken := make([]queueimpl.Task, len(queues))
	for i, c := range queues {
		tasks, err := c.Take(ctx, 1)
		if err != nil {
			return nil, err
		}
		if len(tasks) != 1 {
			return nil, broken(variant.NoLostTask, "with two queues of unlike names, each with three tasks, nothing is due in one of them")
		}
		taken[i] = tasks[0]
	}
	return taken, nil
}

// unlikeNames does the same in two queues with names that have nothing in common, in turn: neither queue sees
// the entries of the other one.
func unlikeNames(ctx context.Context, b bench) error {
	one, two := b.Client(overwriting), b.Client(overwriting)
	two.Name = "a-" + rand.Text()
	both := []*client{one, two}
	taken, err := oneOfThree(ctx, both)
	if err != nil {
		return err
	}
	rest := func(i int, ids ...string) func() error {
		return func() error {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == taken[i].ID })
			var claimed []string
			if b.Variant.AtLeastOnce {
				claimed = []string{taken[i].ID}
			}
			return both[i].ExpectState(ctx, theInterface, ids, claimed)
		}
	}
	steps := []func() error{rest(0, "a", "b", "c"), rest(1, "a", "b", "c")}
	if a, ok := one.Queue.(queueimpl.Acker); ok && b.Variant.AtLeastOnce {
		if taken[0].ID != taken[1].ID || taken[0].Receipt != taken[1].Receipt {
			steps = append(steps, func() error {
				if err := a.Ack(ctx, one.Name, taken[1]); err == nil {
					return broken(variant.EffectOnce, "the receipt of a task in another queue, with an unlike name, was taken for an ack")
				}
				return nil
			}, rest(0, "a", "b", "c"))
		}
		steps = append(steps,
			func() error { return one.ExpectAck(ctx, theInterface, taken[0], nil) }, rest(1, "a", "b", "c"),
			func() error { return two.ExpectAck(ctx, theInterface, taken[1], nil) })
	}
	if j, ok := one.Queue.(queueimpl.Journaler); ok {
		steps = append(steps, func() error {
			tasks, err := j.PopAs(ctx, one.Name, one.Request(0), 1)
			if err != nil {
				return broken(theInterface, "pop under a request answered %q", err)
			}
			if err := one.Done(ctx, tasks...); err != nil {
				return err
			}
			return two.Journal(ctx, two.Request(0), nil)
		})
	}
	steps = append(steps,
		func() error {
			for _, c := range both {
				tasks, err := c.All(ctx, 5, 2)
				if err == nil {
					err = c.Done(ctx, tasks...)
				}
				if err != nil {
					return err
				}
				if c == one && err == nil {
					if _, err := one.Enter(ctx, theInterface, "d"); err != nil {
						return err
					}
				}
			}
			return nil
		},
		func() error { return two.ExpectState(ctx, theInterface, nil, nil) },
		func() error { return one.ExpectState(ctx, theInterface, []string{"d"}, nil) })
	if err := firstOf(steps...); err != nil {
		return fmt.Errorf("with two queues of unlike names: %w", err)
	}
	return nil
}

// manyTasks are so many that a flaw of one in some hundreds shows.
func manyTasks(ctx context.Context, b bench) error {
	tasks := b.Fits(ctx, 1500, 60, 5*time.Second)
	if b.Pass != nil {
		tasks = min(tasks, 300) // an emulation takes its time
	}
	producer, consumer := b.Client(), b.Client()
	want := map[string]bool{}
	var order queueclient.Order
	for i := 0; i < tasks; {
		var ids []string
		for range 1 + i%50 {
			ids = append(ids, fmt.Sprintf("task-%04d", i))
			want[ids[len(ids)-1]] = true
			i++
		}
		in, err := producer.Enter(ctx, variant.NoLostTask, ids...)
		if err != nil {
			return err
		}
		order.Entered(in)
	}
	for round := 1; len(want) > 0; round++ {
		got, err := consumer.Take(ctx, 1+round%40)
		if err == nil {
			err = order.Next(b, got)
		}
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return consumer.Lost(ctx, keysOf(want), "of %d tasks, %d were not delivered, such as %q", tasks, len(want), keysOf(want))
		}
		for _, t := range got {
			if !want[t.ID] {
				return broken(variant.NoDuplicateDelivery, "%q was delivered twice", t.ID)
			}
			delete(want, t.ID)
		}
		if err := consumer.Done(ctx, got...); err != nil {
			return err
		}
	}
	return consumer.ExpectState(ctx, variant.NoLostTask, nil, nil)
}

// skewed makes a client with a wrong clock.
func skewed(b bench, by time.Duration, change ...func(*queueimpl.Options)) *client {
	own := b
	own.Env = func() variant.Env {
		env := b.Env()
		env.Clock = clock.Shifted{Clock: env.Clock, By: by}
		return env
	}
	return own.Client(change...)
}

// clocksDiffer: neither a producer's nor a consumer's clock may make a delayed task come early.
func clocksDiffer(ctx context.Context, b bench) error {
	for i, by := range []struct{ producer, consumer time.Duration }{{-time.Hour, 0}, {0, time.Hour}, {-time.Minute, time.Minute}} {
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
		producer, consumer := skewed(own, by.producer), skewed(own, by.consumer)
		if _, err := producer.Queue.(queueimpl.Delayer).EnqueueAfter(ctx, own.Queue, 10*time.Second, "later"); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
		if tasks, err := consumer.Take(ctx, 1); err != nil {
			return err
		} else if len(tasks) > 0 {
			return broken(variant.NotEarly, "a task with a delay of 10 s was delivered at once: the producer's clock is %s, the consumer's is %s", phrase.Clock(by.producer), phrase.Clock(by.consumer))
		}
	}
	return nil
}

// claimsAndClocks: a consumer's clock may not end the claim of another.
func claimsAndClocks(ctx context.Context, b bench) error {
	for i, by := range []struct{ first, second time.Duration }{{0, time.Hour}, {-time.Hour, 0}} {
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, i)
		first, second := skewed(own, by.first), skewed(own, by.second)
		if _, err := first.Given(ctx, theInterface); err != nil {
			return err
		}
		if _, err := second.ExpectTake(ctx, variant.NoDuplicateDelivery, 1); err != nil {
			return fmt.Errorf("a claimed task; the clock of its consumer is %s, that of another one is %s: %w", phrase.Clock(by.first), phrase.Clock(by.second), err)
		}
	}
	return nil
}

// noClock tells the queues that do not depend on the clocks of their clients.
func noClock(v queueimpl.Variant) bool {
	return !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool { return f.Fault == variant.ClockSkew })
}

// clocksApart: clients whose clocks differ use one queue like any others, and each is told the end of its
// claims by its own clock.
func clocksApart(ctx context.Context, b bench) error {
	var clients []*client
	for i, by := range []time.Duration{0, time.Hour, -time.Hour, -time.Minute} { // an hour ahead comes before behind
		c := skewed(b, by)
		if _, err := c.Enter(ctx, variant.NoLostTask, fmt.Sprint("task-", i)); err != nil {
			return fmt.Errorf("by a client whose clock is %s: %w", phrase.Clock(by), err)
		}
		clients = append(clients, c)
	}
	told := func(c *client, what string, before time.Time, t queueimpl.Task) error {
		now := c.Env.Clock.Now()
		if !t.Until.IsZero() && (t.Until.After(now.Add(queueimpl.DefaultVisibility+grain)) || t.Until.Before(before)) {
			return broken(theInterface, "%s at %v by the caller's clock, which differs from the server's, answered that a claim of %v ends at %v", what, now, queueimpl.DefaultVisibility, t.Until)
		}
		return nil
	}
	for _, c := range clients {
		before := c.Env.Clock.Now()
		tasks, err := c.Take(ctx, 1)
		if err != nil {
			return err
		}
		if len(tasks) == 0 {
			return c.Lost(ctx, nil, "clients with different clocks enqueued %d tasks, and a pop found nothing when not all were taken", len(clients))
		}
		if err := told(c, "a pop", before, tasks[0]); err != nil {
			return err
		}
		if x, ok := c.Queue.(queueimpl.Extender); ok {
			before := c.Env.Clock.Now()
			longer, err := x.Extend(ctx, c.Name, tasks[0])
			if err != nil {
				return broken(theInterface, "extend of a claim, by a client whose clock differs from the server's, answered %q", err)
			}
			if err := told(c, "an extend", before, longer); err != nil {
				return err
			}
		}
		if err := c.Done(ctx, tasks...); err != nil {
			return err
		}
	}
	p, peeks := clients[1].Queue.(queueimpl.Peeker)
	d, delays := clients[0].Queue.(queueimpl.Delayer)
	if !peeks || !delays {
		return nil
	}
	if _, err := d.EnqueueAfter(ctx, b.Queue, 10*time.Second, "later"); err != nil {
		return broken(theInterface, "enqueue answered %q", err)
	}
	if seen, err := p.Peek(ctx, b.Queue, 1); err != nil || len(seen) > 0 {
		return broken(theInterface, "peek by a client with a clock an hour ahead showed %q (%s), which is due in 10 s", idsOf(seen), say(err))
	}
	return nil
}

// claimEnds: a claim ends by its own timeout. It depends neither on the calls of other clients nor on how long
// the task had waited.
func claimEnds(ctx context.Context, b bench) error {
	c := b.Client(claims)
	if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	b.Passes(ctx, claim*5/4)
	taken, err := c.ExpectTake(ctx, variant.NoLostTask, 1, "a")
	if err != nil {
		return err
	}
	t := taken[0]
	other := b.Client(claims)
	for n := 0; b.Before(c, t.Until.Add(claim)); n++ {
		got, err := other.Take(ctx, 1)
		if err != nil {
			return err
		}
		if len(got) > 0 {
			return early(c, t, variant.NoDuplicateDelivery)
		}
		b.Passes(ctx, claim/20)
	}
	_, err = other.ExpectNext(ctx, variant.NoLostTask, "a")
	return err
}

// strangeReturns: tasks with unusual ids also come back after a claim or a delay.
func strangeReturns(ctx context.Context, b bench) error {
	c := b.Client(claims)
	ids, err := b.Accepted(ctx, b.SomeOf(ctx, queueclient.StrangeIDs, 3*time.Second))
	if err != nil {
		return err
	}
	for i, id := range ids {
		if d, ok := c.Queue.(queueimpl.Delayer); ok && i%2 == 0 {
			if _, err := d.EnqueueAfter(ctx, b.Queue, 5*time.Millisecond, id); err != nil {
				return broken(theInterface, "enqueue of %q answered %q", id, err)
			}
		} else if _, err := c.Enter(ctx, variant.NoLostTask, id); err != nil {
			return err
		}
	}
	b.Passes(ctx, 10*time.Millisecond)
	taken := 0
	err = b.Until(ctx, "the delivery of all tasks", func() (bool, error) {
		got, err := c.Take(ctx, len(ids))
		taken += len(got)
		return taken >= len(ids), err
	})
	if err != nil {
		return err
	}
	b.Passes(ctx, claim*5/4)
	other := b.Client(claims)
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	return b.Until(ctx, "the return of all tasks", func() (bool, error) {
		for {
			got, err := other.Take(ctx, 5)
			if err != nil {
				return false, err
			}
			for _, t := range got {
				if !want[t.ID] {
					return false, broken(variant.NoLostTask, "when its claim had run out, a task came back as %q; missing are %q", t.ID, keysOf(want))
				}
				delete(want, t.ID)
				if err := other.ExpectAck(ctx, variant.NoLostTask, t, nil); err != nil {
					return false, err
				}
			}
			if len(got) == 0 {
				return len(want) == 0, nil
			}
		}
	})
}

// extendedBeside: a claim that is extended must not keep others from ending.
func extendedBeside(ctx context.Context, b bench) error {
	for try := range 5 { // again, if a machine is held up between the pops for longer than the first claim
		c := b.Client(claims)
		c.Name = fmt.Sprintf("%s-%d", b.Queue, try)
		first, err := c.Given(ctx, theInterface)
		if err != nil {
			return err
		}
		if _, err := c.Enter(ctx, theInterface, "b"); err != nil {
			return err
		}
		_, err = c.ExpectTake(ctx, theInterface, 1, "b")
		if b.Before(c, first[0].Until.Add(-grain)) {
			if err != nil {
				return err
			}
			return extendsBeside(ctx, c, first[0])
		}
	}
	return &suitetest.TooSlow{Why: fmt.Sprintf("two pops in a row take longer than a claim of %v, each time", claim)}
}

// extendsBeside extends the claim of one task until another client is given "b".
func extendsBeside(ctx context.Context, c *client, mine queueimpl.Task) error {
	b, x, other := c.Bench, c.Queue.(queueimpl.Extender), c.Bench.Client(claims)
	other.Name = c.Name
	for range 30 {
		longer, err := x.Extend(ctx, c.Name, mine)
		if err != nil {
			return nil // a machine so busy that the claim is over
		}
		mine = longer
		b.Passes(ctx, claim/6)
		got, err := other.Take(ctx, 1)
		if err != nil {
			return err
		}
		if len(got) > 0 && got[0].ID == "b" {
			return nil
		}
	}
	return broken(variant.NoLostTask, "a task whose claim had run out did not come back while the claim of an earlier one was being extended")
}

// lateAckOfWaiting: an ack counts when the claim has ended and the task waits again, and
// then the task is gone.
func lateAckOfWaiting(ctx context.Context, b bench) error {
	holder, other, had, err := waitsAgain(ctx, b)
	if err != nil || had == nil {
		return err
	}
	if err := holder.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, *had); err != nil {
		return nil // another was given it
	}
	again, err := other.Take(ctx, 2)
	if err == nil && slices.Contains(idsOf(again), had.ID) {
		err = broken(variant.EffectOnce, "%q was delivered again after a late ack, which was answered with success", had.ID)
	}
	return err
}

// oldReceipt: the ack of an entry that is done must not fit a later entry with the same id.
func oldReceipt(ctx context.Context, b bench) error {
	c, other := b.Client(), b.Client()
	old, err := c.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	if err := c.Done(ctx, old...); err != nil {
		return err
	}
	if _, err := c.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	now, err := other.ExpectTake(ctx, theInterface, 1, "a")
	if err != nil {
		return err
	}
	_ = c.Queue.(queueimpl.Acker).Ack(ctx, b.Queue, old[0])
	if x, ok := c.Queue.(queueimpl.Extender); ok {
		if _, err := x.Extend(ctx, b.Queue, old[0]); err == nil {
			return broken(variant.EffectOnce, "an extend of an earlier entry with the same id was answered with success")
		}
	}
	if err := other.ExpectState(ctx, variant.NoLostTask, nil, []string{"a"}); err != nil {
		return fmt.Errorf("after a second ack of an earlier entry with the same id: %w", err)
	}
	return other.ExpectAck(ctx, variant.NoLostTask, now[0], nil)
}

// allDueInOrder pops one by one when all are due. Tasks without scores are due a delay after they were enqueued.
func allDueInOrder(ctx context.Context, b bench) error {
	c := b.Client()
	scores := map[string]float64{}
	type span struct{ from, to time.Time }
	due := map[string]span{}
	delayer, delays := c.Queue.(queueimpl.Delayer)
	const after = 15 * time.Millisecond
	var all []queueimpl.Task
	for i := range 6 {
		id := fmt.Sprint("task-", (i*5)%6)
		var in []queueimpl.Task
		var err error
		delay, began := time.Duration(0), c.Env.Clock.Now()
		if delays && i%2 == 0 {
			delay = after
			in, err = delayer.EnqueueAfter(ctx, b.Queue, delay, id)
		} else {
			in, err = c.Enqueue(ctx, b.Queue, id)
		}
		due[id] = span{began.Add(delay - grain), c.Env.Clock.Now().Add(delay + grain)}
		if err != nil || len(in) != 1 {
			return broken(theInterface, "enqueue of %q answered %v and %v", id, in, err)
		}
		scores[id] = in[0].Score
		all = append(all, in...)
		b.Passes(ctx, 4*grain)
	}
	c.PassesUntilDue(ctx, all, after)
	last := queueimpl.Task{}
	for range 6 {
		t, err := c.Next(ctx)
		if err != nil {
			return err
		}
		if scores[t.ID] < scores[last.ID] {
			return broken(variant.InOrder, "%q, due at %f, was delivered after %q, due at %f, and both were due", t.ID, scores[t.ID], last.ID, scores[last.ID])
		}
		if scores[t.ID] == 0 && scores[last.ID] == 0 && last.ID != "" && due[t.ID].to.Before(due[last.ID].from) {
			return broken(variant.InOrder, "%q was delivered after %q, and was due before it", t.ID, last.ID)
		}
		last = t
	}
	return nil
}

// Package queuetest tries a task queue against what it promises: ours pass
// through it, and so can yours.
//
//	func TestMyQueue(t *testing.T) {
//		mine := queueimpl.Variant{Name: "mine", New: newMine, Promises: ...}
//		queuetest.Run(t, mine, func(t *testing.T) queuetest.Bench {
//			return queuetest.Bench{
//				Queue: "{" + rand.Text() + "}mail",
//				Env:   func() variant.Env { return variant.Env{Redis: ..., Clock: ..., ...} },
//			}
//		})
//	}
//
// Each rule is one subtest on a queue of its own. Some rules belong to a promise
// and are tried only on queues that make it, some to a capability, which is
// discovered; the others belong to the interface, and every queue must keep them.
// A failure names the promise, and shows what was asked and answered.
//
// Rules that take time never wait for a fixed one. On a real clock they look until
// it has happened, and check that it was not too early; on a virtual clock
// ([Bench.Pass]) they also check that it happens at the very time.
//
// This is a test of function under moderate concurrency, not a proof: that no
// interleaving and no fault breaks a queue is for a search and for a run under
// load to find out.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/variant"
)

// Bench is where one rule is tried.
type Bench struct {
	// Env makes the world of one more client, with connections and tokens of its
	// own. All lead to the same server, which nobody else writes to while a rule is
	// tried. Wait must not depend on Pass.
	Env func() variant.Env
	// Queue names a queue that nobody has used yet. Rules may append to it.
	Queue string
	// Pass moves the clocks of the server and of all clients, if they are virtual
	// and one; nil if they go by themselves.
	Pass func(time.Duration)
}

// Run tries every rule that applies to the queue. It calls open once for each,
// in that rule's subtest.
func Run(t *testing.T, v queueimpl.Variant, open func(t *testing.T) Bench) {
	t.Helper()
	for _, r := range rules {
		if !r.appliesTo(v) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := r.check(ctx, bench{open(t), v}); err != nil {
				t.Errorf("queue %s: %v", v.Name, err)
			}
		})
	}
}

// patience ends a rule whose queue never answers.
const patience = time.Minute

// rule is one thing that a queue must do.
type rule struct {
	name string
	// promise, unless empty, is the promise that the rule belongs to. A flaw that
	// needs nothing takes it back.
	promise variant.Property
	// on, unless nil, tells the queues that the rule is for.
	on    func(queueimpl.Variant) bool
	check func(context.Context, bench) error
}

func (r rule) appliesTo(v queueimpl.Variant) bool {
	if r.promise != "" && !keeps(v, r.promise) {
		return false
	}
	return r.on == nil || r.on(v)
}

// keeps tells whether a queue makes a promise and keeps it when nothing is done to
// it, its clients are kept apart, and no id is enqueued again.
func keeps(v queueimpl.Variant, p variant.Property) bool {
	return slices.Contains(v.Promises, p) && !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Property == p && f.Fault == variant.NoFault && f.Under == ""
	})
}

// can tells whether the queue has a capability.
func can[T any](v queueimpl.Variant) bool {
	_, ok := v.New(variant.Env{}, queueimpl.Options{}).(T)
	return ok
}

func both(a, b func(queueimpl.Variant) bool) func(queueimpl.Variant) bool {
	return func(v queueimpl.Variant) bool { return a(v) && b(v) }
}

func lends(v queueimpl.Variant) bool  { return v.AtLeastOnce && can[queueimpl.Acker](v) }
func locked(v queueimpl.Variant) bool { return v.Locked }

// once tells the queues that hand a task to one consumer at a time.
func once(v queueimpl.Variant) bool { return v.AtLeastOnce || keeps(v, variant.NoDuplicateDelivery) }

var rules = []rule{
	{"an empty queue says so", "", nil, emptySaysSo},
	{"what is enqueued is popped once", variant.NoLostTask, nil, poppedOnce},
	{"pops up to count", variant.NoLostTask, once, upToCount},
	{"tasks come in the order of score and id", variant.InOrder, nil, inOrder},
	{"tasks of several calls come in their order", variant.InOrder, can[queueimpl.Delayer], inOrderOfDue},
	{"a delayed task does not come early", variant.NotEarly, can[queueimpl.Delayer], notEarly},
	{"a delayed task comes", variant.Progress, can[queueimpl.Delayer], delayedComes},
	{"a repeated id is ignored", variant.OneEntryPerID, can[queueimpl.Deduper], repeatIgnored},
	{"a repeated id overwrites, as an option", variant.OneEntryPerID, both(can[queueimpl.Deduper], can[queueimpl.Delayer]), repeatOverwrites},
	{"an id can be enqueued again when it is done", "", nil, againWhenDone},
	{"the state adds up", "", nil, stateAddsUp},
	{"dequeue needs the very score", "", both(can[queueimpl.Dequeuer], can[queueimpl.Deduper]), dequeueNeedsScore},
	{"peek changes nothing", "", can[queueimpl.Peeker], peekChangesNothing},
	{"a locked queue is not an empty one", "", locked, lockedIsNotEmpty},
	{"an ack counts once", "", can[queueimpl.Acker], ackOnce},
	{"a claimed task is hidden, then comes back", variant.NoLostTask, lends, claimHides},
	{"an ack counts until another has the task", variant.NoLostTask, lends, lateAck},
	{"an acked task never comes back", "", lends, ackedStaysAway},
	{"overwriting ends a claim", "", both(lends, can[queueimpl.Deduper]), overwritingEndsClaim},
	{"a claim can be extended", "", both(lends, can[queueimpl.Extender]), extended},
	{"reclaim returns what has run out", "", both(lends, can[queueimpl.Reclaimer]), reclaimReturns},
	{"after its attempts a task is a dead letter", variant.NoLostTask, both(lends, can[queueimpl.DeadLetters]), deadLetter},
	{"any number of claims that have run out come back", variant.NoLostTask, lends, manyRunOut},
	{"the journal tells what a request took", "", can[queueimpl.Journaler], journalTells},
	{"a request sent again takes nothing more", "", can[queueimpl.Journaler], requestAgain},
	{"concurrent clients lose nothing", variant.NoLostTask, nil, crowdLosesNothing},
	{"concurrent clients get nothing twice", "", once, crowdGetsNothingTwice},
	{"copies of one id at once make one entry", variant.OneEntryPerID, can[queueimpl.Deduper], copiesAtOnce},
	{"two queues do not mix", "", nil, twoQueues},
	{"every key carries the queue's name", "", nil, keysCarryName},
	{"a bad call is an error, and changes nothing", "", nil, badCalls},
	{"a cancelled context is no declared answer", "", nil, cancelled},
}

// broken reports that a promise, or a rule of the interface, was not kept.
func broken(promise variant.Property, format string, args ...any) error {
	return fmt.Errorf("%s is broken: %w", promise, fmt.Errorf(format, args...))
}

// theInterface stands for what queueimpl.Queue and its companions demand.
const theInterface variant.Property = "the contract of queueimpl.Queue"

// bench is a Bench with the queue under test on it.
type bench struct {
	Bench
	v queueimpl.Variant
}

// visibility is the time-out in rules that let it run out; elsewhere it is the
// default, longer than any rule takes.
const visibility = 40 * time.Millisecond

// client makes one more client.
func (b bench) client(change ...func(*queueimpl.Options)) *client {
	var o queueimpl.Options
	for _, c := range change {
		c(&o)
	}
	env := b.Env()
	return &client{Queue: b.v.New(env, o), b: b, env: env, name: b.Queue}
}

func overwriting(o *queueimpl.Options) { o.Overwrite = true }
func impatient(o *queueimpl.Options)   { o.Visibility = visibility }
func threeTimes(o *queueimpl.Options)  { o.Visibility, o.MaxAttempts = visibility, 3 }

// soundLock is for rules with several clients at once: what a queue does under a
// lock that does not keep them apart is another test's business.
func soundLock(b bench) func(*queueimpl.Options) {
	return func(o *queueimpl.Options) {
		if l, ok := lockimpl.Find("lua-release"); ok && b.v.Locked {
			o.Lock = l.New
			o.LockOptions = lockimpl.Options{Wait: patience, RetryEvery: time.Millisecond}
		}
	}
}

// client is one client of one queue.
type client struct {
	queueimpl.Queue
	b    bench
	env  variant.Env
	name string
}

// enqueue expects that exactly these ids are entered.
func (c *client) enqueue(ctx context.Context, of variant.Property, ids ...string) ([]queueimpl.Task, error) {
	return c.into(of, ids)(c.Enqueue(ctx, c.name, ids...))
}

func (c *client) enqueueAfter(ctx context.Context, of variant.Property, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	return c.into(of, ids)(c.Queue.(queueimpl.Delayer).EnqueueAfter(ctx, c.name, after, ids...))
}

func (c *client) into(of variant.Property, ids []string) func([]queueimpl.Task, error) ([]queueimpl.Task, error) {
	return func(tasks []queueimpl.Task, err error) ([]queueimpl.Task, error) {
		if err != nil {
			return nil, broken(of, "enqueue of %q answered %q", ids, err)
		}
		if got := idsOf(tasks); !slices.Equal(got, ids) {
			return nil, broken(of, "enqueue of %q entered %q", ids, got)
		}
		return tasks, nil
	}
}

// pop takes up to count tasks, which may be none.
func (c *client) pop(ctx context.Context, count int) ([]queueimpl.Task, error) {
	tasks, err := c.Pop(ctx, c.name, count)
	switch {
	case errors.Is(err, queueimpl.ErrEmpty) && len(tasks) == 0:
		return nil, nil
	case err != nil:
		return nil, broken(theInterface, "pop of %d answered %v and %q", count, tasks, err)
	case len(tasks) == 0 || len(tasks) > count:
		return nil, broken(theInterface, "pop of %d answered %d tasks", count, len(tasks))
	}
	return tasks, nil
}

// popped expects exactly these ids, in any order within the answer; none means
// that nothing is due.
func (c *client) popped(ctx context.Context, of variant.Property, count int, want ...string) ([]queueimpl.Task, error) {
	tasks, err := c.pop(ctx, count)
	if err != nil {
		return nil, err
	}
	got := idsOf(tasks)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return nil, broken(of, "pop of %d answered %q; want %q", count, got, want)
	}
	return tasks, nil
}

// done acknowledges tasks, where the queue wants that.
func (c *client) done(ctx context.Context, tasks ...queueimpl.Task) error {
	a, ok := c.Queue.(queueimpl.Acker)
	for _, t := range tasks {
		if !ok {
			break
		}
		if err := a.Ack(ctx, c.name, t); err != nil {
			return broken(theInterface, "ack of %+v by the one who has it answered %q", t, err)
		}
	}
	return nil
}

func (c *client) ack(ctx context.Context, of variant.Property, t queueimpl.Task, want error) error {
	if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.name, t); !errors.Is(err, want) {
		return broken(of, "ack of %+v answered %s; want %s", t, say(err), say(want))
	}
	return nil
}

// holds expects the server to hold these.
func (c *client) holds(ctx context.Context, of variant.Property, waiting, claimed []string) error {
	s, err := c.State(ctx, c.name)
	if err != nil {
		return broken(of, "state answered %q", err)
	}
	w, cl := idsOf(s.Waiting), idsOf(s.Claimed)
	for _, ids := range [][]string{w, cl, waiting, claimed} {
		slices.Sort(ids)
	}
	if !slices.Equal(w, waiting) || !slices.Equal(cl, claimed) {
		return broken(of, "the server holds %q waiting and %q claimed; want %q and %q", w, cl, waiting, claimed)
	}
	return nil
}

func idsOf(tasks []queueimpl.Task) []string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

func say(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q", err)
}

// look is how long passes between two looks, and looks is how many there are at
// most on a virtual clock: far more time than any rule needs.
const (
	look  = 2 * time.Millisecond
	looks = 200
)

// until looks until something has happened.
func (b bench) until(ctx context.Context, what string, happened func() (bool, error)) error {
	for n := 1; ; n++ {
		if ok, err := happened(); ok || err != nil {
			return err
		}
		if b.Pass == nil {
			if err := (clock.Real{}).Sleep(ctx, look); err != nil {
				return fmt.Errorf("%s never happened: %w", what, err)
			}
			continue
		}
		if b.Pass(look); n == looks {
			return fmt.Errorf("%s has not happened after %v", what, looks*look)
		}
	}
}

// comes looks until somebody pops something, alone.
func (c *client) comes(ctx context.Context, of variant.Property, id string) (queueimpl.Task, error) {
	var got queueimpl.Task
	err := c.b.until(ctx, fmt.Sprintf("delivery of %q", id), func() (bool, error) {
		tasks, err := c.pop(ctx, 1)
		if err != nil || len(tasks) == 0 {
			return false, err
		}
		if got = tasks[0]; got.ID != id {
			return false, broken(of, "%q was delivered; want %q", got.ID, id)
		}
		return true, nil
	})
	return got, err
}

// firstOf runs steps until one fails.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// undeclared expects an error that is none of the declared answers, since those
// would claim to know the outcome.
func undeclared(what string, err error) error {
	if err == nil {
		return broken(theInterface, "%s answered success; want an error", what)
	}
	for _, d := range []error{queueimpl.ErrEmpty, queueimpl.ErrLocked, queueimpl.ErrChanged, queueimpl.ErrLost, queueimpl.ErrBadCall} {
		if errors.Is(err, d) {
			return broken(theInterface, "%s answered %q, a declared answer; want another error", what, err)
		}
	}
	return nil
}

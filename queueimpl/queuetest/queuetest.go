// Package queuetest tests a task queue against its promises: those of this repository, and yours.
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
// Each rule is one subtest on a queue of its own. Some rules belong to a promise and are tried only on queues that make
// it; some belong to a capability, which the suite discovers; the others belong to the interface, and every queue must
// keep them. A failure names the promise, and shows the calls and answers.
//
// A queue may leave Task.Attempt and Task.Score 0 if it does not know them. It may accept empty ids and the like, or
// refuse them. It may refuse other ids, too, for example long ones or those with control characters, if it answers
// [queueimpl.ErrBadCall]. An id that is enqueued while it is the id of a dead letter may enter, or be ignored as
// present.
//
// The suite distinguishes two queues by their behaviour, not by their keys: a name may be hashed into a key, or be a
// field of one. Data of a rule stays on the server; give the suite a server of its own, or a number of its own for each
// run in [Bench.Queue].
//
// A rule uses fewer tasks if the server is slow to answer, and ends after 12 s. A rule that does not complete because
// calls are slow is skipped, as too slow to judge; the suite's own time-out is never a failure.
//
// Rules that need time never wait for a fixed one. On a real clock they poll until the event has happened, and check
// that it was not too early; on a virtual clock ([Bench.Pass]) they also check that it happens exactly on time.
//
// A virtual clock comes with the emulation of a server, package miniredis, which differs from Redis
// in some points: a WATCH does not notice a ZREM, there are no functions (FCALL), and XPENDING IDLE
// refuses an exclusive start. Try a queue that needs one of these on a real server.
//
// This tests functions under moderate concurrency, and is not a proof: only a search and a run under load can find that
// no interleaving and no fault breaks a queue.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/variant"
)

// Bench is where one rule is tried.
type Bench struct {
	// Env makes the Env of one more client, with connections and tokens of its own. All lead to the same server, to
	// which only the suite writes. Wait must not depend on Pass.
	Env func() variant.Env
	// Queue names a queue that has not been used yet. Rules may append to it.
	Queue string
	// Pass moves the clocks of the server and of all clients, if they are one virtual clock; nil if they run by
	// themselves.
	Pass func(time.Duration)
}

// Run tries every rule that applies to the queue. It calls open once for each. On a real
// clock, most rules are tried side by side, since they wait for time to pass.
func Run(t *testing.T, v queueimpl.Variant, open func(t *testing.T) Bench) {
	t.Helper()
	slots := make(chan struct{}, sideBySide)
	var others sync.WaitGroup
	type check struct {
		rule
		result func() error
	}
	var checks []check
	for _, r := range rules {
		if !r.appliesTo(v) {
			continue
		}
		b := bench{Bench: open(t), v: v}
		if b.Pass != nil {
			t.Run(r.name, func(t *testing.T) {
				report(t, v, r.try(t.Context(), b))
			})
			continue
		}
		result := make(chan error, 1)
		checks = append(checks, check{r, func() error { return <-result }})
		if r.name == twentyThousandTasks {
			go func() {
				others.Wait()
				result <- r.try(t.Context(), b)
			}()
			continue
		}
		others.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			result <- r.try(t.Context(), b)
		})
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			report(t, v, c.result())
		})
	}
}

// report fails a rule that was broken, and skips one that could not be judged.
func report(t *testing.T, v queueimpl.Variant, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if errors.As(err, new(*tooSlow)) && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skipf("queue %s: %v", v.Name, err)
	}
	t.Errorf("queue %s: %v", v.Name, err)
}

// try returns an error when the queue does not answer.
func (r rule) try(ctx context.Context, b bench) error {
	b.last = &atomic.Value{}
	b.last.Store("start of the rule")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- r.check(ctx, b) }()
	select {
	case err := <-result:
		if end, ok := ctx.Deadline(); ok && err != nil && time.Now().After(end.Add(-nearly)) {
			return b.outOfTime(r, end, err)
		}
		if errors.As(err, new(*never)) && !errors.As(err, new(*breach)) {
			return broken(r.of(), "%w", err)
		}
		return err
	case <-time.After(patience + answer):
		return broken(theInterface, "the last call noted, %v, or one after it, has not returned %v after its context ended", b.last.Load(), answer)
	}
}

// twentyThousandTasks is a rule that is tried when the others are done: a server that handles so many tasks in one
// script blocks all other clients.
const twentyThousandTasks = "twenty thousand tasks"

// sideBySide is how many rules are tried at once.
const sideBySide = 8

// patience ends a rule that waits in vain; answer is how long a call may go on after its context has ended.
const (
	patience = 12 * time.Second
	answer   = 5 * time.Second
	// longEnough is how long to wait for an event that should happen within a second or two.
	longEnough = 7 * time.Second
)

// rule is one requirement on a queue.
type rule struct {
	name string
	// promise, unless empty, is the promise to which the rule belongs. A flaw without a fault revokes it.
	promise variant.Property
	// faults are the faults that the rule injects: a flaw that needs them revokes the promise, too.
	faults []variant.Fault
	// on, unless nil, reports whether the rule applies to a queue.
	on    func(queueimpl.Variant) bool
	check func(context.Context, bench) error
}

func (r rule) appliesTo(v queueimpl.Variant) bool {
	if r.promise != "" && loses(v, r.promise, r.faults...) {
		return false
	}
	return r.on == nil || r.on(v)
}

// keeps reports whether a queue makes a promise and keeps it without faults, with a sound lock, and if no id is
// enqueued again.
func keeps(v queueimpl.Variant, p variant.Property) bool {
	return slices.Contains(v.Promises, p) && !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Property == p && f.Fault == variant.NoFault && f.Under == ""
	})
}

// can reports whether the queue has a capability.
func can[T any](v queueimpl.Variant) bool {
	_, ok := v.Sample().(T)
	return ok
}

func both(a, b func(queueimpl.Variant) bool) func(queueimpl.Variant) bool {
	return func(v queueimpl.Variant) bool { return a(v) && b(v) }
}

// overwrites reports whether a queue follows Options.Overwrite. A queue may always ignore a repeated id, and says so.
func overwrites(v queueimpl.Variant) bool {
	d, ok := v.Sample(overwriting).(queueimpl.Deduper)
	return ok && d.Repeats() == queueimpl.Overwritten
}

func lends(v queueimpl.Variant) bool  { return v.AtLeastOnce && can[queueimpl.Acker](v) }
func locked(v queueimpl.Variant) bool { return v.Locked }

// unlocked reports whether the clients of a queue need not wait for another client that is held up or dead.
func unlocked(v queueimpl.Variant) bool { return !v.Locked }

// The faults of rules.
var (
	crash = []variant.Fault{variant.Crash}
	skew  = []variant.Fault{variant.ClockSkew}
)

// once reports whether a queue hands a task to one consumer at a time.
func once(v queueimpl.Variant) bool { return v.AtLeastOnce || keeps(v, variant.NoDuplicateDelivery) }

var rules = []rule{
	{"an empty queue says so", "", nil, nil, emptySaysSo},
	{"what is enqueued is popped once", variant.NoLostTask, nil, nil, poppedOnce},
	{"pops up to count", variant.NoLostTask, nil, once, upToCount},
	{"tasks come in the order of score and id", variant.InOrder, nil, nil, inOrder},
	{"tasks of several calls come in their order", variant.InOrder, nil, can[queueimpl.Delayer], inOrderOfDue},
	{"a delayed task does not come early", variant.NotEarly, nil, can[queueimpl.Delayer], notEarly},
	{"a delayed task comes", variant.Progress, nil, can[queueimpl.Delayer], delayedComes},
	{"long delays", variant.NotEarly, nil, can[queueimpl.Delayer], longDelays},
	{"long claims", variant.NoLostTask, nil, lends, longClaims},
	{"a task that nobody finishes comes back every time", variant.NoLostTask, nil, lends, manyDeliveries},
	{"a repeated id is ignored", variant.OneEntryPerID, nil, can[queueimpl.Deduper], repeatIgnored},
	{"a repeated id overwrites, as an option", variant.OneEntryPerID, nil, both(overwrites, can[queueimpl.Delayer]), repeatOverwrites},
	{"an id can be enqueued again when it is done", "", nil, nil, againWhenDone},
	{"the state adds up", "", nil, nil, stateAddsUp},
	{"dequeue needs the very score", "", nil, both(can[queueimpl.Dequeuer], can[queueimpl.Deduper]), dequeueNeedsScore},
	{"peek changes nothing", "", nil, can[queueimpl.Peeker], peekChangesNothing},
	{"a locked queue is not an empty one", "", nil, locked, lockedIsNotEmpty},
	{"an ack counts once", "", nil, can[queueimpl.Acker], ackOnce},
	{"a claimed task is hidden, then comes back", variant.NoLostTask, nil, lends, claimHides},
	{"a claim ends soon after its time-out", variant.Progress, nil, lends, claimEndsSoon},
	{"an ack counts until another has the task", variant.NoLostTask, nil, lends, lateAck},
	{"an ack counts while another has another task", variant.NoLostTask, nil, lends, lateAckBeside},
	{"an acked task never comes back", "", nil, lends, ackedStaysAway},
	{"overwriting ends a claim", "", nil, both(lends, overwrites), overwritingEndsClaim},
	{"a claim can be extended", "", nil, both(lends, can[queueimpl.Extender]), extended},
	{"reclaim returns what has run out", "", nil, both(lends, can[queueimpl.Reclaimer]), reclaimReturns},
	{"after its attempts a task is a dead letter", variant.NoLostTask, nil, both(lends, can[queueimpl.DeadLetters]), deadLetter},
	{"any number of claims that have run out come back", variant.NoLostTask, nil, lends, manyRunOut},
	{"the journal tells what a request took", "", nil, can[queueimpl.Journaler], journalTells},
	{"a request sent again takes nothing more", "", nil, can[queueimpl.Journaler], requestAgain},
	{"concurrent clients lose nothing", variant.NoLostTask, nil, nil, crowdLosesNothing},
	{"concurrent clients get nothing twice", "", nil, once, crowdGetsNothingTwice},
	{"copies of one id at once make one entry", variant.OneEntryPerID, nil, can[queueimpl.Deduper], copiesAtOnce},
	{"two queues do not mix", "", nil, nil, twoQueues},
	{"a bad call is an error, and changes nothing", "", nil, nil, badCalls},
	{"a cancelled context is no declared answer", "", nil, nil, cancelled},
	{"ids are texts like any other", variant.NoLostTask, nil, nil, idsAreOpaque},
	{"ids are texts when claims end, too", variant.NoLostTask, nil, lends, strangeReturns},
	{"a claim that is extended keeps no other from ending", variant.NoLostTask, nil, both(lends, can[queueimpl.Extender]), extendedBeside},
	{"a late ack of a task that waits again", variant.EffectOnce, nil, lends, lateAckOfWaiting},
	{"an ack of an earlier entry with the same id", variant.NoLostTask, nil, lends, oldReceipt},
	{"tasks that are all due come in their order", variant.InOrder, nil, nil, allDueInOrder},
	{"queues with similar names do not mix", "", nil, nil, namesAreOpaque},
	{"queues with unlike names do not mix", "", nil, once, unlikeNames},
	{"many tasks", variant.NoLostTask, nil, once, manyTasks},
	{"of one look only what is due", variant.NotEarly, nil, can[queueimpl.Delayer], mixedDue},
	{"overwriting moves the due time to and fro", variant.OneEntryPerID, nil, both(overwrites, can[queueimpl.Delayer]), overwriteEarlier},
	{"receipts of one client are told apart", variant.NoLostTask, nil, lends, ownReceipts},
	{"attempts are counted, whatever happens to a task", "", nil, lends, attemptsCount},
	{"entries with one id are tasks of their own", variant.NoLostTask, nil, both(once, repeatsKept), sameIDs},
	{"claims that go on keep no other from ending", variant.Progress, nil, lends, behindLiveClaims},
	{"a claim that has run out cannot be extended", "", nil, both(lends, can[queueimpl.Extender]), lateExtend},
	{"extending often is extending once", "", nil, both(lends, can[queueimpl.Extender]), extendOften},
	{"a claim lasts until its end when answers are slow", "", nil, lends, slowAnswers},
	{"a task that waits again can be withdrawn", "", nil, both(lends, can[queueimpl.Dequeuer]), dequeueAgain},
	{"a late ack of a dead letter", variant.EffectOnce, nil, both(lends, can[queueimpl.DeadLetters]), deadAck},
	{"any number of dead letters", variant.NoLostTask, nil, both(lends, can[queueimpl.DeadLetters]), manyDead},
	{"many tasks in one pop", variant.NoLostTask, nil, once, manyAtOnce},
	{"many tasks in one pop come in their order", variant.InOrder, nil, nil, batchInOrder},
	{"a pop under a request that is interrupted", variant.NoLostTask, nil, both(unlocked, can[queueimpl.Journaler]), journalInterrupted},
	{"clients' clocks may differ", variant.NotEarly, skew, can[queueimpl.Delayer], clocksDiffer},
	{"a claim does not end by another client's clock", variant.EffectOnce, skew, lends, claimsAndClocks},
	{"a claim ends by its own time-out while others look", variant.NoLostTask, nil, lends, claimEnds},
	{"a producer that dies between two commands", variant.NoLostTask, nil, unlocked, producerDies},
	{"a consumer that dies between two commands", variant.NoLostTask, nil, unlocked, consumerDies},
	{"a consumer that dies in an ack", variant.NoLostTask, crash, lends, ackerDies},
	{"a client that dies as it ends claims", variant.NoLostTask, crash, lends, reclaimerDies},
	{"answers that are lost", variant.NoLostTask, nil, unlocked, lostAnswers},
	{"a pop of which a request is lost", variant.NoLostTask, nil, unlocked, lostRequest},
	{"a consumer held up between two commands", variant.NoLostTask, nil, both(unlocked, once), stalledPop},
	{"a producer held up between two commands", variant.OneEntryPerID, nil, both(unlocked, can[queueimpl.Deduper]), stalledEnqueue},
	{"an ack held up between two commands", variant.NoLostTask, nil, lends, stalledAck},
	{"the end of a claim held up between two commands", variant.EffectOnce, nil, lends, stalledReclaim},
	{"a dequeue held up between two commands", "", nil, both(unlocked, both(once, can[queueimpl.Dequeuer])), stalledDequeue},
	{"a producer that dies as it overwrites", variant.NoLostTask, crash, both(unlocked, overwrites), overwriterDies},
	{"a consumer that dies beside a task that is not due", variant.NoLostTask, nil, both(unlocked, can[queueimpl.Delayer]), popperDies},
	{"a client that dies as it puts a dead letter aside", variant.NoLostTask, crash, both(lends, can[queueimpl.DeadLetters]), buryingDies},
	{"a client that dies as it withdraws or extends", variant.NoLostTask, crash, unlocked, withdrawerDies},
	{"the server forgets its scripts", variant.NoLostTask, nil, both(unlocked, once), scriptsForgotten},
	{"what is in the queue lasts", variant.NoLostTask, nil, unlocked, everythingLasts},
	{"clients with different clocks use one queue", variant.NoLostTask, skew, both(noClock, once), clocksApart},
	{twentyThousandTasks, variant.NoLostTask, nil, once, twentyThousand},
	{"many requests", "", nil, can[queueimpl.Journaler], manyRequests},
	{"long ids", variant.NoLostTask, nil, once, longIDs},
	{"answers of calls of which a command fails", "", nil, unlocked, definiteAnswers},
	{"an ack held up while others enqueue", variant.NoLostTask, nil, both(unlocked, can[queueimpl.Acker]), whileOthersEnter},
	{"a dequeue held up until its id is another entry's", variant.NoLostTask, nil, both(unlocked, both(once, can[queueimpl.Dequeuer])), dequeueOfEarlier},
	{"a client held up until another has its task", variant.EffectOnce, nil, both(unlocked, lends), claimTakenMeanwhile},
	{"a request sent again while the first is held up", "", nil, both(unlocked, can[queueimpl.Journaler]), copiesOfRequest},
	{"calls while another client enqueues between their commands", "", nil, both(unlocked, once), underContention},
	{"an id that has left is as new", variant.NoLostTask, nil, nil, asNewAfterwards},
	{"names and ids that make up for each other", variant.NoLostTask, nil, once, namesAndIDs},
	{"claims that ran out long ago come back one by one", variant.NoLostTask, nil, lends, longOver},
}

// broken returns a breach of a promise, or of a rule of the interface.
func broken(promise variant.Property, format string, args ...any) error {
	return &breach{promise, fmt.Errorf(format, args...), time.Now()}
}

// breach is a broken promise, or a broken rule of the interface.
type breach struct {
	promise variant.Property
	how     error
	at      time.Time // when that was found
}

func (b *breach) Error() string { return fmt.Sprintf("%s is broken: %v", b.promise, b.how) }
func (b *breach) Unwrap() error { return b.how }

// theInterface stands for what queueimpl.Queue and its companions demand.
const theInterface variant.Property = "the contract of queueimpl.Queue"

// bench is a Bench with the queue under test.
type bench struct {
	Bench
	v queueimpl.Variant
	// last is the rule's last call, in case it does not return.
	last *atomic.Value
}

// calls notes a call.
func (b bench) calls(format string, args ...any) {
	if b.last != nil {
		b.last.Store(fmt.Sprintf(format, args...))
	}
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

// soundLock is for rules with several clients at once: other tests use locks that do not exclude.
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
	c.b.calls("enqueue of %.40q", ids)
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

// overwrite enqueues an id again that is there with a score. It distinguishes an overwriting that was not reported from
// one that did not happen.
func (c *client) overwrite(ctx context.Context, after time.Duration, was queueimpl.Task) (queueimpl.Task, error) {
	const of = variant.OneEntryPerID
	var in []queueimpl.Task
	var err error
	if d, ok := c.Queue.(queueimpl.Delayer); ok && after > 0 {
		in, err = d.EnqueueAfter(ctx, c.name, after, was.ID)
	} else {
		in, err = c.Enqueue(ctx, c.name, was.ID)
	}
	if err != nil {
		return queueimpl.Task{}, broken(of, "enqueue of %q, to overwrite it, answered %q", was.ID, err)
	}
	if len(in) == 1 && in[0].ID == was.ID {
		return in[0], nil
	}
	s, err := c.State(ctx, c.name)
	if err != nil {
		return queueimpl.Task{}, broken(theInterface, "state answered %q", err)
	}
	for _, t := range s.Waiting {
		if t.ID == was.ID && t.Score != was.Score {
			return queueimpl.Task{}, broken(theInterface, "enqueue of %q overwrote it, and said that it entered %q", was.ID, idsOf(in))
		}
	}
	return queueimpl.Task{}, broken(of, "enqueue of %q, to overwrite it, entered %q, and the queue has it as before", was.ID, idsOf(in))
}

// pop takes up to count tasks, which may be none.
func (c *client) pop(ctx context.Context, count int) ([]queueimpl.Task, error) {
	c.b.calls("pop of %d", count)
	tasks, err := c.Pop(ctx, c.name, count)
	switch {
	case errors.Is(err, queueimpl.ErrEmpty) && len(tasks) == 0:
		return nil, nil
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("pop of %d answered %v and %q", count, tasks, err)
	case err != nil:
		return nil, broken(theInterface, "pop of %d answered %v and %q", count, tasks, err)
	case len(tasks) == 0 || len(tasks) > count:
		return nil, broken(theInterface, "pop of %d answered %d tasks", count, len(tasks))
	}
	return tasks, nil
}

// all pops up to count tasks, repeatedly until it has that many or none is due: a queue may hand out fewer at a time
// than requested.
func (c *client) all(ctx context.Context, count, want int) (got []queueimpl.Task, _ error) {
	for first := true; first || len(got) < want; first = false {
		tasks, err := c.pop(ctx, count-len(got))
		if !once(c.b.v) { // it may hand out a task again
			tasks = slices.DeleteFunc(tasks, func(t queueimpl.Task) bool { return slices.Contains(idsOf(got), t.ID) })
		}
		if err != nil || len(tasks) == 0 {
			return got, err
		}
		got = append(got, tasks...)
	}
	return got, nil
}

// popped pops as many tasks and expects exactly these ids, in any order; none means that nothing is due.
func (c *client) popped(ctx context.Context, of variant.Property, count int, want ...string) ([]queueimpl.Task, error) {
	tasks, err := c.all(ctx, count, len(want))
	if err != nil {
		return nil, err
	}
	got := idsOf(tasks)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		missing := slices.DeleteFunc(want, func(id string) bool { return slices.Contains(got, id) })
		if of == variant.NoLostTask && len(missing) > 0 {
			return nil, c.lost(ctx, missing, "pop of %d answered %q, without %q", count, got, missing)
		}
		return nil, broken(of, "pop of %d answered %q; want %q", count, got, want)
	}
	return tasks, nil
}

// given enqueues "a", and pops it.
func (c *client) given(ctx context.Context, of variant.Property) ([]queueimpl.Task, error) {
	if _, err := c.enqueue(ctx, theInterface, "a"); err != nil {
		return nil, err
	}
	return c.popped(ctx, of, 1, "a")
}

// lost reports tasks that were not delivered, any if ids is nil. If all of them wait in the queue, they
// are not lost: the queue makes no progress with them.
func (c *client) lost(ctx context.Context, ids []string, format string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer)
	defer cancel()
	s, err := c.State(ctx, c.name)
	waits := idsOf(s.Waiting)
	gone := slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(waits, id) })
	if err != nil || len(waits) == 0 || gone || !keeps(c.b.v, variant.Progress) {
		return broken(variant.NoLostTask, format, args...)
	}
	return broken(variant.Progress, "%s; by its state it waits in the queue", fmt.Sprintf(format, args...))
}

// done acknowledges tasks, if the queue needs that.
func (c *client) done(ctx context.Context, tasks ...queueimpl.Task) error {
	a, ok := c.Queue.(queueimpl.Acker)
	for _, t := range tasks {
		if !ok {
			break
		}
		c.b.calls("ack of %.40q", t.ID)
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

// holds expects the server to hold these tasks.
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

// numbered returns n ids.
func numbered(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("task-%05d", i))
	}
	return ids
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

// look is the pause between two looks; looks is the most of them on a virtual clock: far more time than any rule needs.
const (
	look  = 2 * time.Millisecond
	looks = 800
)

// until polls until something has happened.
func (b bench) until(ctx context.Context, what string, happened func() (bool, error)) error {
	start := time.Now()
	for n := 1; ; n++ {
		if ok, err := happened(); ok || err != nil {
			return err
		}
		if b.Pass == nil {
			if waited := time.Since(start); waited > longEnough {
				return &never{what, waited}
			}
			if err := (clock.Real{}).Sleep(ctx, look); err != nil {
				return &never{what, time.Since(start)}
			}
			continue
		}
		if b.Pass(look); n == looks {
			return &never{what, looks * look}
		}
	}
}

// comes pops, with this client alone, until a task comes, and expects that task to be id.
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
	n := new(never)
	if !errors.As(err, &n) || ctx.Err() != nil {
		return got, err
	}
	if of == variant.NoLostTask {
		err = c.lost(ctx, []string{id}, "%q was not delivered in %v", id, n.after.Round(time.Millisecond))
	} else {
		err = broken(of, "%q was not delivered in %v", id, n.after.Round(time.Millisecond))
	}
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

// declaredAs returns the declared answer that err wraps, or nil.
func declaredAs(err error) error {
	for _, d := range []error{queueimpl.ErrEmpty, queueimpl.ErrLocked, queueimpl.ErrChanged, queueimpl.ErrLost, queueimpl.ErrBadCall} {
		if errors.Is(err, d) {
			return d
		}
	}
	return nil
}

// undeclared expects an error other than the declared answers, because those would claim to know
// the outcome.
func undeclared(what string, err error) error {
	if err == nil {
		return broken(theInterface, "%s answered success; want an error", what)
	}
	if declaredAs(err) != nil {
		return broken(theInterface, "%s answered %q, a declared answer; want another error", what, err)
	}
	return nil
}

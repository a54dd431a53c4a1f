// Package queuetest is the conformance suite for task queues: it tests the queues of this
// repository, and any other that implements queueimpl.Queue.
//
//	func TestMyQueue(t *testing.T) {
//		mine := queueimpl.Variant{Name: "mine", New: newMine, Promises: ...}
//		queuetest.Run(t, mine, queuetest.Auto(t))
//	}
//
// The example of [Run] has a whole queue. A test with servers of its own makes each [Bench] itself.
//
// Each rule is one subtest on a queue of its own. Some rules belong to a promise
// and are tried only on queues that make it, some to a capability, which is
// discovered; the others belong to the interface, and every queue must keep them.
// A failure names the promise, and shows what was asked and answered.
//
// A queue may leave Task.Attempt and Task.Score 0 where it does not know them. It may take empty
// ids and the like, or refuse them. It may refuse calls with many ids, or pops of many tasks, with
// [queueimpl.ErrBadCall]: the suite then makes several smaller ones. It may refuse other ids and names, too, for example long
// ones or those with control characters, if it answers [queueimpl.ErrBadCall]. If the id of a dead letter is enqueued again, the
// queue may enter it, or ignore it as an id that is in the queue. A queue may overwrite repeated ids even if
// Options.Overwrite is not set, as long as its Repeats says so, and may round delays up to whole seconds in the scores
// that it returns.
//
// A queue that removes a task as it hands it out delivers at most once, and a consumer that dies takes
// its task along. Such a queue declares that in Variant.Flaws, so that it is not held against it:
//
//	Flaws: []variant.Flaw{
//		{Property: variant.NoLostTask, Fault: variant.Crash, Why: "a consumer that dies takes its task along"},
//		{Property: variant.NoLostTask, Fault: variant.DropReply, Why: "a task whose answer is lost is gone"},
//		{Property: variant.NoLostTask, Fault: variant.LateRequest, Why: "a pop whose client gave up takes tasks all the same"},
//	}
//
// Likewise, a queue in which some tasks may wait for good while others come, such as one with priorities,
// does not promise progress, or declares when it does not keep it.
//
// The suite does not look at keys to tell two queues apart: an implementation may hash a queue's name, or store it as a
// field of a hash. The suite does not remove what its rules write; give it a server of its own, or put a number that
// differs from run to run into [Bench.Queue].
//
// Some rules hold a client up, or lose one of its commands or answers. They act on commands that are sent through Env.Redis.
// If a queue sends none there, but by a client of its own at Env.Addr, these rules are skipped.
//
// For the rule about commands that may not write, the suite creates a user on the server (ACL SETUSER), and deletes it
// afterwards.
//
// The longer a call to the server takes, the fewer tasks a rule uses. A rule ends after 12 s. If
// it could not be completed because calls are slow, it is skipped; a failure is never the suite's
// own timeout.
//
// The sizes are limited: a queue has at most 20,000 waiting tasks, an id is enqueued again among at most 3,000 others,
// a claim runs out beside at most 1,500 claims that go on, and a client is interrupted at the first ten commands of a
// call. A flaw that shows only with more is not found.
//
// On a real clock, a rule that expects an event polls until the event has happened, and checks that it did not happen
// too early. On a virtual clock ([Bench.Pass]) the rule also checks that the event happens at exactly the right time. A
// rule that lets a claim run out waits for a fixed time: somewhat longer than the claim.
//
// A virtual clock comes with the emulation of a server, package miniredis, which differs from Redis
// in some points: a WATCH does not notice a ZREM, there are no functions (FCALL), no ZRANGESTORE and
// no XGROUP SETID, XPENDING IDLE refuses an exclusive start, XCLAIM refuses LASTID, and messages that
// were deleted while they were pending are not pending any more. Try a queue that needs one of these
// on a real server. Idle times and counts of deliveries are those of Redis 7: package server corrects
// what miniredis does in XCLAIM and XAUTOCLAIM.
//
// Rules about hours and months run on the emulation, with a clock that the rule moves, even if [Auto] has found a server: long
// delays, claims and extended claims; a task that nobody finishes; whether tasks stay in the queue; old receipts; dead
// letters that are months old; a task that is withdrawn long before it is due; random calls (OVERSELL_SEED). These rules do not judge a
// queue that sends times of the real clock to the server, or commands that the emulation does not know.
//
// In some rules a client's clock is up to an hour ahead or behind. A queue that goes by the clocks of its clients declares, for
// each promise that it then breaks, a flaw with variant.ClockSkew.
//
// This is a functional test under moderate concurrency, not a proof. To look for an interleaving or a fault that breaks
// a queue, search it (oversell explore) and run it under load (oversell run).
package queuetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/queueimpl/queueload"
	"oversell/queueimpl/queuerules"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// Bench is where one rule is tried.
type Bench struct {
	// Env returns the environment of another client, with connections and tokens of its own. All connections are to the
	// same server, and nothing but the suite may write to that server. The suite uses Redis and Clock; the queue may
	// also use Token, Wait, Go, Addr and SQL, if they are set. Wait must not depend on Pass.
	Env func() variant.Env
	// Queue names a queue that has not been used yet. Rules may append to it.
	Queue string
	// Pass moves the clock, if the server and all clients share a virtual one; nil if
	// they have real clocks.
	Pass func(time.Duration)
}

// Auto returns what Run needs to open a Bench for each rule: all on one redis-server child if there is one on PATH, and
// otherwise each on an emulation of its own, with a virtual clock. Then the test's log says so, or the test fails if
// OVERSELL_REQUIRE_SERVER=1.
func Auto(t *testing.T) func(*testing.T) Bench {
	t.Helper()
	s := opentest.Auto(t, "single")
	name := func() string { return "{" + rand.Text() + "}mail" }
	if s.Kind != server.Embedded {
		return func(*testing.T) Bench {
			return Bench{Queue: name(), Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}
		}
	}
	return func(t *testing.T) Bench {
		clk, s := opentest.Virtual(t)
		return Bench{Queue: name(), Env: func() variant.Env { return opentest.Env(t, s, clk) }, Pass: clk.Advance}
	}
}

// Run tries every rule that applies to the queue. It calls open once for each, and once to find out whether the queue works
// at all. On a real clock, most rules are tried side by side, since they wait for time to pass; a rule that fails while the
// server or the machine stands still for a second is tried once more, and is skipped as too slow if that happens again.
func Run(t *testing.T, v queueimpl.Variant, open func(t *testing.T) Bench) {
	t.Helper()
	on := func(t *testing.T) bench {
		o := open(t)
		return bench{Env: o.Env, Queue: o.Queue, Pass: o.Pass, Variant: v}
	}
	first := on(t)
	if err := first.Works(t.Context()); err != nil {
		t.Fatalf("queue %s: %v; no rule was tried", v.Name, err)
	}
	measured := first.Measured(t.Context())
	var tried []suitetest.Rule
	for _, r := range rules {
		if !r.appliesTo(v) {
			continue
		}
		tried = append(tried, suitetest.Rule{Name: r.name, Alone: slices.Contains(alone, r.name), Promise: r.promise, Open: func(t *testing.T) suitetest.Trial {
			b := on(t).As(measured)
			return suitetest.Trial{
				Try:     func(ctx context.Context) error { return r.try(ctx, b) },
				Servers: func() []redis.UniversalClient { return b.Env().Redis },
				Virtual: b.Pass != nil,
			}
		}})
	}
	suitetest.Run(t, "queue "+v.Name, sideBySide, tried)
}

// try checks the rule, and returns an error if a call of the queue does not return.
func (r rule) try(ctx context.Context, b bench) error {
	b = b.Noting("start of the rule")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- suitetest.Caught("the queue", func() error { return r.check(ctx, b) }) }()
	select {
	case err := <-result:
		if end, ok := ctx.Deadline(); ok && err != nil && time.Now().After(end.Add(-nearly)) {
			return outOfTime(b, r, end, err)
		}
		if errors.As(err, new(*never)) && !errors.As(err, new(*suitetest.Breach)) {
			return broken(r.ofWaiting(b.Variant), "%w", err)
		}
		if err == nil {
			return cmp.Or(b.Unseen(), b.Fewer())
		}
		return renamed(b.Variant, err)
	case <-time.After(patience + answer):
		return hung(b, b.Last())
	}
}

// hung judges a rule that goes on although its context has ended: its last call hangs if it began before that, though a look
// at the queue is quick.
func hung(b bench, last queueclient.Call) error {
	still := time.Since(last.Since)
	if d, answered := b.RoundTrip(); !answered || d > answer/50 || still < answer-nearly {
		return &suitetest.TooSlow{Why: fmt.Sprintf("the rule did not end within %v, nor within %v after its context had ended: its last call, %s, began %v ago, and a look at the queue takes %v", patience, answer, last.What, still.Round(time.Millisecond), d.Round(time.Microsecond))}
	}
	return broken(theInterface, "the last call noted, %v, or one after it, has not returned %v after its context ended", last.What, answer)
}

// renamed is the error about the promise that the queue makes: a task that was handed out twice breaks no-duplicate-delivery, or
// effect-once if only that is promised, or else what the interface says about claims.
func renamed(v queueimpl.Variant, err error) error {
	w := new(suitetest.Breach)
	if !errors.As(err, &w) || w.Promise != variant.NoDuplicateDelivery || slices.Contains(v.Promises, w.Promise) {
		return err
	}
	if w.Promise = theInterface; slices.Contains(v.Promises, variant.EffectOnce) {
		w.Promise = variant.EffectOnce
	}
	return err
}

// alone are rules that are tried when the others are done: a server that works through so many tasks
// in one script answers nobody else meanwhile.
var alone = []string{nineThousandTasks, fiveThousandTasks, tenThousandTasks, twentyThousandTasks}

// The names of rules that are mentioned elsewhere.
const (
	nineThousandTasks   = "nine thousand tasks in one call"
	fiveThousandTasks   = "five thousand tasks in one pop"
	tenThousandTasks    = "ten thousand tasks in one pop"
	twentyThousandTasks = "twenty thousand tasks"
	writesMayFail       = "answers of calls whose commands may not write"
)

// sideBySide is how many rules are tried at once.
const sideBySide = 8

// rule is one thing that a queue must do.
type rule struct {
	name string
	// promise, unless empty, is the promise that the rule belongs to. A flaw that
	// needs nothing takes it back.
	promise variant.Property
	// faults are what the rule does to the queue: a flaw that needs them takes the
	// promise back, too.
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

func both(a, b func(queueimpl.Variant) bool) func(queueimpl.Variant) bool {
	return func(v queueimpl.Variant) bool { return a(v) && b(v) }
}

// overwrites tells the queues that follow Options.Overwrite. A queue may always ignore a
// repeated id, and says so.
func overwrites(v queueimpl.Variant) bool {
	d, ok := v.Sample(overwriting).(queueimpl.Deduper)
	return ok && d.Repeats() == queueimpl.Overwritten
}

// ignoresRepeats reports whether a queue without options ignores an id that is there already. A queue may always overwrite it,
// and says so.
func ignoresRepeats(v queueimpl.Variant) bool {
	d, ok := v.Sample().(queueimpl.Deduper)
	return ok && d.Repeats() == queueimpl.Ignored
}

func locked(v queueimpl.Variant) bool { return v.Locked }

// inItsOrder tells the queues that promise to hand out tasks in order.
func inItsOrder(v queueimpl.Variant) bool { return keeps(v, variant.InOrder) }

// unlocked reports whether the clients of a queue need not wait for another client that was held
// up, or died.
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
	{"a repeated id is ignored", variant.OneEntryPerID, nil, ignoresRepeats, repeatIgnored},
	{"a repeated id overwrites, as an option", variant.OneEntryPerID, nil, both(overwrites, can[queueimpl.Delayer]), repeatOverwrites},
	{"an id can be enqueued again when it is done", "", nil, nil, againWhenDone},
	{"the state adds up", "", nil, nil, stateAddsUp},
	{"dequeue needs the very score", "", nil, both(can[queueimpl.Dequeuer], can[queueimpl.Deduper]), dequeueNeedsScore},
	{"peek changes nothing", "", nil, can[queueimpl.Peeker], peekChangesNothing},
	{"a locked queue is not an empty one", "", nil, locked, lockedIsNotEmpty},
	{"an ack counts once", "", nil, can[queueimpl.Acker], ackOnce},
	{"a claimed task is hidden, then comes back", variant.NoLostTask, nil, lends, claimHides},
	{"a claim ends soon after its timeout", variant.Progress, nil, lends, claimEndsSoon},
	{"an ack counts until another has the task", variant.NoLostTask, nil, lends, lateAck},
	{"an ack counts while another has another task", variant.NoLostTask, nil, lends, lateAckBeside},
	{"an acked task never comes back", "", nil, lends, ackedStaysAway},
	{"overwriting ends a claim", "", nil, both(lends, overwrites), overwritingEndsClaim},
	{"a claim can be extended", "", nil, both(lends, can[queueimpl.Extender]), extended},
	{"reclaim returns what has run out", "", nil, both(lends, can[queueimpl.Reclaimer]), reclaimReturns},
	{"after its attempts a task is a dead letter", variant.NoLostTask, nil, both(lends, can[queueimpl.DeadLetters]), deadLetter},
	{"any number of claims that have run out come back", variant.NoLostTask, nil, lends, manyRunOut},
	{"the journal tells what a request took", "", nil, can[queueimpl.Journaler], journalTells},
	{"a request sent again takes nothing more", "", nil, can[queueimpl.Journaler], queuerules.RequestAgain},
	{"a request sent again when another has its task", "", nil, both(lends, can[queueimpl.Journaler]), queuerules.RequestOfOthers},
	{"a request sent again after a withdrawal", "", nil, both(can[queueimpl.Journaler], can[queueimpl.Dequeuer]), queuerules.RequestAfterWithdrawal},
	{"a large request sent again", "", nil, can[queueimpl.Journaler], queuerules.LargeRequest},
	{"a request sent again much later", "", nil, can[queueimpl.Journaler], queuerules.JournalLater},
	{"a dead letter is not withdrawn", "", nil, both(lends, both(can[queueimpl.DeadLetters], can[queueimpl.Dequeuer])), queuerules.WithdrawnLetter},
	{"clients with different limits on the attempts", "", nil, both(lends, can[queueimpl.DeadLetters]), queuerules.OtherLimit},
	{"a delay with a fraction of a millisecond", variant.NotEarly, nil, can[queueimpl.Delayer], queuerules.FineDelay},
	{"requests are texts like any other", "", nil, can[queueimpl.Journaler], queuerules.RequestsAlike},
	{"an ack after an extend that came too late", "", nil, both(lends, can[queueimpl.Extender]), queuerules.LateExtendThenAck},
	{"a withdrawal with an earlier score", "", nil, can[queueimpl.Dequeuer], queuerules.EarlierScore},
	{"concurrent clients lose nothing", variant.NoLostTask, nil, nil, crowdLosesNothing},
	{"concurrent clients get nothing twice", "", nil, once, crowdGetsNothingTwice},
	{"copies of one id at once make one entry", variant.OneEntryPerID, nil, ignoresRepeats, copiesAtOnce},
	{"two queues do not mix", "", nil, nil, twoQueues},
	{"a bad call is an error, and changes nothing", "", nil, nil, badCalls},
	{"a cancelled context is no declared answer", "", nil, nil, queuerules.Ended},
	{"ids are texts like any other", variant.NoLostTask, nil, nil, idsAreOpaque},
	{"ids are texts when claims end, too", variant.NoLostTask, nil, lends, strangeReturns},
	{"a claim that is extended keeps no other from ending", variant.NoLostTask, nil, both(lends, can[queueimpl.Extender]), extendedBeside},
	{"of many claims all but one are extended", variant.NoLostTask, nil, both(lends, can[queueimpl.Extender]), queuerules.BehindExtended},
	{"a task that is due, behind others that are due later", variant.NoLostTask, nil, can[queueimpl.Delayer], queuerules.BehindDelayed},
	{"a late ack of a task that waits again", variant.EffectOnce, nil, lends, lateAckOfWaiting},
	{"an ack of an earlier entry with the same id", variant.NoLostTask, nil, lends, oldReceipt},
	{"tasks that are all due come in their order", variant.InOrder, nil, nil, allDueInOrder},
	{"queues with similar names do not mix", "", nil, nil, namesAreOpaque},
	{"tasks return and become due in queues with unusual names", variant.NoLostTask, nil, nil, queuerules.ByName},
	{"queues with unlike names do not mix", "", nil, once, unlikeNames},
	{"many tasks", variant.NoLostTask, nil, once, manyTasks},
	{"of one look only what is due", variant.NotEarly, nil, can[queueimpl.Delayer], mixedDue},
	{"overwriting moves the due time to and fro", variant.OneEntryPerID, nil, both(overwrites, can[queueimpl.Delayer]), overwriteEarlier},
	{"receipts of one client are told apart", variant.NoLostTask, nil, lends, ownReceipts},
	{"attempts are counted, whatever happens to a task", "", nil, lends, attemptsCount},
	{"entries with one id are tasks of their own", variant.NoLostTask, nil, both(once, repeatsKept), sameIDs},
	{"claims that go on keep no other from ending", variant.Progress, nil, lends, queuerules.BehindLiveClaims},
	{"a claim that has run out cannot be extended", "", nil, both(lends, can[queueimpl.Extender]), lateExtend},
	{"extending often is extending once", "", nil, both(lends, can[queueimpl.Extender]), extendOften},
	{"a claim lasts until its end when answers are slow", "", nil, lends, slowAnswers},
	{"a task that waits again can be withdrawn", "", nil, both(lends, can[queueimpl.Dequeuer]), dequeueAgain},
	{"a late ack of a dead letter", variant.EffectOnce, nil, both(lends, can[queueimpl.DeadLetters]), deadAck},
	{"any number of dead letters", variant.NoLostTask, nil, both(lends, can[queueimpl.DeadLetters]), manyDead},
	{"dead letters of months", variant.NoLostTask, nil, both(lends, can[queueimpl.DeadLetters]), queuerules.OldLetters},
	{"a task that is withdrawn long before it is due", "", nil, both(can[queueimpl.Dequeuer], can[queueimpl.Delayer]), queuerules.Withdrawn},
	{"a pop held up until its id is due later", variant.NotEarly, nil, both(unlocked, both(once, can[queueimpl.Delayer])), queuerules.Rescheduled},
	{"tasks that move while a pop looks for one", variant.Linearizable, nil, both(unlocked, once), queuerules.Moving},
	{"many tasks in one pop", variant.NoLostTask, nil, once, manyAtOnce},
	{"many tasks in one pop come in their order", variant.InOrder, nil, nil, batchInOrder},
	{"a pop under a request that is interrupted", variant.NoLostTask, nil, both(unlocked, can[queueimpl.Journaler]), journalInterrupted},
	{"clients' clocks may differ", variant.NotEarly, skew, can[queueimpl.Delayer], clocksDiffer},
	{"a claim does not end by another client's clock", variant.EffectOnce, skew, lends, claimsAndClocks},
	{"a claim ends by its own timeout while others look", variant.NoLostTask, nil, lends, claimEnds},
	{"a producer that dies between two commands", variant.NoLostTask, nil, unlocked, producerDies},
	{"a consumer that dies between two commands", variant.NoLostTask, nil, unlocked, consumerDies},
	{"a consumer that dies in an ack", variant.NoLostTask, crash, lends, ackerDies},
	{"a client that dies as it ends claims", variant.NoLostTask, crash, lends, reclaimerDies},
	{"answers that are lost", variant.NoLostTask, nil, unlocked, lostAnswers},
	{"a pop of which a request is lost", variant.NoLostTask, nil, unlocked, lostRequest},
	{"a consumer held up between two commands", variant.NoLostTask, nil, both(unlocked, once), stalledPop},
	{"a producer held up between two commands", variant.OneEntryPerID, nil, both(unlocked, ignoresRepeats), stalledEnqueue},
	{"an ack held up between two commands", variant.NoLostTask, nil, lends, stalledAck},
	{"the end of a claim held up between two commands", variant.EffectOnce, nil, lends, stalledReclaim},
	{"a dequeue held up between two commands", "", nil, both(unlocked, both(once, can[queueimpl.Dequeuer])), stalledDequeue},
	{"a producer that dies as it overwrites", variant.NoLostTask, crash, both(unlocked, overwrites), overwriterDies},
	{"a consumer that dies beside a task that is not due", variant.NoLostTask, nil, both(unlocked, can[queueimpl.Delayer]), popperDies},
	{"a client that dies as it puts a dead letter aside", variant.NoLostTask, crash, both(lends, can[queueimpl.DeadLetters]), buryingDies},
	{"tasks that become dead letters hide no other", "", nil, both(lends, can[queueimpl.DeadLetters]), besideDeadLetters},
	{"a client that dies as it withdraws or extends", variant.NoLostTask, crash, unlocked, withdrawerDies},
	{"the server forgets its scripts", variant.NoLostTask, nil, both(unlocked, once), scriptsForgotten},
	{"what is in the queue lasts", variant.NoLostTask, nil, unlocked, everythingLasts},
	{"clients with different clocks use one queue", variant.NoLostTask, skew, both(noClock, once), clocksApart},
	{fiveThousandTasks, variant.NoLostTask, nil, once, queueload.FiveThousand},
	{tenThousandTasks, variant.NoLostTask, nil, once, queueload.TenThousand},
	{twentyThousandTasks, variant.NoLostTask, nil, once, queueload.TwentyThousand},
	{"an id that is enqueued again while a client has its task", variant.NoLostTask, nil, both(unlocked, lends), queuerules.ClaimedAgain},
	{"a repeated id among many", variant.OneEntryPerID, nil, ignoresRepeats, queuerules.RepeatsAmongMany},
	{"many requests", "", nil, can[queueimpl.Journaler], queueload.ManyRequests},
	{"ids and names with one checksum", variant.NoLostTask, nil, once, queuerules.SameChecksums},
	{"long ids", variant.NoLostTask, nil, once, queueload.LongIDs},
	{"answers of calls of which a command fails", "", nil, unlocked, definiteAnswers},
	{writesMayFail, "", nil, unlocked, writesFail},
	{"an ack held up while others enqueue", variant.NoLostTask, nil, both(unlocked, can[queueimpl.Acker]), whileOthersEnter},
	{"a dequeue held up until its id is another entry's", variant.NoLostTask, nil, both(unlocked, both(once, can[queueimpl.Dequeuer])), dequeueOfEarlier},
	{"a client held up until another has its task", variant.EffectOnce, nil, both(unlocked, lends), claimTakenMeanwhile},
	{"a request sent again while the first is held up", "", nil, both(unlocked, can[queueimpl.Journaler]), copiesOfRequest},
	{"calls while another client enqueues between their commands", "", nil, both(unlocked, once), underContention},
	{"an id that has left is as new", variant.NoLostTask, nil, nil, asNewAfterwards},
	{"names and ids that make up for each other", variant.NoLostTask, nil, once, namesAndIDs},
	{"claims that ran out long ago come back one by one", variant.NoLostTask, nil, lends, longOver},
	{"an extended claim lasts until its end", "", nil, both(lends, can[queueimpl.Extender]), extendLasts},
	{"long extended claims", "", nil, both(lends, can[queueimpl.Extender]), longExtends},
	{"the task of a dead consumer comes back while others wait", variant.Progress, crash, lends, queueload.ClaimInBacklog},
	{"a delayed task comes while others wait", variant.Progress, nil, can[queueimpl.Delayer], queueload.DelayedInBacklog},
	{"a task that is due sooner than one that was seen", variant.Progress, nil, can[queueimpl.Delayer], queueload.SoonerThanSeen},
	{nineThousandTasks, variant.NoLostTask, nil, once, queueload.AllInOneCall},
	{"many receipts", variant.NoLostTask, nil, lends, manyReceipts},
	{"a receipt is refused after a long time", variant.NoLostTask, nil, lends, oldReceipts},
	{"a task whose claim has run out is there", variant.NoLostTask, nil, lends, ranOutIsThere},
	{"ids are texts in the journal, too", variant.NoLostTask, nil, both(once, can[queueimpl.Journaler]), queuerules.IDsInJournal},
	{"attempts are counted over hours and days", "", nil, lends, queuerules.AttemptsOverDays},
	{"an extend held up until its task is done", "", nil, both(unlocked, both(lends, can[queueimpl.Extender])), queuerules.ExtendOfDone},
	{"an ack after a reclaim", "", nil, both(lends, can[queueimpl.Reclaimer]), queuerules.AckAfterReclaim},
	{"one reclaim returns all claims that have run out", "", nil, both(lends, can[queueimpl.Reclaimer]), queuerules.ReclaimsAll},
	{"one reclaim returns more than a thousand claims", "", nil, both(lends, can[queueimpl.Reclaimer]), queuerules.ReclaimsThousands},
	{"a request sent again after its tasks are done", "", nil, can[queueimpl.Journaler], queuerules.RequestAfterAck},
	{"a repeated id of a task that is not due", variant.OneEntryPerID, nil, both(ignoresRepeats, can[queueimpl.Delayer]), queuerules.RepeatOfDelayed},
	{"a repeated id of a task whose claim has run out", variant.OneEntryPerID, nil, both(lends, ignoresRepeats), queuerules.RepeatOfRunOut},
	{"an extended claim lasts until its end when answers are slow", "", nil, both(lends, can[queueimpl.Extender]), queuerules.SlowExtends},
	{"calls for one task leave another alone for weeks", variant.NoLostTask, nil, nil, queuerules.RemainsAfterCalls},
	{"an ack long after the end of the claim", "", nil, lends, queuerules.LateAcks},
	{"a call that is refused changes nothing for the holder", "", nil, lends, queuerules.RefusedCalls},
	{"answers do not change", "", nil, once, queuerules.AnswersStay},
	{"very large counts", "", nil, nil, queuerules.LargeCounts},
	{"a task that is enqueued after a client was told that nothing is due", "", nil, once, queuerules.AfterEmpty},
	{"many looks at a task", "", nil, can[queueimpl.Peeker], queuerules.PeeksOften},
	{"a withdrawal with nearly the score", "", nil, can[queueimpl.Dequeuer], queuerules.NearScore},
	{"a repeated id with other delays", variant.OneEntryPerID, nil, both(can[queueimpl.Deduper], can[queueimpl.Delayer]), queuerules.RepeatOfFar},
	{"ids that the queue has as names of its own", variant.NoLostTask, nil, unlocked, queuerules.OwnIDs},
	{"an id becomes a dead letter twice", variant.NoLostTask, nil, both(lends, can[queueimpl.DeadLetters]), queuerules.DeadTwice},
	{"a reclaim is no attempt", "", nil, both(lends, can[queueimpl.Reclaimer]), queuerules.ReclaimIsNoAttempt},
	{"a dead letter is its last consumer's", "", nil, both(lends, can[queueimpl.DeadLetters]), queuerules.LetterOfLast},
	{"the state lists waiting tasks in their order", "", nil, inItsOrder, queuerules.StateInOrder},
	{"peek shows a delayed task that is due", "", nil, both(can[queueimpl.Peeker], can[queueimpl.Delayer]), queuerules.PeekOfDelayed},
	{"each task of a batch has a claim of its own", variant.NoLostTask, nil, lends, queuerules.Batches},
	{"unusual ids with a delay", variant.NoLostTask, nil, can[queueimpl.Delayer], queuerules.Delayed},
	{"a client whose calls have failed, or ended early, goes on", "", crash, unlocked, queuerules.Recovers},
	{"random calls against a model of the contract", "", nil, queuerules.Walkable, queuerules.RandomWalks},
	{"an entry that is overwritten while a call is held up", variant.NoLostTask, nil, both(unlocked, both(once, both(overwrites, can[queueimpl.Delayer]))), overwrittenMeanwhile},
}

func overwriting(o *queueimpl.Options) { o.Overwrite = true }
func impatient(o *queueimpl.Options)   { o.Visibility = visibility }
func threeTimes(o *queueimpl.Options)  { o.Visibility, o.MaxAttempts = visibility, 3 }

// soundLock is for rules with several clients at once: what a queue does under a
// lock that does not keep them apart is another test's business.
func soundLock(b bench) func(*queueimpl.Options) {
	return func(o *queueimpl.Options) {
		if l, ok := lockimpl.Find("lua-release"); ok && b.Variant.Locked {
			o.Lock = l.New
			o.LockOptions = lockimpl.Options{Wait: patience, RetryEvery: time.Millisecond}
		}
	}
}

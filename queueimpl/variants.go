package queueimpl

import (
	"slices"

	"oversell/variant"
)

// The mechanisms behind the flaws that several queues share.
const (
	whyTwoRanges      = "two consumers read the same range before either has removed anything, and both run the task"
	whyTwoAnswers     = "one entry is handed out twice, which no order of the calls allows"
	whyLateRemove     = "a consumer's ZREM, by id alone, comes after another consumer had the task and a producer enqueued the id again: the new entry is removed, and no consumer is given it"
	whyTwoAdds        = "two producers both find no entry and both add one: both are told that theirs is in the queue, and the later has overwritten the earlier"
	whyOverrun        = "the section outlives its lease, so two clients are inside: "
	whyDies           = "Pop has removed the task: a consumer that dies while it has the task loses it"
	whyNoReply        = "the task was removed and the reply was lost: no consumer works on it"
	whyLatePop        = "a pop that the server executes after its client gave up removes tasks that no client is waiting for"
	whyForgets        = "an id is remembered only while its task is in the queue: an enqueue that is sent again after the task was taken enters it again"
	whyOwnClock       = "the consumer asks its own clock what is due: one that is ahead gets tasks early"
	whyOwnClockLag    = "a consumer whose clock is behind is told that nothing is due while a task is"
	whyServerClock    = "the server's clock decides what is due: a step forward makes tasks due early"
	whyStuckLock      = "a client that dies inside a section leaves a lock that never comes free: every pop is refused for good"
	whySlow           = "by design: a consumer that is slower than the visibility timeout is taken for dead, and the task is given to another"
	whyDied           = "by design: the task of a consumer that died is given to another"
	whyFailover       = "what was enqueued was on the lost master only"
	whyFailoverPop    = "what was popped was removed on the lost master only: the promoted replica hands it out again"
	whyFailoverEffect = "a task's effect, and that it was popped or acked, were on the lost master only: the promoted replica hands it out again, and knows of no effect"
	whyFailoverOrder  = "a task that a pop without an answer took from the lost master is on the promoted replica, and is handed out behind later ones"
	whySecondAnswer   = "an enqueue that is executed twice is answered as if the id had been there before"
	whyLostClaim      = "the entries of the answer that was lost come back only after the visibility timeout, behind later ones"
	whyEmptied        = "a server without its data has no tasks"
)

// oneServer lists the flaws of every queue on one server.
var oneServer = []variant.Flaw{
	{Property: variant.NoLostTask, Fault: variant.Failover, Why: whyFailover},
	{Property: variant.EffectOnce, Fault: variant.Failover, Why: whyFailoverEffect},
	{Property: variant.InOrder, Fault: variant.Failover, Why: whyFailoverOrder},
	{Property: variant.NoLostTask, Fault: variant.RestartEmpty, Why: whyEmptied},
}

// handsOutOnce are the flaws of a queue whose consumers rely on its handing out
// each task once.
var handsOutOnce = slices.Concat(oneServer, []variant.Flaw{
	{Property: variant.NoDuplicateDelivery, Fault: variant.Failover, Why: whyFailoverPop},
	{Property: variant.Linearizable, Fault: variant.Failover, Why: whyFailoverPop},
	{Property: variant.NoDuplicateDelivery, Fault: variant.Resend, Why: whyForgets},
	{Property: variant.EffectOnce, Fault: variant.Resend, Why: whyForgets},
	{Property: variant.Linearizable, Fault: variant.Resend, Why: whySecondAnswer},
})

// removesAtOnce lists the flaws of a queue whose Pop removes what it hands out.
var removesAtOnce = []variant.Flaw{
	{Property: variant.NoLostTask, Fault: variant.Crash, Why: whyDies},
	{Property: variant.NoLostTask, Fault: variant.DropReply, Why: whyNoReply},
	{Property: variant.NoLostTask, Fault: variant.LateRequest, Why: whyLatePop},
}

// givesAgain are the flaws of a queue that gives a task to another when nobody has acked it in time.
var givesAgain = []variant.Flaw{
	{Property: variant.NoDuplicateDelivery, Fault: variant.Overrun, Why: whySlow},
	{Property: variant.NoDuplicateDelivery, Fault: variant.Crash, Why: whyDied},
	{Property: variant.NoDuplicateDelivery, Fault: variant.DropReply, Why: whyDied},
}

// twoInside are the flaws of a queue that needs its clients kept apart, where they
// are not.
func twoInside(fault variant.Fault, under, how string) []variant.Flaw {
	repeats := variant.WithRepeats
	if under != "" {
		repeats = under + variant.And + variant.WithRepeats
	}
	return []variant.Flaw{
		{Property: variant.NoDuplicateDelivery, Fault: fault, Under: under, Why: how + whyTwoRanges},
		{Property: variant.EffectOnce, Fault: fault, Under: under, Why: how + whyTwoRanges},
		{Property: variant.Linearizable, Fault: fault, Under: under, Why: how + whyTwoAnswers},
		{Property: variant.NoLostTask, Fault: fault, Under: repeats, Why: how + whyLateRemove},
		{Property: variant.OneEntryPerID, Fault: fault, Under: repeats, Why: how + whyTwoAdds},
	}
}

// Variants are all the queues, in the order in which reports show them.
var Variants = []Variant{
	{
		Name:     "zset-locked",
		Source:   variant.TextListing + "; if the lock is not obtained the listing ends in a fatal error, because it logs by Logger:get(…), a label in PHP",
		Summary:  "a sorted set by due time; every change is several commands under a lock, by the client's clock",
		Promises: variant.PropertiesOf(variant.Queue),
		Flaws: slices.Concat(
			twoInside(variant.NoFault, variant.Unserialized, ""),
			twoInside(variant.Overrun, "", whyOverrun),
			removesAtOnce,
			[]variant.Flaw{
				{Property: variant.NotEarly, Fault: variant.ClockSkew, Why: whyOwnClock},
				{Property: variant.Linearizable, Fault: variant.ClockSkew, Why: whyOwnClockLag},
				{Property: variant.Progress, Fault: variant.Crash, Under: variant.Stuck, Why: whyStuckLock},
			},
			handsOutOnce,
		),
		Locked:        true,
		TakesAnything: true,
		New:           newZsetLocked,
	},
	{
		Name:     "zset-atomic",
		Source:   "ours, zset-locked corrected",
		Summary:  "the sorted set with each change in one script, by the server's clock; no lock",
		Promises: variant.PropertiesOf(variant.Queue),
		Flaws: slices.Concat(
			removesAtOnce,
			[]variant.Flaw{{Property: variant.NotEarly, Fault: variant.ClockJump, Why: whyServerClock}},
			handsOutOnce,
		),
		Needs: variant.Needs{ServerClock: true},
		New:   newZsetAtomic,
	},
	{
		Name:    "reliable",
		Source:  "ours",
		Summary: "tasks are claimed for a visibility timeout and removed by an ack; what is not acked returns, then becomes a dead letter",
		Promises: []variant.Property{
			variant.NoLostTask, variant.EffectOnce, variant.NotEarly, variant.InOrder, variant.OneEntryPerID, variant.Progress,
		},
		Flaws: slices.Concat(
			givesAgain,
			[]variant.Flaw{{Property: variant.NotEarly, Fault: variant.ClockJump, Why: whyServerClock}},
			oneServer,
		),
		AtLeastOnce: true,
		Needs:       variant.Needs{ServerClock: true},
		New:         newReliable,
	},
	{
		Name:    "streams",
		Source:  "ours, with the server's own means",
		Summary: "a stream and a consumer group: XADD, XREADGROUP, XACK, XAUTOCLAIM after the visibility timeout; no delays, no dedupe",
		Promises: []variant.Property{
			variant.NoLostTask, variant.EffectOnce, variant.InOrder, variant.Progress,
		},
		Flaws: slices.Concat(
			givesAgain,
			[]variant.Flaw{
				{Property: variant.InOrder, Fault: variant.Resend, Why: whyLostClaim},
				{Property: variant.OneEntryPerID, Fault: variant.NoFault, Under: variant.WithRepeats, Why: "a stream does not look at ids: each XADD is an entry of its own"},
			},
			oneServer,
		),
		AtLeastOnce: true,
		Needs:       variant.Needs{ServerClock: true},
		New:         newStreams,
	},
	{
		Name:     "range-run-remove",
		Source:   "ours, as widely copied",
		Summary:  "look at what is due, run it, remove it afterwards",
		Promises: variant.PropertiesOf(variant.Queue),
		Flaws: slices.Concat(
			[]variant.Flaw{
				{Property: variant.NoDuplicateDelivery, Fault: variant.NoFault, Why: whyTwoRanges},
				{Property: variant.EffectOnce, Fault: variant.NoFault, Why: whyTwoRanges},
				{Property: variant.Linearizable, Fault: variant.NoFault, Why: whyTwoAnswers},
				{Property: variant.NoLostTask, Fault: variant.NoFault, Under: variant.WithRepeats, Why: whyLateRemove},
				{Property: variant.NotEarly, Fault: variant.ClockJump, Why: whyServerClock},
			},
			handsOutOnce,
		),
		Control: true,
		Needs:   variant.Needs{ServerClock: true},
		New:     newRangeRunRemove,
	},
}

// Find returns the queue with this name.
func Find(name string) (Variant, bool) {
	return variant.First(Variants, func(v Variant) bool { return v.Name == name })
}

package lockimpl

import (
	"slices"

	"oversell/variant"
)

// Where the locks come from.
const (
	doc02 = variant.TextListing + ", as printed"
	doc1  = variant.TextLease
	doc3  = variant.TextScripts
	doc4  = variant.TextDispatch
	ours  = "ours"
)

// demands are what [variant.TextScripts] demands of every lock, and what its readers expect.
var demands = []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress}

// sound lists the demands, for a lock with exact answers.
var sound = []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress, variant.Linearizable}

// Why locks break: one sentence for each mechanism.
const (
	whyDel           = "DEL does not check the owner: a holder that outlived its lease deletes its successor's lock, and the next client enters beside the successor"
	whyDecades       = "the lease of a holder that died, or gave up without an answer, runs for decades"
	whyBlindExtend   = "extending does not check the owner: it prolongs any lock under the name"
	whyLine          = "the wait line was on the server that lost its data: the next client begins a new one"
	whySecondRefused = "the client sees the second answer, by which another holds the lock: no client sets the expiry of its key"
	whyRetry         = "a command that the driver sends again is answered as if another had sent it first: one's own lock is held, one's own release comes too late"
	whyForgot        = "a server without its data grants a lock again that is held"
	whyEvicted       = "the server dropped the key of a lock that is held, and grants it again"
	whyJump          = "the server's clock steps over the end of a lease that has time left, and it grants the lock again"
	whyLonger        = "a server's clock that steps back makes the lease of a dead holder longer"
	whyRenewed       = "renewals that outlived their release keep a lock alive whose client is dead, or has given it up without an answer"
	whyLeftPlace     = "a waiter that gives up without an answer keeps its place in the line, and blocks all clients behind it"
	whyOldMaster     = "while two masters serve clients, each releases its own holder, though another client holds the lock on the other"
	whyFailover      = "the grant was on the lost master only: the promoted replica grants the lock again"
)

// oneMaster are the flaws of every lock that lives on a single master.
var oneMaster = slices.Concat(
	grantedAgain(variant.Failover, whyFailover),
	[]variant.Flaw{{Property: variant.OwnerOnlyRelease, Fault: variant.Failover, Why: whyOldMaster}},
	grantedAgain(variant.RestartEmpty, whyForgot),
	grantedAgain(variant.Evict, whyEvicted),
	[]variant.Flaw{{Property: variant.Linearizable, Fault: variant.Retry, Why: whyRetry}},
)

// expiring are the flaws of every lock on a single master whose lease the server counts.
var expiring = slices.Concat(oneMaster, grantedAgain(variant.ClockJump, whyJump), []variant.Flaw{
	{Property: variant.Progress, Fault: variant.ClockJump, Why: whyLonger},
})

// grantedAgain returns the flaws of a lock that is granted while it is held.
func grantedAgain(fault variant.Fault, why string) []variant.Flaw {
	return []variant.Flaw{
		{Property: variant.MutualExclusion, Fault: fault, Why: why},
		{Property: variant.Linearizable, Fault: fault, Why: why},
	}
}

// releasedByDel are the flaws of a lock that is released by DEL: whatever lets another
// client in lets the first holder delete that client's lock.
var releasedByDel = slices.Concat(wrongDelete(variant.Overrun, whyDel), onOthers(whyDel))

// onOthers returns the flaws of a lock that does not check the owner on release or extension, under the faults that
// grant a held lock again; oneMaster has that of a failover.
func onOthers(why string) (all []variant.Flaw) {
	for _, fault := range []variant.Fault{variant.RestartEmpty, variant.Evict, variant.ClockJump} {
		all = append(all, variant.Flaw{Property: variant.OwnerOnlyRelease, Fault: fault, Why: why})
	}
	return all
}

// lostLine lists the flaws of a lock with a wait line whose server loses the line.
var lostLine = []variant.Flaw{
	{Property: variant.FIFO, Fault: variant.Failover, Why: whyLine},
	{Property: variant.FIFO, Fault: variant.RestartEmpty, Why: whyLine},
}

// neverExpires are the flaws of a lock whose key has no expiry between its first command and EXPIRE.
func neverExpires(first string) []variant.Flaw {
	return []variant.Flaw{
		{Property: variant.Progress, Fault: variant.Crash, Why: "a crash between " + first + " and EXPIRE leaves a key that never expires"},
		{Property: variant.Progress, Fault: variant.Resend, Why: whySecondRefused},
	}
}

// wrongDelete are the flaws of every lock whose release can delete another's
// lock under this fault, and so let a third client in.
func wrongDelete(fault variant.Fault, why string) []variant.Flaw {
	return append(grantedAgain(fault, why), variant.Flaw{Property: variant.OwnerOnlyRelease, Fault: fault, Why: why})
}

// Variants lists every lock under test.
var Variants = []Variant{
	{
		Name: "none", Source: "ours, control", Control: true,
		Summary: "no lock: every client may enter at any time",
		Flaws:   []variant.Flaw{{Property: variant.MutualExclusion, Fault: variant.NoFault, Why: "no client is kept out"}},
		New:     newNone,
	},
	{
		Name: "php-lock-printed", Was: []string{"redislock-printed"}, Source: doc02,
		Summary:  "SETNX, EXPIRE with an absolute time (a lease as long as the time since 1970), takeover when TTL < 0, isLocking assigns",
		Promises: demands,
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.MutualExclusion, Fault: variant.NoFault, Why: "another client that looks between the owner's SETNX and EXPIRE sees TTL -1 and takes a live owner's lock; one that looks just after a release sees TTL -2 and overwrites a third client's"},
			{Property: variant.OwnerOnlyRelease, Fault: variant.NoFault, Why: "isLocking makes any value its own, so unlock deletes any holder's lock"},
			{Property: variant.Progress, Fault: variant.Crash, Why: whyDecades},
			{Property: variant.Progress, Fault: variant.DropReply, Why: whyDecades},
			{Property: variant.Progress, Fault: variant.NoFault, Under: variant.WithAbandoned, Why: whyDecades},
		}, oneMaster), // a lease of decades outlasts every step of a clock
		Needs: variant.Needs{WholeSeconds: true},
		New:   newPHPLockPrinted,
	},
	{
		Name: "php-lock", Was: []string{"redislock"}, Source: doc1,
		Summary:  "SETNX, EXPIRE, takeover with an expiry when TTL < 0, release by GET, compare, DEL",
		Promises: demands,
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.MutualExclusion, Fault: variant.NoFault, Why: "another client that looks between the owner's SETNX and EXPIRE, or just after a release, takes the lock over while it is held"},
			{Property: variant.OwnerOnlyRelease, Fault: variant.NoFault, Why: "the value is a whole second: two clients that called in the same second cannot tell their locks apart, so one deletes the other's"},
		}, expiring),
		Needs: variant.Needs{WholeSeconds: true},
		New:   newPHPLock,
	},
	{
		Name: "setnx-expire", Source: doc4,
		Summary:  "SETNX, then EXPIRE; released by DEL",
		Promises: sound,
		Flaws:    slices.Concat(neverExpires("SETNX"), releasedByDel, expiring),
		Needs:    variant.Needs{WholeSeconds: true},
		New:      newSetnxExpire,
	},
	{
		Name: "incr", Source: doc4 + ", without a maximum",
		Summary:  "the first INCR wins, then EXPIRE; released by DEL",
		Promises: sound,
		Flaws:    slices.Concat(neverExpires("INCR"), releasedByDel, expiring),
		Needs:    variant.Needs{WholeSeconds: true},
		New:      newIncr,
	},
	{
		Name: "incr-max", Source: doc4 + `, forced open from the 5th count on (its comment says "more than", its code "at least")`,
		Summary:  "as incr, but a client that counts to the maximum and finds no expiry deletes the key",
		Promises: demands,
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.MutualExclusion, Fault: variant.NoFault, Why: "enough waiting clients between the owner's INCR and EXPIRE force a live owner out: a thundering start does it"},
			{Property: variant.OwnerOnlyRelease, Fault: variant.NoFault, Why: "the owner that was forced out deletes its successor's lock"},
		}, releasedByDel, expiring),
		Needs: variant.Needs{WholeSeconds: true},
		New:   newIncrMax,
	},
	{
		Name: "set-nx-ex", Source: doc4 + `, "the best one"`,
		Summary:  "SET 1 NX EX in one command; released by DEL",
		Promises: sound,
		Flaws:    slices.Concat(releasedByDel, expiring),
		Needs:    variant.Needs{WholeSeconds: true},
		New:      newSetNXEX,
	},
	{
		Name: "token-del", Source: doc3 + ", first releasing mistake",
		Summary:  "SET token NX EX; released by DEL without checking the token",
		Promises: sound,
		Flaws:    slices.Concat(releasedByDel, expiring),
		New:      newTokenDel,
	},
	{
		Name: "token-get-del", Source: doc3 + ", second releasing mistake",
		Summary:  "SET token NX EX; released by GET, compare in the client, DEL",
		Promises: sound,
		Flaws:    slices.Concat(wrongDelete(variant.Overrun, "between GET and DEL the lease can end and another acquire: the DEL hits the other's lock"), expiring),
		New:      newTokenGetDel,
	},
	{
		Name: "lua-release", Source: doc3 + ", corrected",
		Summary:  "SET token NX EX; released by a script that compares and deletes",
		Promises: sound,
		Flaws:    expiring,
		New:      newLuaRelease,
	},
	{
		Name: "redlock", Source: doc3,
		Summary:  "the same token on a majority of independent masters, within the lease",
		Promises: demands,
		Flaws: []variant.Flaw{
			{Property: variant.MutualExclusion, Fault: variant.RestartEmpty, Why: "a node that forgot its grant grants again, and completes a second majority"},
			{Property: variant.MutualExclusion, Fault: variant.ClockJump, Why: "a node whose clock jumped lets its grant expire early"},
			{Property: variant.MutualExclusion, Fault: variant.Evict, Why: "a node that dropped the key of its grant grants again, and completes a second majority"},
		},
		Needs: variant.Needs{Masters: 3},
		New:   newRedlock,
	},
	{
		Name: "php-lock-atomic", Was: []string{"redislock-atomic"}, Source: ours + ", the printed lock corrected",
		Summary:  "SETNX, expiry and takeover of a dead owner in one script, by the server's clock",
		Promises: sound,
		Flaws:    expiring,
		Needs:    variant.Needs{ServerClock: true},
		New:      newPHPLockAtomic,
	},
	{
		Name: "setnx-expire-atomic", Source: ours + ", setnx-expire corrected",
		Summary:  "SETNX and PEXPIRE in one script, with a token and compare-and-delete",
		Promises: sound,
		Flaws:    expiring,
		New:      newSetnxExpireAtomic,
	},
	{
		Name: "incr-atomic", Source: ours + ", incr corrected",
		Summary:  "count, owner and expiry in one hash, set by one script",
		Promises: sound,
		Flaws:    expiring,
		New:      newIncrAtomic,
	},
	{
		Name: "watchdog", Source: ours,
		Summary:  "lua-release with a renewal that compares, reports a loss, and ends before the release",
		Promises: sound,
		Flaws:    expiring,
		Renews:   true,
		New:      newWatchdog,
	},
	{
		Name: "fenced", Source: ours,
		Summary:  "lua-release that grants a rising fencing token with the lock",
		Promises: append([]variant.Property{variant.Fencing}, sound...),
		Flaws: slices.Concat(expiring, []variant.Flaw{
			{Property: variant.Fencing, Fault: variant.Failover, Why: "the counter was on the lost master: the promoted replica grants an old number again"},
			{Property: variant.Fencing, Fault: variant.RestartEmpty, Why: "the counter is gone with the data: numbers begin anew"},
		}),
		Fences: true,
		New:    newFenced,
	},
	{
		Name: "fair", Source: ours,
		Summary:  "first come, first served, in a line that reaps the dead",
		Promises: append([]variant.Property{variant.FIFO}, demands...),
		Flaws:    slices.Concat(lostLine, expiring),
		Needs:    variant.Needs{ServerClock: true},
		New:      newFair,
	},
	{
		Name: "token-per-client", Source: "ours, control", Control: true,
		Summary:  "lua-release with one token for all of a client's attempts",
		Promises: demands,
		Flaws:    slices.Concat(wrongDelete(variant.LateRequest, "a release that arrives late fits the client's own next lock and deletes it"), expiring),
		New:      newTokenPerClient,
	},
	{
		Name: "watchdog-naive", Source: "ours, control", Control: true,
		Summary:  "a renewal that does not compare, outlives the release, and reports no loss",
		Promises: demands,
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.Progress, Fault: variant.Crash, Why: whyRenewed},
			{Property: variant.Progress, Fault: variant.DropReply, Why: whyRenewed},
			{Property: variant.OwnerOnlyRelease, Fault: variant.Overrun, Why: whyBlindExtend},
		}, onOthers(whyBlindExtend), expiring),
		Renews: true,
		New:    newWatchdogNaive,
	},
	{
		Name: "fair-no-reap", Source: "ours, control", Control: true,
		Summary:  "the line of fair, in which the dead keep their place",
		Promises: append([]variant.Property{variant.FIFO}, demands...),
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.Progress, Fault: variant.Crash, Why: "a dead head of the line blocks everybody behind it"},
			{Property: variant.Progress, Fault: variant.DropReply, Why: whyLeftPlace},
			{Property: variant.Progress, Fault: variant.LateRequest, Why: whyLeftPlace},
		}, lostLine, expiring),
		Needs: variant.Needs{ServerClock: true},
		New:   newFairNoReap,
	},
}

// Find returns the variant that has this name, or had it in an earlier version.
func Find(name string) (Variant, bool) {
	return variant.First(Variants, func(v Variant) bool { return v.Name == name || slices.Contains(v.Was, name) })
}

// CurrentName returns the present name for a variant's earlier name; it returns any other name unchanged.
func CurrentName(name string) string {
	if v, ok := Find(name); ok {
		return v.Name
	}
	return name
}

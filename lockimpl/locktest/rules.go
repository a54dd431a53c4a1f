package locktest

import (
	"cmp"
	"slices"

	"oversell/lockimpl/lockrules"
	"oversell/variant"
)

// Faults of rules that let a lease run out, and of rules that cut clients off.
var (
	overrun = []variant.Fault{variant.Overrun}
	crash   = []variant.Fault{variant.Crash}
	restart = []variant.Fault{variant.RestartEmpty}
	frozen  = []variant.Fault{variant.Overrun, variant.FreezeRenewal, variant.LateRequest}
	lost    = []variant.Fault{variant.DropReply, variant.LateRequest, variant.Overrun, variant.Crash}
	// noAnswer is a lost answer, and no other fault.
	noAnswer = []variant.Fault{variant.DropReply}
	unheard  = []variant.Fault{variant.DropReply, variant.Crash}
	stale    = []variant.Fault{variant.LateRequest, variant.Overrun}
	skew     = []variant.Fault{variant.ClockSkew, variant.Crash}
	// sameTime is a clock that was set back, or a request that was held up.
	sameTime = []variant.Fault{variant.ClockSkew, variant.Overrun}
)

var rules = []rule{
	{variant.MutualExclusion, nil, "a held lock is refused to others", nil, heldIsRefused},
	{variant.MutualExclusion, lost, "a refusal leaves the holder's lock as it is", nil, refusalsChangeNothing},
	{variant.MutualExclusion, overrun, "the lease keeps others out until its end", nil, leaseKeepsOut},
	{variant.MutualExclusion, overrun, "an extended lease keeps others out until its new end", canExtend, extendKeepsOut},
	{variant.MutualExclusion, overrun, "the lease counts from the call", reached, leaseFromCall},
	{variant.MutualExclusion, overrun, "the lease of a lock that was waited for", canWait, leaseAfterWait},
	{variant.MutualExclusion, nil, "a lock that renews keeps others out while its holder lives", renews, renewalKeepsOut},
	{variant.MutualExclusion, nil, "a lock that renews goes on, whatever else its client does", renews, calling(lockrules.Renewals)},
	{variant.MutualExclusion, noAnswer, "a lock that renews goes on after an answer was lost", silent, calling(lockrules.LostRenewal)},
	{variant.MutualExclusion, noAnswer, "a lock that renews goes on though some renewals fail", renewsOnWire, calling(lockrules.FailingRenewals)},
	{variant.MutualExclusion, frozen, "a lock that renews goes on after its client has lost one", renewsOnWire, calling(lockrules.Losses)},
	{variant.MutualExclusion, overrun, "long leases", nil, longLeases},
	{variant.MutualExclusion, overrun, "leases with a fraction of a second", nil, calling(lockrules.OddLeases)},
	{variant.MutualExclusion, nil, "a client that waits for hours", canWait, calling(lockrules.WaitsForHours)},
	{variant.MutualExclusion, overrun, "masters that answer one after the other", several, calling(lockrules.SlowMasters)},
	{variant.MutualExclusion, nil, "a long lease beside a short one of another name", nil, twoLengths},
	{variant.MutualExclusion, nil, "a holder that asks again", nil, asksAgain},
	{variant.MutualExclusion, nil, "a holder that asks again late, or for another lease", nil, calling(lockrules.AsksAgain)},
	{variant.MutualExclusion, overrun, "a holder that is held up as it asks again", reached, calling(lockrules.HeldUpAgain)},
	{variant.MutualExclusion, crash, "a holder extends or releases one of two grants", reenters, calling(lockrules.Twice)},
	{variant.MutualExclusion, skew, "clients' clocks may differ", nil, clocksDiffer},
	{variant.MutualExclusion, overrun, "a client held up between two commands of an acquire", reached, stalledAcquire},
	{variant.MutualExclusion, overrun, "a client held up between two commands of an acquire on a server that knows no scripts", hashes, scriptless(stalledAcquire)},
	{variant.MutualExclusion, lost, "answers that are lost", reached, lostAnswers},
	{variant.MutualExclusion, lost, "an acquire that tries again after an answer was lost", canWait, calling(lockrules.RetriedAcquire)},
	{variant.MutualExclusion, lost, "an acquire after a release whose answer was lost", reached, calling(lockrules.UnheardRelease)},
	{variant.MutualExclusion, lost, "time that passes within an acquire or an extend", reached, timePasses},
	{variant.MutualExclusion, nil, "a server that answers with an error", reached, serverRefuses},
	{variant.MutualExclusion, nil, "a server that refuses to write", nil, func(b *bench) error { return b.run.refused }},
	{variant.MutualExclusion, nil, "a client that may not write", nil, calling(lockrules.WritesFail)},
	{variant.MutualExclusion, nil, "a server that answers every command of a call with an error", nil, calling(lockrules.ServerFails)},
	{variant.MutualExclusion, nil, "calls with a context that is over", nil, calling(lockrules.ContextOver)},
	{variant.MutualExclusion, lost, "masters that do not answer", several, someMasters},
	{variant.MutualExclusion, frozen, "a renewal that is answered late, or fails", renewed, renewalsSuffer},
	{variant.MutualExclusion, frozen, "a holder is told when its lock is lost", loses, calling(lockrules.Told)},
	{variant.OwnerOnlyRelease, lost, "an answer that is lost, and a client held up after it", reached, lostAndStalled},
	{variant.OwnerOnlyRelease, overrun, "a client held up between two commands of a release or an extend", reached, stalledOwner},
	{variant.OwnerOnlyRelease, overrun, "a client whose command fails, and that is held up before the next", reached, calling(lockrules.FailedAndStalled)},
	{variant.OwnerOnlyRelease, overrun, "a late release or extend leaves the next holder alone", nil, lateCalls},
	{variant.OwnerOnlyRelease, stale, "the answer to a client that has lost its lock", nil, calling(lockrules.LostIsTold)},
	{variant.OwnerOnlyRelease, nil, "the answer to a holder late in its lease", nil, calling(lockrules.InTime)},
	{variant.OwnerOnlyRelease, stale, "calls after a release leave the next holder alone", nil, staleCalls},
	{variant.OwnerOnlyRelease, stale, "a late release leaves the client's own next lock alone", distinct, ownNextLock},
	{variant.OwnerOnlyRelease, stale, "a late release on a server that knows no scripts", nil, func(b *bench) error { return b.run.scriptless }},
	{variant.OwnerOnlyRelease, stale, "a late release or extend after a quiet time", nil, lateAfterQuiet},
	{variant.OwnerOnlyRelease, stale, "a late release or extend on a server that knows no scripts", hashes, scriptless(lateCalls)},
	{variant.OwnerOnlyRelease, overrun, "a client held up between two commands of a release or an extend on a server that knows no scripts", hashes, scriptless(stalledOwner)},
	{variant.OwnerOnlyRelease, stale, "the tokens of many grants", nil, tokensOnce},
	{variant.OwnerOnlyRelease, overrun, "tokens that resemble each other", draws, similarTokens},
	{variant.OwnerOnlyRelease, sameTime, "two grants at one time by the clients' clocks", nil, grantsAtOneTime},
	{variant.OwnerOnlyRelease, frozen, "a holder cut off from the server until another has the lock", reached, frozenHolder},
	{variant.OwnerOnlyRelease, lost, "a request that arrives late", reached, lateRequests},
	{variant.Progress, nil, "a released lock can be taken", nil, releasedCanBeTaken},
	{variant.Progress, nil, "a lock is released inside a later lease than its first", nil, calling(lockrules.Longer)},
	{variant.Progress, lost, "a minority of the masters is dead", several, calling(lockrules.DeadMasters)},
	{variant.Progress, lost, "a release after an extend without an answer", reached, calling(lockrules.UnansweredExtend)},
	{variant.Progress, nil, "a free lock is granted in single attempts", nil, calling(lockrules.SingleAttempts)},
	{variant.Progress, crash, "a free lock is granted in single attempts after the death of a waiter", canWait, calling(lockrules.AfterDeadWaiters)},
	{variant.Progress, nil, "a waiter gets the lock when it is released", nil, waiterGetsIt},
	{variant.Progress, nil, "a waiter looks again as often as it was told", canWait, looksAgain},
	{variant.Progress, nil, "a waiter looks again as often as it was told, though it was refused often", canWait, calling(lockrules.RefusedOften)},
	{variant.Progress, nil, "the end of a lease that was waited for", canWait, calling(lockrules.WaitedLong)},
	{variant.Progress, nil, "a limit on the attempts", nil, calling(slices.Concat(lockrules.Tries, lockrules.MostTries))},
	{variant.Progress, crash, "leases with a fraction of a millisecond", nil, calling(lockrules.Fractions)},
	{variant.Progress, unheard, "a client whose calls have failed, or ended early, is granted the lock again", nil, calling(lockrules.Recovers)},
	{variant.Progress, restart, "a server that forgets its scripts and functions", nil, func(b *bench) error { return b.run.forgotten }},
	{variant.Progress, nil, "a free lock that several wait for", nil, severalWait},
	{variant.Progress, crash, "a dead holder's lease can be taken while others keep asking", nil, deadUnderTries},
	{variant.Progress, crash, "a renewal ends with the release", nil, renewalEnds},
	{variant.Progress, crash, "a client that dies between two commands", reached, diesBetween},
	{variant.Progress, crash, "a server that knows no scripts", nil, newServer},
	{variant.Progress, restart, "a server that forgets its scripts", hashes, forgottenScripts},
	{variant.Progress, crash, "a client that dies between two commands on a server that knows no scripts", hashes, scriptless(diesBetween)},
	{variant.Progress, crash, "waiters that die", nil, waitersDie},
	{variant.Progress, crash, "of several waiters, the one that gets the lock dies", canWait, calling(lockrules.WinnerDies)},
	{variant.Progress, crash, "a cancelled wait holds nothing", nil, calling(lockrules.CancelledWait)}, // the request under way is like the request of a client that dies
	{variant.Progress, crash, "a client that stops waiting as the lock is released", reached, calling(lockrules.GivesUp)},
	{variant.Progress, crash, "a client that is told to stop waiting as the lock is released", canWait, calling(lockrules.StopsAsReleased)},
	{variant.Progress, nil, "the answer to a client that is refused", nil, calling(lockrules.RefusedAsHeld)},
	{variant.Progress, nil, "the length of a wait", nil, calling(lockrules.Waits)},
	{variant.Progress, unheard, "calls whose connection is lost", nil, calling(lockrules.ConnectionLost)},
	{variant.Progress, unheard, "a context that ends within an acquire", nil, calling(lockrules.EndsInside)},
	{variant.Progress, unheard, "a wait that is over before an answer arrives", reached, calling(lockrules.LateAnswers)},
	{variant.Progress, unheard, "a release whose connection fails, and that is repeated", reached, calling(lockrules.ConnectionFails)},
	{variant.Progress, restart, "a server that forgets its scripts, and every call", hashes, calling(lockrules.ScriptsForgotten)},
	{variant.Progress, skew, "a client with a wrong clock that dies", nil, deadWithWrongClock},
	{variant.Progress, nil, "names are independent", nil, namesAreIndependent},
	{variant.Progress, nil, "short names are independent", nil, shortNames},
	{variant.Progress, nil, "one client holds many locks", nil, calling(lockrules.ManyHeld)},
	{variant.Fencing, overrun, "tokens rise", nil, tokensRise},
	{variant.Fencing, nil, "the token stays when the lock is extended", canExtend, calling(lockrules.ExtendedFences)},
	{variant.Fencing, nil, "tokens of grants in quick succession", nil, calling(lockrules.QuickFences)},
	{variant.Fencing, skew, "tokens rise though clocks differ", nil, tokensRiseAcrossClocks},
	{variant.Fencing, nil, "tokens rise though a client is held up in its acquire", reached, tokensRiseBeside},
	{variant.Fencing, nil, "tokens of grants within microseconds", nil, calling(lockrules.CloseFences)},
	{variant.Fencing, nil, "tokens of a lock that is old", nil, calling(lockrules.OldFences)},
	{variant.Fencing, nil, "tokens of later hours, days and months", nil, calling(lockrules.LaterFences)},
	{variant.Linearizable, nil, "a lock that was released is free at once", nil, calling(lockrules.FreeAtOnce)},
	{variant.Linearizable, noAnswer, "a refusal after an answer that was lost", reached, refusedHoldsNothing},
	{variant.Linearizable, noAnswer, "a refusal before a late answer", reached, calling(lockrules.AnsweredInLease)},
	{variant.FIFO, nil, "served in the order of arrival", nil, servedInOrder},
	{variant.FIFO, nil, "a client that comes back has arrived later", reached, calling(lockrules.ComesBack)},
	{variant.FIFO, lost, "served in the order of arrival when the first in line has died", reached, calling(lockrules.ReapedTwice)},
}

// needs is a condition of a rule: it returns why the rule does not apply to a lock; "" if it does.
func needs(can func(*run) bool, otherwise string) func(*run) string {
	return func(r *run) string {
		if can(r) {
			return ""
		}
		return otherwise
	}
}

// onWire is needs for rules that act on the lock's commands.
func onWire(can func(*run) bool, otherwise string) func(*run) string {
	return func(r *run) string { return cmp.Or(reached(r), needs(can, otherwise)(r)) }
}

var (
	canWait      = needs(func(r *run) bool { return r.able.waits }, "the lock does not wait")
	renews       = needs(func(r *run) bool { return r.lock.Renews }, "the lock does not renew its leases")
	canExtend    = needs(func(r *run) bool { return r.able.extends }, "the lock does not extend")
	reached      = needs(func(r *run) bool { return r.able.reached }, "the lock's commands do not pass the suite's proxies")
	draws        = needs(func(r *run) bool { return r.able.draws }, "the lock draws its tokens by itself")
	loses        = needs(func(r *run) bool { return r.able.loses }, "the lock does not tell its holder when it is lost")
	several      = onWire(func(r *run) bool { return r.server.Nodes() > 2 }, "the lock is on one master")
	hashes       = onWire(func(r *run) bool { return r.able.hashes }, "no script was sent by its hash (EVALSHA), by way of Env.Redis, when the suite tried each call at the start")
	renewed      = onWire(func(r *run) bool { return r.able.renewed }, "the lock does not tell of renewals")
	renewsOnWire = onWire(func(r *run) bool { return r.lock.Renews }, "the lock does not renew its leases")
	silent       = onWire(func(r *run) bool { return r.lock.Renews && !r.able.renewed && !r.able.loses }, "the lock does not renew its leases, or tells of it")
	reenters     = needs(func(r *run) bool { return r.able.reenters }, "the lock is not re-entrant")
	distinct     = needs(func(r *run) bool { return !r.able.reenters }, "the lock is re-entrant, so that two grants of one client are one")
)

package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/variant"
)

// Judged says which property of which object a monitor judges, and makes one.
type Judged struct {
	Of       variant.Object
	Property variant.Property
	// OnlyPromised says that the property means something only where it is promised,
	// such as an order of service for a lock that has a line. Every other property is
	// measured, promised or not, when the history has the object.
	OnlyPromised bool
	// New makes a monitor for one history. Monitors that were made with the same
	// Shared share state and belong to one goroutine.
	New func(*Shared) Monitor
}

// Shared is what the monitors of one history have in common.
type Shared struct {
	Header *history.Header

	queue    *queues   // made by the first monitor of a queue
	lock     *locks    // the same, of a lock
	counters *counters // the same, of a number generator
	sale     *sales    // the same, of a sale
}

// All lists the monitors. What it does not list nobody judges: a promise of that is
// unknown.
var All = []Judged{
	{Of: variant.Sale, Property: variant.NoOversell, New: saleJudge(variant.NoOversell, "nothing was sold", noOversell)},
	{Of: variant.Sale, Property: variant.NoUndersell, New: saleJudge(variant.NoUndersell, "nothing was ordered", noUndersell)},
	{Of: variant.Sale, Property: variant.OncePerOrder, New: saleJudge(variant.OncePerOrder, "nothing was ordered", oncePerOrder)},
	{Of: variant.Sale, Property: variant.Fencing, OnlyPromised: true, New: saleJudge(variant.Fencing, "no operation of the sale showed a token", acceptTokens)},
	{Of: variant.Sale, Property: variant.Linearizable, New: saleJudge(variant.Linearizable, "nothing was ordered", saleLinear)},
	{Of: variant.IDs, Property: variant.UniqueIDs, New: counterJudge(variant.UniqueIDs, (*counter).unique)},
	{Of: variant.IDs, Property: variant.NoGaps, New: counterJudge(variant.NoGaps, (*counter).noGaps)},
	{Of: variant.IDs, Property: variant.RealTimeOrder, New: counterJudge(variant.RealTimeOrder, (*counter).inRealTime)},
	{Of: variant.IDs, Property: variant.Linearizable, New: counterJudge(variant.Linearizable, (*counter).linear)},
	{Of: variant.Queue, Property: variant.NoLostTask, New: queueJudge(variant.NoLostTask, (*queue).lost)},
	{Of: variant.Queue, Property: variant.NoDuplicateDelivery, New: queueJudge(variant.NoDuplicateDelivery, (*queue).duplicates)},
	{Of: variant.Queue, Property: variant.EffectOnce, New: queueJudge(variant.EffectOnce, (*queue).effectsOnce)},
	{Of: variant.Queue, Property: variant.NotEarly, New: queueJudge(variant.NotEarly, (*queue).early)},
	{Of: variant.Queue, Property: variant.InOrder, New: queueJudge(variant.InOrder, (*queue).inOrder)},
	{Of: variant.Queue, Property: variant.OneEntryPerID, New: queueJudge(variant.OneEntryPerID, (*queue).oneEntry)},
	{Of: variant.Queue, Property: variant.Progress, New: queueJudge(variant.Progress, (*queue).progress)},
	{Of: variant.Queue, Property: variant.Linearizable, New: queueJudge(variant.Linearizable, (*queue).linear)},
	{Of: variant.Dispatch, Property: variant.OneHolderPerTask, New: func(*Shared) Monitor { return newOneHolder() }},
	{Of: variant.Dispatch, Property: variant.HolderCommits, New: func(*Shared) Monitor { return newHolderCommits() }},
	{Of: variant.Dispatch, Property: variant.TaskReturns, New: func(s *Shared) Monitor { return newTaskReturns(s.Header) }},
	{Of: variant.Lock, Property: variant.MutualExclusion, New: lockJudge(variant.MutualExclusion, openCores, (*lock).exclusion, "nobody obtained the lock")},
	{Of: variant.Lock, Property: variant.OwnerOnlyRelease, New: lockJudge(variant.OwnerOnlyRelease, openOwners, (*lock).ownership, "nobody obtained the lock")},
	{Of: variant.Lock, Property: variant.Fencing, OnlyPromised: true, New: lockJudge(variant.Fencing, openTokens, (*lock).rise, "nobody obtained the lock")},
	{Of: variant.Lock, Property: variant.FIFO, OnlyPromised: true, New: lockJudge(variant.FIFO, openLine, (*lock).order, "nobody tried to obtain the lock")},
	{Of: variant.Lock, Property: variant.Progress, New: lockJudge(variant.Progress, openTurns, (*lock).progress, "nobody tried to obtain the lock")},
	{Of: variant.Lock, Property: variant.Linearizable, New: lockJudge(variant.Linearizable, openTryLock, (*lock).linearizable, "nobody tried to obtain the lock")},
}

// find returns the line of [All] for a property.
func find(of variant.Object, p variant.Property) (Judged, bool) {
	for _, j := range All {
		if j.Of == of && j.Property == p {
			return j, true
		}
	}
	return Judged{}, false
}

// Monitors are the monitors of a history: for every promise in its header, and for
// every other property that can be measured of an object that the header names. They
// are in the order of [All]; promises that no monitor judges come last. Only the
// header's objects and promises count, never what a scenario or a variant is called.
func Monitors(h history.Header) []Monitor {
	s := &Shared{Header: &h}
	var out []Monitor
	for _, j := range All {
		if h.Promised(j.Of, j.Property) || h.Has(j.Of) && !j.OnlyPromised {
			out = append(out, j.New(s))
		}
	}
	var told []history.Promise
	for _, p := range h.Promises {
		if _, judged := find(p.Of, p.Property); !judged && !slices.Contains(told, p) {
			told = append(told, p)
			out = append(out, unjudged(p))
		}
	}
	return out
}

// unjudged stands for a promise that no monitor judges.
type unjudged history.Promise

// Observe implements [Monitor].
func (unjudged) Observe(*history.Op) {}

// Advance implements [Monitor].
func (unjudged) Advance(time.Duration) {}

// Verdict implements [Monitor].
func (u unjudged) Verdict() Verdict {
	why := fmt.Sprintf("no monitor judges %q of %q", u.Property, u.Of)
	var known []string
	for _, j := range All {
		if j.Of == u.Of {
			known = append(known, string(j.Property))
		}
	}
	if near := variant.Nearest(string(u.Property), known); len(near) > 0 {
		why += "; perhaps " + strings.Join(near, " or ") + " is meant"
	}
	return Verdict{Of: u.Of, Property: u.Property, Why: why}
}

// Unwitnessed tells whether the verdict is Unknown because nothing in the history could
// have broken the property.
func (v Verdict) Unwitnessed() bool {
	_, judged := find(v.Of, v.Property)
	return judged && v.Result == Unknown && v.Opportunities == 0 && !v.open
}

// witnessed is the verdict as a history can support it: Holds without an opportunity to
// break is Unknown.
func witnessed(v Verdict) Verdict {
	if v.Result == Holds && v.Opportunities == 0 {
		v.Result, v.Why = Unknown, "nothing in the history could have broken it: "+v.Why
	}
	return v
}

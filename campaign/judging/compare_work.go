package judging

import (
	"time"

	"oversell/checker"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// Work is what the clients of a run came for, as far as they got it. Attempts at a
// lock, refusals and tidying up are none of it.
type Work struct {
	// Kind is the operation that the work is done by.
	Kind history.Kind
	// Done is how many pieces of work there were: purchases, tasks, numbers or
	// grants of a lock. What had no effect of its own, such as an order that was sent
	// again, is not counted.
	Done int64
	// Within is how long they took all together. A sale that is sold out, and a queue
	// that is drained, end with the last piece; of every other run it is its length.
	Within time.Duration
	// Requests are the latencies of requests as their clients felt them: from when a
	// client asked for the lock, if there is one, until it had what it came for, or was
	// told that it gets nothing, or gave up. Who waited in vain counts, too.
	Requests *reports.Latencies
	// Began is when the load began, since the start of the run.
	Began time.Duration
}

// Rate is Done by the second.
func (w Work) Rate() float64 {
	if w.Within <= 0 {
		return 0
	}
	return float64(w.Done) / w.Within.Seconds()
}

// request is the latency of the requests; nil if none ended.
func (w Work) Request() *reports.Latency { return LatencyOf(w.Requests, w.Kind) }

// latencyOf is the latency of one kind; nil if there was none.
func LatencyOf(l *reports.Latencies, kind history.Kind) *reports.Latency {
	if l == nil {
		return nil
	}
	took, any := l.Summary()[kind.String()]
	if !any {
		return nil
	}
	return &took
}

// works are the operations that clients come for, by what it is that they use: the
// first that a scenario uses counts, because the others serve it.
var works = []struct {
	of    variant.Object
	kind  history.Kind
	words string
}{
	{variant.Sale, history.Buy, "purchases"},
	{variant.Queue, history.Pop, "deliveries"},
	{variant.Dispatch, history.Take, "tasks"},
	{variant.IDs, history.NextID, "numbers"},
	{variant.Lock, history.Acquire, "acquisitions"},
}

// workIn is the work in a run that has these objects, and a word for many pieces of it.
func WorkIn(has func(variant.Object) bool) (kind history.Kind, words string) {
	for _, w := range works {
		if has(w.of) {
			return w.kind, w.words
		}
	}
	return history.Acquire, "acquisitions"
}

// requests measures how long clients waited for what they came for.
type Requests struct {
	Kind  history.Kind
	Asked map[int32]time.Duration // by clients who hold a lock: when they asked for it
	Took  *reports.Latencies
}

// add counts an operation that ended a request: one of the kind that clients come for,
// whatever its answer, and a wait for the lock that was in vain.
func (r Requests) Add(op history.Op) {
	since, holds := r.Asked[op.Client]
	switch {
	case op.Kind == r.Kind:
		if holds && since < op.Call {
			op.Due, op.Call = op.Due-(op.Call-since), since
		}
		r.Took.Add(op)
	case op.Kind == history.Release:
		delete(r.Asked, op.Client)
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		r.Asked[op.Client] = op.Call
	case op.Kind == history.Acquire:
		op.Kind = r.Kind
		r.Took.Add(op)
	}
}

// done tells whether an operation is a finished piece of work, and the first time
// that it is done.
func Done(op history.Op, kind history.Kind) bool {
	return op.Kind == kind && op.Outcome == history.OK && op.Reason == history.NoReason &&
		(kind != history.Pop || op.Amount <= 1) // later attempts deliver what was delivered before
}

// seen is when a broken promise was there to be seen, since the load began: when the
// operation of its witness that broke it had returned. How the others gave back later
// what they held belongs to the story, and not to that. What has no witness was seen at
// the end.
func Seen(v checker.Verdict, began, end time.Duration) time.Duration {
	at := time.Duration(-1)
	for _, op := range v.Witness {
		change := op.Kind == history.Release || op.Kind == history.Extend
		switch {
		case v.Property == variant.MutualExclusion && op.Kind == history.Release:
			continue // two grants broke it
		case v.Property == variant.OwnerOnlyRelease && change:
			return max(0, op.Return-began) // the robber's; the victim's own comes later
		}
		at = max(at, op.Return)
	}
	if at < 0 {
		return end
	}
	return max(0, at-began)
}

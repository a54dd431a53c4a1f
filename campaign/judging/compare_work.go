package judging

import (
	"time"

	"oversell/checker"
	"oversell/checker/monitor"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// Work is the useful work of a run. Lock attempts, refusals and clean-up do not count.
type Work struct {
	// Kind is the operation that does the work.
	Kind history.Kind
	// Done counts pieces of work: purchases, tasks, numbers or grants of a lock. Operations without an effect of
	// their own, such as an order that was sent again, do not count.
	Done int64
	// Within is the duration of the work. A sale that sells out and a queue that is drained end with the last
	// piece; any other run ends with the load.
	Within time.Duration
	// Requests are latencies as clients see them: from asking for the lock, if there is one, to the result, a
	// refusal, or giving up. Waits that end without a grant count, too.
	Requests *reports.Latencies
	// Began is when the load began, measured from the start of the run.
	Began time.Duration
}

// Rate is Done per second.
func (w Work) Rate() float64 {
	if w.Within <= 0 {
		return 0
	}
	return float64(w.Done) / w.Within.Seconds()
}

// Request returns the latency of the requests; nil if none ended.
func (w Work) Request() *reports.Latency { return LatencyOf(w.Requests, w.Kind) }

// LatencyOf returns the latency of one kind; nil if there was none.
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

// works are the main operations by object: the first object that a scenario uses counts, because the others serve
// it.
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

// WorkIn returns the main operation of a run with these objects, and a plural noun for its work.
func WorkIn(has func(variant.Object) bool) (kind history.Kind, words string) {
	for _, w := range works {
		if has(w.of) {
			return w.kind, w.words
		}
	}
	return history.Acquire, "acquisitions"
}

// Requests measures how long clients waited for their result.
type Requests struct {
	// Took collects the latencies. It can be replaced between two operations.
	Took *reports.Latencies
	kind history.Kind
	held monitor.Table[holding] // by client
}

// holding is a client's hold on a lock.
type holding struct {
	now   bool          // it has one
	asked time.Duration // when it asked for it
}

// NewRequests measures requests that operations of a kind end.
func NewRequests(kind history.Kind) *Requests {
	return &Requests{Took: reports.NewLatencies(), kind: kind}
}

// Add counts an operation that ends a request: one of the main kind, whatever its outcome, or a wait for the lock
// without a grant.
func (r *Requests) Add(op *history.Op) {
	switch {
	case op.Kind == r.kind:
		if hold := r.hold(op); hold.now && hold.asked < op.Call {
			whole := *op
			whole.Due, whole.Call = op.Due-(op.Call-hold.asked), hold.asked
			op = &whole
		}
		r.Took.Add(op)
	case op.Kind == history.Release:
		r.hold(op).now = false
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		*r.hold(op) = holding{true, op.Call}
	case op.Kind == history.Acquire:
		refused := *op
		refused.Kind = r.kind
		r.Took.Add(&refused)
	}
}

// hold returns the entry in held of the client of an operation.
func (r *Requests) hold(op *history.Op) *holding { return r.held.At(history.Int(int64(op.Client))) }

// Done reports whether an operation finishes a piece of work for the first time.
func Done(op *history.Op, kind history.Kind) bool {
	return op.Kind == kind && op.Outcome == history.OK && op.Reason == history.NoReason &&
		(kind != history.Pop || op.Amount <= 1) // later attempts deliver the same task again
}

// Seen returns when a violation became visible, since the load began: when the operation in its witness that broke
// the promise had returned. Later releases of the other holders are part of the witness, but do not count. A
// violation without a witness became visible at the end.
func Seen(v checker.Verdict, began, end time.Duration) time.Duration {
	at := time.Duration(-1)
	for _, op := range v.Witness {
		change := op.Kind == history.Release || op.Kind == history.Extend
		switch {
		case v.Property == variant.MutualExclusion && op.Kind == history.Release:
			continue // two grants broke the promise
		case v.Property == variant.OwnerOnlyRelease && change:
			return max(0, op.Return-began) // the return of the wrong release; the victim's own comes later
		}
		at = max(at, op.Return)
	}
	if at < 0 {
		return end
	}
	return max(0, at-began)
}

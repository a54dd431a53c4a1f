package monitor

import (
	"time"

	"oversell/history"
	"oversell/variant"
)

// Result is a verdict's value.
type Result uint8

// The results. Their values have no order; see [Merge].
const (
	Unknown Result = iota
	Holds
	Violated
)

// String returns the word that reports use for r.
func (r Result) String() string {
	return [...]string{"unknown", "holds", "violated"}[r]
}

// Merge combines results: one violation breaks the whole, one unknown leaves it
// open, and nothing at all is unknown.
func Merge(rs ...Result) Result {
	if len(rs) == 0 {
		return Unknown
	}
	out := Holds
	for _, r := range rs {
		switch r {
		case Violated:
			return Violated
		case Unknown:
			out = Unknown
		}
	}
	return out
}

// Verdict is a monitor's judgement.
type Verdict struct {
	Of       variant.Object
	Property variant.Property
	Result   Result
	// Count is the number of violations, or of what Unit names.
	Count int
	// Unit names what Count counts: "piece", "order", "refusal" or "number". It is "" for violations.
	Unit string
	// Opportunities counts the situations in this history in which a broken promise would have shown: for mutual
	// exclusion, hand-overs and refusals on one key between clients that each had an answer. With none, nothing was
	// shown, and checker.Judge replaces Holds by Unknown.
	Opportunities int64
	// Why explains the verdict in one sentence, with clients, operations and times: the first violation, or the counts,
	// or, for Unknown, what is missing.
	Why string
	// Witness lists the operations of that sentence, in completion order.
	Witness []history.Op

	// Idle says that a key had nothing to judge, so that the other keys decide.
	Idle bool
	// Open says that more knowledge of some event would decide: see [Undecided].
	Open bool
	// Say returns the sentence if it is not in Why: most verdicts of many keys are never shown.
	Say func() string
}

// OneUnit returns the unit of the sum of two counts. It is "" if their units differ.
func OneUnit(a int, unitA string, b int, unitB string) string {
	switch {
	case a == 0:
		return unitB
	case b == 0 || unitA == unitB:
		return unitA
	}
	return ""
}

// Unwitnessed reports whether the verdict is Unknown because the history has no opportunity.
func (v Verdict) Unwitnessed() bool {
	return v.Result == Unknown && v.Opportunities == 0 && !v.Open
}

// Undecided returns Unknown because too little is known of some event.
func Undecided(why string) Verdict { return Verdict{Why: why, Open: true} }

// Told returns the verdict with its sentence.
func (v Verdict) Told() Verdict {
	if v.Say != nil {
		v.Why, v.Say = v.Say(), nil
	}
	return v
}

// Monitor judges one property of one object.
type Monitor interface {
	// Observe takes the next operation in completion order. Operations that do
	// not concern the monitor are ignored. The operation is read only during the call, and never changed: it is a
	// pointer because copying would cost more than most monitors.
	Observe(*history.Op)
	// Advance says that no operation called before lowWater is still to come.
	// It bounds the memory; it is never required.
	Advance(lowWater time.Duration)
	// Verdict may be called at any time; at the end of the history it is final.
	Verdict() Verdict
}

// Batcher is a Monitor that can observe many operations in one call.
type Batcher interface {
	// ObserveAll does what Observe does for each of the operations.
	ObserveAll([]history.Op)
}

// Unseen returns the operations of a batch that no monitor has entered yet in the record that several monitors share. seen
// counts the operations that this monitor was given, and entered those in the record. Unseen adds the batch to both.
func Unseen(ops []history.Op, seen, entered *int64) []history.Op {
	*seen += int64(len(ops))
	n := max(0, *seen-*entered)
	*entered += n
	return ops[int64(len(ops))-n:]
}

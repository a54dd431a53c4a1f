package monitor

import (
	"time"

	"oversell/history"
	"oversell/variant"
)

// Result is a verdict's value.
type Result uint8

// The results. The order is that of strength only for the names; see [Merge].
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

// Verdict is what a monitor found out.
type Verdict struct {
	Of       variant.Object
	Property variant.Property
	Result   Result
	// Count is how many times the property was seen broken.
	Count int
	// Opportunities counts what could have broken the property in this history and
	// was seen not to, or seen to: for mutual exclusion, hand-overs and refusals on
	// one key between clients that each had an answer. With none, nothing was shown,
	// and [Judge] does not let Holds stand.
	Opportunities int64
	// Why explains the verdict in one sentence, with clients, operations and times: the first
	// violation, or what was counted, or, for Unknown, what is missing.
	Why string
	// Witness are the operations that the sentence is about, in completion order.
	Witness []history.Op

	// Idle says that a key had nothing to judge, so that the other keys decide.
	Idle bool
	// Open says that something happened that would decide, if it were known: see [undecided].
	Open bool
	// Say says why, where that is not in Why: most verdicts of many keys are never told.
	Say func() string
}

// Unwitnessed reports whether the verdict is Unknown because nothing in the history could
// have broken the property.
func (v Verdict) Unwitnessed() bool {
	return v.Result == Unknown && v.Opportunities == 0 && !v.Open
}

// Undecided is Unknown for the reason that something happened of which too little is known.
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
	// not concern the monitor are ignored. The operation is read during the
	// call only, and never changed: a pointer, because copying it would cost
	// more than most monitors do.
	Observe(*history.Op)
	// Advance says that no operation called before lowWater is still to come.
	// It bounds what must be remembered; it is never required.
	Advance(lowWater time.Duration)
	// Verdict may be asked at any time; at the end of the history it is final.
	Verdict() Verdict
}

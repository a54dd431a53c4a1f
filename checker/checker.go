// Package checker decides from a recorded history whether promises were kept.
//
// Every judgement is a [Monitor]: it reads the operations once, in completion
// order, while a run goes on or from a saved file, and gives a [Verdict] of
// three values. Unknown is the zero value and never passes for Holds.
//
// [Judge] runs all monitors over a saved history; a run that is still going on
// feeds [Monitors] itself.
//
// # What certain means
//
// Violated is said only of what no correct object can have done, whatever happened between
// a call and its return; each monitor's comment states the argument and shows the
// smallest bad history. Intervals are closed. Calls sort before returns at equal
// times, so that an operation called when another returns may come before it.
// An operation without an answer may have its effect at any time after its call, or
// never.
//
// # Operations that are not there
//
// A monitor judges by what it has seen. Some violations rest on an operation that is
// missing, such as a refusal that nobody's grant explains. They are told once no such
// operation can come any more: when Advance has passed them, or at the Verdict, which
// takes the history to be over. A verdict asked in the middle of a run can
// therefore speak too early of operations that are in flight; the last one is
// right. In a history that was cut off, where operations in flight are lost for good, such
// violations are Unknown.
//
// # How it is checked
//
// Every procedure is compared with an oracle on random small histories: porcupine for
// locks without leases and for stocks, a search of all orders in real time for
// leases, the definition itself for the rest.
package checker

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
	// Why says in one sentence who did what when: for a violation the first
	// one, for the others what was counted, for Unknown what is missing.
	Why string
	// Witness are the operations that the sentence is about, in completion order.
	Witness []history.Op

	// idle says that a key had nothing to judge, so that the other keys decide.
	idle bool
	// open says that something happened that would decide, if it were known: see [undecided].
	open bool
	// say says why, where that is not in Why: most verdicts of many keys are never told.
	say func() string
}

// undecided is Unknown for the reason that something happened of which too little is known.
func undecided(why string) Verdict { return Verdict{Why: why, open: true} }

// told is the verdict with its sentence.
func (v Verdict) told() Verdict {
	if v.say != nil {
		v.Why, v.say = v.say(), nil
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

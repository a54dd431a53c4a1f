// Package checker decides from a recorded history whether promises were kept.
//
// Every judgement is a [Monitor]: it reads the operations once, in completion
// order, while a run goes on or from a saved file, and gives a [Verdict] of
// three values. Unknown is the zero value and never passes for Holds.
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
	// Why says in one sentence who did what when: for a violation the first
	// one, for the others what was counted, for Unknown what is missing.
	Why string
	// Witness are the operations that the sentence is about, in completion order.
	Witness []history.Op
}

// Monitor judges one property of one object.
type Monitor interface {
	// Observe takes the next operation in completion order. Operations that do
	// not concern the monitor are ignored.
	Observe(history.Op)
	// Advance says that no operation called before lowWater is still to come.
	// It bounds what must be remembered; it is never required.
	Advance(lowWater time.Duration)
	// Verdict may be asked at any time; at the end of the history it is final.
	Verdict() Verdict
}

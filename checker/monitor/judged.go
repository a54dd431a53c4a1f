package monitor

import (
	"cmp"

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
	// Calm is up to how many operations a key is advanced only when its next operation
	// comes, and in the end; 0 is the default. The judgement does not depend on it.
	Calm int

	states map[variant.Object]any
}

// Lazy is Calm, or its default.
func (s *Shared) Lazy() int { return cmp.Or(s.Calm, calmOps) }

// StateOf is what the monitors of one object share, which the first of them opens.
func StateOf[S any](s *Shared, of variant.Object, open func(*Shared) S) S {
	state, opened := s.states[of].(S)
	if !opened {
		state = open(s)
		if s.states == nil {
			s.states = make(map[variant.Object]any)
		}
		s.states[of] = state
	}
	return state
}

// calmOps is the default of [Shared.Calm]. Of many keys few have operations between
// two calls of Advance, and going through all the others each time would take longer than
// their operations do.
const calmOps = 256

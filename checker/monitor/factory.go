package monitor

import (
	"cmp"

	"oversell/history"
	"oversell/variant"
)

// Factory names a property of an object, and makes its monitor.
type Factory struct {
	Of       variant.Object
	Property variant.Property
	// OnlyPromised says that the property is meaningful only if promised, such as an order of service for a lock with a
	// wait line. Every other property is measured, promised or not, when the history has the object.
	OnlyPromised bool
	// New makes a monitor for one history. Monitors that were made with the same
	// Shared share state and belong to one goroutine.
	New func(*Shared) Monitor
}

// Shared is the state shared by the monitors of one history.
type Shared struct {
	Header *history.Header
	// LazyBelow: a key with at most this many operations is advanced only at its next operation and at the end; 0 means
	// the default. The judgement does not depend on it.
	LazyBelow int

	states map[variant.Object]any
}

// Lazy returns LazyBelow, or its default.
func (s *Shared) Lazy() int { return cmp.Or(s.LazyBelow, calmOps) }

// StateOf returns the state that the monitors of one object share; the first of them opens it.
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

// calmOps is the default of [Shared.LazyBelow]. Of many keys, few have operations between two calls of Advance, and visiting
// all others each time would take longer than their operations.
const calmOps = 256

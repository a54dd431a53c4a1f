package checker

import (
	"time"

	"oversell/history"
	"oversell/variant"
)

// book is what is known of all objects of one kind, each by its key. The properties of
// such an object are different questions about the same operations, so their monitors
// share one book. Whichever monitor sees an operation first enters it.
type book[S any] struct {
	all     keyed[S]
	entered int64 // operations
	ended   bool  // the history was cut off
	enter   func(*history.Op)
	advance func(s *S, lowWater time.Duration) // nil: there is nothing to do
}

// aspect is the monitor of one property, which it judges from a book.
type aspect[S any] struct {
	*book[S]
	of       variant.Object
	property variant.Property
	nothing  string // why there is no verdict when no operation came by
	seen     int64
	judge    func(*S) Verdict
}

// Observe implements [Monitor].
func (m *aspect[S]) Observe(op *history.Op) {
	if m.seen++; m.seen > m.entered {
		m.entered = m.seen
		m.enter(op)
	}
}

// Advance implements [Monitor].
func (m *aspect[S]) Advance(lowWater time.Duration) {
	if m.advance == nil {
		return
	}
	for _, s := range m.all.all {
		m.advance(s, lowWater)
	}
}

func (m *aspect[S]) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *aspect[S]) Verdict() Verdict {
	return m.all.verdict(m.of, m.property, m.nothing, m.judge)
}

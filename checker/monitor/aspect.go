package monitor

import (
	"time"

	"oversell/history"
	"oversell/variant"
)

// Book holds the state of all objects of one kind, by key. The monitors of such an object judge the same operations, so
// they share one book. The first monitor that sees an operation enters it.
type Book[S any] struct {
	All    Keyed[S]
	Enter  func(*history.Op)                  // takes the next operation
	Settle func(s *S, lowWater time.Duration) // settles one object; see [Monitor].Advance; nil: there is nothing to do
	Ended  bool                               // the history was cut off

	entered int64 // operations
}

// Aspect is the monitor of one property, which it judges from a book.
type Aspect[S any] struct {
	*Book[S]
	Of       variant.Object
	Property variant.Property
	Nothing  string // why there is no verdict without an operation
	Judge    func(*S) Verdict

	seen int64
}

// Observe implements [Monitor].
func (m *Aspect[S]) Observe(op *history.Op) {
	if m.seen++; m.seen > m.entered {
		m.entered = m.seen
		m.Enter(op)
	}
}

// ObserveAll implements [Batcher].
func (m *Aspect[S]) ObserveAll(ops []history.Op) {
	ops = Unseen(ops, &m.seen, &m.entered)
	for i := range ops {
		m.Enter(&ops[i])
	}
}

// Advance implements [Monitor].
func (m *Aspect[S]) Advance(lowWater time.Duration) {
	if m.Settle == nil {
		return
	}
	for _, s := range m.All.All {
		m.Settle(s, lowWater)
	}
}

// Cut implements [CutAware].
func (m *Aspect[S]) Cut(is bool) { m.Ended = is }

// Verdict implements [Monitor].
func (m *Aspect[S]) Verdict() Verdict {
	return m.All.Verdict(m.Of, m.Property, m.Nothing, m.Judge)
}

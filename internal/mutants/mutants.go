// Package mutants is a catalogue of locks, queues and sales by which the conformance
// suites are measured: flawed ones, each a small wrong change to sound code, and sound
// ones. Its test runs the suites on all of them and writes docs/conformance.md.
//
// The catalogue is a sample. A suite is not to know it.
package mutants

import (
	"slices"

	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Entry says what an implementation is.
type Entry struct {
	Name string
	// Mechanism is what is wrong, in a sentence; of a sound one, what is unusual.
	Mechanism string
	// Breaks are the promises of which a suite should name one; none for a sound one.
	Breaks []variant.Property
	// Source is the thread in which the bug, or the home of the library, was published;
	// empty if the mutant is ours. The code is ours always.
	Source string
}

// Sound tells whether nothing is wrong with it.
func (e Entry) Sound() bool { return len(e.Breaks) == 0 }

// Lock is an entry of the catalogue that is a lock.
type Lock struct {
	Entry
	Variant lockimpl.Variant
	// Bubble says that it starts goroutines or reads the time by itself, so that a
	// search must step it in bubbles.
	Bubble bool
}

// Queue is an entry of the catalogue that is a queue.
type Queue struct {
	Entry
	Variant queueimpl.Variant
}

// Sale is an entry of the catalogue that is a sale.
type Sale struct {
	Entry
	Variant stockimpl.Variant
}

// Locks returns all locks. Those that share state between their clients share it among
// the clients of one call's variants.
func Locks() []Lock {
	all := slices.Concat(releaseMutants(), acquireMutants(), nameMutants(), extendMutants(), renewalMutants(),
		fenceMutants(), masterMutants(), lineMutants(), reentryMutants(), setupMutants(), serverMutants(), toldMutants(), timeMutants(), roundedMutants(), soundLocks(), soundInTime(), soundInWords())
	for i := range all {
		l := &all[i]
		l.Variant.Name, l.Variant.Summary, l.Variant.Source = l.Name, l.Mechanism, l.Source
	}
	return all
}

// Queues returns all queues.
func Queues() []Queue {
	all := slices.Concat(claimMutants(), takeMutants(), listMutants(), streamMutants(), callMutants(), soundQueues(), soundCalls())
	for i := range all {
		q := &all[i]
		q.Variant.Name, q.Variant.Summary, q.Variant.Source = q.Name, q.Mechanism, q.Source
	}
	return all
}

// Sales returns all sales.
func Sales() []Sale {
	all := slices.Concat(saleMutants(), moreSaleMutants(), soundSales(), moreSoundSales())
	for i := range all {
		s := &all[i]
		s.Variant.Name, s.Variant.Summary, s.Variant.Source = s.Name, s.Mechanism, s.Source
	}
	return all
}

// breaks makes Entry.Breaks.
func breaks(ps ...variant.Property) []variant.Property { return ps }

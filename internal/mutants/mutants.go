// Package mutants is a catalogue of locks, queues and sales that measures the conformance suites: flawed ones, each a
// small wrong change to sound code, and sound ones. Its test runs the suites on all of them and writes
// docs/conformance.md.
//
// The catalogue is a sample. A suite must not be fitted to it.
package mutants

import (
	"slices"

	"oversell/internal/mutants/entry"
	"oversell/internal/mutants/queues"
	"oversell/internal/mutants/sales"
	"oversell/lockimpl"
)

// Entry describes an implementation.
type Entry = entry.Entry

// Lock is an entry of the catalogue that is a lock.
type Lock struct {
	Entry
	Variant lockimpl.Variant
	// Bubble says that it starts goroutines or reads the time by itself, so that a
	// search must step it in bubbles.
	Bubble bool
}

// Queue is an entry of the catalogue that is a queue.
type Queue = queues.Queue

// Sale is an entry of the catalogue that is a sale.
type Sale = sales.Sale

// Locks returns all locks. Those that share state between their clients share it among
// the clients of one call's variants.
func Locks() []Lock {
	all := slices.Concat(releaseMutants(), acquireMutants(), nameMutants(), extendMutants(), renewalMutants(),
		fenceMutants(), masterMutants(), lineMutants(), reentryMutants(), setupMutants(), serverMutants(), inputMutants(), unloadedMutants(), numberMutants(), refusedMutants(), toldMutants(), singleMutants(), staleMutants(), callMutants(), timeMutants(), answerMutants(), roundedMutants(), longMutants(), soundLocks(), publishedLocks(), soundInTime(), soundInWords())
	for i := range all {
		l := &all[i]
		l.Variant.Name, l.Variant.Summary, l.Variant.Source = l.Name, l.Mechanism, l.Source
	}
	return all
}

// Queues returns all queues.
func Queues() []Queue { return queues.All() }

// Sales returns all sales.
func Sales() []Sale { return sales.All() }

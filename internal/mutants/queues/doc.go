// Package queues holds the queues of the catalogue in package mutants: flawed ones, each a small wrong change to
// sound code, and sound ones.
package queues

import (
	"slices"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
)

// Queue is an entry of the catalogue that is a queue.
type Queue struct {
	entry.Entry
	Variant queueimpl.Variant
}

// All returns all queues.
func All() []Queue {
	all := slices.Concat(claimMutants(), takeMutants(), listMutants(), streamMutants(), callMutants(), waitingMutants(), markedMutants(), numberedMutants(), letterMutants(), lateMutants(), remainsMutants(), severalMutants(), soundQueues(), soundCalls(), soundWaiting(), soundMarked(), soundNumbered(), soundLate())
	for i := range all {
		q := &all[i]
		q.Variant.Name, q.Variant.Summary, q.Variant.Source = q.Name, q.Mechanism, q.Source
	}
	return all
}

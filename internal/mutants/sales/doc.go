// Package sales holds the sales of the catalogue in package mutants: flawed ones, each a small wrong change to
// sound code, and sound ones.
package sales

import (
	"slices"

	"oversell/internal/mutants/entry"
	"oversell/stockimpl"
)

// Sale is an entry of the catalogue that is a sale.
type Sale struct {
	entry.Entry
	Variant stockimpl.Variant
}

// All returns all sales.
func All() []Sale {
	all := slices.Concat(saleMutants(), moreSaleMutants(), trialMutants(), limitMutants(), crowdedMutants(), soundSales(), moreSoundSales(), soundInTrials(), soundCrowded(), toldMutants(), confusedMutants(), soundTold())
	for i := range all {
		s := &all[i]
		s.Variant.Name, s.Variant.Summary, s.Variant.Source = s.Name, s.Mechanism, s.Source
	}
	return all
}

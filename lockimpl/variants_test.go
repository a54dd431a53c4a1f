package lockimpl

import (
	"slices"
	"testing"

	"oversell/variant"
)

// TestWhatFollowsIsDeclared checks that a variant that promises both mutual exclusion and linearizability, and declares a
// flaw in the first, declares it in the second: the answers of a lock that is granted while it is held are not
// linearizable.
func TestWhatFollowsIsDeclared(t *testing.T) {
	for _, v := range Variants {
		if !slices.Contains(v.Promises, variant.Linearizable) {
			continue
		}
		for _, f := range v.Flaws {
			if f.Property != variant.MutualExclusion {
				continue
			}
			if !slices.ContainsFunc(v.Flaws, func(g variant.Flaw) bool {
				return g.Property == variant.Linearizable && g.Fault == f.Fault && g.Under == f.Under
			}) {
				t.Errorf("%s declares that %s breaks %s, and not that it breaks %s", v.Name, f.Fault, f.Property, variant.Linearizable)
			}
		}
	}
}

package campaign

import (
	"slices"
	"testing"

	"oversell/variant"
)

// TestVariantsAreDescribed checks what the variants of every kind declare.
func TestVariantsAreDescribed(t *testing.T) {
	for of, all := range Variants() {
		names := map[string]bool{}
		for _, v := range all {
			if v.Name == "" || names[v.Name] {
				t.Errorf("%s: name %q is empty or taken", of, v.Name)
			}
			names[v.Name] = true
			if v.Source == "" || v.Summary == "" || len(v.Promises) == 0 && !v.Control {
				t.Errorf("%s %s lacks a source, a summary or a promise", of, v.Name)
			}
			for _, p := range v.Promises {
				if !slices.Contains(variant.PropertiesOf(of), p) {
					t.Errorf("%s %s promises %s, which is a property of something else", of, v.Name, p)
				}
			}
			type where struct {
				p     variant.Property
				f     variant.Fault
				under string
			}
			flaws := map[where]bool{}
			for _, f := range v.Flaws {
				w := where{f.Property, f.Fault, f.Under}
				if !slices.Contains(variant.PropertiesOf(of), f.Property) || f.Fault == "" || f.Why == "" || flaws[w] {
					t.Errorf("%s %s: flaw %+v is incomplete, in a property of something else, or there twice", of, v.Name, f)
				}
				flaws[w] = true
			}
			if v.Control && !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
				return slices.Contains(v.Promises, f.Property) || len(v.Promises) == 0
			}) {
				t.Errorf("control %s %s has no flaw in anything it promises, so nothing can catch it", of, v.Name)
			}
		}
	}
}

package campaign

import (
	"slices"
	"testing"

	"oversell/faults"
)

// TestFailuresAreSentences checks that every fault in the table of failures can be parsed.
func TestFailuresAreSentences(t *testing.T) {
	for _, f := range Failures {
		for _, c := range f.Cells {
			o, err := Parse(c.Args)
			if err != nil {
				t.Errorf("%s: %q: %v", f.Mode, c.Args, err)
				continue
			}
			for _, sentence := range o.Faults {
				if _, err := faults.Parse(sentence); err != nil {
					t.Errorf("%s: %v", f.Mode, err)
				}
			}
		}
		if !slices.ContainsFunc(f.Cells, func(c Cell) bool { return c.Breaks }) {
			t.Errorf("%s: nothing breaks, so the row shows nothing", f.Mode)
		}
		if !slices.ContainsFunc(f.Cells, func(c Cell) bool { return !c.Breaks }) {
			t.Errorf("%s: nothing holds, so the trigger may break anything", f.Mode)
		}
	}
}

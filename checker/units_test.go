package checker

import (
	"testing"

	"oversell/history"
	"oversell/variant"
)

// TestUnits checks that a verdict says what it counts.
func TestUnits(t *testing.T) {
	one, two := history.Header{Stock: 1}, history.Header{Stock: 2}
	for _, c := range []struct {
		of    variant.Property
		h     history.Header
		ops   []history.Op
		count int
		unit  string
	}{
		{variant.NoUndersell, one, []history.Op{soldOutTo(1, 1, 1, 2), soldOutTo(2, 1, 3, 4)}, 2, "refusal"},
		{variant.NoUndersell, two, []history.Op{pieces(soldOutTo(1, 1, 1, 2), 2)}, 1, "refusal"},
		{variant.NoUndersell, two, []history.Op{bought(1, 1, 1, 2), read("left", 2, 3)}, 1, "piece"},
		{variant.NoOversell, one, []history.Op{bought(1, 1, 1, 2), pieces(bought(2, 2, 3, 4), 3)}, 3, "piece"},
		{variant.OncePerOrder, two, []history.Op{bought(1, 1, 1, 2), bought(1, 1, 3, 4)}, 1, ""},
		{variant.Linearizable, one, []history.Op{bought(1, 1, 1, 2), pieces(bought(2, 2, 3, 4), 3)}, 3, "piece"},
	} {
		m := saleOf(&c.h, c.of)
		for i := range c.ops {
			m.Observe(&c.ops[i])
		}
		if v := m.Verdict(); v.Result != Violated || v.Count != c.count || v.Unit != c.unit {
			t.Errorf("%s: %v, %d of unit %q; want %d of unit %q: %s", c.of, v.Result, v.Count, v.Unit, c.count, c.unit, v.Why)
		}
	}
}

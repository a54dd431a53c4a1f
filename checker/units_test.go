package checker

import (
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// TestUnits checks that a verdict says what it counts.
func TestUnits(t *testing.T) {
	one, two, four := history.Header{Stock: 1}, history.Header{Stock: 2}, history.Header{Stock: 4}
	ofAnother := func(op history.Op) history.Op { op.Key = history.Text("another product"); return op }
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
		{variant.Linearizable, two, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), refunded(2, 1, 5, 6)}, 1, "piece"},
		{variant.OncePerOrder, four, []history.Op{bought(1, 7, 1, 2), read("left", 3, 3), read("sold", 2, 3)}, 1, "piece"},
		{variant.NoOversell, history.Header{}, []history.Op{refunded(2, 1, 4, 5), bought(1, 1, 2, 6)}, 1, "order"},
		{variant.NoUndersell, two, []history.Op{bought(1, 1, 1, 2), read("left", 2, 3), ofAnother(soldOutTo(1, 1, 4, 5))}, 2, ""},
		{variant.NoUndersell, two, []history.Op{bought(1, 1, 1, 2), read("left", 2, 3), ofAnother(bought(1, 1, 4, 5)), ofAnother(read("left", 2, 6))}, 2, "piece"},
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

// TestUnitOfNumbers checks that missing numbers are counted as such.
func TestUnitOfNumbers(t *testing.T) {
	m := monitorOf(variant.IDs, variant.NoGaps)(&history.Header{})
	for _, op := range []history.Op{gave(1, 1, 1, 2), gave(2, 4, 3, 4), lastNumber(4, 5)} {
		m.Observe(&op)
	}
	if v := m.Verdict(); v.Result != Violated || v.Count != 2 || v.Unit != "number" {
		t.Errorf("%v, %d of unit %q; want 2 of unit \"number\": %s", v.Result, v.Count, v.Unit, v.Why)
	}
}

// TestTheFirstOfSeveralIsNamed checks that of several orders that were counted too late, the first is named each time.
func TestTheFirstOfSeveralIsNamed(t *testing.T) {
	h := history.Header{Stock: 20}
	for range 10 {
		m := saleOf(&h, variant.Linearizable)
		ops := []history.Op{soldOutTo(9, 99, 1, 2)}
		for order := range int64(8) {
			at := 3 + 2*time.Duration(order)
			ops = append(ops, repeated(int32(order), order, at, at+1))
		}
		for i := range ops {
			m.Observe(&ops[i])
		}
		if v := m.Verdict(); v.Result != Violated || !strings.Contains(v.Why, "order 0 of client 0, sent only after that, is said to have been counted") {
			t.Fatalf("%v: %s", v.Result, v.Why)
		}
	}
}

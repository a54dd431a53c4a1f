package checker

import (
	"slices"
	"testing"

	"oversell/history"
	"oversell/variant"
)

func TestMonitorsOfObjects(t *testing.T) {
	for _, of := range []variant.Object{variant.Queue, variant.IDs, variant.Dispatch} {
		var got []variant.Property
		for _, m := range Monitors(history.Header{Objects: []variant.Object{of}}) {
			v := m.Verdict()
			if v.Of != of || v.Result != Unknown || v.Why == "" {
				t.Errorf("%s: %s %s of nothing: %v (%q)", of, v.Of, v.Property, v.Result, v.Why)
			}
			got = append(got, v.Property)
		}
		if want := variant.PropertiesOf(of); !slices.Equal(got, want) {
			t.Errorf("%s: judges %q, want %q", of, got, want)
		}
	}
}

func TestMonitorsAreChosenByObjectsAndPromises(t *testing.T) {
	promise := func(of variant.Object, p variant.Property) history.Header {
		return history.Header{Promises: []history.Promise{{Of: of, Property: p}}}
	}
	named := history.Header{Scenario: "something else", Sale: "ours"}
	labelled := history.Header{Scenario: "seckill"}
	foreign := promise(variant.Sale, variant.NoOversell)
	foreign.Scenario = "flash-sale"
	unknown := promise("bank", "no-overdraft")
	misplaced := promise(variant.Lock, variant.NoOversell)
	for _, c := range []struct {
		name string
		h    history.Header
		want int
		has  Verdict
	}{
		{"a sale by the name of its variant", named, 4, Verdict{Of: variant.Sale, Property: variant.NoOversell}},
		{"a label says nothing", labelled, 0, Verdict{}},
		{"a promise in a scenario of another name", foreign, 4, Verdict{Of: variant.Sale, Property: variant.NoOversell}},
		{"a promise of an unknown object", unknown, 1, Verdict{Of: "bank", Property: "no-overdraft"}},
		{"a promise that this object cannot make", misplaced, 5, Verdict{Of: variant.Lock, Property: variant.NoOversell}},
	} {
		ms := Monitors(c.h)
		if len(ms) != c.want {
			t.Errorf("%s: %d monitors, want %d", c.name, len(ms), c.want)
		}
		found := c.has.Of == ""
		for _, m := range ms {
			v := m.Verdict()
			found = found || v.Of == c.has.Of && v.Property == c.has.Property && v.Result == Unknown && v.Why != ""
		}
		if !found {
			t.Errorf("%s: nothing is said of %s of %s", c.name, c.has.Property, c.has.Of)
		}
	}
}

// TestQueuesCut checks that a history that was cut off is not called violated if the missing operations could explain it.
func TestQueuesCut(t *testing.T) {
	put := enqueued(1, 7, 1, 2, 50)
	for name, ops := range map[string][]history.Op{
		"popped and gone": {enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), crashed(2, 5)},
		"twice":           {enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), popped(3, 7, 5, 6)},
		"too early":       {put, popped(2, 7, 3, 4)},
		"empty":           {enqueued(1, 7, 1, 2, 1), nothingFor(2, 3, 4), nothingFor(2, 13, 40)},
		"out of order":    {enqueued(1, 7, 1, 2, 1), enqueued(1, 8, 3, 4, 2), popped(2, 8, 5, 6)},
	} {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Queue}, Grace: 10}, Ops: ops}
		for _, v := range Judge(h).Verdicts {
			if v.Result == Violated {
				t.Errorf("%s, cut off: %s: %s", name, v.Property, v.Why)
			}
		}
		h.Trailer = &history.Trailer{}
		bad := 0
		for _, v := range Judge(h).Verdicts {
			if v.Result == Violated {
				bad++
			}
		}
		if bad == 0 && name != "popped and gone" {
			t.Errorf("%s: nothing is violated", name)
		}
	}
}

// TestQueueSharing checks that the monitors of a queue, which share what they know, come to the same result when they
// are fed one after the other instead of side by side, and some not at all.
func TestQueueSharing(t *testing.T) {
	h := &history.Header{Objects: []variant.Object{variant.Queue}, Grace: 1 << 40}
	ops := queueHistory(5000, 10)
	side := make(map[variant.Property]Verdict)
	monitors := monitorsOf(variant.Queue, h)
	for _, op := range ops {
		for _, m := range monitors {
			m.Observe(&op)
		}
	}
	for _, m := range monitors {
		v := m.Verdict()
		side[v.Property] = v
		if v.Result != Holds {
			t.Errorf("%s of a correct queue: %v (%s)", v.Property, v.Result, v.Why)
		}
	}
	for _, m := range monitorsOf(variant.Queue, h)[2:] {
		if v := feedAdvancing(m, ops[:200]); v.Why == "" {
			t.Errorf("%s: no sentence", v.Property)
		}
	}
	for _, m := range monitorsOf(variant.Queue, h)[3:] {
		if v := feed(m, ops); v.Why != side[v.Property].Why {
			t.Errorf("%s: fed alone %q, side by side %q", v.Property, v.Why, side[v.Property].Why)
		}
	}
}

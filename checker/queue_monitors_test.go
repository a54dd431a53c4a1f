package checker

import (
	"slices"
	"testing"

	"oversell/history"
	"oversell/variant"
)

func TestTaskMonitors(t *testing.T) {
	for _, c := range []struct {
		scenario string
		of       variant.Object
	}{{"queue", variant.Queue}, {"seckill-queued", variant.Queue}, {"ids", variant.IDs}, {"floors", variant.IDs}, {"dispatch", variant.Dispatch}} {
		h := history.Header{Scenario: c.scenario, Lock: "none"}
		var got []variant.Property
		locks, sales := 0, 0
		for _, m := range Monitors(h) {
			switch v := m.Verdict(); v.Of {
			case c.of:
				got = append(got, v.Property)
				if v.Result != Unknown || v.Why == "" {
					t.Errorf("%s: %s of nothing: %v (%q)", c.scenario, v.Property, v.Result, v.Why)
				}
			case variant.Lock:
				locks++
			case variant.Sale:
				sales++
			default:
				t.Errorf("%s: judges %s of %s", c.scenario, v.Property, v.Of)
			}
		}
		if want := variant.PropertiesOf(c.of); !slices.Equal(got, want) {
			t.Errorf("%s: judges %q, want %q", c.scenario, got, want)
		}
		if locks == 0 || (sales > 0) != (c.scenario == "seckill-queued") {
			t.Errorf("%s: %d properties of the lock and %d of the sale", c.scenario, locks, sales)
		}
		h.Lock = ""
		for _, m := range Monitors(h) {
			if v := m.Verdict(); v.Of == variant.Lock {
				t.Errorf("%s without a lock: judges %s of it", c.scenario, v.Property)
			}
		}
	}
}

// TestQueuesCut feeds histories that were cut off: nothing may be called violated
// that the missing operations could explain.
func TestQueuesCut(t *testing.T) {
	put := enqueued(1, 7, 1, 2, 50)
	for name, ops := range map[string][]history.Op{
		"popped and gone": {enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), crashed(2, 5)},
		"twice":           {enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), popped(3, 7, 5, 6)},
		"too early":       {put, popped(2, 7, 3, 4)},
		"empty":           {enqueued(1, 7, 1, 2, 1), nothingFor(2, 3, 4), nothingFor(2, 13, 40)},
		"out of order":    {enqueued(1, 7, 1, 2, 1), enqueued(1, 8, 3, 4, 2), popped(2, 8, 5, 6)},
	} {
		h := &history.History{Header: history.Header{Scenario: "queue", Grace: 10}, Ops: ops}
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

// TestQueueSharing feeds the monitors of a queue one after the other instead of
// side by side, and some not at all.
func TestQueueSharing(t *testing.T) {
	h := &history.Header{Scenario: "queue", Grace: 1 << 40}
	ops := queueHistory(5000, 10)
	side := make(map[variant.Property]Verdict)
	monitors := taskMonitors(h)
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
	for _, m := range taskMonitors(h)[2:] {
		if v := feedAdvancing(m, ops[:200]); v.Why == "" {
			t.Errorf("%s: no sentence", v.Property)
		}
	}
	for _, m := range taskMonitors(h)[3:] {
		if v := feed(m, ops); v.Why != side[v.Property].Why {
			t.Errorf("%s: fed alone %q, side by side %q", v.Property, v.Why, side[v.Property].Why)
		}
	}
}

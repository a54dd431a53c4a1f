package gate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/reports"
	"oversell/scenarios"
)

// watched returns the control of the first entry of a plan, and the run of that entry.
func watched(t *testing.T, plan string) (*entryControl, scenarios.Config) {
	t.Helper()
	g := mustLoad(t, plan).safety[0]
	return (&running{}).controlOf(t.Context(), &g, g.plan.Runs[0]), g.plan.Runs[0]
}

const frozen = `
safety:
  - name: x
    expect: pass
    run: {target: embedded, clients: 8, stock: 60, lock: fenced, sale: fenced, ttl: 100ms, fault: freeze holder 150ms 5%}
`

// TestControlOfFault checks that the control of an entry with a fault is a variant that breaks by that fault. A
// variant that breaks by load alone is used only if there is no other, and the report says so.
func TestControlOfFault(t *testing.T) {
	w, c := watched(t, frozen)
	if len(w.suspects) == 0 || slices.ContainsFunc(w.suspects, func(s controlCandidate) bool { return s.byLoad }) || len(w.caveats) > 0 {
		t.Errorf("with a fault: %d suspects, caveats %q", len(w.suspects), w.caveats)
	}
	alone := []controlCandidate{{what: "lock none", byLoad: true}}
	w = &entryControl{}
	if w.settle(alone, c); len(w.suspects) != 1 || !strings.Contains(strings.Join(w.caveats, ""), "no variant is known to break by this fault") {
		t.Errorf("nothing breaks by the fault: %d suspects, caveats %q", len(w.suspects), w.caveats)
	}
	w = &entryControl{}
	if w.settle(alone, scenarios.Config{}); len(w.suspects) != 1 || len(w.caveats) > 0 {
		t.Errorf("without a fault: %d suspects, caveats %q", len(w.suspects), w.caveats)
	}
	if w, _ = watched(t, frozen+"    control: {lock: none, sale: plain}\n"); !strings.Contains(strings.Join(w.caveats, ""), "does not show that the fault takes effect") {
		t.Errorf("a named control that breaks by load alone: caveats %q", w.caveats)
	}
}

// TestFaultThatDoesNotBite checks that, if the variant that is known to break by the fault is not caught, no control
// that breaks by load alone replaces it.
func TestFaultThatDoesNotBite(t *testing.T) {
	p := mustLoad(t, `
safety:
  - {name: sound, expect: pass, repeat: 1, run: {target: embedded, clients: 8, stock: 60, lock: lua-release, sale: plain}}
  - {name: broken, expect: pass, repeat: 1, run: {target: embedded, clients: 8, stock: 60, lock: none, sale: plain}}
`)
	of := func(i int, s controlCandidate) controlCandidate {
		s.plan, s.config = p.safety[i].plan, p.safety[i].plan.Runs[0]
		return s
	}
	_, c := watched(t, frozen)
	w := &entryControl{name: "x", guards: p.safety[0].plan.Runs[0].Promises()}
	w.settle([]controlCandidate{of(0, controlCandidate{what: "harmless"}), of(1, controlCandidate{what: "lock none", byLoad: true})}, c)
	r := &running{plan: p, options: Options{Dir: filepath.Join(t.TempDir(), "runs"), Seed: 3}, watcher: &listener{Watcher: silent{}}}
	r.controlRound(t.Context(), w, 0)
	told := w.told()
	if told.Good || told.Caught != 0 || told.Runs != 2 || len(told.Tried) != 1 || !strings.Contains(told.Why, "known to break by the fault of this entry was caught (harmless)") {
		t.Errorf("%+v", told)
	}
	// An entry without a fault has only controls that break by load.
	w = &entryControl{name: "x", guards: w.guards}
	w.settle([]controlCandidate{of(1, controlCandidate{what: "lock none", byLoad: true})}, scenarios.Config{})
	r.controlRound(t.Context(), w, 0)
	if told = w.told(); !told.Good {
		t.Errorf("without a fault: %+v", told)
	}
}

// TestControlElsewhere checks that the report says so if a control differs in more than its variants.
func TestControlElsewhere(t *testing.T) {
	const run = "safety:\n  - name: x\n    expect: pass\n    run: {lock: set-nx-ex, target: embedded, clients: 2, stock: 20, ttl: 1s}\n    control: "
	for _, c := range []struct{ control, want string }{
		{"{lock: none, clients: 100, stock: 200}", "not the same configuration: clients 100 instead of 2, stock 200 instead of 20"},
		{"{lock: none, fault: slow 1ms 5%}", "not the same configuration: fault slow 1ms 5% instead of none"},
		{"{lock: php-lock-printed, ttl: 1000ms, seed: 4}", ""},
		{"{lock: none}", ""},
	} {
		w, _ := watched(t, run+c.control+"\n")
		if got := strings.Join(w.caveats, "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.control, got, c.want)
		}
		said := story(reports.Gate{Safety: []reports.GateEntry{{Verdict: reports.Pass, Cases: []reports.GateCase{{
			Verdict: reports.Pass, Control: &reports.GateControl{What: "lock none", Runs: 1, Caught: 1, Good: true, Caveats: w.caveats, Tried: []string{"sale ticket: it held"}},
		}}}}})
		if !strings.Contains(said, c.want) || !strings.Contains(said, "not caught: sale ticket: it held") {
			t.Errorf("%s: %s", c.control, said)
		}
	}
}

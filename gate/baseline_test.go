package gate

import (
	"strings"
	"testing"
	"time"

	"oversell/reports"
)

// TestChangedEntries: an entry of the same name that guards less than when the baseline
// was recorded, or the contrary, is told, and the gate is red.
func TestChangedEntries(t *testing.T) {
	const plan = `
defaults: {repeat: 2}
controls: {bare: {lock: none}}
safety:
  - name: the sale
    expect: pass
    run: {lock: lua-release, target: embedded, clients: 16}
    control: bare
    limits: {acquire.p99: 5ms}
performance:
  - name: the speed
    run: {lock: fenced, target: embedded}
    baseline: {lock: lua-release}
    max_slowdown: 20%
`
	p := mustLoad(t, plan)
	b, err := p.Record(reports.Gate{
		Safety:      []reports.GateEntry{{Name: "the sale", Expect: reports.Pass, Verdict: reports.Pass}},
		Performance: []reports.GatePerformance{{Name: "the speed", Verdict: reports.Pass}},
	}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	const changed = "changed since the baseline was recorded"
	for _, c := range []struct{ what, old, new, say string }{
		{"nothing", "", "", ""},
		{"the place in the file", "\nsafety:", "\n# more\nsafety:", ""},
		{"the order of flags", "target: embedded, clients: 16", "clients: 16, target: embedded", ""},
		{"the name of a control", "bare", "no lock", ""},
		{"a reversed expectation", "expect: pass\n    run: {lock: lua-release, target: embedded, clients: 16}\n    control: bare\n    limits: {acquire.p99: 5ms}", "expect: violated\n    run: {lock: lua-release, target: embedded, clients: 16}", "with expect: pass, and the plan has it with expect: violated"},
		{"another lock", "lock: lua-release, target", "lock: set-nx-ex, target", changed},
		{"fewer runs", "repeat: 2", "repeat: 1", changed},
		{"fixed seeds", "repeat: 2", "seeds: [1, 2]", changed},
		{"a budget", "repeat: 2", "repeat: 2, budget: 9s", changed},
		{"no control", "control: bare", "control: none", changed},
		{"another control", "{lock: none}", "{lock: token-del}", changed},
		{"a longer limit", "5ms", "9ms", changed},
		{"no limit", "    limits: {acquire.p99: 5ms}\n", "", changed},
		{"another allowance", "20%", "90%", changed},
		{"fewer measures", "max_slowdown", "measure: p50\n    max_slowdown", changed},
		{"an entry that is gone", "name: the speed", "name: speed", "and the plan has it no more"},
	} {
		said := b.missing(mustLoad(t, strings.ReplaceAll(plan, c.old, c.new)))
		if c.old == "" {
			said = b.missing(p)
		}
		if c.say == "" && len(said) > 0 || c.say != "" && (len(said) != 1 || !strings.Contains(said[0], c.say)) {
			t.Errorf("%s: %q, want %q", c.what, said, c.say)
		}
		red := reports.Gate{Missing: said, Safety: []reports.GateEntry{{Verdict: reports.Pass}}}.ExitCode() == reports.ExitInconclusive
		if red != (c.say != "") {
			t.Errorf("%s: red or not, against what is told: %q", c.what, said)
		}
	}
}

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
	b, left, err := p.Record(reports.Gate{
		Safety:      []reports.GateEntry{{Name: "the sale", Expect: reports.Pass, Verdict: reports.Pass}},
		Performance: []reports.GatePerformance{{Name: "the speed", Verdict: reports.Pass}},
	}, time.Unix(0, 0))
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
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

// TestRecordTheRest: an entry that decided nothing is left out of the baseline, and told;
// what is red otherwise, stopped, or all undecided writes none.
func TestRecordTheRest(t *testing.T) {
	p := mustLoad(t, `
safety:
  - {name: the sale, expect: pass, run: {lock: lua-release, target: embedded}}
  - {name: the search, expect: pass, explore: {lock: lua-release}}
performance:
  - {name: the speed, run: {lock: fenced, target: embedded}, baseline: {lock: lua-release}}
`)
	gate := func(sale, search, speed string) reports.Gate {
		return reports.Gate{
			Safety: []reports.GateEntry{
				{Name: "the sale", Expect: reports.Pass, Verdict: sale, Cases: []reports.GateCase{{Verdict: reports.Pass}, {Verdict: sale, Why: "too few waited"}}},
				{Name: "the search", Expect: reports.Pass, Verdict: search, Notes: []string{"it was not carried out to its end"}},
			},
			Performance: []reports.GatePerformance{{Name: "the speed", Verdict: speed, Why: "the noise of p50 is too large to record it"}},
		}
	}
	stopped := gate(reports.Pass, reports.Pass, reports.Pass)
	stopped.Interrupted = true
	for _, c := range []struct {
		what string
		gate reports.Gate
		has  string // the entries in the baseline
		left string
		err  string
	}{
		{"green", gate(reports.Pass, reports.Pass, reports.Pass), "the sale, the search, the speed", "", ""},
		{"a noisy comparison", gate(reports.Pass, reports.Pass, reports.Inconclusive), "the sale, the search",
			`"the speed" under performance is not in the baseline, because it decided nothing: the noise of p50 is too large to record it`, ""},
		{"undecided promises", gate(reports.Inconclusive, reports.Inconclusive, reports.Pass), "the speed",
			`"the sale" under safety is not in the baseline, because it decided nothing: too few waited; "the search" under safety is not in the baseline, because it decided nothing: it was not carried out to its end`, ""},
		{"nothing decided", gate(reports.Inconclusive, reports.Inconclusive, reports.Inconclusive), "", "the speed", "no entry decided anything"},
		{"a broken promise", gate(reports.Violated, reports.Pass, reports.Inconclusive), "", "", "nothing red is accepted"},
		{"stopped", stopped, "", "", "stopped before its end"},
	} {
		b, left, err := p.Record(c.gate, time.Unix(0, 0))
		var has []string
		for _, e := range b.Safety {
			has = append(has, e.Name)
		}
		for _, e := range b.Performance {
			has = append(has, e.Name)
		}
		if got := strings.Join(has, ", "); got != c.has || !strings.Contains(strings.Join(left, "; "), c.left) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, left %q, %v; want %q, %q, %q", c.what, got, left, err, c.has, c.left, c.err)
		}
		if c.what == "a noisy comparison" && (c.gate.ExitCode() != reports.ExitInconclusive || len(b.missing(p)) > 0) {
			t.Errorf("%s: exit code %d, missing %v", c.what, c.gate.ExitCode(), b.missing(p))
		}
	}
}

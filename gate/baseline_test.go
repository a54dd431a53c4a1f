package gate

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oversell/reports"
	"oversell/reports/ci"
	"oversell/reports/text"
)

// recordedMeasures returns the measures of a comparison as a gate records them.
func recordedMeasures() []reports.GateMeasure {
	part := func(x float64) *float64 { return &x }
	return []reports.GateMeasure{{
		Name: throughput, Unit: "a second", Candidate: 700, Baseline: 1000, Allowed: 0.2, Verdict: reports.Pass, Recorded: true,
		Slowdown: reports.Estimate{Middle: 0.43, Low: part(0.38), High: part(0.5)}, Noise: reports.Estimate{Low: part(-0.03), High: part(0.04)},
	}}
}

const comparedPlan = `
safety:
  - {name: the sale, expect: pass, run: {lock: lua-release, target: embedded}}
  - {name: the search, expect: pass, explore: {lock: lua-release}}
performance:
  - {name: the speed, run: {scenario: mutex, lock: fenced, target: embedded}, baseline: {lock: lua-release}, measure: throughput, max_slowdown: 20%}
`

// baselineFile returns comparedPlan, a path for a baseline file of it, and the text of that file.
func baselineFile(t *testing.T) (p *Plan, path, text string) {
	t.Helper()
	p = mustLoad(t, comparedPlan)
	b, left, err := p.Record(reports.Gate{
		Machine: reports.Machine{Cores: 2},
		Safety: []reports.GateEntry{
			{Name: "the sale", Expect: reports.Pass, Verdict: reports.Pass}, {Name: "the search", Expect: reports.Pass, Verdict: reports.Pass},
		},
		Performance: []reports.GatePerformance{{Name: "the speed", Verdict: reports.Pass, Rounds: 40, Length: int64(200 * time.Millisecond), Measures: recordedMeasures()}},
	}, time.Unix(0, 0))
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	whole, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return p, filepath.Join(t.TempDir(), "baseline.json"), string(whole)
}

// readAs writes a baseline file with this text and reads it.
func readAs(t *testing.T, path, text string) (*Baseline, error) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadBaseline(path)
}

// TestAlteredBaseline checks that a file with numbers, names or verdicts that no gate records is refused in one line,
// as is one with a key that is not known, and one without a section: its entries would guard nothing.
func TestAlteredBaseline(t *testing.T) {
	_, path, good := baselineFile(t)
	for _, c := range []struct{ what, old, new, say string }{
		{"nothing", "", "", ""},
		{"a key more", `"rounds":40`, `"rounds":40,"more":1`, `unknown key "more"`},
		{"a key of a measure that is misspelt", `"noise":`, `"noice":`, `unknown key "noice"`},
		{"a section that is misspelt", `"performance":`, `"perfomance":`, `it has the unknown key "perfomance"; the keys are schema, written, plan, machine, safety and performance`},
		{"a section in capitals", `"safety":`, `"Safety":`, `it has the unknown key "Safety"`},
		{"a section that is empty", `"safety":[` + sectionOf(good, "safety") + `]`, `"safety":[]`, ""},
		{"a section that is null", `"safety":[` + sectionOf(good, "safety") + `]`, `"safety":null`, "it has no list safety; without entries it is []"},
		{"a section that is gone", `"safety":[` + sectionOf(good, "safety") + `],`, ``, "it has no list safety"},
		{"another section that is null", `"performance":[` + sectionOf(good, "performance") + `]}`, `"performance":null}`, "it has no list performance"},
		{"a section twice", `"performance":`, `"performance":[],"performance":`, "is not a baseline"},
		{"an entry that is null", `"safety":[`, `"safety":[null,`, "an entry under safety has no name"},
		{"an end below -100 %", `"low":0.38,"high":0.5`, `"low":-5,"high":-9`, "-5 is not a slow-down"},
		{"an end of -100 %", `"low":0.38`, `"low":-1`, "-1 is not a slow-down"},
		{"an end without end", `"high":0.5`, `"high":1e9`, "1e+09 is not a slow-down"},
		{"an end beyond what is recorded", `"high":0.5`, `"high":0.9`, "such noise is not recorded"},
		{"a middle beside its interval", `"middle":0.43`, `"middle":0.3`, "not in order"},
		{"ends that are exchanged", `"low":-0.03,"high":0.04`, `"low":0.04,"high":-0.03`, "noise: low 0.04"},
		{"noise below -100 %", `"low":-0.03`, `"low":-2`, "noise: -2 is not a slow-down"},
		{"no interval", `"high":0.5`, `"high":null`, "no interval"},
		{"a word for a number", `"high":0.5`, `"high":"x"`, "is not a baseline"},
		{"a number too large for any", `"high":0.5`, `"high":1e999`, "is not a baseline"},
		{"a negative speed", `"candidate":700`, `"candidate":-700`, "must be above 0"},
		{"no speed", `"baseline":1000`, `"baseline":0`, "must be above 0"},
		{"nothing allowed", `"allowed":0.2`, `"allowed":0`, "must be above 0"},
		{"another verdict of a measure", `"allowed":0.2,"verdict":"pass"`, `"allowed":0.2,"verdict":"slower"`, "only \"pass\" is recorded"},
		{"another verdict", `"expect":"pass","verdict":"pass"`, `"expect":"pass","verdict":"violated"`, "only \"pass\" is recorded"},
		{"another expectation", `"expect":"pass"`, `"expect":"maybe"`, `expect is "maybe"`},
		{"no rounds", `"rounds":40`, `"rounds":0`, "0 rounds"},
		{"a negative length", `"length":200000000`, `"length":-1`, "length of -1"},
		{"no measure", `"measures":[` + measureOf(good) + "]", `"measures":[]`, "no measure"},
		{"a measure twice", `"measures":[`, `"measures":[` + measureOf(good) + ",", `the measure "throughput" appears twice`},
		{"a measure without a name", `"name":"throughput"`, `"name":""`, "it has no name"},
		{"an entry twice", `"name":"the search"`, `"name":"the sale"`, `the entry "the sale" under safety appears twice`},
		{"an entry without a name", `"name":"the speed"`, `"name":""`, "an entry under performance has no name"},
		{"a digest that is cut", `"digest":"`, `"digest":"0`, "16 hexadecimal digits"},
		{"a machine without cores", `"cores":2`, `"cores":-2`, "-2 cores"},
	} {
		_, err := readAs(t, path, strings.Replace(good, c.old, c.new, 1))
		if c.say == "" && err != nil || c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", c.what, err, c.say)
		}
		if c.old != "" && !strings.Contains(good, c.old) {
			t.Errorf("%s: %q is not in %s", c.what, c.old, good)
		}
	}
	if _, err := readAs(t, path, `{"schema":"oversell-baseline/1","machine":{"cores":1},"safety":[],"performance":[]}`); err == nil || !strings.Contains(err.Error(), "no entries") {
		t.Errorf("no entries: %v", err)
	}
}

// sectionOf returns the entries of a section in the text of a baseline file.
func sectionOf(text, section string) string {
	var b map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		panic(err)
	}
	return strings.Trim(string(b[section]), "[]")
}

// measureOf returns the measure in the text of a baseline file.
func measureOf(text string) string {
	_, after, _ := strings.Cut(text, `"measures":[`)
	return after[:strings.Index(after, "]")]
}

// TestBaselineThatDoesNotFit checks that an accepted slow-down that the gate cannot have recorded for its entry is
// refused before anything is run.
func TestBaselineThatDoesNotFit(t *testing.T) {
	p, path, good := baselineFile(t)
	for _, c := range []struct{ what, old, new, say string }{
		{"nothing", "", "", ""},
		{"another entry", `"digest":"` + p.speed[0].fingerprint(), `"digest":"0123456789abcdef`, ""},
		{"runs without end", `"length":200000000`, `"length":9000000000000000000`, "which the gate does not choose"},
		{"runs of another length", `"length":200000000`, `"length":200000001`, "which the gate does not choose"},
		{"another measure", `"name":"throughput"`, `"name":"p50 of acquire"`, "without its measure throughput"},
		{"another allowance", `"allowed":0.2`, `"allowed":0.3`, "of which 20 % is allowed"},
	} {
		b, err := readAs(t, path, strings.Replace(good, c.old, c.new, 1))
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if err := b.fits(p); c.say == "" && err != nil || c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.say)
		}
	}
	b, _ := readAs(t, path, strings.Replace(good, `"allowed":0.2`, `"allowed":0.3`, 1))
	dir := filepath.Join(t.TempDir(), "runs")
	if _, err := p.Run(t.Context(), Options{Dir: dir, Baseline: b}, silent{}); err == nil {
		t.Error("the plan was carried out")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was run")
	}
}

// TestUnguardedEntries checks that entries of the plan that the baseline lacks are reported everywhere, and do not
// make the gate red.
func TestUnguardedEntries(t *testing.T) {
	p, path, good := baselineFile(t)
	b, err := readAs(t, path, good)
	if err != nil || len(b.unguarded(p)) > 0 || (*Baseline)(nil).unguarded(p) != nil {
		t.Fatal(err, b.unguarded(p))
	}
	b.Safety, b.Performance = b.Safety[:1], nil
	g := reports.Gate{Safety: []reports.GateEntry{{Verdict: reports.Pass}}, Notes: b.unguarded(p)}
	var md strings.Builder
	if err := text.GateMarkdown(&md, g); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"the search", "the speed"} {
		for where, told := range map[string]string{"terminal": story(g), "Markdown": md.String(), "document": strings.Join(g.Notes, "; ")} {
			if want := `the baseline file lacks the entry "` + name + `"`; !strings.Contains(told, want) {
				t.Errorf("%s: %q is not in\n%s", where, want, told)
			}
		}
	}
	if len(g.Notes) != 2 || g.ExitCode() != reports.ExitPass {
		t.Errorf("exit code %d, %q", g.ExitCode(), g.Notes)
	}
}

// TestNoNumbers checks that, with a NaN or an infinity, the statistics terminate and decide nothing.
func TestNoNumbers(t *testing.T) {
	s, p := &signs{}, newProcedure(defaultRounds, 1)
	ds := make([]float64, defaultRounds)
	for i := range ds {
		ds[i] = -1 - float64(i)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		ds[3] = bad
		low, middle, high := s.interval(ds, p.miss)
		if !math.IsInf(low, -1) || !math.IsInf(high, 1) || middle != 0 {
			t.Errorf("%v: %v to %v round %v", bad, low, high, middle)
		}
		if d := p.decide(s, ds, 0.1); d == fastEnough || p.resolves(s, ds, 0.1) {
			t.Errorf("%v: %v", bad, d)
		}
	}
	ds[3] = math.NaN()
	if p.decide(s, ds, math.NaN()) != undecided || p.differs(s, ds, 0.1) {
		t.Error("a NaN decides a comparison")
	}
}

// TestAccepted checks that a slow-down that is recorded is called accepted everywhere, and that a recording without
// one accepts nothing.
func TestAccepted(t *testing.T) {
	p := mustLoad(t, trialPlan)
	for slower, words := range map[float64][2]string{
		0.4: {"pass (slower than allowed, accepted)", "accepted for recording, otherwise allowed 10 %"}, 0: {"pass (recorded)", "recorded; allowed 10 %"},
	} {
		g := timed(t, p, Options{Record: true}, slower, 0.02)
		var md, junit strings.Builder
		if err := text.GateMarkdown(&md, g); err != nil {
			t.Fatal(err)
		}
		if err := ci.JUnit(&junit, g); err != nil {
			t.Fatal(err)
		}
		plain := strings.ReplaceAll(md.String(), `\`, "")
		for where, told := range map[string]string{"terminal": story(g), "Markdown": plain} {
			if !strings.Contains(told, words[0]) || !strings.Contains(told, words[1]) {
				t.Errorf("%v slower, %s: %q are not in\n%s", slower, where, words, told)
			}
		}
		if !strings.Contains(junit.String(), words[1]) || strings.Contains(junit.String(), "<failure") || g.ExitCode() != reports.ExitPass {
			t.Errorf("%v slower: exit code %d\n%s", slower, g.ExitCode(), junit.String())
		}
		if accepted := slower > 0; strings.Contains(plain, "⚠️") != accepted || strings.Contains(plain, "✅") == accepted || strings.Contains(g.Headline(), "1 slower than allowed and accepted") != accepted {
			t.Errorf("%v slower: %s\n%s", slower, g.Headline(), plain)
		}
	}
	for red, say := range map[string]string{reports.Violated: "the gate is red (violated)", reports.Pass: "stopped before its end"} {
		r := &running{plan: p, options: Options{Record: true}, watcher: &listener{Watcher: silent{}}}
		e, err := r.raceWith(t.Context(), &p.speed[0], func(*speedEntry) driver { return machineOf(1, 0.4, 0.02, 0) })
		if err != nil {
			t.Fatal(err)
		}
		r.gate = reports.Gate{Safety: []reports.GateEntry{{Verdict: red}}, Performance: []reports.GatePerformance{e}, Interrupted: red == reports.Pass}
		r.takeBack()
		if got := r.gate.Performance[0]; got.Verdict != reports.Slower || got.Recorded || got.Measures[0].Recorded || got.Measures[0].Slowdown.High == nil || !strings.Contains(story(r.gate), say) || strings.Contains(story(r.gate), "accepted for recording") {
			t.Errorf("beside %s: %+v\n%s", red, got, story(r.gate))
		}
	}
}

// TestServersOfTheBaseline checks that what a baseline accepts for an entry counts on the servers that it was measured
// on, whatever the servers of other entries are.
func TestServersOfTheBaseline(t *testing.T) {
	p := mustLoad(t, trialPlan)
	// measured carries out the comparison, which is slower than allowed, after an entry on a server.
	measured := func(o Options, first, candidate, baseline string) reports.Gate {
		r := &running{plan: p, options: o, watcher: &listener{Watcher: silent{}}, gate: reports.Gate{Machine: thisMachine()}}
		r.noteServer(first)
		machine := machineOf(o.Seed, 0.4, 0.02, 0)
		e, err := r.raceWith(t.Context(), &p.speed[0], func(*speedEntry) driver {
			return func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error) {
				runs, err := machine(ctx, sides, seeds)
				for i, side := range sides {
					runs[i].ServerVersion = baseline
					if side == theCandidate {
						runs[i].ServerVersion = candidate
					}
				}
				return runs, err
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		r.gate.Performance = []reports.GatePerformance{e}
		return r.gate
	}
	for _, c := range []struct {
		what     string
		recorded [3]string // the first server of the plan, the candidate's and the baseline's
		earlier  bool      // an earlier version wrote the file
		now      [3]string
		verdict  string
	}{
		{"the same", [3]string{"7", "7", "7"}, false, [3]string{"7", "7", "7"}, reports.Pass},
		{"another server behind the same first one", [3]string{"emulation", "7", "7"}, false, [3]string{"emulation", "8", "8"}, reports.Inconclusive},
		{"the same server behind another", [3]string{"7", "7", "7"}, false, [3]string{"emulation", "7", "7"}, reports.Pass},
		{"two servers", [3]string{"7", "8", "7"}, false, [3]string{"7", "8", "7"}, reports.Pass},
		{"another server of the baseline", [3]string{"7", "7", "7"}, false, [3]string{"7", "7", "6"}, reports.Inconclusive},
		{"an earlier file, the same", [3]string{"7", "7", "7"}, true, [3]string{"7", "7", "7"}, reports.Pass},
		{"an earlier file, two servers", [3]string{"8", "8", "7"}, true, [3]string{"8", "8", "7"}, reports.Pass},
		{"an earlier file, the same server behind another", [3]string{"7", "7", "7"}, true, [3]string{"emulation", "7", "7"}, reports.Pass},
		{"an earlier file, another server", [3]string{"7", "7", "7"}, true, [3]string{"7", "8", "8"}, reports.Inconclusive},
		{"an earlier file, which does not tell the server", [3]string{"emulation", "7", "7"}, true, [3]string{"emulation", "7", "7"}, reports.Inconclusive},
	} {
		b, left, err := p.Record(measured(Options{Record: true}, c.recorded[0], c.recorded[1], c.recorded[2]), time.Unix(0, 0))
		if err != nil || len(left) > 0 {
			t.Fatal(left, err)
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var file map[string]any
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		if c.earlier {
			delete(file["performance"].([]any)[0].(map[string]any), "redis")
		}
		if text, err = json.Marshal(file); err != nil {
			t.Fatal(err)
		}
		read, err := readAs(t, filepath.Join(t.TempDir(), "baseline.json"), string(text))
		if err != nil {
			t.Fatal(err)
		}
		g := measured(Options{Baseline: read}, c.now[0], c.now[1], c.now[2])
		if e := g.Performance[0]; e.Verdict != c.verdict || strings.Contains(story(g), "from another machine") != (c.verdict != reports.Pass) {
			t.Errorf("%s: %s, want %s:\n%s", c.what, e.Verdict, c.verdict, story(g))
		}
	}
}

// TestChangedEntries checks that an entry that changed since the baseline was recorded is reported, and makes the
// gate red.
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
		Performance: []reports.GatePerformance{{Name: "the speed", Verdict: reports.Pass, Rounds: 40, Measures: recordedMeasures()}},
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
		{"an entry that is gone", "name: the speed", "name: speed", "and the plan does not"},
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

// TestRecordTheRest checks that an entry that decided nothing is left out of the baseline and reported, and that a
// gate that is otherwise red, stopped, or wholly undecided writes no baseline.
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
				{Name: "the search", Expect: reports.Pass, Verdict: search, Notes: []string{"it was not completed"}},
			},
			Performance: []reports.GatePerformance{{Name: "the speed", Verdict: speed, Rounds: 40, Measures: recordedMeasures(), Why: "the noise of p50 is too large to record it"}},
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
			`"the sale" under safety is not in the baseline, because it decided nothing: too few waited; "the search" under safety is not in the baseline, because it decided nothing: it was not completed`, ""},
		{"nothing decided", gate(reports.Inconclusive, reports.Inconclusive, reports.Inconclusive), "", "the speed", "no entry decided anything"},
		{"a broken promise", gate(reports.Violated, reports.Pass, reports.Inconclusive), "", "", "which a baseline cannot accept"},
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

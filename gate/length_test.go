package gate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/reports"
)

const lengthPlan = `
performance:
  - name: x
    run: {target: embedded, scenario: mutex, lock: lua-release, clients: 1}
    baseline: {lock: set-nx-ex}
`

// raced carries out a comparison on a made-up machine, whose noise falls with the square root of the length of its
// runs; noise is that of the first length.
func raced(t *testing.T, p *Plan, o Options, slower, noise float64) (reports.Gate, []string) {
	t.Helper()
	r := &running{plan: p, options: o, watcher: &listener{Watcher: silent{}}}
	r.gate = reports.Gate{Schema: reports.GateSchema, Plan: p.Path, Machine: thisMachine(), FalseAlarms: falseAlarms}
	var lengths []string
	e, err := r.raceWith(t.Context(), &p.speed[0], func(c *speedEntry) driver {
		lengths = append(lengths, c.length.String())
		return machineOf(7, slower, noise*math.Sqrt(float64(p.speed[0].length.value)/float64(c.length.value)), 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.gate.Performance = append(r.gate.Performance, e)
	return r.gate, lengths
}

// TestLengthFromNoise checks that runs become as long as the noise demands, and that the gate says so.
func TestLengthFromNoise(t *testing.T) {
	for _, c := range []struct {
		what          string
		slower, noise float64
		length        string
		code          int
		say           string
	}{
		{"a quiet machine", 0, 0.02, "duration 100ms", 0, "long enough for the noise of this machine"},
		{"noise", 0, 0.2, "duration 800ms", 0, "long enough for the noise of this machine"},
		{"noise, and slower by 30 %", 0.30, 0.2, "duration 800ms", 4, "long enough"},
		{"noise without end", 0, 5, "duration 6.4s", 3, "the longest within a budget of 2m0s, but too short for the noise of this machine"},
	} {
		g, lengths := raced(t, mustLoad(t, lengthPlan), Options{Seed: 3}, c.slower, c.noise)
		e := g.Performance[0]
		if e.RunLength != c.length || g.ExitCode() != c.code || !strings.Contains(story(g), c.say) {
			t.Errorf("%s: runs of %s (after %v), exit code %d; want %s, %d and %q:\n%s", c.what, e.RunLength, lengths, g.ExitCode(), c.length, c.code, c.say, story(g))
		}
		if lengths[0] != "duration 100ms" {
			t.Errorf("%s: it begins with %s", c.what, lengths[0])
		}
	}
}

// TestLengthIsRecorded checks that a gate with a baseline makes its runs as long as those that were recorded.
func TestLengthIsRecorded(t *testing.T) {
	p := mustLoad(t, lengthPlan)
	g, _ := raced(t, p, Options{Seed: 3, Record: true}, 0.4, 0.1)
	b, _, err := p.Record(g, time.Unix(0, 0))
	if err != nil {
		t.Fatalf("%v:\n%s", err, story(g))
	}
	text, err := json.Marshal(b)
	if err != nil || !strings.Contains(string(text), `"length":`) {
		t.Fatalf("%s, %v", text, err)
	}
	b.Machine.Redis = "7" // the version becomes known with the first run
	again, lengths := raced(t, mustLoad(t, lengthPlan), Options{Seed: 4, Baseline: &b}, 0.4, 0.01)
	want := g.Performance[0].RunLength
	if got := again.Performance[0].RunLength; got != want || want == "duration 100ms" || !slices.Equal(lengths, []string{want}) || !strings.Contains(story(again), "as in the baseline file") || again.ExitCode() != 0 {
		t.Errorf("runs of %v, and the baseline was recorded with %s:\n%s", lengths, want, story(again))
	}
}

// TestGivenLength checks that a length of runs that the plan sets is kept.
func TestGivenLength(t *testing.T) {
	for flags, want := range map[string]string{
		"scenario: mutex, lock: lua-release":                                  "duration 100ms",
		"scenario: mutex, lock: lua-release, duration: 60ms":                  "",
		"scenario: mutex, lock: lua-release, duration: 200ms":                 "",
		"scenario: mutex, lock: lua-release, ops: 100":                        "",
		`scenario: mutex, lock: lua-release, fault: ["freeze holder 1ms 5%"]`: "",
		"lock: lua-release, sale: plain":                                      "stock",
		"lock: lua-release, sale: plain, stock: 100":                          "",
		"scenario: ids, lock: none, ids: incr":                                "",
	} {
		p, err := loaded(t, "performance:\n  - {name: x, run: {target: process, "+flags+"}, baseline: {clients: 2}}\n")
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		if got := p.speed[0].length.String(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
	p := mustLoad(t, lengthPlan)
	longer, err := p.speed[0].lengthened(t.Context(), length{"duration", int64(3 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if longer.candidate.Runs[0].Duration != 3*time.Second || longer.baseline.Runs[0].Duration != 3*time.Second || longer.fingerprint() != p.speed[0].fingerprint() || longer.baseline.Runs[0].Lock.Name != "set-nx-ex" {
		t.Errorf("%+v", longer)
	}
	if !slices.Contains(longer.args[0], "--duration=3s") || !slices.Contains(longer.args[1], "--duration=3s") || p.speed[0].candidate.Runs[0].Duration != defaultRaceRun {
		t.Errorf("%q, and the first %v", longer.args, p.speed[0].candidate.Runs[0].Duration)
	}
}

// TestPilotThatFails checks that, where the baseline cannot be measured against itself to find the length, the rounds
// tell why.
func TestPilotThatFails(t *testing.T) {
	p := mustLoad(t, lengthPlan)
	r := &running{plan: p, watcher: &listener{Watcher: silent{}}}
	broken := errors.New("no server")
	calls := 0
	_, err := r.raceWith(t.Context(), &p.speed[0], func(*speedEntry) driver {
		return func(context.Context, []int, []uint64) ([]reports.Run, error) { calls++; return nil, broken }
	})
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	e, err := r.raceWith(t.Context(), &p.speed[0], func(*speedEntry) driver { return machineOf(1, 0, 0.01, 2) })
	if err != nil || e.RunLength != "duration 100ms" || e.Verdict == "" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestSpread checks that the noise that is computed from made-up runs is the noise that they were made with.
func TestSpread(t *testing.T) {
	g, _ := raced(t, mustLoad(t, lengthPlan), Options{Seed: 1}, 0, 0.001)
	if e := g.Performance[0]; e.Verdict != reports.Pass {
		t.Errorf("%+v", e)
	}
	if s := spread([]float64{0.1, -0.1, 0.1, -0.1}); math.Abs(s-0.1253) > 1e-3 {
		t.Errorf("spread %v", s)
	}
	p := newProcedure(40, 3)
	if some := p.tolerable(40, 0.1); some < 0.08 || some > 0.11 || p.tolerable(160, 0.1) < 1.9*some {
		t.Errorf("tolerable noise %v", some)
	}
}

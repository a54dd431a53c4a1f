package gate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

// machineOf returns a driver that makes up runs: the candidate takes longer by the share slower, and all runs have
// this much noise. The run numbered breaking breaks a promise.
func machineOf(seed uint64, slower, noise float64, breaking int) driver {
	random, made := rand.New(rand.NewPCG(seed, 11)), 0
	return func(_ context.Context, sides []int, _ []uint64) (runs []reports.Run, err error) {
		for _, side := range sides {
			made++
			took := math.Exp(noise * random.NormFloat64())
			if side == theCandidate {
				took *= 1 + slower
			}
			r := reports.Run{
				Acquired: int64(1e6 / took), ElapsedMS: 100, Verdict: reports.Pass, ServerVersion: "7",
				Latency: map[string]reports.Latency{"acquire": {Call: reports.Percentiles{P50: took, P99: 3 * took}}},
			}
			if made == breaking {
				r.Verdict = reports.Violated
				r.Properties = []reports.Property{{Name: "mutual-exclusion", Of: "lock", Result: reports.Broken, Why: "two held it"}}
			}
			runs = append(runs, r)
		}
		return runs, nil
	}
}

// timed carries out the comparison of a plan on a made-up machine.
func timed(t *testing.T, p *Plan, o Options, slower, noise float64) reports.Gate {
	t.Helper()
	return driven(t, p, o, machineOf(o.Seed, slower, noise, 0))
}

// driven carries out the comparison of a plan with this driver.
func driven(t *testing.T, p *Plan, o Options, drive driver) reports.Gate {
	t.Helper()
	r := &running{plan: p, options: o, watcher: &listener{Watcher: silent{}}}
	r.gate = reports.Gate{Schema: reports.GateSchema, Plan: p.Path, Machine: thisMachine(), FalseAlarms: falseAlarms}
	e, err := r.raceWith(t.Context(), &p.speed[0], func(*speedEntry) driver { return drive })
	if err != nil {
		r.gate.Failed = err.Error()
	}
	r.gate.Performance = append(r.gate.Performance, e)
	if !o.Record {
		r.gate.Missing = o.Baseline.missing(p)
	}
	return r.gate
}

// TestRaces checks the results of comparisons on made-up machines.
func TestRaces(t *testing.T) {
	for _, c := range []struct {
		what          string
		slower, noise float64
		code          int
		say           string
	}{
		{"equal", 0, 0.05, 0, "pass: throughput"},
		{"slower by 30 %", 0.30, 0.05, 4, "slower: p50 of acquire"},
		{"faster", -0.30, 0.05, 0, "% faster"},
		{"as slow as is allowed", 0.10, 0.005, 3, "cannot tell the throughput from the allowed slow-down"},
		{"too much noise", 0, 2, 3, "the noise is too large"},
	} {
		g := timed(t, mustLoad(t, trialPlan), Options{Seed: 3}, c.slower, c.noise)
		if said := story(g); g.ExitCode() != c.code || !strings.Contains(said, c.say) {
			t.Errorf("%s: exit code %d, want %d, and to be told of %q:\n%s", c.what, g.ExitCode(), c.code, c.say, said)
		}
		if e := g.Performance[0]; e.Retried != (c.code == 3) {
			t.Errorf("%s: %d rounds, retried %v", c.what, e.Rounds, e.Retried)
		}
	}
}

// TestResolution checks that a comparison passes only if the baseline against itself shows that a slow-down of the
// allowed size would have been detected.
func TestResolution(t *testing.T) {
	for _, c := range []struct {
		what  string
		twin  []float64 // what the second run of the baseline takes, a value for each round, repeated
		takes float64   // what a run of the candidate takes
		code  int
		say   string
	}{
		{"no noise", []float64{1}, 1, 0, "the baseline against itself 0 % to 0 %"},
		{"little noise", []float64{0.98, 1.03, 0.99, 1.01}, 1, 0, "the baseline against itself -2.0 % to 3.0 %"},
		{"noise that reaches far above", []float64{0.98, 0.99, 1, 0.97, 2.4, 1.6}, 1, 3, "they cannot show a slow-down of 10 %, the allowed one, because the noise is too large: the throughput of the baseline against itself is only known to be"},
		{"noise that reaches far below", []float64{1.01, 1.02, 1, 1.03, 0.4, 0.6}, 1, 3, "they cannot show a slow-down of"},
		{"noise to both sides", []float64{0.5, 2, 0.9, 1.1}, 0.5, 3, "a quieter machine would"},
		{"noise to both sides, and far slower", []float64{0.5, 2, 0.9, 1.1}, 3, 4, "slower: throughput"},
		{"noise that differs from nothing", []float64{1.5, 1.6, 1.4}, 1, 3, "the baseline differs from itself by more than is allowed"},
	} {
		made := 0
		drive := func(_ context.Context, sides []int, _ []uint64) (runs []reports.Run, err error) {
			for _, side := range sides {
				took := [inARound]float64{c.takes, 1, c.twin[made/inARound%len(c.twin)]}[side]
				made++
				runs = append(runs, reports.Run{
					Acquired: int64(1e6/took + 0.5), ElapsedMS: 100, Verdict: reports.Pass, ServerVersion: "7",
					Latency: map[string]reports.Latency{"acquire": {Call: reports.Percentiles{P50: took, P99: took}}},
				})
			}
			return runs, nil
		}
		g := driven(t, mustLoad(t, trialPlan+"    measure: throughput\n"), Options{}, drive)
		if said := story(g); g.ExitCode() != c.code || !strings.Contains(said, c.say) {
			t.Errorf("%s: exit code %d, want %d, and to be told of %q:\n%s", c.what, g.ExitCode(), c.code, c.say, said)
		}
		for _, m := range g.Performance[0].Measures {
			if within := m.Slowdown.High != nil && *m.Slowdown.High <= m.Allowed && m.Noise.High != nil && *m.Noise.High <= m.Allowed && *m.Noise.Low >= -m.Allowed; m.Verdict == reports.Pass && !within {
				t.Errorf("%s: it passes, and what is told says otherwise: %s", c.what, m.Sentence())
			}
		}
	}
}

// TestRaceBreaksPromise checks that violations count even while speed is measured.
func TestRaceBreaksPromise(t *testing.T) {
	// Each round has three runs, one of which is the candidate's.
	codes := map[int]int{}
	for breaking := 1; breaking <= 3; breaking++ {
		codes[driven(t, mustLoad(t, trialPlan), Options{Seed: 5}, machineOf(5, 0, 0.01, breaking)).ExitCode()]++
	}
	if codes[reports.ExitViolated] != 1 || codes[reports.ExitInconclusive] != 2 {
		t.Errorf("a promise is broken in one of the three runs of a round, each in turn; only the candidate's counts as a violation, the baseline's as inconclusive: exit codes %v", codes)
	}
}

// TestNothingToMeasure checks that runs without operations have no speed.
func TestNothingToMeasure(t *testing.T) {
	drive := func(_ context.Context, sides []int, _ []uint64) (runs []reports.Run, err error) {
		for range sides {
			runs = append(runs, reports.Run{Verdict: reports.Inconclusive, Why: "nobody came", ElapsedMS: 100})
		}
		return runs, nil
	}
	g := driven(t, mustLoad(t, trialPlan), Options{}, drive)
	if g.ExitCode() != reports.ExitInconclusive || !strings.Contains(story(g), "nobody came") {
		t.Errorf("exit code %d:\n%s", g.ExitCode(), story(g))
	}
}

// TestNothingDecided checks that a candidate whose runs decided nothing does not pass by its speed, nor against a
// baseline that breaks its promises. Too few opportunities, as of a single client, do not matter.
func TestNothingDecided(t *testing.T) {
	for _, c := range []struct {
		side    int
		verdict string
		why     string
		code    int
		say     string
	}{
		{theCandidate, reports.Inconclusive, "the fault never fired", reports.ExitInconclusive, "the candidate decided nothing in round 3, so its speed says nothing: the fault never fired"},
		{itsTwin, reports.Inconclusive, "the run was cut short", reports.ExitInconclusive, "the baseline decided nothing in round 3, so its speed says nothing: the run was cut short"},
		{theBaseline, reports.Violated, "", reports.ExitInconclusive, "the baseline broke a promise in round 3"},
		{theCandidate, reports.Inconclusive, "there were too few opportunities to break a promise: progress of the lock had 0 opportunities", reports.ExitPass, "GREEN"},
	} {
		drive := func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error) {
			runs, err := machineOf(1, 0, 0.01, 0)(ctx, sides, seeds)
			for i, side := range sides {
				if i/inARound == 2 && side == c.side {
					runs[i].Verdict, runs[i].Why = c.verdict, c.why
				}
			}
			return runs, err
		}
		for _, record := range []bool{false, true} {
			g := driven(t, mustLoad(t, trialPlan), Options{Record: record}, drive)
			if g.ExitCode() != c.code || !strings.Contains(story(g), c.say) {
				t.Errorf("%s (%s), recording %v: exit code %d, want %d, and to be told of %q:\n%s", c.verdict, c.why, record, g.ExitCode(), c.code, c.say, story(g))
			}
		}
	}
}

// TestStoppedRace checks that a violation is reported even if its round was not completed, and that the gate says why
// the rounds ended.
func TestStoppedRace(t *testing.T) {
	for _, c := range []struct {
		verdict, budget string
		code            int
		say             string
	}{
		{reports.Violated, "1m", reports.ExitViolated, "the candidate broke a promise"},
		{reports.Pass, "1m", reports.ExitInconclusive, "not one round was made until the gate was stopped"},
		{reports.Pass, "1ms", reports.ExitInconclusive, "not one round was made within the budget of 1ms"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		drive := func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error) {
			first := slices.Index(sides, theCandidate)
			runs, err := machineOf(1, 0, 0.01, first+1)(ctx, sides[:first+1], seeds)
			runs[first].Verdict, runs[first].Interrupted = c.verdict, true
			if c.budget == "1m" {
				cancel()
			}
			<-ctx.Done()
			return runs, err
		}
		p := mustLoad(t, trialPlan+"    budget: "+c.budget+"\n")
		r := &running{plan: p, watcher: &listener{Watcher: silent{}}}
		e, err := r.raceWith(ctx, &p.speed[0], func(*speedEntry) driver { return drive })
		cancel()
		r.gate.Performance = []reports.GatePerformance{e}
		if err != nil || r.gate.ExitCode() != c.code || !strings.Contains(story(r.gate), c.say) {
			t.Errorf("%v, exit code %d, want %d, and to be told of %q:\n%s", err, r.gate.ExitCode(), c.code, c.say, story(r.gate))
		}
		if broke := len(e.Broken) > 0; broke != (c.verdict == reports.Violated) {
			t.Errorf("%s: broken: %v", c.verdict, e.Broken)
		}
	}
}

// TestTwinsThatDiffer checks that nothing is decided about the candidate if the baseline differs from itself.
func TestTwinsThatDiffer(t *testing.T) {
	drive := func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error) {
		runs, err := machineOf(1, 0, 0.01, 0)(ctx, sides, seeds)
		for i, side := range sides {
			if side == itsTwin {
				runs[i].Acquired /= 2
			}
		}
		return runs, err
	}
	g := driven(t, mustLoad(t, trialPlan), Options{}, drive)
	if g.ExitCode() != reports.ExitInconclusive || !strings.Contains(story(g), "differs from itself") {
		t.Errorf("exit code %d:\n%s", g.ExitCode(), story(g))
	}
}

// TestRaceFails checks that a driver that fails gives an environment error and no speed.
func TestRaceFails(t *testing.T) {
	drive := func(context.Context, []int, []uint64) ([]reports.Run, error) { return nil, errors.New("no server") }
	if g := driven(t, mustLoad(t, trialPlan), Options{}, drive); g.ExitCode() != reports.ExitEnvironment {
		t.Errorf("exit code %d:\n%s", g.ExitCode(), story(g))
	}
}

// TestOrderIsDrawn checks that each round has every side once, with one seed, and that all orders occur.
func TestOrderIsDrawn(t *testing.T) {
	orders := map[[inARound]int]int{}
	drive := func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error) {
		for i := 0; i < len(sides); i += inARound {
			orders[[inARound]int(sides[i:])]++
			if seeds[i] != seeds[i+1] || seeds[i] != seeds[i+2] {
				t.Errorf("a round with the seeds %v", seeds[i:i+inARound])
			}
		}
		return machineOf(1, 0, 2, 0)(ctx, sides, seeds)
	}
	driven(t, mustLoad(t, trialPlan), Options{}, drive)
	if len(orders) != 6 {
		t.Errorf("of six orders these came: %v", orders)
	}
}

// TestOrderMatters checks that, without a random order, a machine that slows down every third run would raise an
// alarm nearly every time.
func TestOrderMatters(t *testing.T) {
	random, s := rand.New(rand.NewPCG(1, 1)), &signs{}
	p := newProcedure(defaultRounds, 1)
	alarms := 0
	for range 100 {
		machine := noises["every third run is slow"](random)
		var ds []float64
		for range p.looks[1] {
			a, _, b := machine(), machine(), machine()
			ds = append(ds, b-a)
		}
		if p.decide(s, ds, math.Log1p(0.10)) == tooSlow {
			alarms++
		}
	}
	if alarms < 95 {
		t.Errorf("%d alarms in 100 comparisons: on this machine a fixed order does no harm, so the test shows nothing", alarms)
	}
}

// TestBuilds compares two builds, which are scripts here. The other build does twice as much as the slow one.
func TestBuilds(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	dir := t.TempDir()
	build := func(name, acquired string) string {
		path := filepath.Join(dir, name)
		script := `#!/bin/sh
case "$*" in run*--lock=lua-release*--seed=*--out=*--json) ;; *) echo "bad arguments: $*" >&2; exit 2;; esac
echo '{"schema":"oversell-report/1","runs":[{"acquired":` + acquired + `,"elapsed_ms":100,"verdict":"inconclusive","why":"there were too few opportunities to break a promise: such a run shows nothing"}]}'
exit 3
`
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := `
performance:
  - name: builds
    run: {target: embedded, scenario: mutex, lock: lua-release}
    build: ` + build("other", "2000") + `
    measure: throughput
`
	for self, want := range map[string]int{build("slow", "1000"): reports.ExitRegression, build("same", "2000"): reports.ExitPass} {
		p := mustLoad(t, text)
		g := gated(t, p, Options{Self: self})
		if g.ExitCode() != want {
			t.Errorf("%s: exit code %d, want %d:\n%s", filepath.Base(self), g.ExitCode(), want, story(g))
		}
	}
	script := "#!/bin/sh\necho the server is gone >&2\n" + `echo '{"schema":"oversell-report/1","runs":[{"acquired":9,"elapsed_ms":100,"verdict":"pass"}]}'` + "\nexit 5\n"
	if err := os.WriteFile(filepath.Join(dir, "gone"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	g := gated(t, mustLoad(t, text), Options{Self: filepath.Join(dir, "gone")})
	if g.ExitCode() != reports.ExitEnvironment || !strings.Contains(g.Failed, "the server is gone") {
		t.Errorf("a build with an environment error: exit code %d: %s", g.ExitCode(), g.Failed)
	}
	unknown := "#!/bin/sh\n" + `echo '{"schema":"oversell-report/1","runs":[{"acquired":9,"elapsed_ms":100,"verdict":"Violated"}]}'` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "odd"), []byte(unknown), 0o755); err != nil {
		t.Fatal(err)
	}
	g = gated(t, mustLoad(t, text), Options{Self: filepath.Join(dir, "odd")})
	if g.ExitCode() != reports.ExitEnvironment || !strings.Contains(g.Failed, "with a verdict of pass, violated or inconclusive") {
		t.Errorf("a build with an unknown verdict: exit code %d: %s", g.ExitCode(), g.Failed)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), []byte("#!/bin/sh\necho unknown flag: --lock >&2\nexit 2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	g = gated(t, mustLoad(t, text), Options{Self: filepath.Join(dir, "same")})
	if g.ExitCode() != reports.ExitEnvironment || !strings.Contains(g.Failed, "unknown flag: --lock") {
		t.Errorf("a build that refuses its flags: exit code %d: %s", g.ExitCode(), g.Failed)
	}
}

// TestRealBuilds compares a build of this program with itself, each run in a process of its own, and checks that all
// runs are made and understood.
func TestRealBuilds(t *testing.T) {
	servertest.NeedServer(t)
	build := filepath.Join(t.TempDir(), "oversell")
	cmd := exec.Command("go", "build", "-trimpath", "-o", build, "oversell/cmd/oversell")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make vet, which has compiled the libraries already
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	g := gated(t, mustLoad(t, `
performance:
  - name: the same
    run: {target: process, scenario: mutex, lock: lua-release, clients: 4, ops: 200}
    build: `+build+`
    measure: throughput
    max_slowdown: 300 %
    rounds: 12
`), Options{Self: build})
	e := g.Performance[0]
	t.Logf("%d rounds in %.1f s", e.Rounds, e.ElapsedMS/1000)
	if e.Verdict != reports.Pass || len(e.Measures) != 1 || !(e.Measures[0].Candidate > 0) || !(e.Measures[0].Baseline > 0) {
		t.Errorf("%s:\n%s", e.Verdict, story(g))
	}
	if g.Machine.Redis == "" {
		t.Error("nobody noted the version of the server")
	}
}

// TestSlowerOnRedis checks on a real server that a candidate with far longer sections is found to be slower.
func TestSlowerOnRedis(t *testing.T) {
	servertest.NeedServer(t)
	g := gated(t, mustLoad(t, `
performance:
  - name: long sections
    run: {target: process, scenario: mutex, lock: lua-release, clients: 2, ops: 10, hold: 8ms}
    baseline: {hold: 1us}
    measure: throughput
`), Options{Seed: 1})
	if g.ExitCode() != reports.ExitRegression {
		t.Errorf("exit code %d:\n%s", g.ExitCode(), story(g))
	}
}

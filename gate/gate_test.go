package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/reports/ci"
	"oversell/reports/text"
	"oversell/server"
	"oversell/variant"
)

// gated carries out a plan.
func gated(t *testing.T, p *Plan, o Options) reports.Gate {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "runs")
	}
	g, err := p.Run(t.Context(), o, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// story returns what a terminal shows of a gate.
func story(g reports.Gate) string {
	var b strings.Builder
	text.Terminal{W: &b, Width: 10_000}.Gate(g) // wide enough for each sentence to stay on one line
	return b.String()
}

// TestExitCodes checks the exit code of each rule of the gate with a plan that breaks or keeps it.
func TestExitCodes(t *testing.T) {
	servertest.NeedServer(t)
	const run = "    run: {target: process, clients: 8, "
	for _, c := range []struct {
		what, plan string
		code       int
		say        string
	}{
		{"a sound combination", "  - name: x\n    expect: pass\n    repeat: 2\n" + run + "lock: lua-release, sale: plain, stock: 150, hold: 2ms}\n", 0, "which broke no-oversell) was caught 2 of 2 times"},
		{"a lock alone", "  - name: x\n    expect: pass\n    repeat: 1\n" + run + "scenario: mutex, lock: lua-release, duration: 1500ms}\n", 0, "the control (lock none, which broke mutual-exclusion)"},
		{"a flawed one", "  - name: x\n    expect: pass\n" + run + "lock: none, sale: plain, stock: 150, hold: 2ms}\n", 1, "no-oversell of the sale"},
		{"a flawed one that must break", "  - name: x\n    expect: violated\n" + run + "lock: none, sale: plain, stock: 150, hold: 2ms}\n", 0, "a promise was broken in 1 of"},
		{"one that must break, and does without its fault", "  - name: x\n    expect: violated\n    repeat: 1\n" + run + "lock: none, sale: plain, stock: 150, hold: 2ms, fault: crash before EXPIRE}\n", 3, "so it did not cause the violation"},
		{"hardly anybody who waits", "  - name: x\n    expect: pass\n    repeat: 1\n    control: {lock: none, clients: 32, stock: 200}\n    run: {target: process, clients: 4, lock: lua-release, sale: plain, stock: 8, hold: 5ms}\n", 3, "at least 20 are needed"},
		{"a sound one that must break", "  - name: x\n    expect: violated\n    repeat: 1\n" + run + "lock: lua-release, sale: plain, stock: 50}\n", 3, "it must break, and did not in 2 runs"},
		{"a fault that cannot fire", "  - name: x\n    expect: pass\n    repeat: 1\n" + run + "lock: lua-release, sale: plain, stock: 50, fault: crash after ZREM 3%}\n", 3, "never fired"},
		{"no control", "  - name: x\n    expect: pass\n    repeat: 1\n    control: none\n" + run + "lock: lua-release, sale: plain, stock: 50}\n", 3, "the plan has none"},
		{"a control that is sound", "  - name: x\n    expect: pass\n    repeat: 1\n    control: {lock: fair}\n" + run + "lock: lua-release, sale: plain, stock: 50}\n", 3, "was caught 0 of 2 times"},
		{"nobody who waits", "  - name: x\n    expect: pass\n    repeat: 1\n    run: {target: process, lock: lua-release, sale: plain, stock: 50, clients: 1}\n", 3, "too few opportunities"},
		{"a limit that is exceeded", "  - name: x\n    expect: pass\n    repeat: 2\n    limits: {acquire.max: 1us}\n" + run + "lock: lua-release, sale: plain, stock: 150, hold: 2ms}\n", 4, "of at most 0.001 ms"},
		{"a limit of what does not happen", "  - name: x\n    expect: pass\n    repeat: 1\n    limits: {refund.p50: 1s}\n" + run + "lock: lua-release, sale: plain, stock: 50}\n", 3, "and there was none"},
		{"a sound lock, searched", "  - name: x\n    expect: pass\n    explore: {lock: lua-release}\n", 0, "control (lock none"},
		{"a flawed lock, searched", "  - name: x\n    expect: pass\n    explore: {lock: set-nx-ex}\n", 1, "client 0"},
		{"a flawed lock, searched, that must break", "  - name: x\n    expect: violated\n    explore: {lock: set-nx-ex}\n", 0, "GREEN"},
		{"a search without a control", "  - name: x\n    expect: pass\n    control: none\n    explore: {lock: lua-release}\n", 3, "the plan has none"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			g := gated(t, mustLoad(t, "safety:\n"+c.plan), Options{Seed: 7})
			if said := story(g); g.ExitCode() != c.code || !strings.Contains(said, c.say) {
				t.Errorf("exit code %d, want %d, and to be told of %q:\n%s", g.ExitCode(), c.code, c.say, said)
			}
		})
	}
}

// TestControlByFault checks that, in a plan with a fault, the control is a variant that needs the fault to break, so
// that it shows that the fault takes effect.
func TestControlByFault(t *testing.T) {
	p := mustLoad(t, `
safety:
  - name: x
    expect: pass
    run: {target: embedded, lock: fenced, sale: fenced, ttl: 100ms, fault: freeze holder 150ms 5%}
`)
	g := p.safety[0]
	found := suspects(t.Context(), g.flags, g.plan.Runs[0])
	var names []string
	for _, s := range found {
		names = append(names, s.what)
	}
	if !slices.Equal(names, []string{"sale plain", "sale ticket", "lock none, sale plain"}) {
		t.Errorf("suspects: %v", names)
	}
	if breaks(promising(found[0].config, g.plan.Runs[0]).ExpectUnder([]variant.Fault{variant.NoFault})) {
		t.Errorf("%s breaks by load alone, and says nothing of the fault", found[0].what)
	}
}

// TestRefused checks that a plan with an entry that its servers do not support is refused, with its position, before
// anything is run.
func TestRefused(t *testing.T) {
	for what, cannot := range map[string]string{
		"3:12: entry \"cannot\": ": "  - {name: cannot, expect: pass, run: {target: embedded, lock: lua-release, fault: [kill node 1 at 100ms]}}\n",
		"4:12: entry \"slower\": ": "performance:\n  - {name: slower, run: {target: embedded, lock: lua-release}, baseline: {fault: [kill node 1 at 100ms]}}\n",
	} {
		dir := filepath.Join(t.TempDir(), "runs")
		p := mustLoad(t, "safety:\n  - {name: before, expect: pass, run: {target: embedded, lock: none, sale: plain, clients: 16, stock: 200}}\n"+cannot)
		if _, err := p.Run(t.Context(), Options{Dir: dir}, silent{}); !errors.Is(err, server.ErrUsage) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v; want a refusal that says %q", err, what)
		}
		if files, err := os.ReadDir(dir); err == nil {
			t.Errorf("something was run: %v", files)
		}
	}
}

// TestRefusedLater checks that an entry that turns out to be impossible is reported, and does not affect the others.
func TestRefusedLater(t *testing.T) {
	const broken = "  - {name: %s, expect: pass, repeat: 1, run: {target: embedded, lock: none, sale: plain, clients: 16, stock: 200}}\n"
	dir := t.TempDir()
	used := filepath.Join(dir, "002-used", "01-seckill-none-plain")
	if err := os.MkdirAll(used, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(used, "history.bin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := gated(t, mustLoad(t, "safety:\n"+fmt.Sprintf(broken, "before")+fmt.Sprintf(broken, "used")+fmt.Sprintf(broken, "after")), Options{Dir: dir})
	var verdicts []string
	for _, e := range g.Safety {
		verdicts = append(verdicts, e.Verdict)
	}
	if want := []string{reports.Violated, reports.Inconclusive, reports.Violated}; !slices.Equal(verdicts, want) || g.ExitCode() != reports.ExitViolated {
		t.Fatalf("%v, want %v, exit code %d:\n%s", verdicts, want, g.ExitCode(), story(g))
	}
	var xml strings.Builder
	if err := ci.JUnit(&xml, g); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{story(g), xml.String()} {
		if !strings.Contains(said, "it was not completed: ") {
			t.Errorf("nobody is told why:\n%s", said)
		}
	}
}

// TestStopped checks that a stopped gate reports the results so far, leaves out the rest, and does not pass.
func TestStopped(t *testing.T) {
	servertest.NeedServer(t)
	p := mustLoad(t, `
defaults: {repeat: 1}
safety:
  - {name: first, expect: violated, run: {target: process, clients: 8, lock: none, sale: plain, stock: 100}}
  - {name: second, expect: pass, run: {target: process, clients: 8, lock: lua-release, sale: plain}}
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := p.Run(ctx, Options{Dir: filepath.Join(t.TempDir(), "runs")}, stopper{at: "second", stop: cancel})
	if err != nil || len(g.Safety) != 1 || !g.Interrupted || g.ExitCode() != reports.ExitInconclusive {
		t.Errorf("%v, %d entries, exit code %d:\n%s", err, len(g.Safety), g.ExitCode(), story(g))
	}
}

// stopper is a watcher that stops a gate at an entry.
type stopper struct {
	silent
	at   string
	stop func()
}

func (s stopper) Entry(_, _ int, name string) {
	if name == s.at {
		s.stop()
	}
}

// TestNoServer checks that a missing server is an environment error.
func TestNoServer(t *testing.T) {
	p := mustLoad(t, `
safety:
  - {name: x, expect: pass, run: {target: "redis://127.0.0.1:1", lock: lua-release}}
`)
	if g := gated(t, p, Options{}); g.ExitCode() != reports.ExitEnvironment || !strings.Contains(g.Failed, "127.0.0.1:1") {
		t.Errorf("exit code %d: %s", g.ExitCode(), g.Failed)
	}
}

// TestCommand checks a program of the user, judged in three ways: by its exit code, its report, or its history.
func TestCommand(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	violated, pass := jsonOf(t, reports.Violated), jsonOf(t, reports.Pass)
	histories := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(histories, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sound, short := write("sound.jsonl", handedOver(20)), write("short.jsonl", handedOver(7))
	broken := write("broken.jsonl", historyHeader+historyLine(1, 1, "acquire", 0, 10)+historyLine(2, 2, "acquire", 5, 15)+historyLine(1, 1, "release", 20, 30)+historyLine(2, 2, "release", 50, 60)+`{"trailer":{"operations":4,"elapsed_ns":100}}`+"\n")
	sh := func(script string) string { return fmt.Sprintf("[/bin/sh, -c, %q]", script) }
	control := func(script, rest string) string {
		return fmt.Sprintf("    control: {command: %s%s}\n", sh(script), rest)
	}
	for _, c := range []struct {
		what, entry string
		code        int
		say         string
	}{
		{"exits with 0", "    command: " + sh("exit 0") + "\n" + control("exit 1", ""), 0, "was caught 1 of 1 times"},
		{"exits with 1", "    command: " + sh("echo lost >&2; exit 1") + "\n" + control("exit 1", ""), 1, "exited with 1: lost"},
		{"exits with 7", "    command: " + sh("exit 7") + "\n" + control("exit 1", ""), 3, "exited with 7"},
		{"has no control", "    command: " + sh("exit 0") + "\n", 3, "there is no default control of a command"},
		{"has a control that is sound", "    command: " + sh("exit 0") + "\n" + control("exit 0", ""), 3, "was caught 0 of 2 times"},
		{"knows its seed", "    seeds: [4711]\n    command: " + sh("test $OVERSELL_SEED = 4711 || test $OVERSELL_SEED = 1004714") + "\n" + control("exit 1", ""), 0, "GREEN"},
		{"prints a document that passes", "    command: " + sh("cat "+write("pass.json", pass)) + "\n" + control("cat "+write("violated.json", violated), ""), 0, "GREEN"},
		{"prints a document that does not", "    command: " + sh("cat "+filepath.Join(histories, "violated.json")) + "\n" + control("exit 1", ""), 1, "sold 2 of 1"},
		{"prints that all is well and fails", "    command: " + sh("cat "+filepath.Join(histories, "pass.json")+"; exit 9") + "\n" + control("exit 1", ""), 3, "exited with 9"},
		{"leaves a sound history", "    command: " + sh("cp "+sound+" h1.jsonl") + "\n    history: h1.jsonl\n" + control("cp "+broken+" h2.jsonl", ", history: h2.jsonl"), 0, "no violation seen in 20 opportunities"},
		{"leaves a short history", "    command: " + sh("cp "+short+" h1.jsonl") + "\n    history: h1.jsonl\n" + control("cp "+broken+" h2.jsonl", ", history: h2.jsonl"), 0, "no violation seen in 7 opportunities"},
		{"leaves several short histories", "    command: " + sh(`sed "s/elapsed_ns.:310/elapsed_ns\":31$OVERSELL_SEED/" `+short+" > h1.jsonl") + "\n    history: h1.jsonl\n    repeat: 3\n" + control("cp "+broken+" h2.jsonl", ", history: h2.jsonl"), 0, "no violation seen in 21 opportunities"},
		{"leaves a broken history", "    command: " + sh("cp "+broken+" h1.jsonl") + "\n    history: h1.jsonl\n" + control("exit 1", ""), 1, "mutual-exclusion of the lock"},
		{"leaves no history", "    command: " + sh("exit 0") + "\n    history: h1.jsonl\n" + control("exit 1", ""), 3, "left no history"},
		{"leaves an old history", "    command: " + sh("exit 0") + "\n    history: " + sound + "\n" + control("exit 1", ""), 3, "is older than the run"},
		{"leaves a history from elsewhere", "    command: " + sh("cp "+sound+" h1.jsonl && touch -t 202001010000 h1.jsonl") + "\n    history: h1.jsonl\n" + control("exit 1", ""), 3, "is older than the run"},
		{"leaves the same history twice", "    command: " + sh("cp "+sound+" h1.jsonl") + "\n    history: h1.jsonl\n    repeat: 2\n" + control("cp "+broken+" h2.jsonl", ", history: h2.jsonl"), 0, "no violation seen in 40 opportunities"},
		{"leaves a directory", "    command: " + sh("mkdir -p h1.jsonl") + "\n    history: h1.jsonl\n" + control("exit 1", ""), 3, "is not a regular file"},
		{"leaves something else", "    command: " + sh("echo hello > h1.jsonl") + "\n    history: h1.jsonl\n" + control("exit 1", ""), 3, "cannot be judged"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			g := gated(t, mustLoad(t, "defaults: {repeat: 1}\nsafety:\n  - name: x\n    expect: pass\n"+c.entry), Options{})
			if said := story(g); g.ExitCode() != c.code || !strings.Contains(said, c.say) {
				t.Errorf("exit code %d, want %d, and to be told of %q:\n%s", g.ExitCode(), c.code, c.say, said)
			}
		})
	}
}

// historyHeader is the header of a history of a lock.
const historyHeader = `{"schema":"oversell-history/1","scenario":"mutex","lock":"theirs","ttl_ns":1000000000,"promises":[{"of":"lock","property":"mutual-exclusion"}],"expected":"pass"}` + "\n"

// historyLine is an operation in such a history, at times in ns.
func historyLine(client, session int, kind string, call, back int) string {
	return fmt.Sprintf(`{"client":%d,"kind":%q,"key":"order","arg":%d,"outcome":"ok","call_ns":%d,"return_ns":%d,"until_ns":1000000000}`+"\n", client, kind, session, call, back)
}

// handedOver returns the history of a lock that goes from one client to the other, who waits for it, n times.
func handedOver(n int) string {
	var b strings.Builder
	b.WriteString(historyHeader + historyLine(1, 1, "acquire", 0, 10))
	for i := 1; i <= n; i++ {
		b.WriteString(historyLine(1+i%2, i+1, "acquire", 30*i-25, 30*i+10) + historyLine(2-i%2, i, "release", 30*i-10, 30*i))
	}
	b.WriteString(historyLine(1+n%2, n+1, "release", 30*n+20, 30*n+30))
	fmt.Fprintf(&b, `{"trailer":{"operations":%d,"elapsed_ns":%d}}`+"\n", 2*n+2, 30*n+100)
	return b.String()
}

// jsonOf returns the report that a program prints of a run with this verdict.
func jsonOf(t *testing.T, verdict string) string {
	t.Helper()
	result := map[string]string{reports.Pass: reports.Holds, reports.Violated: reports.Broken}[verdict]
	text, err := json.Marshal(reports.Document{Schema: reports.Schema, Runs: []reports.Run{{
		Scenario: "seckill", Verdict: verdict,
		Properties: []reports.Property{{Name: variant.NoOversell, Of: variant.Sale, Result: result, Measured: result, Opportunities: 50, Why: "sold 2 of 1", Witness: []history.Op{}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBaselineFile checks what a baseline records, which baselines are refused, and which changes are noticed.
func TestBaselineFile(t *testing.T) {
	p := mustLoad(t, trialPlan)
	g := timed(t, p, Options{Record: true}, 0.40, 0.02)
	if g.ExitCode() != 0 {
		t.Fatalf("a slower candidate is recorded:\n%s", story(g))
	}
	b, _, err := p.Record(g, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "baseline.json")
	if err := reports.ToFile(path, func(f io.Writer) error { return reports.WriteJSON(f, b) }); err != nil {
		t.Fatal(err)
	}
	read, err := ReadBaseline(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		slower float64
		change func(b *Baseline)
		code   int
		say    string
	}{
		{"as slow as was accepted", 0.40, func(*Baseline) {}, 0, "that the baseline file accepts"},
		{"slower than was accepted", 0.85, func(*Baseline) {}, 4, "that the baseline file accepts"},
		{"another machine", 0.40, func(b *Baseline) { b.Machine.CPU = "abacus" }, 3, "another machine (abacus"},
		{"another machine, and no slower", 0, func(b *Baseline) { b.Machine.CPU = "abacus" }, 0, "another machine (abacus"},
		{"another comparison", 0.40, func(b *Baseline) { b.Performance[0].Digest = "x" }, 3, "has changed since the baseline was written"},
		{"an entry that is gone", 0.40, func(b *Baseline) { b.Safety = []Guarded{{Name: "the sale"}} }, 3, `has "the sale" under safety`},
	} {
		b := *read
		b.Performance = slices.Clone(read.Performance)
		c.change(&b)
		g := timed(t, mustLoad(t, trialPlan), Options{Baseline: &b}, c.slower, 0.02)
		if said := story(g); g.ExitCode() != c.code || !strings.Contains(said, c.say) {
			t.Errorf("%s: exit code %d, want %d, and to be told of %q:\n%s", c.what, g.ExitCode(), c.code, c.say, said)
		}
	}
	if g := timed(t, mustLoad(t, trialPlan), Options{Record: true}, 0, 2); g.ExitCode() != 3 || !strings.Contains(story(g), "too large to record") {
		t.Errorf("noise was recorded:\n%s", story(g))
	}
	if _, _, err := p.Record(timed(t, p, Options{}, 0.4, 0.02), time.Now()); err == nil {
		t.Error("a red gate was recorded")
	}
	for name, text := range map[string]string{
		"another schema": `{"schema":"oversell-baseline/9"}`, "no JSON": "hello", "something else": `{"schema":"oversell-report/1"}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBaseline(path); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadBaseline(path + ".not"); err == nil || !strings.Contains(err.Error(), "--write-baseline") {
		t.Errorf("no file: %v", err)
	}
}

// TestPassIsNoFailure checks that a case with the expected result is neither a failure nor an error in JUnit, that one
// that decided nothing is an error only, and that the bound is exact for few opportunities.
func TestPassIsNoFailure(t *testing.T) {
	most := 2.0
	c := reports.GateCase{
		Title: "x", Verdict: reports.Pass, Broke: 1, Runs: 2, Faults: []reports.Fault{{Name: "crash"}},
		Limits: []reports.GateLimit{{Operation: "buy", Percentile: "p99", LimitMS: 1, MeasuredMS: &most}, {Operation: "pop", Percentile: "p50", LimitMS: 1}},
	}
	for verdict, want := range map[string]bool{reports.Pass: false, reports.Inconclusive: true} {
		c.Verdict = verdict
		var b strings.Builder
		e := reports.GateEntry{Name: "x", Expect: reports.Violated, Verdict: verdict, Cases: []reports.GateCase{c}}
		if err := ci.JUnit(&b, reports.Gate{Safety: []reports.GateEntry{e}}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "<error"); got != want || strings.Contains(b.String(), "<failure") {
			t.Errorf("%s: an error %v, want %v, and no failure:\n%s", verdict, got, want, b.String())
		}
	}
	for n, want := range map[int64]string{1: "below 95 %", 20: "below 14 %", 29: "below 9.8 %", 30: "below 3/30 = 10 %"} {
		if s := (reports.GateCase{Runs: 1, Opportunities: n}).Sentence(); !strings.Contains(s, want) {
			t.Errorf("%d: %s; must say %q", n, s, want)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

// planFile writes a plan and returns its path.
func planFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const brokenPlan = `
safety:
  - name: no lock at all
    expect: pass
    repeat: 1
    run: {target: process, lock: none, sale: plain, clients: 8, stock: 100}
`

// TestGateBadInput checks that bad input is refused in one line with exit code 2, before anything starts.
func TestGateBadInput(t *testing.T) {
	good := planFile(t, brokenPlan)
	full := t.TempDir()
	other := filepath.Join(full, "baseline.json")
	if err := os.WriteFile(other, []byte(`{"schema":"oversell-baseline/99"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	altered := filepath.Join(full, "altered.json")
	if err := os.WriteFile(altered, []byte(`{"schema":"oversell-baseline/1","machine":{"cores":2},"safety":[],"performance":[{"name":"x","digest":"0123456789abcdef","rounds":12,"measures":[`+
		`{"name":"throughput","candidate":1,"baseline":1,"slowdown":{"middle":0.8,"low":-5,"high":-9},"noise":{"middle":0,"low":0,"high":0},"allowed":0.1,"verdict":"pass"}]}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	misspelt := filepath.Join(full, "misspelt.json")
	if err := os.WriteFile(misspelt, []byte(`{"schema":"oversell-baseline/1","machine":{"cores":2},"safety":[],"perfomance":[]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"gate"}, "an argument is missing: the usage is"},
		{[]string{"gate", filepath.Join(full, "none.yaml")}, "no such file"},
		{[]string{"gate", planFile(t, "safety:\n  - name: x\n    expcet: pass\n")}, `gate.yaml:3:5: the key "expcet" is not known here: did you mean expect?`},
		{[]string{"gate", good, "--baseline", other}, `its schema is "oversell-baseline/99"`},
		{[]string{"gate", good, "--baseline", filepath.Join(full, "none.json")}, "--write-baseline"},
		{[]string{"gate", good, "--baseline", misspelt}, `unknown key "perfomance"`},
		{[]string{"gate", good, "--baseline", altered}, "is not a slow-down: it must be above -1"},
		{[]string{"gate", good, "--junit", filepath.Join(full, "no", "such", "dir.xml")}, "no directory"},
		{[]string{"gate", good, "--out", full}, "not empty"},
	} {
		code, stdout, stderr := cli(t, c.args...)
		if code != reports.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q exits with %d and says %q, %q; want 2, and one line with %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

// TestGateOverwritesNothing checks that a gate which would destroy a file is refused before anything starts: its plan, one
// of its files that another replaces, and a file that no gate has written. A report of an earlier gate is replaced.
func TestGateOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const (
		baseline = `{"schema":"oversell-baseline/1","machine":{"cores":2},"safety":[],"performance":[]}`
		older    = `{"schema":"oversell-baseline/0"}`
		notes    = "what must not be lost\n"
		command  = "safety:\n  - {name: c, expect: violated, repeat: 1, command: [\"false\"], history: own.jsonl}\n"
	)
	kept := map[string]string{"pl.yaml": brokenPlan, "command.yaml": command, "bb.json": baseline, "notes.txt": notes, "foreign.xml": "<testsuites name=\"go test\"/>", "list.json": "[]", "other.json": "{\"a\": 1}"}
	for name, text := range kept {
		write(name, text)
	}
	for link, to := range map[string]string{"link.yaml": "pl.yaml", "dangling": "new.xml"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link("pl.yaml", "hard.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"pl.yaml --baseline pl.yaml --write-baseline", "--baseline pl.yaml and the plan pl.yaml are the same file"},
		{"pl.yaml --junit pl.yaml", "--junit pl.yaml and the plan pl.yaml are the same file"},
		{"pl.yaml --markdown ./pl.yaml", "are the same file"},
		{"pl.yaml --markdown link.yaml", "are the same file"},
		{"pl.yaml --markdown hard.yaml", "are the same file"},
		{"link.yaml --junit pl.yaml", "are the same file"},
		{"pl.yaml --baseline bb.json --junit bb.json", "--junit bb.json and --baseline bb.json are the same file"},
		{"pl.yaml --baseline X --write-baseline --markdown X", "--markdown X and --baseline X are the same file, and both would be written"},
		{"pl.yaml --write-baseline --markdown pl.baseline.json", "are the same file"},
		{"pl.yaml --junit X --markdown " + filepath.Join(dir, "X"), "are the same file"},
		{"pl.yaml --junit dangling --markdown new.xml", "are the same file"},
		{"command.yaml --markdown own.jsonl", "the history"},
		{"pl.yaml --baseline notes.txt --write-baseline", "--baseline notes.txt exists and is not a baseline"},
		{"pl.yaml --baseline list.json --write-baseline", "is not a baseline"},
		{"pl.yaml --baseline other.json --write-baseline", "is not a baseline"},
		{"pl.yaml --markdown notes.txt", "--markdown notes.txt exists and is not a summary of a gate"},
		{"pl.yaml --junit foreign.xml", "--junit foreign.xml exists and is not a JUnit file of a gate"},
	} {
		code, stdout, stderr := cli(t, append([]string{"gate", "--out", "runs"}, strings.Fields(c.args)...)...)
		if code != reports.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("gate %s exits with %d and says %q, %q; want 2, and one line with %q", c.args, code, stdout, stderr, c.want)
		}
	}
	for name, text := range kept {
		if now, err := os.ReadFile(name); err != nil || string(now) != text {
			t.Errorf("%s was changed: %v, %q", name, err, now)
		}
	}
	if _, err := os.Stat("runs"); err == nil {
		t.Error("something was run")
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(dir, "summary.md"))
	if code, _, stderr := cli(t, "gate", "pl.yaml", "--out", "runs", "--markdown", "summary.md"); code != reports.ExitUsage || !strings.Contains(stderr, "$GITHUB_STEP_SUMMARY") {
		t.Errorf("the summary of the step would be lost: exit %d, %s", code, stderr)
	}
	t.Setenv("GITHUB_ACTIONS", "")
	write("pl.yaml", strings.Replace(command, ", history: own.jsonl", "", 1))
	write("base.json", older)
	write("empty.md", "")
	for i := range 2 { // the same paths each time, as in CI
		code, _, stderr := cli(t, "gate", "pl.yaml", "--out", fmt.Sprint("again", i), "--junit", "gate.xml", "--markdown", "empty.md", "--baseline", "base.json", "--write-baseline")
		if code != reports.ExitPass {
			t.Errorf("time %d: exit %d, %s", i, code, stderr)
		}
	}
	if code, _, stderr := cli(t, "gate", "pl.yaml", "--out", "devices", "--junit", os.DevNull, "--markdown", os.DevNull); code != reports.ExitPass {
		t.Errorf("a device: exit %d, %s", code, stderr)
	}
}

// TestGateInActions checks that a broken promise is reported in every way in which GitHub shows it.
func TestGateInActions(t *testing.T) {
	servertest.NeedServer(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "plans", "gate.yaml")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(brokenPlan), 0o644); err != nil {
		t.Fatal(err)
	}
	summary := filepath.Join(dir, "summary.md")
	if err := os.WriteFile(summary, []byte("what an earlier step said\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_WORKSPACE", dir)
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	code, stdout, stderr := cli(t, "gate", path, "--out", filepath.Join(dir, "runs"), "--junit", filepath.Join(dir, "gate.xml"), "--markdown", filepath.Join(dir, "gate.md"))
	if code != reports.ExitViolated {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{"no-oversell of the sale", "RED: violated (1 violated)", "::error file=plans/gate.yaml,line=3,col=11,title=no lock at all%3A violated::"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if last := lines[len(lines)-1]; last != "RED: violated (1 violated)" {
		t.Errorf("the last line is no verdict: %s", last)
	}
	for file, want := range map[string]string{"gate.xml": `<failure type="violated"`, "gate.md": "## oversell gate: RED", "summary.md": "what an earlier step said\n\n## oversell gate: RED"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v; %q is not in\n%s", file, err, want, text)
		}
	}
	// With --json, stdout holds one document and nothing else.
	code, stdout, stderr = cli(t, "gate", path, "--out", filepath.Join(dir, "runs2"), "--json")
	var g reports.Gate
	if err := json.Unmarshal([]byte(stdout), &g); err != nil || code != reports.ExitViolated || g.Schema != reports.GateSchema || g.Verdict != reports.Violated {
		t.Errorf("exit code %d, %v:\n%s", code, err, stdout)
	}
	if !strings.Contains(stderr, "::error file=plans/gate.yaml") {
		t.Errorf("no annotations beside the document:\n%s", stderr)
	}
}

// TestGateBaseline checks that a green gate records a baseline and a red one does not, and that an entry that
// disappears is noticed.
func TestGateBaseline(t *testing.T) {
	servertest.NeedServer(t)
	dir := t.TempDir()
	baseline := filepath.Join(dir, "baseline.json")
	const must = "safety:\n  - {name: must break, expect: violated, run: {target: process, lock: none, sale: plain, clients: 8, stock: 100}}\n"
	const search = "  - {name: search, expect: pass, explore: {lock: lua-release, tries: 1}}\n"
	code, stdout, stderr := cli(t, "gate", planFile(t, must+search), "--out", filepath.Join(dir, "1"), "--baseline", baseline, "--write-baseline")
	if code != reports.ExitPass || !strings.Contains(stderr, "wrote "+baseline) {
		t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ = cli(t, "gate", planFile(t, must), "--out", filepath.Join(dir, "2"), "--baseline", baseline); code != reports.ExitInconclusive || !strings.Contains(stdout, `has "search" under safety`) {
		t.Errorf("an entry that is gone: exit code %d:\n%s", code, stdout)
	}
	if code, stdout, _ = cli(t, "gate", planFile(t, must+search+"  - {name: another, expect: pass, explore: {lock: fenced, tries: 1}}\n"), "--out", filepath.Join(dir, "4"), "--baseline", baseline, "--json"); code != reports.ExitPass || !strings.Contains(stdout, `the baseline file lacks the entry \"another\" under safety`) {
		t.Errorf("an entry that is new: exit code %d:\n%s", code, stdout)
	}
	red := filepath.Join(dir, "red.json")
	code, _, stderr = cli(t, "gate", planFile(t, brokenPlan), "--out", filepath.Join(dir, "3"), "--baseline", red, "--write-baseline")
	if _, err := os.Stat(red); code != reports.ExitViolated || err == nil || !strings.Contains(stderr, "which a baseline cannot accept") {
		t.Errorf("a red gate: exit code %d, %v:\n%s", code, err, stderr)
	}
}

// TestGateCommand checks that the command line that is printed makes the same gate again.
func TestGateCommand(t *testing.T) {
	path := planFile(t, brokenPlan)
	base := filepath.Join(t.TempDir(), "base line.json")
	for _, c := range []struct{ args, want []string }{
		{nil, []string{"--seed="}},
		{[]string{"--seed=7"}, []string{"--seed=7"}},
		{[]string{"--write-baseline"}, []string{"--baseline=" + strings.TrimSuffix(path, ".yaml") + ".baseline.json --write-baseline", "--seed="}},
		{[]string{"--write-baseline", "--baseline", base}, []string{"--baseline='" + base + "' --write-baseline"}},
	} {
		var f gateFlags
		code := 0
		cmd := gateCommand(&code)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		f.seed, _ = cmd.Flags().GetUint64("seed")
		f.write, _ = cmd.Flags().GetBool("write-baseline")
		f.baseline, _ = cmd.Flags().GetString("baseline")
		o, err := f.options(cmd, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(c.want, "oversell gate "+path) {
			if !strings.Contains(o.Command, want) {
				t.Errorf("%q: %s; want %s", c.args, o.Command, want)
			}
		}
		if strings.Contains(o.Command, "--seed=0") || !strings.Contains(o.Command, fmt.Sprint(o.Seed)) {
			t.Errorf("%q: the seed is %d: %s", c.args, o.Seed, o.Command)
		}
	}
}

// TestGateInterrupted checks that, after an interrupt, the gate still prints and writes what was judged.
func TestGateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	var out, err bytes.Buffer
	// The plan is read although the signal has come; its entries are left out.
	code := execute(ctx, []string{"gate", planFile(t, brokenPlan), "--out", filepath.Join(dir, "runs"), "--junit", filepath.Join(dir, "gate.xml")}, &out, &err)
	if code != reports.ExitInconclusive || !strings.Contains(out.String(), "stopped before its end") {
		t.Errorf("exit code %d:\n%s%s", code, out.String(), err.String())
	}
	if text, err := os.ReadFile(filepath.Join(dir, "gate.xml")); err != nil || !strings.Contains(string(text), "stopped before its end") {
		t.Errorf("%v:\n%s", err, text)
	}
}

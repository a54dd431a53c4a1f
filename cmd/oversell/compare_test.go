package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

func TestCompareRefusesBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--lock", "lua-relase"}, "did you mean lua-release"},
		{[]string{"--lock", ""}, "empty name"},
		{[]string{"--lock", "lua-release,"}, "empty name"},
		{[]string{"--sale", "plian,lua"}, "did you mean plain"},
		{[]string{"--sale", "lua,lua"}, "given twice"},
		{[]string{"--scenario", "mutx"}, "did you mean mutex"},
		{[]string{"--scenario", "mutex", "--sale", "plain"}, "leave out --sale: in scenario mutex"},
		{[]string{"--scenario", "mutex", "--stock", "1,2"}, "leave out --stock"},
		{[]string{"--clients", "10,many"}, "many"},
		{[]string{"--clients", "10,,20"}, "empty value"},
		{[]string{"--clients", "10,-5"}, "--clients 10,-5: -5 must be 1 to 100000"},
		{[]string{"--clients", "10,10"}, "10 is given twice"},
		{[]string{"--ttl", "1s,soon"}, "soon"},
		{[]string{"--ttl", "100ms", "--lock", "php-lock"}, "whole seconds"},
		{[]string{"--ttl", "100ms", "--lock", "php-lock,lua-release"}, "whole seconds"}, // php-lock is named and cannot run anywhere
		{[]string{"--lock", "lua-release", "--sale", "fenced"}, "--lock fenced"},
		{[]string{"--fault", "explode"}, "explode"},
		{[]string{"--fault", "slow 10ms; "}, "empty sentence"},
		{[]string{"--fault", "slow 10ms; explode"}, "explode"},
		{[]string{"--faults-only"}, "add a --fault"},
		{[]string{"--rounds", "0"}, "--rounds 0: must be 1 to 10000"},
		{[]string{"--rounds", "-1"}, "--rounds -1: must be 1 to 10000"},
		{[]string{"--time", "0s"}, "--time 0s: must be 1ms to 168h"},
		{[]string{"--target", "nowhere,embedded"}, "unknown target"},
		{[]string{"--target", "redis://192.0.2.1:6379"}, "--allow-remote"},
		{[]string{"--waiting", "poll,pubsub"}, "poll, fixed, exponential, pubsub"},
		{[]string{"--target", "embedded", "--lock", "lua-release", "--fault", "kill at 100ms"}, "in-memory emulation"}, // the target does not support it
		{[]string{"all"}, "unexpected argument"},
	} {
		code, stdout, stderr := cli(t, append([]string{"compare", "--quick", "--out", filepath.Join(t.TempDir(), "out")}, c.args...)...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		last := lines[len(lines)-1]
		if code != reports.ExitUsage || stdout != "" || !strings.HasPrefix(last, "oversell: ") || !strings.Contains(last, c.want) {
			t.Errorf("%q: exit code %d, %q; want 2 and a line that says %q", c.args, code, stderr, c.want)
		}
		if strings.Contains(stderr, "round 1") {
			t.Errorf("%q was refused only after something had run: %s", c.args, stderr)
		}
	}
}

// TestCompareUndecided checks that the exit code is that of the comparison.
func TestCompareUndecided(t *testing.T) {
	code, stdout, stderr := cli(t, "compare", "--target", "embedded", "--lock", "lua-release", "--clients", "1", "--stock", "10", "--rounds", "1", "--measure", "100ms", "--plain", "--out", filepath.Join(t.TempDir(), "out"))
	if code != reports.ExitInconclusive || !strings.Contains(stdout, "too few opportunities") {
		t.Errorf("exit code %d, want 3\n%s\n%s", code, stdout, stderr)
	}
}

func TestCompare(t *testing.T) {
	servertest.NeedServer(t)
	dir := t.TempDir()
	code, stdout, stderr := cli(t, "compare", "--quick", "--plain", "--target", "process", "--lock", "lua-release,none", "--sale", "plain", "--clients", "16,32", "--stock", "60", "--rounds", "1", "--measure", "100ms", "--out", dir, "--json")
	var c reports.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != reports.ExitPass || c.Schema != reports.ComparisonSchema || len(c.Cells) != 4 || c.ExitCode() != code {
		t.Fatalf("exit code %d, %v\n%s\n%s", code, err, stdout, stderr)
	}
	if !strings.Contains(stderr, "round 1") || !strings.Contains(stderr, "--clients 16,32") {
		t.Errorf("stderr: %s", stderr)
	}
	for _, name := range []string{"comparison.json", "comparison.html"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, _, stderr := cli(t, "compare", "--quick", "--lock", "lua-release", "--rounds", "1", "--out", dir); code != reports.ExitUsage || !strings.Contains(stderr, "another --out") {
		t.Errorf("the same directory again: exit code %d, %s", code, stderr)
	}
	// The directory of a comparison holds runs that check can judge.
	if code, stdout, _ := cli(t, "check", dir); code != reports.ExitViolated || strings.Count(stdout, "lua-release") < 4 {
		t.Errorf("check: exit code %d\n%s", code, stdout)
	}
}

// TestCompareSystem checks that a system is a contender beside the named locks.
func TestCompareSystem(t *testing.T) {
	servertest.NeedServer(t)
	python := servertest.Python(t)
	program, err := filepath.Abs(filepath.Join("..", "..", "campaign", "testdata", "lock.py"))
	if err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(t.TempDir(), "lock.yaml"), t.TempDir()
	text := fmt.Sprintf("name: mine\nobject: lock\nclients: 1\ncommand: [%s, %q, sound]\nenv: {REDIS_URL: \"{redis}\"}\n", python, program)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := cli(t, "compare", "--scenario", "mutex", "--quick", "--plain", "--target", "process", "--lock", "lua-release", "--system", file, "--clients", "8", "--rounds", "1", "--measure", "200ms", "--out", dir, "--json")
	var c reports.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != reports.ExitPass || len(c.Contenders) != 2 || len(c.Cells) != 2 {
		t.Fatalf("exit code %d, %v\n%s\n%s", code, err, stdout, stderr)
	}
	if !strings.Contains(stdout, `"mine"`) || !strings.Contains(c.Command, "--system") {
		t.Errorf("the system is not named, or not in %q:\n%s", c.Command, stdout)
	}
}

// TestCompareHelpTellsOfSeveralValues checks that the help shows which flags take several values.
func TestCompareHelpTellsOfSeveralValues(t *testing.T) {
	_, stdout, _ := cli(t, "compare", "--help")
	for _, want := range []string{"--clients ints", "--ttl durations", "--rounds int ", "--fault stringArray", "--target strings"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in the help:\n%s", want, stdout)
		}
	}
}

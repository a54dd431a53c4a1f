package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

// TestMistypedCommands checks that an unknown subcommand is wrong usage, also after help.
func TestMistypedCommands(t *testing.T) {
	for args, want := range map[string]string{
		"rnu":              `unknown command "rnu" for "oversell": did you mean run?`,
		"system chek x":    `unknown command "chek" for "oversell system": did you mean check?`,
		"system foo":       `unknown command "foo" for "oversell system": it is one of check`,
		"completion foo":   `unknown command "foo" for "oversell completion": it is one of bash, fish`,
		"completion bsh":   "did you mean bash or zsh?",
		"help rnu":         "did you mean run?",
		"help system chek": "did you mean check?",
	} {
		code, stdout, stderr := cli(t, strings.Fields(args)...)
		if code != reports.ExitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d\n%s%s; want 2 and %q", args, code, stdout, stderr, want)
		}
	}
	for _, args := range []string{"", "system", "completion", "help", "help run", "help system check"} {
		if code, stdout, stderr := cli(t, strings.Fields(args)...); code != 0 || !strings.Contains(stdout, "Usage:") || stderr != "" {
			t.Errorf("%q: %d, want help\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestHelpFits checks that no line of any help is wider than the output, except commands to be copied.
func TestHelpFits(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for _, args := range []string{"run", "compare", "explore", "gate", "claims", "check", "report", "proxy", "list", "system check"} {
		_, stdout, _ := cli(t, append(strings.Fields(args), "--help")...)
		for line := range strings.SplitSeq(stdout, "\n") {
			if reports.Width(line) > 80 && !strings.HasPrefix(line, "  oversell ") {
				t.Errorf("%s: %q", args, line)
			}
		}
		if strings.Contains(stdout, "(default [])") || strings.Contains(stdout, "(default )") {
			t.Errorf("%s tells of a default that there is not", args)
		}
	}
}

// TestEmittedPackage checks that writing a test into a directory without other Go files prints a warning: Go files of
// another package cannot be added there.
func TestEmittedPackage(t *testing.T) {
	alone, beside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(beside, "a.go"), []byte("package a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{alone: true, beside: false} {
		_, _, stderr := cli(t, "explore", "--lock", "set-nx-ex", "--out", t.TempDir(), "--emit-test", filepath.Join(dir, "x_test.go"))
		if !strings.Contains(stderr, "wrote ") || strings.Contains(stderr, "of package regression: Go files of another package need another directory") != want {
			t.Errorf("%s: %s", dir, stderr)
		}
	}
}

// full is a writer to a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

// TestLostResults checks that a result that cannot be printed is an environment error, whichever command prints it.
func TestLostResults(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := cli(t, "explore", "--lock", "set-nx-ex", "--out", dir); code != reports.ExitViolated {
		t.Fatal(stderr)
	}
	traces, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, args := range [][]string{
		{"list"}, {"version"}, {"--version"}, {"--help"}, {"help", "run"}, {"system"}, {"completion", "bash"},
		{"report", traces[0], "--out", filepath.Join(dir, "page.html")},
		{"explore", "--replay", traces[0], "--target", "embedded"},
	} {
		var stderr strings.Builder
		if code := execute(t.Context(), args, full{}, &stderr); code != reports.ExitEnvironment || strings.Count(stderr.String(), "no space left") != 1 {
			t.Errorf("%q: %d, want 5 and one line that says why\n%s", args, code, stderr.String())
		}
	}
}

// TestUnwritablePlaces checks that a path that could not be written at the end is refused at the beginning.
func TestUnwritablePlaces(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	plan := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(plan, []byte("safety:\n  - name: a\n    expect: pass\n    run: {scenario: mutex, lock: [lua-release]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, hint string }{
		{"claims C1 --markdown /proc/x.md", "--markdown"},
		{"gate " + plan + " --markdown /proc/x.md", "--markdown"},
		{"gate " + plan + " --junit /proc/x.xml", "--junit"},
		{"gate " + plan + " --baseline /proc/x.json --write-baseline", "--baseline"},
		{"gate " + plan + " --out /proc/x", "choose another --out"},
		{"explore --lock set-nx-ex --emit-test /proc/x_test.go", "--emit-test"},
		{"explore --lock set-nx-ex --out /proc/x", "choose another --out"},
		{"run --target embedded --lock none --out /proc/x", "choose another --out"},
		{"compare --quick --target embedded --out /proc/x", "choose another --out"},
		{"claims C1 --out /proc/x", "choose another --out"},
	} {
		code, stdout, stderr := cli(t, strings.Fields(c.args)...)
		if code != reports.ExitEnvironment || stdout != "" || !strings.Contains(stderr, c.hint) || strings.Contains(stderr, "run directories in") {
			t.Errorf("%s: %d, want 5 and %q\n%s%s", c.args, code, c.hint, stdout, stderr)
		}
	}
}

// TestUnwrittenPage checks that answers are printed even if their page cannot be written.
func TestUnwrittenPage(t *testing.T) {
	servertest.NeedServer(t)
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.Symlink("/dev/full", page); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := cli(t, "claims", "C1", "--quick", "--markdown", page, "--out", t.TempDir())
	if code != reports.ExitEnvironment || !strings.Contains(stdout, "C1") || !strings.Contains(stderr, "no space left") {
		t.Errorf("%d, want 5\n%s%s", code, stdout, stderr)
	}
}

// TestClaimsWithoutRedis checks that a missing server is not reported as an interrupt, and that the advice names only
// targets that claims support.
func TestClaimsWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, _, stderr := cli(t, "claims", "C1", "--out", filepath.Join(t.TempDir(), "runs"))
	if code != reports.ExitEnvironment || strings.Contains(stderr, "interrupted") || strings.Contains(stderr, "embedded") || !strings.Contains(stderr, "install Redis") {
		t.Errorf("%d, want 5\n%s", code, stderr)
	}
}

// TestSystemCheckCalls checks that an invalid file is wrong usage, and that a check that is stopped does not blame
// the system.
func TestSystemCheckCalls(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wrong := write("wrong.yaml", "foo: bar\n")
	missing := filepath.Join(dir, "nothere.yaml")
	for _, args := range [][]string{{"system", "check", missing}, {"system", "check", wrong}, {"run", "--system", missing}, {"run", "--system", wrong}} {
		if code, _, stderr := cli(t, args...); code != reports.ExitUsage || strings.Contains(stderr, "did you mean") {
			t.Errorf("%q: %d, want 2\n%s", args, code, stderr)
		}
	}
	absent := write("absent.yaml", "name: absent\nobject: lock\ncommand: [/no/such/program]\n")
	t.Setenv("COLUMNS", "40")
	if code, _, stderr := cli(t, "system", "check", absent, "--target", "embedded"); code != reports.ExitEnvironment || !strings.Contains(stderr, "no such file") {
		t.Errorf("%d, want 5 and why\n%s", code, stderr)
	}
	ends := write("ends.yaml", "name: ends\nobject: lock\ncommand: [sh, -c, 'read a; echo \"{\\\"id\\\":1,\\\"ok\\\":true}\"; read b; exit 7']\n")
	code, stdout, _ := cli(t, "system", "check", ends, "--target", "embedded")
	if code != reports.ExitViolated || strings.Contains(stdout, `\n`) || !strings.Contains(stdout, "status 7") {
		t.Errorf("%d, want 1 and why\n%s", code, stdout)
	}
	for line := range strings.SplitSeq(stdout, "\n") {
		if reports.Width(line) > 40 {
			t.Errorf("%q is too wide", line)
		}
	}
	silent := write("silent.yaml", "name: silent\nobject: lock\ncommand: [sh, -c, 'touch asked; exec sleep 100']\n")
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "asked")); err == nil {
				stop()
				return
			}
			runtime.Gosched()
		}
	}()
	var out, stderr strings.Builder
	if code := execute(ctx, []string{"system", "check", silent, "--target", "embedded"}, &out, &stderr); code != reports.ExitInconclusive || strings.Contains(out.String(), "WRONG") || !strings.Contains(stderr.String(), "stopped") {
		t.Errorf("%d, want 3\n%s%s", code, out.String(), stderr.String())
	}
}

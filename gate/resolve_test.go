package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/reports"
)

// script writes a program for /bin/sh.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestProgramsBesideThePlan checks that a program with a directory in its name, and another build, lie beside the plan
// even if the plan is named without a directory and $PATH has a program of that name.
func TestProgramsBesideThePlan(t *testing.T) {
	needShell(t)
	dir, elsewhere := t.TempDir(), t.TempDir()
	for name, code := range map[string]int{"guarded": 1, "control": 0} {
		script(t, filepath.Join(dir, name), fmt.Sprintf("exit %d", code))
		script(t, filepath.Join(elsewhere, name), fmt.Sprintf("exit %d", 1-code))
	}
	script(t, filepath.Join(dir, "build"), "exit 0")
	script(t, filepath.Join(elsewhere, "build"), "exit 0")
	plan := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plan("entry.yaml", "safety:\n  - {name: x, expect: pass, repeat: 1, command: [./guarded], control: {command: ['false']}}\n")
	plan("control.yaml", "safety:\n  - {name: x, expect: pass, repeat: 1, command: ['true'], control: {command: [./control]}}\n")
	plan("build.yaml", "performance:\n  - {name: x, run: {target: embedded, lock: lua-release}, build: ./build}\n")
	plan("name.yaml", "performance:\n  - {name: x, run: {target: embedded, lock: lua-release}, build: build}\n")
	t.Setenv("PATH", elsewhere+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Chdir(dir)
	for _, from := range []string{"", "./", dir + "/"} {
		for name, want := range map[string]string{"entry.yaml": reports.Violated, "control.yaml": reports.Inconclusive} {
			p, err := Load(t.Context(), from+name)
			if err != nil {
				t.Fatal(err)
			}
			if g := gated(t, p, Options{}); g.Verdict != want {
				t.Errorf("%s%s: %s, want %s:\n%s", from, name, g.Verdict, want, story(g))
			}
		}
		for _, name := range []string{"build.yaml", "name.yaml"} {
			p, err := Load(t.Context(), from+name)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.speed[0].build; got != filepath.Join(dir, "build") {
				t.Errorf("%s%s: the build is %s", from, name, got)
			}
		}
	}
	if err := os.Remove(filepath.Join(dir, "build")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), "build.yaml"); err == nil || !strings.Contains(err.Error(), "build.yaml:2:") || !strings.Contains(err.Error(), "cannot be run") {
		t.Errorf("no build: %v", err)
	}
}

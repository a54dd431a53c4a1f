package gate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/servertest"
)

// TestSystemsInAGate checks that a program outside of this one passes or fails a gate as a shipped variant does, in
// runs and in searches.
func TestSystemsInAGate(t *testing.T) {
	servertest.NeedServer(t)
	python := servertest.Python(t)
	if _, err := exec.LookPath("cc"); err != nil {
		servertest.Unable(t, err)
	}
	program, err := filepath.Abs(filepath.Join("..", "campaign", "testdata", "lock.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(kind string) string {
		path := filepath.Join(dir, kind+".yaml")
		text := fmt.Sprintf("name: mine\nobject: lock\nclients: 1\ncommand: [%s, %q, %s]\nenv: {REDIS_URL: \"{redis}\"}\nstateless: true\n", python, program, kind)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		what, entry, kind string
		code              int
		say               string
	}{
		{"a sound one runs", "expect: pass\n    repeat: 1\n    run: {target: process, clients: 8, stock: 150, hold: 2ms, sale: plain, system: %s}", "sound", 0, "GREEN"},
		{"a flawed one runs", "expect: violated\n    repeat: 1\n    run: {target: process, clients: 8, stock: 60, ttl: 50ms, hold: 80ms, sale: plain, system: %s}", "blind-release", 0, "owner-only-release"},
		{"a sound one is searched", "expect: pass\n    explore: {system: %s, tries: 1, lost: 0, time: 2m}", "sound", 0, "GREEN"},
		{"a flawed one is searched", "expect: pass\n    explore: {system: %s}", "blind-release", 1, "owner-only-release"},
	} {
		t.Run(c.what, func(t *testing.T) {
			g := gated(t, mustLoad(t, "safety:\n  - name: x\n    "+fmt.Sprintf(c.entry, file(c.kind))+"\n"), Options{Seed: 7})
			if said := story(g); g.ExitCode() != c.code || !strings.Contains(said, c.say) {
				t.Errorf("exit code %d, want %d, and to be told of %q:\n%s", g.ExitCode(), c.code, c.say, said)
			}
		})
	}
}

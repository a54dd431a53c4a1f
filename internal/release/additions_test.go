package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// additions holds an example of each addition that CONTRIBUTING.md describes: a file, and a line in a list.
var additions = []struct{ file, path, list, before, line string }{
	{"lock", "lockimpl/mine.go", "lockimpl/variants.go", "var Variants = []Variant{\n", "\tmine,\n"},
	{"scenario", "scenarios/touch.go", "scenarios/scenarios.go", "var All = []Scenario{", "touch, "},
	{"fault", "faults/client_doze.go", "faults/kinds.go", "var Kinds = []Kind{\n", "\tkindDoze,\n"},
	{"monitor", "checker/locks/thrice.go", "checker/locks/factories.go", "var Factories = []monitor.Factory{\n", "\tthrice,\n"},
}

// TestAdditions checks that a lock, a scenario, a fault and a monitor need one file and one line each, and that their
// packages compile with them. In "make long" it also builds the program and checks that all commands know them.
func TestAdditions(t *testing.T) {
	dir := copied(t)
	for _, a := range additions {
		text, err := os.ReadFile(filepath.Join("testdata", "additions", a.file+".go.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, a.path), text, 0o666); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadFile(filepath.Join(dir, a.list))
		if err != nil || strings.Count(string(list), a.before) != 1 {
			t.Fatalf("%s: %v: the list does not begin with %q", a.list, err, a.before)
		}
		if err := os.WriteFile(filepath.Join(dir, a.list), []byte(strings.Replace(string(list), a.before, a.before+a.line, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if !long {
		did(t, dir, "go", "build", "./faults", "./checker/locks", "./lockimpl", "./scenarios")
		return
	}
	program := filepath.Join(dir, "oversell.program")
	did(t, dir, "go", "build", "-o", program, "./cmd/oversell")
	for _, c := range []struct {
		command string
		exit    int
		says    []string
	}{
		{"list locks", 0, []string{"mine", "EXISTS, then SET EX"}},
		{"list scenarios", 0, []string{"touch"}},
		{"list faults", 0, []string{"doze [before|after]", "twice D"}},
		{"run --scenario mutex --lock mine --target process --clients 16 --duration 500ms --fault 'doze 1ms 10%' --out runs", 1,
			[]string{"mutual-exclusion", "as its flaws declare", "doze 1ms 10%", "thrice"}},
		{"run --scenario touch --lock lua-release --target embedded --out touched", 0, []string{"touch, lock lua-release", "(thrice)"}},
		{"check runs", 1, []string{"mutual-exclusion", "thrice"}},
		{"report runs", 0, []string{"report.html"}},
		{"explore --lock mine --out searched", 1, []string{"mutual-exclusion", "lock mine"}},
		{"explore --scenario touch --lock lua-release --out proved", 0, []string{"holds"}},
		{"compare --scenario mutex --lock mine,lua-release --quick --plain --rounds 1 --measure 100ms --clients 16 --target process --out compared", 0, []string{"mine", "lua-release"}},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", program+" "+c.command)
		cmd.Dir, cmd.Env = dir, environment()
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.exit {
			t.Errorf("%s: exit code %d, want %d\n%s", c.command, code, c.exit, out)
		}
		for _, s := range c.says {
			if !strings.Contains(string(out), s) {
				t.Errorf("%s does not say %q:\n%s", c.command, s, out)
			}
		}
	}
}

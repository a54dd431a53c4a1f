package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oversell/explore"
	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
)

// counterexample returns a search of a shipped lock that found a counterexample.
func counterexample(t *testing.T, lock string) reports.Exploration {
	t.Helper()
	c := explore.Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 1}}
	c.Run.Scenario, _ = scenarios.Find("mutex")
	c.Run.Lock, _ = lockimpl.Find(lock)
	e, err := explore.Run(t.Context(), c)
	if err != nil || e.Counterexample == nil {
		t.Fatalf("%s: %s, %v; want a counterexample", lock, e.Verdict, err)
	}
	return e
}

// TestEmittedTestsFailWhileTheBugIsThere runs emitted tests. The test of a flawed lock must fail with its schedule, and must
// pass when a sound lock has taken its place. In the long tests they are in a module of their own, as a user's are, in which
// all packages of this one are compiled again.
func TestEmittedTestsFailWhileTheBugIsThere(t *testing.T) {
	servertest.NeedServer(t)
	flawed := counterexample(t, "php-lock-printed")
	mended := flawed
	mended.Lock = "php-lock-atomic"
	dir := scratchModule(t)
	for name, e := range map[string]reports.Exploration{"flawed": flawed, "mended": mended} {
		path := filepath.Join(dir, name+"_test.go")
		if err := WriteTest(path, e); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source(text)
		if err != nil || !bytes.Equal(text, formatted) {
			t.Errorf("%s is not as gofmt would have it (%v)", path, err)
		}
	}
	run := exec.CommandContext(t.Context(), "go", "test", "-vet=all", "-v", "./...")
	if os.Getenv("OVERSELL_LONG") != "1" {
		run = exec.CommandContext(t.Context(), compiledHere(t, dir), "-test.v")
	}
	run.Dir, run.Env = dir, asReleased()
	out, err := run.CombinedOutput()
	if err == nil {
		t.Error("the tests pass")
	}
	property := testName(flawed)[len("PhpLockPrinted"):]
	for _, want := range []string{
		"--- FAIL: TestPhpLockPrinted" + property,
		"--- PASS: TestPhpLockAtomic" + property,
		"setnx Lock:order",
		flawed.Counterexample.Sentence,
		"no longer follows the schedule",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// compiledHere compiles the tests of a directory as if they were in a package of this module, and returns the program.
func compiledHere(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	const within = "internal/emitted"
	replace := map[string]string{}
	for _, f := range files {
		replace[filepath.Join(root, within, filepath.Base(f))] = f
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "emitted.test")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+within)
	cmd.Dir, cmd.Env = root, asReleased()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return program
}

// asReleased returns an environment in which the go command compiles as for a release and for make vet, so that the
// libraries are compiled once for all of them.
func asReleased() []string {
	flags, _ := exec.Command("go", "env", "GOFLAGS").Output() // on error only the default flags are lost
	return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+strings.TrimSpace(string(flags))+" -trimpath")
}

// scratchModule returns a module that requires this one in its present state.
func scratchModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(ours), "module oversell\n", "module scratch\n", 1)
	text, _, _ = strings.Cut(text, "\ntool ")
	text += fmt.Sprintf("\nrequire oversell v0.0.0\n\nreplace oversell => %s\n", root)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": text, "go.sum": string(sums), "scratch.go": "package scratch\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEmittedTestJoinsThePackageThatIsThere(t *testing.T) {
	e := counterexample(t, "set-nx-ex")
	for file, want := range map[string]string{
		"":                                   "package regression\n",
		"a.go:package a\n":                   "package a_test\n",
		"a_test.go:package a\n":              "package a_test\n",
		"a_test.go:package a_test\n":         "package a_test\n",
		"notes.txt:no Go":                    "package regression\n",
		"broken.go:packag a, so what is it?": "",
	} {
		dir := t.TempDir()
		if name, content, ok := strings.Cut(file, ":"); ok {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, "found_test.go")
		err := WriteTest(path, e)
		text, _ := os.ReadFile(path)
		if (err == nil) != (want != "") || !strings.HasPrefix(string(text), want) {
			t.Errorf("beside %q: %v, and the test begins %.30q; want %q", file, err, text, want)
		}
	}
}

func TestTestsThatCannotBeWritten(t *testing.T) {
	e := counterexample(t, "set-nx-ex")
	path := filepath.Join(t.TempDir(), "found_test.go")
	if err := WriteTest(path, reports.Exploration{Schema: reports.ExplorationSchema}); err == nil {
		t.Error("a test was written without a counterexample")
	}
	if err := WriteTest(path, e); err != nil {
		t.Fatal(err)
	}
	if err := WriteTest(path, e); err == nil {
		t.Error("a file was overwritten")
	}
	if err := WriteTest(filepath.Join(filepath.Dir(path), "found.go"), e); err == nil {
		t.Error("a test was written to a file that go test does not read")
	}
}

// TestTextOfAnyTrace checks that no text in a trace breaks the Go source that is generated from it.
func TestTextOfAnyTrace(t *testing.T) {
	e := counterexample(t, "set-nx-ex")
	e.Counterexample.Sentence = "`a`\nfunc main() {}\r*/ \"b\" \\"
	if _, err := testSource("p", e); err != nil {
		t.Error(err)
	}
}

package campaign

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/reports"
)

// TestTraceFindsItsSystem checks that a trace is read in another directory than that of the search, also after both have
// moved, and that a trace without the path from its own place is read where the search was made.
func TestTraceFindsItsSystem(t *testing.T) {
	root := t.TempDir()
	work := filepath.Join(root, "work")
	if err := os.MkdirAll(filepath.Join(work, "runs", "1"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	if err := os.WriteFile("f.yaml", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	e := reports.Exploration{Schema: reports.ExplorationSchema, System: "f.yaml", Counterexample: &reports.Counterexample{}}
	write := func(name string, e reports.Exploration) {
		t.Helper()
		text, err := json.Marshal(e)
		if err == nil {
			err = os.WriteFile(name, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trace := filepath.Join("runs", "1", "trace.json")
	write(trace, BesideTrace(e, trace))
	write("old.json", e)
	for _, path := range []string{trace, "old.json"} {
		if got, _, err := Trace(path); err != nil || !Exists(got.System) {
			t.Errorf("%s: %v, %q", path, err, got.System)
		}
	}
	moved := filepath.Join(root, "moved")
	if err := os.Rename(work, moved); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	if got, _, err := Trace(filepath.Join("moved", trace)); err != nil || !Exists(got.System) {
		t.Errorf("elsewhere: %v, %q", err, got.System)
	}
	if _, _, err := Trace(filepath.Join("moved", "old.json")); err == nil || !strings.Contains(err.Error(), "run this in the directory of that search") {
		t.Errorf("a system that is not there: %v", err)
	}
}

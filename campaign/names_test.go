package campaign

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
)

// TestEarlierNames checks that a lock is found by its earlier names in flags, in histories and in schedules that a
// search found, and that the results use its present name.
func TestEarlierNames(t *testing.T) {
	const was, is = "redislock", "php-lock"
	note := "lock redislock is called php-lock now"
	o, err := Parse([]string{"--lock", "lua-release," + was, "--target", "embedded"})
	if err != nil || !slices.Equal(o.Locks, []string{"lua-release", is}) {
		t.Errorf("--lock: %v, %v", err, o.Locks)
	}
	for _, names := range [][]string{{was}, {is}} {
		o.Locks = names
		p, err := NewPlan(t.Context(), *o)
		if err != nil || p.Runs[0].Lock.Name != is {
			t.Errorf("a plan with %v: %v, %+v", names, err, p.Runs)
		}
	}

	dir := t.TempDir()
	path := filepath.Join(dir, "h.jsonl")
	header, err := json.Marshal(history.Header{Schema: history.Schema, Scenario: "mutex", Lock: was, Clients: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(header, '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := Check(t.Context(), path)
	if err != nil || len(d.Runs) != 1 || d.Runs[0].Lock != is || !slices.Equal(RenamedIn(d), []string{note}) {
		t.Errorf("a history: %v, %+v, %q", err, d.Runs, RenamedIn(d))
	}

	e := counterexample(t, is)
	e.Lock = was
	trace := filepath.Join(dir, "trace.json")
	err = WriteFile(dir, "trace.json", func(w io.Writer) error { return reports.WriteJSON(w, e) })
	if err != nil {
		t.Fatal(err)
	}
	if e, renamed, err := Trace(trace); err != nil || e.Lock != is || renamed != note {
		t.Errorf("a schedule: %v, %s, %q", err, e.Lock, renamed)
	}
}

// TestNamesAreUnique checks that no lock has a name that another lock has or had.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, v := range lockimpl.Variants {
		for _, name := range append([]string{v.Name}, v.Was...) {
			if seen[name] != "" || strings.ContainsAny(name, " ,+") {
				t.Errorf("%q names %s and %s", name, v.Name, seen[name])
			}
			seen[name] = v.Name
		}
	}
}

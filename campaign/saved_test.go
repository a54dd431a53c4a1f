package campaign

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSaved checks that a directory without a history is not offered for judging.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "01-mutex")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if Saved(dir) || Saved(filepath.Join(dir, "nowhere")) {
		t.Error("a history is saved where there is none")
	}
	if err := os.WriteFile(filepath.Join(run, HistoryFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !Saved(dir) {
		t.Error("a history is not found")
	}
}

// TestHistoriesBelow checks that histories are found at all depths of a directory together, and that a run directory
// without its history is an error, not silence.
func TestHistoriesBelow(t *testing.T) {
	dir := t.TempDir()
	put := func(parts ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := []string{put("a", HistoryFile), put("gate", "01-b", HistoryFile), put("gate", "02-c", HistoryFile)}
	put("gate", "02-c", runFile)
	got, err := historiesIn(dir)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	put("gate", "03-d", runFile)
	lost := filepath.Join(dir, "gate", "03-d", HistoryFile)
	got, err = historiesIn(dir)
	if err == nil || err.Error() != lost+" is missing: run.json is beside it" || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v, and that %s is missing", got, err, want, lost)
	}
}

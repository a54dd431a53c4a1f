package campaign

import (
	"os"
	"path/filepath"
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

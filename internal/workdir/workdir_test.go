//go:build linux

package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLeftoversAreRemoved checks that the files that a killed program left are removed, and those of a running program are
// kept.
func TestLeftoversAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left, err := New()
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(left.Path, "dump.rdb"), nil, 0o600))
	used, err := New()
	noError(t, err)
	for _, w := range []*Dir{left, used} {
		if _, err := os.Stat(w.Path); err != nil {
			t.Fatal(err)
		}
	}
	noError(t, left.lock.Close()) // as the kernel does when a program is killed
	next, err := New()
	noError(t, err)
	if _, err := os.Stat(left.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	if _, err := os.Stat(used.Path); err != nil {
		t.Errorf("a directory in use was removed: %v", err)
	}
	next.Remove()
	used.Remove()
	if entries, _ := os.ReadDir(filepath.Dir(used.Path)); len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("left: %v", entries)
	}
}

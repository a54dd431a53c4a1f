//go:build linux

package target

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a killed program left is removed, what a living one uses is not.
func TestLeftoversAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left, err := newWorkDir()
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(left.path, "dump.rdb"), nil, 0o600))
	used, err := newWorkDir()
	noError(t, err)
	for _, w := range []*workDir{left, used} {
		if _, err := os.Stat(w.path); err != nil {
			t.Fatal(err)
		}
	}
	noError(t, left.lock.Close()) // which the kernel does when a program is killed
	next, err := newWorkDir()
	noError(t, err)
	if _, err := os.Stat(left.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	if _, err := os.Stat(used.path); err != nil {
		t.Errorf("a folder in use was removed: %v", err)
	}
	next.remove()
	used.remove()
	if entries, _ := os.ReadDir(filepath.Dir(used.path)); len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("left: %v", entries)
	}
}

// In a folder where everybody may write, somebody else may have been faster.
func TestAFolderThatIsNotOursIsRefused(t *testing.T) {
	needServer(t)
	for name, prepare := range map[string]func(root string) error{
		"a link":               func(root string) error { return os.Symlink(t.TempDir(), root) },
		"open to others":       func(root string) error { return errors.Join(os.Mkdir(root, 0o700), os.Chmod(root, 0o777)) },
		"a file and no folder": func(root string) error { return os.WriteFile(root, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			w, err := newWorkDir()
			noError(t, err)
			root := filepath.Dir(w.path)
			w.remove()
			noError(t, os.RemoveAll(root))
			noError(t, prepare(root))
			_, err = Open(t.Context(), Spec{Target: "process"})
			wantError(t, err, ErrEnvironment, root+" is not a folder that belongs to us alone", "TMPDIR")
		})
	}
}

func TestJump(t *testing.T) {
	t.Parallel()
	needServer(t)
	if _, err := shim(t.Context()); err != nil {
		unable(t, err)
	}
	tg := mustOpen(t, Spec{Target: "process", Topology: "masters:2", Clocks: true, Persist: true})
	noError(t, tg.Can(t.Context(), CanJump))
	ahead := func(number int) time.Duration {
		now, err := tg.Admin(number).Time(t.Context()).Result()
		noError(t, err)
		return time.Until(now).Round(time.Minute)
	}
	noError(t, tg.Admin(1).Set(t.Context(), "lock", "A", 30*time.Minute).Err())
	noError(t, tg.Jump(1, time.Hour))
	if a, b := ahead(1), ahead(2); a != time.Hour || b != 0 {
		t.Errorf("the clocks are %v and %v ahead; want 1h and 0", a, b)
	}
	if got := tg.Admin(1).Get(t.Context(), "lock").Val(); got != "" {
		t.Errorf("a lease of 30 minutes outlived a jump of an hour: %q", got)
	}
	noError(t, tg.Kill(1))
	noError(t, tg.Start(t.Context(), 1, false))
	if a := ahead(1); a != time.Hour {
		t.Errorf("after a restart the clock is %v ahead; want 1h", a)
	}
	noError(t, tg.Jump(1, -time.Hour))
	if a := ahead(1); a != -time.Hour {
		t.Errorf("the clock is %v ahead; want -1h", a)
	}
	noError(t, tg.AwaitHealthy(soon(t)))
}

//go:build linux

package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oversell/internal/servertest"
	"oversell/internal/workdir"
	"oversell/server/instance"
)

// TestADirectoryThatIsNotOursIsRefused checks that Open refuses a directory that another user may have made first, in a directory
// to which everybody can write.
func TestADirectoryThatIsNotOursIsRefused(t *testing.T) {
	servertest.NeedServer(t)
	for name, prepare := range map[string]func(root string) error{
		"a link":                  func(root string) error { return os.Symlink(t.TempDir(), root) },
		"open to others":          func(root string) error { return errors.Join(os.Mkdir(root, 0o700), os.Chmod(root, 0o777)) },
		"a file and no directory": func(root string) error { return os.WriteFile(root, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			w, err := workdir.New()
			noError(t, err)
			root := filepath.Dir(w.Path)
			w.Remove()
			noError(t, os.RemoveAll(root))
			noError(t, prepare(root))
			_, err = Open(t.Context(), Spec{Target: "process"})
			servertest.WantError(t, err, ErrEnvironment, root+" is not a directory that belongs to us alone", "TMPDIR")
		})
	}
}

func TestJump(t *testing.T) {
	t.Parallel()
	servertest.NeedServer(t)
	if _, err := instance.Shim(t.Context()); err != nil {
		servertest.Unable(t, err)
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

package instance

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"oversell/internal/errclass"
)

// A server's clock is moved by a small library that is preloaded into it. (The
// well-known libfaketime makes redis-server 7.0 crash.) It is C, in a folder of its
// own so that go build needs no C compiler; only who moves clocks needs one.
//
//go:embed shim/clock.c
var shimSource []byte

// offsetFileVar is the environment variable that tells the shim its file.
const offsetFileVar = "OVERSELL_CLOCK_OFFSET_FILE"

// Shim is the path of the compiled library, for LD_PRELOAD. It is compiled once
// and kept in the user's cache; programs that do so at the same time each put a
// finished file into place.
func Shim(ctx context.Context) (string, error) {
	dir, err := shimDir()
	if err != nil {
		return "", errclass.Environmentf("find a place for the library that moves a server's clock: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("clock-%x.so", sha256.Sum256(shimSource)))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := compileShim(ctx, path); err != nil {
		return "", errclass.Environmentf("compile the library that moves a server's clock: %w", err)
	}
	return path, nil
}

// shimDir is in the user's cache, or where there is none in the folder for
// temporary files. Everybody may write to the latter, and what lies here gets
// loaded into programs: so it must be ours alone.
func shimDir() (string, error) {
	if cache, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(cache, "oversell")
		if os.MkdirAll(dir, 0o700) == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("oversell-cache-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	state, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if owner := state.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Getuid() || state.Mode() != fs.ModeDir|0o700 {
		return "", fmt.Errorf("%s is not a folder that only we can write to", dir)
	}
	return dir, nil
}

func compileShim(ctx context.Context, path string) error {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return errors.New("no C compiler was found on PATH (cc): install one, as gcc")
	}
	unfinished, err := os.CreateTemp(filepath.Dir(path), "clock-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", unfinished.Name(), "-ldl")
	cmd.Stdin = bytes.NewReader(shimSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
		return fmt.Errorf("%s: %w: %s", compiler, err, first)
	}
	return os.Rename(unfinished.Name(), path)
}

// offsetSize is that of one integer.
const offsetSize = 8

// writeOffset sets by how much the clocks of the programs that have the shim and
// this file are ahead, and makes the file if there is none. It writes through
// memory, as the shim reads: so nobody ever sees half of an offset.
func writeOffset(file string, ahead time.Duration) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return errclass.Environmentf("set a server's clock: %w", err)
	}
	defer f.Close()
	if err := reserve(f); err != nil {
		return errclass.Environmentf("set a server's clock: %w", err)
	}
	shared, err := syscall.Mmap(int(f.Fd()), 0, offsetSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return errclass.Environmentf("set a server's clock: map %s: %w", file, err)
	}
	atomic.StoreInt64((*int64)(unsafe.Pointer(&shared[0])), int64(ahead))
	if err := syscall.Munmap(shared); err != nil {
		return errclass.Environmentf("set a server's clock: unmap %s: %w", file, err)
	}
	return nil
}

// reserve makes a new file long enough, with real bytes: a hole on a full disk
// would kill whoever writes to it through memory.
func reserve(f *os.File) error {
	state, err := f.Stat()
	if err != nil || state.Size() >= offsetSize {
		return err
	}
	_, err = f.Write(make([]byte, offsetSize))
	return err
}

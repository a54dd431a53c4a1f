// Package preload compiles small C libraries that are preloaded into programs (LD_PRELOAD).
package preload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"oversell/internal/errclass"
)

// Library returns the path of the library with this C source. It is compiled once and kept in the user's cache, under
// name and a hash of the source; concurrent programs each put a finished file into place. what names the library's
// purpose in errors. Errors are of class errclass.ErrEnvironment.
func Library(ctx context.Context, name, what string, source []byte) (string, error) {
	dir, err := cache()
	if err != nil {
		return "", errclass.Environmentf("find a place for %s: %w", what, err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%x.so", name, sha256.Sum256(source)))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := compile(ctx, name, path, source); err != nil {
		return "", errclass.Environmentf("compile %s: %w", what, err)
	}
	return path, nil
}

// cache returns a directory in the user's cache or, if there is none, in the directory for temporary files. Everyone may
// write to the latter, and these files are loaded into programs: so only we may own the directory.
func cache() (string, error) {
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
		return "", fmt.Errorf("%s is not a directory that only we can write to", dir)
	}
	return dir, nil
}

func compile(ctx context.Context, name, path string, source []byte) error {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return errors.New("no C compiler was found on PATH (cc): install one, as gcc")
	}
	unfinished, err := os.CreateTemp(filepath.Dir(path), name+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", unfinished.Name(), "-ldl", "-lpthread")
	cmd.Stdin = bytes.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
		return fmt.Errorf("%s: %w: %s", compiler, err, first)
	}
	return os.Rename(unfinished.Name(), path)
}

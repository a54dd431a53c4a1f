//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package workdir makes directories that do not outlive their program for long: the next program removes the directories of a
// killed one.
package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is a directory for the files of one target's servers, or of a database. It lies in one that
// belongs to this user's targets:
//
//	oversell-1000/lock        held while directories are made and swept
//	oversell-1000/123456/lock held as long as the program lives that made it
//
// The locks are the kernel's and end with their program, however it ends. So a directory is a leftover if and only if its
// lock is free.
type Dir struct {
	Path string
	lock *os.File
}

// New makes a directory, and removes those of programs that died without removing theirs.
func New() (*Dir, error) {
	root := filepath.Join(os.TempDir(), fmt.Sprintf("oversell-%d", os.Getuid()))
	if err := ownDirectory(root); err != nil {
		return nil, err
	}
	all, err := lockFile(filepath.Join(root, "lock"), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	sweepWorkDirs(root)
	path, err := os.MkdirTemp(root, "")
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(path, "lock"), syscall.LOCK_EX)
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, err
	}
	return &Dir{Path: path, lock: lock}, nil
}

// ownDirectory makes a directory that only we own, or checks that we do: in a directory that everyone may write to, another
// user could have put a directory or a link there.
func ownDirectory(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	state, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, ok := state.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Getuid() || state.Mode() != fs.ModeDir|0o700 {
		return fmt.Errorf("%s is not a directory that belongs to us alone: remove it, or set TMPDIR to another place", path)
	}
	return nil
}

// sweepWorkDirs removes the directories of programs that have ended. What it cannot remove is left for the next time.
func sweepWorkDirs(root string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := filepath.Join(root, e.Name())
		lock, err := lockFile(filepath.Join(dir, "lock"), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			continue // its program lives
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

// lockFile opens a file and locks it until the file is closed. No child inherits
// it, because Go marks its files so.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if err != syscall.EINTR {
			_ = f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
	}
}

// Remove removes the directory and gives up the lock, in this order.
func (w *Dir) Remove() {
	_ = os.RemoveAll(w.Path)
	_ = w.lock.Close()
}

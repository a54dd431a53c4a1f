//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

// Package workdir makes directories that do not outlive their program for long.
package workdir

import "os"

// Dir is a directory for the files of one target's servers, or of a database. Without locks that end with their program,
// leftovers cannot be distinguished from directories in use, so they are not removed.
type Dir struct{ Path string }

// New makes a directory.
func New() (*Dir, error) {
	path, err := os.MkdirTemp("", "oversell-")
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path}, nil
}

// Remove removes the directory.
func (w *Dir) Remove() { _ = os.RemoveAll(w.Path) }

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

// Package workdir makes folders that do not outlive their program for long.
package workdir

import "os"

// Dir is a folder for the files of one target's servers, or of a database. Without locks that end with their program,
// leftovers cannot be distinguished from folders in use, so they are not removed.
type Dir struct{ Path string }

// New makes a folder.
func New() (*Dir, error) {
	path, err := os.MkdirTemp("", "oversell-")
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path}, nil
}

// Remove removes the folder.
func (w *Dir) Remove() { _ = os.RemoveAll(w.Path) }

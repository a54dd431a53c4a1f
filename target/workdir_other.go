//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package target

import "os"

// workDir is a folder for the files of one target's servers. Without locks that
// end with their program, leftovers cannot be told from folders in use: they stay.
type workDir struct{ path string }

func newWorkDir() (*workDir, error) {
	path, err := os.MkdirTemp("", "oversell-")
	if err != nil {
		return nil, err
	}
	return &workDir{path: path}, nil
}

func (w *workDir) remove() { _ = os.RemoveAll(w.path) }

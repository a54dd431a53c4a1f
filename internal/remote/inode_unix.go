//go:build unix

package remote

import (
	"os"
	"syscall"
)

// inode returns the number of a file, by which the library in a program identifies it.
func inode(f *os.File) (int64, error) {
	state, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return int64(state.Sys().(*syscall.Stat_t).Ino), nil
}

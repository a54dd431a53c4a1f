//go:build !unix

package remote

import (
	"errors"
	"os"
)

// inode is for systems that have the library.
func inode(*os.File) (int64, error) { return 0, errors.ErrUnsupported }

//go:build unix

package server

import (
	"math"
	"syscall"
)

// fileLimit returns how many files this process may have open, 0 if unknown. Go
// raises the soft limit to the hard limit when a program starts.
func fileLimit() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return 0
	}
	return int(l.Cur)
}

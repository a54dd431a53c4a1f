//go:build !unix

package server

// fileLimit returns how many files this process may have open, 0 if unknown.
func fileLimit() int { return 0 }

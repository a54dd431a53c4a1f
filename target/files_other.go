//go:build !unix

package target

// fileLimit is how many files this process may have open, 0 if unknown.
func fileLimit() int { return 0 }

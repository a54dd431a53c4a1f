//go:build !race

package golocks

// slow reports whether the race detector is on.
const slow = false

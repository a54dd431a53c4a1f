//go:build !race

package golocks

// slow says that the race detector is at work.
const slow = false

//go:build race

package thirdparty

// slow says that the race detector is at work.
const slow = true

//go:build race

package explore

// raced reports whether the race detector is on, which makes everything slow.
const raced = true

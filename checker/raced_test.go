//go:build race

package checker

// raced is true under the race detector, which makes everything slow.
const raced = true

//go:build race

package checker

// raced: the race detector makes everything slow.
const raced = true

//go:build race

package explore

// raced: the race detector makes everything slow.
const raced = true

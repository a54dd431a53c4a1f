//go:build !race

package checker

const raced = false

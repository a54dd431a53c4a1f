//go:build race

package redismodel

// raceDetector reports whether the race detector is on. It makes everything slow, so tests take fewer steps. Only
// TestGoroutinesShareAState has races that it could find.
const raceDetector = true

//go:build race

package redismodel

// raceDetector slows everything down, so there are fewer steps. What it can find is in
// TestGoroutinesShareAState.
const raceDetector = true

//go:build !race

package redismodel

const raceDetector = false

//go:build !linux

package load

import "time"

// reduceTimerSlack does nothing: timers here have no slack to set.
func reduceTimerSlack() {}

// doze sleeps for d.
func doze(d time.Duration) { time.Sleep(d) }

//go:build !linux

package load

import "time"

// finely does nothing: timers here have no slack to set.
func finely() {}

// doze sleeps for d.
func doze(d time.Duration) { time.Sleep(d) }

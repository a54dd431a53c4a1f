//go:build !linux

package load

import "time"

// finely does nothing where timers are as fine as they get.
func finely() {}

// doze sleeps for d.
func doze(d time.Duration) { time.Sleep(d) }

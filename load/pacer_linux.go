package load

import (
	"syscall"
	"time"
)

// setTimerSlack is the prctl option that sets how late the kernel may wake a thread; the default is 50 µs.
const setTimerSlack = 29

// reduceTimerSlack makes this thread wake within a microsecond, if the kernel allows it.
func reduceTimerSlack() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1000, 0) }

// doze sleeps on this thread for at most d.
func doze(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal ends it early
}

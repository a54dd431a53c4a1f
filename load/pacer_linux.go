package load

import (
	"syscall"
	"time"
)

// setTimerSlack is the option of prctl by which a thread says how late the kernel may wake it,
// which is 50 µs otherwise.
const setTimerSlack = 29

// finely has this thread wake within a microsecond, if the kernel allows it.
func finely() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1000, 0) }

// doze sleeps on this thread, for d or less.
func doze(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal ends it early
}

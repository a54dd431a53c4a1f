//go:build unix

package guard

import (
	"os"
	"os/signal"
	"syscall"
)

// apart: a session of its own keeps the terminal's signals from the guard, and no
// signal comes when its parent dies.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals makes only the end of the pipe, the end of patience and SIGKILL end a guard.
func ignoreSignals() {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

package target

import "syscall"

// childAttributes: the kernel kills the child when the thread that started it
// ends, and a process group of its own keeps the terminal's signals from it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

package databasetest

import "syscall"

// attributes: the kernel kills the child when the thread that started it ends,
// and a process group of its own keeps the terminal's signals from it.
func attributes(as account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Credential: credential(as)}
}

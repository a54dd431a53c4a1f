//go:build unix && !linux

package target

import "syscall"

// childAttributes: a process group of its own keeps the terminal's signals from
// the child. Here a child outlives a parent that is killed with SIGKILL; only
// Linux offers a remedy.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

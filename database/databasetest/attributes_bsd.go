//go:build unix && !linux

package databasetest

import "syscall"

// attributes: here a child outlives a parent that is killed with SIGKILL; only
// Linux offers a remedy.
func attributes(as account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: credential(as)}
}

//go:build unix

package databasetest

import (
	"os/exec"
	"syscall"
)

// runAs makes a command run under an account.
func runAs(cmd *exec.Cmd, as account) {
	if as.other {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}}
	}
}

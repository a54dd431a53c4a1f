//go:build unix && !linux

package child

import (
	"os/exec"
	"syscall"
)

// tie gives the child a process group of its own. Here a child outlives a parent that is killed with SIGKILL; only
// Linux can prevent that.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

package child

import (
	"os/exec"
	"syscall"
)

// tie makes the kernel kill the child when the thread that started it ends, and gives it a process group of its own. It
// keeps other attributes of the command.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
}

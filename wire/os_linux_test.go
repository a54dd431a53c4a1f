package wire

import (
	"errors"
	"os/exec"
	"syscall"
)

// diesWithParent lets nothing outlive a test that is killed.
func diesWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// isReset says that a connection ended with a TCP reset.
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

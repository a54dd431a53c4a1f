//go:build unix

package gate

import (
	"os"
	"syscall"
)

// apart has a program lead a group of its own, so that all it starts can be ended with
// it, and so that a Ctrl-C on the terminal reaches it through us only.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// interrupt asks a program and all it has started to end, and end makes them.
func interrupt(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGINT) }

func end(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }

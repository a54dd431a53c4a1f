//go:build !unix

package gate

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return nil }

// interrupt and end both kill: there are no groups to speak of here.
func interrupt(p *os.Process) error { return p.Kill() }

func end(p *os.Process) { p.Kill() }

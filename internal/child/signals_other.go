//go:build !unix

package child

import (
	"errors"
	"os"
)

var errNoFreeze = errors.New("this system cannot stop a process and let it go on")

// Freeze returns an error.
func (p *Process) Freeze() error { return errNoFreeze }

// Thaw returns an error.
func (p *Process) Thaw() error { return errNoFreeze }

// interruptGroup, endGroup and killGroup kill the process: there are no groups here.
func interruptGroup(p *os.Process) error { return p.Kill() }

func endGroup(p *os.Process) error { return p.Kill() }

func killGroup(p *os.Process) { _ = p.Kill() }

//go:build !unix

package guard

import (
	"os"
	"os/signal"
	"syscall"
)

// apart: a plain start; here a child outlives its parent.
func apart() *syscall.SysProcAttr { return nil }

func ignoreSignals() { signal.Ignore(os.Interrupt) }

package wire

import (
	"errors"
	"syscall"
)

// isReset reports whether err says that a connection ended with a TCP reset.
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

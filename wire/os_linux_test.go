package wire

import (
	"errors"
	"syscall"
)

// isReset says that a connection ended with a TCP reset.
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

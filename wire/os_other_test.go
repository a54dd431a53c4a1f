//go:build !linux

package wire

import (
	"strings"
)

// isReset reports whether err says that a connection ended with a TCP reset.
func isReset(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "reset") || strings.Contains(err.Error(), "forcibly closed"))
}

//go:build !linux

package wire

import (
	"os/exec"
	"strings"
)

// diesWithParent does nothing here: only Linux can do that.
func diesWithParent(*exec.Cmd) {}

// isReset says that a connection ended with a TCP reset.
func isReset(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "reset") || strings.Contains(err.Error(), "forcibly closed"))
}

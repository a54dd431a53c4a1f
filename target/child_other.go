//go:build !unix

package target

import "syscall"

// childAttributes: a plain start. A child outlives a parent that is killed.
func childAttributes() *syscall.SysProcAttr { return nil }

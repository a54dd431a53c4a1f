//go:build !unix

package databasetest

import "syscall"

// attributes: a plain start, as ourselves.
func attributes(account) *syscall.SysProcAttr { return nil }

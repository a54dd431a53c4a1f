//go:build !unix

package databasetest

import "os/exec"

// runAs does nothing: here servers run as ourselves.
func runAs(*exec.Cmd, account) {}

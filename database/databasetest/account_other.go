//go:build !unix

package databasetest

import "os/exec"

// runAs does nothing: here servers run under the current account.
func runAs(*exec.Cmd, account) {}

//go:build unix

package databasetest

import "syscall"

func credential(as account) *syscall.Credential {
	if !as.other {
		return nil
	}
	return &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
}

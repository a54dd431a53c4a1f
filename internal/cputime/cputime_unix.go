//go:build unix

// Package cputime tells benchmarks how much processor time was used.
package cputime

import (
	"syscall"
	"time"
)

// Own returns the processor time that this process has used.
func Own() time.Duration { return of(syscall.RUSAGE_SELF) }

// Children returns the processor time that child processes used that have ended and were waited for.
func Children() time.Duration { return of(syscall.RUSAGE_CHILDREN) }

func of(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic(err) // who is wrong
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

//go:build !linux

package hugepages

func memory[T any]([]T) (from, bytes uintptr) { return 0, 0 }

func advise(from, bytes uintptr) {}

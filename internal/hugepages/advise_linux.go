package hugepages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is the size of a large page on the processors that releases are built for.
const page = 2 << 20

func memory[T any](s []T) (from, bytes uintptr) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s)) * unsafe.Sizeof(*new(T))
}

// advise widens the range to whole pages, since programs get memory in larger pieces.
func advise(from, bytes uintptr) {
	first := from &^ (page - 1)
	end := (from + bytes + page - 1) &^ (page - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, first, end-first, unix.MADV_HUGEPAGE) // a refusal is not an error
}

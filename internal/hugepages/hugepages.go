// Package hugepages asks the system for large pages, which make reading a large table at random cheaper:
// a processor keeps the addresses of only a few thousand pages at hand.
package hugepages

// Least is the size in bytes from which on a table is worth asking for.
const Least = 64 << 10

// Advise asks for large pages where s lies. Memory beside it that shares such a page is in the same
// request. On systems that have no such request, and where it is refused, nothing happens.
func Advise[T any](s []T) { advise(memory(s)) }

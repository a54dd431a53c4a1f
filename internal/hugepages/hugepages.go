// Package hugepages asks the system for large pages, which make random reads of a large table cheaper: a processor
// caches the addresses of only a few thousand pages.
package hugepages

// Least is the least size in bytes of a table for which asking is useful.
const Least = 64 << 10

// Advise asks for large pages for s, and for adjacent memory that shares such a page. On systems without such a
// request, or if it is refused, nothing happens.
func Advise[T any](s []T) { advise(memory(s)) }

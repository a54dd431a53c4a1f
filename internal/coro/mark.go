package coro

import (
	"errors"
	"runtime/debug"
)

// ErrAlone is the error for goroutines that a client started by itself.
var ErrAlone = errors.New("the program starts goroutines of its own, which cannot be parked: it must use Env.Go")

// Crashed is the value with which a coroutine of a dead client panics at every use of its Env. So deferred functions
// run and change nothing, and a program that recovers panics again at its next step.
type Crashed struct{}

// Mark marks the calling goroutine as a coroutine. The mark is a harmless setting of each goroutine that is not
// inherited; reading the stack would take a thousand times as long.
func Mark() { debug.SetPanicOnFault(true) }

// Marked reports whether the calling goroutine is a coroutine.
func Marked() bool {
	if debug.SetPanicOnFault(true) {
		return true
	}
	debug.SetPanicOnFault(false)
	return false
}

// Package closed tells whether a channel that says no more than that something is over is closed.
package closed

// Is reports whether ch, on which nothing is ever sent, is closed. A nil channel is not.
func Is(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

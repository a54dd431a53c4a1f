// Package closed reports whether a channel that only signals the end of something is closed.
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

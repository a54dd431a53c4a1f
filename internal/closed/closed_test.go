package closed

import "testing"

func TestIs(t *testing.T) {
	ch := make(chan struct{})
	if Is(nil) || Is(ch) {
		t.Error("a channel that is open, or is none, counts as closed")
	}
	close(ch)
	if !Is(ch) {
		t.Error("a closed channel does not count as closed")
	}
}

package wire

import "sync/atomic"

// gate holds bytes back. Its zero value is open. Passing an open gate costs one
// atomic load: a read of requests passes one gate, a write of replies two.
type gate struct {
	shut atomic.Pointer[chan struct{}]
}

// close shuts the gate, and does nothing to one that is shut already.
func (g *gate) close() {
	opened := make(chan struct{})
	g.shut.CompareAndSwap(nil, &opened)
}

// open lets everything go that waits.
func (g *gate) open() {
	if opened := g.shut.Swap(nil); opened != nil {
		close(*opened)
	}
}

func (g *gate) isShut() bool { return g.shut.Load() != nil }

// pass waits until the gate is open. It reports false if gone is closed first.
func (g *gate) pass(gone <-chan struct{}) bool {
	for {
		opened := g.shut.Load()
		if opened == nil {
			return true
		}
		select {
		case <-*opened:
		case <-gone:
			return false
		}
	}
}

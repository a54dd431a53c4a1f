package history

import "sync/atomic"

// chunkSize chooses between the two sizes of chunk. Small chunks keep thousands of clients with a few
// operations between two sweeps cheap; large ones save fetches for a few busy clients.
type chunkSize uint8

const (
	small chunkSize = iota
	large
	chunkSizes
)

// chunkOps is the number of operations in a chunk of each size.
var chunkOps = [chunkSizes]int{small: 16, large: 128}

// chunk is a link of a recorder's queue. The client fills ops from the front; the sweep reads the published ones. When
// it is full, the client goes on to next and does not use it again.
type chunk struct {
	size      chunkSize
	ops       []Op
	published atomic.Uint32
	swept     atomic.Bool // the sweep has taken some
	next      atomic.Pointer[chunk]
}

func newChunk(s chunkSize) *chunk {
	return &chunk{size: s, ops: make([]Op, chunkOps[s])}
}

// reset empties a chunk; it must not be in use.
func (c *chunk) reset() {
	c.published.Store(0)
	c.swept.Store(false)
	c.next.Store(nil)
}

// Package numset holds sets of numbers that are mostly consecutive.
package numset

// Set is a set of mostly consecutive numbers: a full range of 32,768 takes almost no memory. The zero value is empty.
type Set struct {
	chunks map[int64]*chunkOf
	last   *chunkOf
	number int64 // of last
}

const (
	chunkBits  = 15
	mostChunks = 1 << 13 // complete or not; 32 MB if none is complete
)

type chunkOf struct {
	count int
	words *[1 << (chunkBits - 6)]uint64 // nil: all of them
}

func (b *Set) chunk(n int64) *chunkOf {
	number := n >> chunkBits
	if b.last == nil || b.number != number {
		b.last, b.number = b.chunks[number], number
	}
	return b.last
}

// Has reports whether a number is in the set.
func (b *Set) Has(n int64) bool {
	c := b.chunk(n)
	return c != nil && (c.words == nil || c.words[n>>6&(1<<(chunkBits-6)-1)]>>(n&63)&1 != 0)
}

// Add adds a number. It returns false if the numbers are so far apart that the set has become too large.
func (b *Set) Add(n int64) bool {
	c := b.chunk(n)
	if c == nil {
		if b.chunks == nil {
			b.chunks = map[int64]*chunkOf{}
		}
		c = &chunkOf{words: new([1 << (chunkBits - 6)]uint64)}
		b.chunks[n>>chunkBits], b.last = c, c
	}
	if b.Has(n) {
		return true
	}
	c.words[n>>6&(1<<(chunkBits-6)-1)] |= 1 << (n & 63)
	if c.count++; c.count == 1<<chunkBits {
		c.words = nil
	}
	return len(b.chunks) <= mostChunks
}

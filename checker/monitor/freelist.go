package monitor

// FreeList is a free list shared by all keys: with many keys, only a few are busy at a
// time.
type FreeList[T any] struct{ free []*T }

// Take returns a T, with its contents as it was given back.
func (p *FreeList[T]) Take() *T {
	n := len(p.free)
	if n == 0 {
		return new(T)
	}
	t := p.free[n-1]
	p.free = p.free[:n-1]
	return t
}

// Give gives a T back, to be taken again.
func (p *FreeList[T]) Give(t *T) { p.free = append(p.free, t) }

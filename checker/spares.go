package checker

// spares hold what is used again, for all keys together: with many keys few are busy at a
// time.
type spares[T any] struct{ free []*T }

// take returns a T, with what it held when it was given back.
func (p *spares[T]) take() *T {
	n := len(p.free)
	if n == 0 {
		return new(T)
	}
	t := p.free[n-1]
	p.free = p.free[:n-1]
	return t
}

func (p *spares[T]) give(t *T) { p.free = append(p.free, t) }

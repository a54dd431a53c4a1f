package names

// Perm renames clients: client i becomes the i-th entry.
type Perm [MaxSlots]uint8

// MaxSlots is how many clients a search can have.
const MaxSlots = 6

// Same changes no client's number.
var Same = Perm{0, 1, 2, 3, 4, 5}

// Of returns the new number of client i; numbers outside of the search do not change.
func (p Perm) Of(i int) int {
	if i < 0 || i >= len(p) {
		return i
	}
	return int(p[i])
}

// Rename replaces the clients' numbers in names.
func (p Perm) Rename(text string) string {
	return rename(text, func(c byte) byte {
		if i := int(c - '0'); i < len(p) {
			return '0' + p[i]
		}
		return c
	})
}

// After returns the perm that does first q and then p.
func (p Perm) After(q Perm) (r Perm) {
	for i := range r {
		r[i] = p[q[i]]
	}
	return r
}

// Inverse returns the perm that undoes p.
func (p Perm) Inverse() (r Perm) {
	for i, to := range p {
		r[to] = uint8(i)
	}
	return r
}

// Word returns the perm as one word.
func (p Perm) Word() (w uint64) {
	for _, x := range p {
		w = w<<8 | uint64(x)
	}
	return w
}

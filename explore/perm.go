package explore

// perm says which client each client is called instead: client i becomes the
// i-th entry.
type perm [maxSlots]uint8

// maxSlots is how many clients a search can have.
const maxSlots = 6

// same leaves everybody's number as it is.
var same = perm{0, 1, 2, 3, 4, 5}

// of is the new number of client i; steps that are made by nobody in the search keep theirs.
func (p perm) of(i int) int {
	if i < 0 || i >= len(p) {
		return i
	}
	return int(p[i])
}

// rename replaces the clients' numbers in names.
func (p perm) rename(text string) string {
	return rename(text, func(c byte) byte {
		if i := int(c - '0'); i < len(p) {
			return '0' + p[i]
		}
		return c
	})
}

// after is the perm that does first q and then p.
func (p perm) after(q perm) (r perm) {
	for i := range r {
		r[i] = p[q[i]]
	}
	return r
}

func (p perm) inverse() (r perm) {
	for i, to := range p {
		r[to] = uint8(i)
	}
	return r
}

// word is the perm as one word.
func (p perm) word() (w uint64) {
	for _, x := range p {
		w = w<<8 | uint64(x)
	}
	return w
}

package history

import (
	"slices"
	"time"
)

// A mark tells of consecutive frames of operations what a reader in completion order must know before it has read the frames
// that follow. The trailer of a file has the marks of all frames.
type mark struct {
	ops int // in these frames
	// called and returned are the earliest call and return of these operations and, in a file, of all that follow.
	called, returned time.Duration
}

// mostMarks is the most that a trailer has: a longer history has marks of more operations.
const mostMarks = 4096

// marker makes the marks of a file that is being written. Its memory is bounded.
type marker struct {
	marks []mark
	least int // operations of a mark, except the last one
	most  int // marks
}

func newMarker() marker { return marker{least: blockOps, most: mostMarks} }

// add adds the operations of a frame.
func (m *marker) add(ops []Op) {
	n := len(m.marks)
	if n > 0 && m.marks[n-1].ops < m.least {
		n--
	} else {
		if n == m.most {
			m.halve()
			n = len(m.marks)
		}
		m.marks = append(m.marks, mark{0, Forever, Forever})
	}
	last := &m.marks[n]
	last.ops += len(ops)
	for i := range ops {
		last.called, last.returned = min(last.called, ops[i].Call), min(last.returned, ops[i].Return)
	}
}

// halve joins every two marks.
func (m *marker) halve() {
	for i := range m.marks {
		if one := m.marks[i]; i%2 == 0 {
			m.marks[i/2] = one
		} else {
			m.marks[i/2] = mark{m.marks[i/2].ops + one.ops, min(m.marks[i/2].called, one.called), min(m.marks[i/2].returned, one.returned)}
		}
	}
	m.marks, m.least = m.marks[:(len(m.marks)+1)/2], 2*m.least
}

// numbers returns the marks as in a trailer: three numbers for each.
func (m *marker) numbers() []int64 {
	all := make([]int64, 0, 3*len(m.marks))
	called, returned := Forever, Forever
	for _, one := range slices.Backward(m.marks) {
		called, returned = min(called, one.called), min(returned, one.returned)
		all = append(all, int64(returned), int64(called), int64(one.ops))
	}
	slices.Reverse(all)
	return all
}

// marksOf is the inverse of numbers. It returns nil for numbers that cannot be those of so many operations.
func marksOf(numbers []int64, ops int) (marks []mark) {
	for len(numbers) >= 3 {
		m := mark{int(numbers[0]), time.Duration(numbers[1]), time.Duration(numbers[2])}
		if m.ops <= 0 || m.ops > ops {
			return nil
		}
		if n := len(marks); n > 0 && (m.called < marks[n-1].called || m.returned < marks[n-1].returned) {
			return nil
		}
		ops -= m.ops
		marks, numbers = append(marks, m), numbers[3:]
	}
	if len(numbers) > 0 || ops != 0 {
		return nil
	}
	return marks
}

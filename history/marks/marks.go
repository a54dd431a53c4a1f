// Package marks lets a program read a history file in completion order in one pass.
//
// A file has its operations in the order in which they were recorded. A reader may pass an operation on only if no operation
// further on in the file returned earlier. Marks, which are in the trailer, tell it the earliest return of all that follows.
package marks

import (
	"slices"
	"time"
)

// A Mark describes a group of consecutive operations of a file.
type Mark struct {
	Ops int // number of operations
	// Called and Returned are the earliest call and return of these operations and, in a file, of all that follow.
	Called, Returned time.Duration
}

// Marker makes the marks of a file while it is written. It keeps at most Most marks, so that its memory is bounded: when there
// would be more, it joins neighbours, and from then on groups have twice as many operations.
type Marker struct {
	Least int // operations in a group, except the last group
	Most  int // groups

	marks []Mark
}

// Add adds the next operations of the file, with the earliest call and return among them.
func (m *Marker) Add(next Mark) {
	n := len(m.marks)
	switch {
	case n > 0 && m.marks[n-1].Ops < m.Least:
		m.marks[n-1] = m.marks[n-1].and(next)
	case n >= m.Most:
		m.halve()
		m.Add(next)
	default:
		m.marks = append(m.marks, next)
	}
}

// and returns the mark of both groups together.
func (m Mark) and(o Mark) Mark {
	return Mark{m.Ops + o.Ops, min(m.Called, o.Called), min(m.Returned, o.Returned)}
}

// halve joins each two neighbouring marks.
func (m *Marker) halve() {
	for i, one := range m.marks {
		if i%2 == 1 {
			one = m.marks[i/2].and(one)
		}
		m.marks[i/2] = one
	}
	m.marks, m.Least = m.marks[:(len(m.marks)+1)/2], 2*m.Least
}

// Numbers returns the marks as the trailer has them: Ops, Called and Returned of each, where Called and Returned include all
// operations that follow.
func (m *Marker) Numbers() []int64 {
	all := make([]int64, 0, 3*len(m.marks))
	var from Mark
	for i, one := range slices.Backward(m.marks) {
		if i < len(m.marks)-1 {
			one.Called, one.Returned = min(one.Called, from.Called), min(one.Returned, from.Returned)
		}
		from = one
		all = append(all, int64(one.Returned), int64(one.Called), int64(one.Ops))
	}
	slices.Reverse(all)
	return all
}

// Of is the inverse of Numbers. It returns nil if the numbers cannot be the marks of a file with ops operations.
func Of(numbers []int64, ops int) (marks []Mark) {
	for len(numbers) >= 3 {
		m := Mark{int(numbers[0]), time.Duration(numbers[1]), time.Duration(numbers[2])}
		if m.Ops <= 0 || m.Ops > ops {
			return nil
		}
		if n := len(marks); n > 0 && (m.Called < marks[n-1].Called || m.Returned < marks[n-1].Returned) {
			return nil
		}
		ops -= m.Ops
		marks, numbers = append(marks, m), numbers[3:]
	}
	if len(numbers) > 0 || ops != 0 {
		return nil
	}
	return marks
}

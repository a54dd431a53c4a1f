package names

import (
	"fmt"
	"slices"
	"sync"
)

// Seen holds values that runs of a program have drawn at random. A run is shown some of them as those of other clients:
// they look like its own, and their order relative to its own differs from run to run. It is safe for concurrent use.
type Seen struct {
	mu     sync.Mutex
	values map[int][]string // by the length of their canonical names
	next   int

	drawn    map[string][]int // of the first draws, the different values, each with the runs that drew it and what they were shown of others
	runs     int
	repeated int // how many draws repeated an earlier value
	derived  int // how many repeated a value that was shown to a run with the same values before
}

// mostSeen is how many values of one length are kept.
const mostSeen = 64

// Among as many draws, values of 32 random bits repeat once in 500 searches, and those out of a million
// repeat 8 times: several repeats mean that two clients can draw the same.
const (
	counted    = 4096
	mostRepeat = 2
)

// few returns an error once a program has repeated values because it draws from too few to be names.
func (s *Seen) few() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.derived >= mostRepeat {
		return fmt.Errorf("%w: it computes values from those that others have drawn", ErrNotOpaque)
	}
	if s.repeated < mostRepeat {
		return nil
	}
	return fmt.Errorf("%w: it draws its random values from too few: of %d, %d were drawn before", ErrChance, len(s.drawn)+s.repeated, s.repeated)
}

// add notes a value that the run of a book has drawn.
func (s *Seen) add(canonical, actual string, by *Dictionary) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn == nil {
		s.drawn = map[string][]int{}
	}
	if by.run == 0 {
		s.runs++
		by.run = s.runs
	}
	var from []int
	for _, v := range by.shown {
		from = append(from, s.drawn[v]...)
	}
	before, known := s.drawn[actual]
	switch {
	case len(s.drawn)+s.repeated+s.derived >= counted:
	case !known:
		s.drawn[actual] = append(from, by.run)
	case isUUID(actual): // new by its definition
	case slices.ContainsFunc(from, func(run int) bool { return slices.Contains(before, run) }):
		s.derived++ // like a hash of what it was shown
	default:
		s.repeated++
	}
	if s.values == nil {
		s.values = map[int][]string{}
	}
	if all := s.values[len(canonical)]; len(all) < mostSeen {
		s.values[len(canonical)] = append(all, actual)
	}
}

// take returns a value for a name that differs from all values in use; empty: there is none.
func (s *Seen) take(canonical string, used []spelling) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.values[len(canonical)]
	for range all {
		s.next++
		v := all[s.next%len(all)]
		if !slices.ContainsFunc(used, func(u spelling) bool { return u.actual == v }) {
			return v
		}
	}
	return ""
}

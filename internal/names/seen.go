package names

import (
	"slices"
	"sync"
)

// Seen are values that runs of a program have drawn at random. A run is shown some of
// them as those of other clients: they look like its own, and their order to its own
// differs from run to run. It is safe for concurrent use.
type Seen struct {
	mu     sync.Mutex
	values map[int][]string // by the length of their canonical names
	next   int
}

// mostSeen is how many values of one length are kept.
const mostSeen = 64

func (s *Seen) add(canonical, actual string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[int][]string{}
	}
	if all := s.values[len(canonical)]; len(all) < mostSeen {
		s.values[len(canonical)] = append(all, actual)
	}
}

// take is a value for a name, which none of those in use is; empty: there is none.
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

package names

import (
	"fmt"
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

	drawn    map[string]bool // of the first draws, the different values
	repeated int             // how many of them were there before
}

// mostSeen is how many values of one length are kept.
const mostSeen = 64

// Among as many draws, values of 32 random bits repeat once in 500 searches, and those out of a million
// repeat 8 times: several repeats mean that two clients can draw the same.
const (
	counted    = 4096
	mostRepeat = 2
)

// few is an error once a program has drawn the same values again, out of too few to be names.
func (s *Seen) few() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repeated < mostRepeat {
		return nil
	}
	return fmt.Errorf("%w: it draws its random values from too few: of %d, %d were drawn before", ErrChance, len(s.drawn)+s.repeated, s.repeated)
}

func (s *Seen) add(canonical, actual string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn == nil {
		s.drawn = map[string]bool{}
	}
	switch {
	case len(s.drawn)+s.repeated >= counted || uuids.MatchString(actual): // a UUID is new by its definition
	case s.drawn[actual]:
		s.repeated++
	default:
		s.drawn[actual] = true
	}
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

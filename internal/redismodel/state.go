package redismodel

import (
	"cmp"
	"slices"
	"time"
)

// State is the data of one server: its keys, and the keys that connections watch. It is immutable,
// and safe for concurrent use: a command that writes returns another State. The loaded scripts
// are an exception: all states made from one [Empty] share them, and loading a script changes them all.
type State struct {
	family  *family
	entries []entry // by key
	watches []watch // by connection
}

// entry is one key. A key that expires is gone when left is zero.
type entry struct {
	key  string
	left int64 // microseconds, noExpiry for ever
	val  value
}

// noExpiry is the left of a key without an expiry.
const noExpiry = -1

// watch holds the keys watched by a connection since its last EXEC or UNWATCH. Once a key was touched, only dirty
// matters.
type watch struct {
	conn  int
	dirty bool
	keys  []string // sorted
}

// value is the value of a key. It is never written to.
type value interface {
	// kind is the answer to TYPE.
	kind() string
	// later returns the value after some microseconds.
	later(us int64) value
	// renamed returns the value with f applied to all texts, and with its order restored.
	renamed(f func(string) string) value
	// appendKey writes the value so that different ones differ.
	appendKey(b []byte) []byte
	// appendText writes the value in readable form.
	appendText(b []byte) []byte
}

// Empty returns an empty server. States made from it share the texts of the scripts that the server knows, as EVALSHA
// needs them; these are not part of a state's Key.
func Empty() *State { return &State{family: newFamily()} }

// Load loads a script, as SCRIPT LOAD does, and returns its SHA-1. It is then loaded in all states
// made from the same [Empty].
func (s *State) Load(text string) string { return s.family.load(text) }

// Tick lets d pass: keys that expire meanwhile are gone, including a key whose expiry is exactly reached.
func (s *State) Tick(d time.Duration) *State {
	us := d.Microseconds()
	if us <= 0 {
		return s
	}
	x := exec{State: *s, ownEntries: true}
	x.entries = make([]entry, 0, len(s.entries))
	for _, e := range s.entries {
		if e.left >= 0 {
			if e.left -= us; e.left <= 0 {
				x.touch(e.key)
				continue
			}
		}
		e.val = e.val.later(us)
		x.entries = append(x.entries, e)
	}
	next := x.State
	return &next
}

// NextExpiry returns the time until the next key expires; false if none will.
func (s *State) NextExpiry() (time.Duration, bool) {
	least := int64(noExpiry)
	for _, e := range s.entries {
		if e.left >= 0 && (least < 0 || e.left < least) {
			least = e.left
		}
	}
	return time.Duration(least) * time.Microsecond, least >= 0
}

// Keys returns the names of all keys, sorted.
func (s *State) Keys() []string {
	keys := make([]string, len(s.entries))
	for i := range s.entries {
		keys[i] = s.entries[i].key
	}
	return keys
}

// Expiries appends the times until keys expire, in no order.
func (s *State) Expiries(to []time.Duration) []time.Duration {
	for _, e := range s.entries {
		if e.left >= 0 {
			to = append(to, time.Duration(e.left)*time.Microsecond)
		}
	}
	return to
}

// Reconnect moves the watched keys of connection from to connection to, which must watch none. If
// to is negative, connection from was closed, and its watch is removed.
func (s *State) Reconnect(from, to int) *State {
	i := slices.IndexFunc(s.watches, func(w watch) bool { return w.conn == from })
	if i < 0 {
		return s
	}
	next := *s
	moved := s.watches[i]
	next.watches = slices.Delete(slices.Clone(s.watches), i, i+1)
	if to >= 0 {
		moved.conn = to
		next.watches = append(next.watches, moved)
		slices.SortFunc(next.watches, func(a, b watch) int { return cmp.Compare(a.conn, b.conn) })
	}
	if len(next.watches) == 0 {
		next.watches = nil
	}
	return &next
}

// Map applies rename to every key, value, field and member, and conn to every
// connection that watches something. Both must be one-to-one. The result is
// canonical. Times, scores and the ids of stream entries do not change.
func (s *State) Map(rename func(string) string, conn func(int) int) *State {
	next := &State{family: s.family, entries: make([]entry, len(s.entries))}
	for i, e := range s.entries {
		next.entries[i] = entry{rename(e.key), e.left, e.val.renamed(rename)}
	}
	slices.SortFunc(next.entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	if len(s.watches) > 0 {
		next.watches = make([]watch, len(s.watches))
	}
	for i, w := range s.watches {
		next.watches[i] = watch{conn(w.conn), w.dirty, renamedTexts(w.keys, rename)}
		slices.Sort(next.watches[i].keys)
	}
	slices.SortFunc(next.watches, func(a, b watch) int { return cmp.Compare(a.conn, b.conn) })
	return next
}

func renamedTexts(texts []string, f func(string) string) []string {
	if texts == nil {
		return nil
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = f(t)
	}
	return out
}

// find returns the index of a key, or the index at which to insert it and false.
func find(entries []entry, key string) (int, bool) {
	for i := range entries {
		if entries[i].key >= key {
			return i, entries[i].key == key
		}
	}
	return len(entries), false
}

// Value returns the value of a string key, or a text for a value of another type; left is the time until it expires,
// negative for never.
func (s *State) Value(key string) (text string, left time.Duration, exists bool) {
	i, exists := find(s.entries, key)
	if !exists {
		return "", noExpiry, false
	}
	e := s.entries[i]
	left = noExpiry
	if e.left >= 0 {
		left = time.Duration(e.left) * time.Microsecond
	}
	if v, ok := e.val.(str); ok {
		return string(v), left, true
	}
	return string(e.val.appendText(nil)), left, true
}

// Ordered reports whether the stored data show an order of names: members of a sorted set with equal scores are ordered
// by name. apart reports whether the order of two names matters.
func (s *State) Ordered(apart func(a, b string) bool) bool {
	for i := range s.entries {
		z, _ := s.entries[i].val.(zset)
		for j := 1; j < len(z); j++ {
			if z[j-1].score == z[j].score && apart(z[j-1].name, z[j].name) {
				return true
			}
		}
	}
	return false
}

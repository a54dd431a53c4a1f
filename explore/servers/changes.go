package servers

import (
	"slices"

	"oversell/internal/redismodel"
)

// Changes returns the keys whose values differ between two states of the servers.
func (s *Servers) Changes(before, after uint32) (keys []string) {
	a, b := s.states.Get(before), s.states.Get(after)
	for node := range a {
		for _, key := range slices.Concat(a[node].Keys(), b[node].Keys()) {
			if Differ(a[node], b[node], key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// Differ reports whether there are differences under a key, its expiry included.
func Differ(a, b *redismodel.State, key string) bool {
	v, left, is := a.Value(key)
	w, left2, is2 := b.Value(key)
	return is != is2 || v != w || left != left2
}

// Expires reports whether a key has an expiry.
func (s *Servers) Expires(servers uint32, key string) bool {
	return slices.ContainsFunc(s.states.Get(servers), func(n *redismodel.State) bool {
		_, left, exists := n.Value(key)
		return exists && left >= 0
	})
}

// changesOthers reports whether a command may have changed another client's data under a lock's key.
func (s *Servers) changesOthers(before, after *redismodel.State, client int, expiring []string) bool {
	return slices.ContainsFunc(s.LockKeys, func(key string) bool {
		return s.changesOthersAt(before, after, key, client, slices.Contains(expiring, key))
	})
}

// changesOthersAt reports whether a command changed other clients' data under a lock's key, judged by its value; a search also
// compares how clients fare. In a value that several clients share, such as a wait line, only their own entries count.
// Setting the expiry counts even if it was the same before: at another time it would have been different.
func (s *Servers) changesOthersAt(before, after *redismodel.State, key string, client int, expiry bool) bool {
	if !expiry && !Differ(before, after, key) || s.ownedBy(before, key, client) {
		return false
	}
	v, _, _ := before.Value(key)
	w, _, _ := after.Value(key)
	return v == w || !s.keepsOthers(v, w, client)
}

// keepsOthers reports whether before has names of other clients, and after still has all of them.
func (s *Servers) keepsOthers(before, after string, client int) bool {
	left := map[string]int{}
	count := func(text string, by int) (n int) {
		for _, name := range s.Names.Found(text) {
			if name.Client != client {
				left[name.Name] += by
				n++
			}
		}
		return n
	}
	count(after, 1)
	if count(before, -1) == 0 {
		return false
	}
	for _, n := range left {
		if n < 0 {
			return false
		}
	}
	return true
}

// ownedBy reports whether the value of key names this client, or a dead token, and no other client.
func (s *Servers) ownedBy(on *redismodel.State, key string, client int) bool {
	v, _, _ := on.Value(key)
	owned := false
	for _, of := range s.Names.Owners(v) {
		if of != client && of != grave-'0' {
			return false
		}
		owned = true
	}
	return owned
}

package explore

import (
	"math/bits"
	"sync"
)

// interner numbers things that are equal by key. It is safe for concurrent use.
type interner[V any] struct {
	mu   sync.RWMutex
	ids  map[string]uint32
	list []V
}

func newInterner[V any]() *interner[V] { return &interner[V]{ids: map[string]uint32{}} }

// id is the number of the thing with this key, which make makes if it is new.
func (in *interner[V]) id(key string, make func() V) uint32 {
	in.mu.RLock()
	id, known := in.ids[key]
	in.mu.RUnlock()
	if known {
		return id
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if id, known := in.ids[key]; known {
		return id
	}
	id = uint32(len(in.list))
	in.ids[key] = id
	in.list = append(in.list, make())
	return id
}

// get is the thing with this number.
func (in *interner[V]) get(id uint32) V {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.list[id]
}

// memo remembers the results of a pure function for everybody. A worker looks in
// a [cache] of its own first.
type memo[K comparable, V any] struct {
	mu   sync.RWMutex
	all  map[K]V
	make func(K) V
}

func newMemo[K comparable, V any](make func(K) V) *memo[K, V] {
	return &memo[K, V]{all: map[K]V{}, make: make}
}

// get is the function's value. Two that ask at once may both compute it; all get
// the value that was stored first.
func (m *memo[K, V]) get(k K) V {
	m.mu.RLock()
	v, known := m.all[k]
	m.mu.RUnlock()
	if known {
		return v
	}
	v = m.make(k)
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, known := m.all[k]; known {
		return first
	}
	m.all[k] = v
	return v
}

// cache is one worker's view of a memo: a table in which each key has one place, and
// the last to come keeps it. It begins small and grows as keys take places from one
// another. It is not for concurrent use.
//
// Whoever asks passes the key's hash along: a type parameter's method cannot be inlined, and the
// caches are asked some ten times for each transition.
type cache[K hashed, V any] struct {
	places []entry[K, V]
	shift  int
	most   int // places, as a power of two
	taken  int // places that another key has taken since the table has grown
	from   *memo[K, V]
}

type entry[K comparable, V any] struct {
	key  K
	used bool
	v    V
}

// hashed is a key that says where in a table to look for it.
type hashed interface {
	comparable
	hash() uint64
}

// How many places a cache has at most, as a power of two: so many as are used in searches of
// millions of states, and no more than a processor keeps near. It begins with firstCache.
const (
	firstCache  = 6
	smallCache  = 11
	mediumCache = 15
	largeCache  = 17
)

func cached[K hashed, V any](m *memo[K, V], most int) cache[K, V] {
	return cache[K, V]{places: make([]entry[K, V], 1<<firstCache), shift: 64 - firstCache, most: most, from: m}
}

// get returns the value for a key with this hash. What it returns is valid until the next call.
func (c *cache[K, V]) get(k K, hash uint64) *V {
	e := &c.places[hash>>(c.shift&63)]
	if !e.used || e.key != k {
		e = c.learn(k, e)
	}
	return &e.v
}

// learn takes the value for a key from the memo. Its place is e.
func (c *cache[K, V]) learn(k K, e *entry[K, V]) *entry[K, V] {
	v := c.from.get(k)
	if e.used {
		e = c.take(k, e)
	}
	e.key, e.v, e.used = k, v, true
	return e
}

// take is the place for a key that another one has. If that has happened often there are more
// places.
func (c *cache[K, V]) take(k K, e *entry[K, V]) *entry[K, V] {
	if c.taken++; c.taken < len(c.places)/2 || c.shift <= 64-c.most {
		return e
	}
	old, bits := c.places, min(64-c.shift+2, c.most)
	c.taken, c.shift, c.places = 0, 64-bits, make([]entry[K, V], 1<<bits)
	for i := range old {
		if old[i].used {
			c.places[old[i].key.hash()>>c.shift] = old[i]
		}
	}
	return &c.places[k.hash()>>c.shift]
}

// spread mixes words into a hash whose upper bits are good.
func spread(a, b uint64) uint64 {
	return (a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b*0xc2b2ae3d27d4eb4f, 31)) * 0xd6e8feb86659fd93
}

func pair(hi, lo uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }

func (p perm) word() (w uint64) {
	for _, x := range p {
		w = w<<8 | uint64(x)
	}
	return w
}

func (k factsID) hash() uint64 { return spread(uint64(k), 2) }
func (k edge) hash() uint64 {
	return spread(pair(k.from, k.answer), uint64(k.now)<<16|uint64(k.looks)<<8|uint64(k.which))
}
func (k lookAt) hash() uint64 { return spread(uint64(k.from)<<8|uint64(k.which), uint64(k.now)) }
func (k judging) hash() uint64 {
	return spread(pair(k.facts, k.events), pair(k.now, uint32(k.role)<<8|uint32(k.client)))
}
func (k factsAt) hash() uint64          { return spread(pair(k.facts, k.now), 0) }
func (k callAt) hash() uint64           { return spread(pair(k.servers, k.call), uint64(k.now)) }
func (k tick) hash() uint64             { return spread(uint64(k.servers), uint64(k.by)) }
func (k serversID) hash() uint64        { return spread(uint64(k), 1) }
func (k inFlightChange) hash() uint64   { return spread(pair(k.list, uint32(k.add)), uint64(k.remove)) }
func (k ending) hash() uint64           { return spread(pair(k.servers, k.facts), uint64(k.now)) }
func (k renaming) hash() uint64         { return spread(uint64(k.servers), k.perm.word()) }
func (k factsRenaming) hash() uint64    { return spread(uint64(k.facts), k.perm.word()) }
func (k inFlightRenaming) hash() uint64 { return spread(uint64(k.inFlight), k.perm.word()) }
func (k burying) hash() uint64 {
	return spread(uint64(k.servers), perm(k.alive).word()^perm(k.drawn).word()<<16)
}

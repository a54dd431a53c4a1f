package table

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"oversell/internal/hugepages"
)

// Interner numbers values by key, from 0 in the order in which they come. It is safe for
// concurrent use.
type Interner[V any] struct {
	shards [internShards]internShard
	next   atomic.Uint32
	// chunks hold the values: the first 1<<firstChunk, then as many again, then twice as many, and so on. So values
	// never move and are read without a lock.
	chunks [33 - firstChunk]atomic.Pointer[[]V]
}

// internShard numbers the values whose keys have one hash.
type internShard struct {
	mu  sync.RWMutex
	ids map[string]uint32
}

const (
	internShards = 16
	firstChunk   = 6
)

// internSeed is shared, so that equal keys have one hash.
var internSeed = maphash.MakeSeed()

// NewInterner returns an empty interner.
func NewInterner[V any]() *Interner[V] { return &Interner[V]{} }

// ID returns the number of the value with this key; if it is new, make makes the value.
func (in *Interner[V]) ID(key string, make func() V) uint32 {
	s := &in.shards[maphash.String(internSeed, key)%internShards]
	s.mu.RLock()
	id, known := s.ids[key]
	s.mu.RUnlock()
	if known {
		return id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, known := s.ids[key]; known {
		return id
	}
	if s.ids == nil {
		s.ids = map[string]uint32{}
	}
	id = in.next.Add(1) - 1
	*in.place(id) = make()
	s.ids[key] = id
	return id
}

// Get returns the value with this number.
func (in *Interner[V]) Get(id uint32) V { return *in.place(id) }

// place returns the address of the value with this number.
func (in *Interner[V]) place(id uint32) *V {
	n, at := 0, id
	if id>>firstChunk > 0 {
		n = bits.Len32(id >> firstChunk)
		at -= 1 << (firstChunk + n - 1)
	}
	chunk := in.chunks[n].Load()
	if chunk == nil {
		fresh := make([]V, 1<<(firstChunk+max(n-1, 0)))
		in.chunks[n].CompareAndSwap(nil, &fresh)
		chunk = in.chunks[n].Load()
	}
	return &(*chunk)[at]
}

// Memo remembers the results of a pure function for all workers, in tables with open addressing. They are
// read without a lock: an entry never changes.
//
// The caller passes the key's hash: a type parameter's method cannot be inlined, and memos are asked some ten times for
// each transition.
type Memo[K Hashed, V any] struct {
	shards [memoShards]memoShard[K, V]
	make   func(K) V
}

const (
	memoShardBits = 4
	memoShards    = 1 << memoShardBits
	firstTable    = 2 // places, as a power of two
)

// memoShard holds the entries whose hashes begin alike. Adding an entry takes its lock.
type memoShard[K Hashed, V any] struct {
	table atomic.Pointer[table[K, V]]
	mu    sync.Mutex
	n     int
}

type table[K Hashed, V any] struct {
	places []entry[K, V]
	shift  uint8
}

type entry[K Hashed, V any] struct {
	used atomic.Bool // when it is true, the rest does not change
	key  K
	v    V
}

// NewMemo returns a memo of this function.
func NewMemo[K Hashed, V any](make func(K) V) *Memo[K, V] { return &Memo[K, V]{make: make} }

// Of returns the function's value.
func (m *Memo[K, V]) Of(k K) V { return *m.Get(k, k.Hash()) }

// Get returns the function's value for a key with this hash. Two callers at once may both compute it; all get the value
// that was stored first.
func (m *Memo[K, V]) Get(k K, hash uint64) *V {
	s := &m.shards[hash>>(64-memoShardBits)]
	if t := s.table.Load(); t != nil {
		if e, known := t.find(k, hash); known {
			return &e.v
		}
	}
	return s.learn(k, hash, m.make(k))
}

// find returns the entry of a key if it is known, and otherwise a free one for it. There always is one.
func (t *table[K, V]) find(k K, hash uint64) (e *entry[K, V], known bool) {
	mask := uint64(len(t.places) - 1)
	for i := hash << memoShardBits >> (t.shift & 63); ; i++ {
		e := &t.places[i&mask]
		if !e.used.Load() {
			return e, false
		}
		if e.key == k {
			return e, true
		}
	}
}

// learn stores the value of a key, unless it is known by now.
func (s *memoShard[K, V]) learn(k K, hash uint64, v V) *V {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if t == nil || 4*(s.n+1) > 3*len(t.places) {
		t = t.larger()
		s.table.Store(t)
	}
	e, known := t.find(k, hash)
	if !known {
		e.fill(k, v)
		s.n++
	}
	return &e.v
}

func (e *entry[K, V]) fill(k K, v V) {
	e.key, e.v = k, v
	e.used.Store(true)
}

// larger returns a table with the same entries and room for more.
func (t *table[K, V]) larger() *table[K, V] {
	size := firstTable
	if t != nil {
		size = 65 - int(t.shift)
	}
	next := &table[K, V]{places: make([]entry[K, V], 1<<size), shift: uint8(64 - size)}
	if uintptr(len(next.places))*unsafe.Sizeof(next.places[0]) >= hugepages.Least {
		hugepages.Advise(next.places)
	}
	if t == nil {
		return next
	}
	for i := range t.places {
		if e := &t.places[i]; e.used.Load() {
			place, _ := next.find(e.key, e.key.Hash())
			place.fill(e.key, e.v)
		}
	}
	return next
}

// Hashed is a key that says where in a table to look for it.
type Hashed interface {
	comparable
	Hash() uint64
}

// Spread mixes words into a hash with good upper bits.
func Spread(a, b uint64) uint64 {
	return (a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b*0xc2b2ae3d27d4eb4f, 31)) * 0xd6e8feb86659fd93
}

// Pair packs two numbers into one word.
func Pair(hi, lo uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }

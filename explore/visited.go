package explore

import (
	"math/bits"
	"sync"
)

// visited is every state that the search has come to: a fingerprint of 128 bits, and
// the way there, which is the state before and the action that led from it.
type visited struct {
	shards [shards]shard
}

const (
	shardBits = 6
	shards    = 1 << shardBits
	slabBits  = 12
	slab      = 1 << slabBits // how many states are added at a time
)

// stateID numbers a visited state: its shard, and its place there.
type stateID uint32

func (id stateID) shard() int { return int(id >> (32 - shardBits)) }
func (id stateID) at() uint32 { return uint32(id) & (1<<(32-shardBits) - 1) }

const noState = ^stateID(0)

type fingerprint struct{ hi, lo uint64 }

// way is how a state was first reached.
type way struct {
	from stateID
	by   action
	cost cost
}

type shard struct {
	mu    sync.Mutex
	table []uint64 // open addressing: a part of the fingerprint, and 1 + the place; 0 for free
	n     uint32
	fps   []*[slab]fingerprint
	ways  []*[slab]way
	layer uint32 // places from here on were reached in the present layer
}

// add notes a state. It reports its number, and whether it is new. A state that is
// reached again in the layer in which it was found keeps the cheaper way.
func (v *visited) add(f fingerprint, w way) (stateID, bool) {
	i := int(f.hi >> (64 - shardBits))
	s := &v.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if 4*(s.n+1) > 3*uint32(len(s.table)) {
		s.grow()
	}
	mask := uint32(len(s.table) - 1)
	slot := uint32(f.lo) & mask
	for ; s.table[slot] != 0; slot = (slot + 1) & mask {
		if s.table[slot]>>32 != f.lo>>32 {
			continue
		}
		at := uint32(s.table[slot]) - 1
		if s.fps[at>>slabBits][at&(slab-1)] != f {
			continue
		}
		if known := &s.ways[at>>slabBits][at&(slab-1)]; at >= s.layer && w.cost < known.cost {
			*known = w
		}
		return stateID(i)<<(32-shardBits) | stateID(at), false
	}
	at := s.n
	if at&(slab-1) == 0 {
		s.fps = append(s.fps, new([slab]fingerprint))
		s.ways = append(s.ways, new([slab]way))
	}
	s.fps[at>>slabBits][at&(slab-1)] = f
	s.ways[at>>slabBits][at&(slab-1)] = w
	s.table[slot] = f.lo>>32<<32 | uint64(at+1)
	s.n++
	return stateID(i)<<(32-shardBits) | stateID(at), true
}

func (s *shard) grow() {
	old := s.table
	s.table = make([]uint64, max(64, 2*len(old)))
	mask := uint32(len(s.table) - 1)
	for _, entry := range old {
		if entry == 0 {
			continue
		}
		at := uint32(entry) - 1
		f := s.fps[at>>slabBits][at&(slab-1)]
		slot := uint32(f.lo) & mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		s.table[slot] = entry
	}
}

// way is how a state was reached.
func (v *visited) way(id stateID) way {
	s := &v.shards[id.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ways[id.at()>>slabBits][id.at()&(slab-1)]
}

// next begins a new layer.
func (v *visited) next() {
	for i := range v.shards {
		v.shards[i].layer = v.shards[i].n
	}
}

func (v *visited) len() (n int64) {
	for i := range v.shards {
		v.shards[i].mu.Lock()
		n += int64(v.shards[i].n)
		v.shards[i].mu.Unlock()
	}
	return n
}

// bytes is the memory that the states take.
func (v *visited) bytes() (n int64) {
	for i := range v.shards {
		s := &v.shards[i]
		s.mu.Lock()
		n += int64(len(s.table))*8 + int64(len(s.fps))*slab*(16+8)
		s.mu.Unlock()
	}
	return n
}

// mixer makes fingerprints: two sums of products, each with keys of its own. The
// keys are fixed, so that a search is the same every time.
type mixer struct{ a, b uint64 }

func newMixer() mixer { return mixer{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f} }

func (m *mixer) add(word uint64) {
	m.a = fold(m.a^word, 0xa0761d6478bd642f)
	m.b = fold(m.b+word, 0xe7037ed1a0b428db)
}

func (m mixer) sum() fingerprint {
	return fingerprint{fold(m.a^m.b<<1, 0x8ebc6af09c88c6e3), fold(m.b^bits.RotateLeft64(m.a, 29), 0x589965cc75374cc3)}
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x^y, y|1)
	return hi ^ lo ^ bits.RotateLeft64(x, 23)
}

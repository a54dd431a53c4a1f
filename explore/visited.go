package explore

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
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

// record is what is kept of a state. Only its way changes.
type record struct {
	print fingerprint
	way   atomic.Uint64 // packed
}

// packed is a way in one word, in which the cheaper one of two is the lesser.
func (w way) packed() uint64 { return uint64(w.cost)<<48 | uint64(w.by)<<32 | uint64(w.from) }

func unpacked(w uint64) way {
	return way{from: stateID(w), by: action(w >> 32), cost: cost(w >> 48)}
}

// shard is a part of the table. Its records lie in slabs, in the order in which they
// came. Everything in it is looked at without its lock, and added to with it.
type shard struct {
	mu sync.Mutex
	// table has open addressing: a part of the fingerprint, and 1 + the place; 0 for free.
	table atomic.Pointer[[]uint64]
	slabs atomic.Pointer[[]*[slab]record]
	n     uint32
	layer uint32   // places from here on were reached in the present layer
	_     [24]byte // shards of different workers do not share a line of a processor's memory
}

func (v *visited) of(f fingerprint) *shard { return &v.shards[f.hi>>(64-shardBits)] }

// near has the memory brought near in which a state is looked for. It returns the first
// entry there, which means nothing else.
func (v *visited) near(f fingerprint) uint64 {
	table := v.of(f).table.Load()
	if table == nil {
		return 0
	}
	return atomic.LoadUint64(&(*table)[uint32(f.lo)&uint32(len(*table)-1)])
}

// knows tells whether a state has been noted. If it was reached in the present layer,
// it keeps the cheaper way.
func (v *visited) knows(f fingerprint, w way) bool {
	s := v.of(f)
	table := s.table.Load()
	if table == nil {
		return false
	}
	at, known := s.find(*table, f)
	if known && at >= s.layer {
		s.at(at).cheaper(w)
	}
	return known
}

// find is where a state is in the shard, or the slot of the table in which it will be.
func (s *shard) find(table []uint64, f fingerprint) (at uint32, known bool) {
	mask := uint32(len(table) - 1)
	for slot := uint32(f.lo) & mask; ; slot = (slot + 1) & mask {
		entry := atomic.LoadUint64(&table[slot])
		if entry == 0 {
			return slot, false
		}
		if at := uint32(entry) - 1; entry>>32 == f.lo>>32 && s.at(at).print == f {
			return at, true
		}
	}
}

// cheaper replaces the way by one that costs less.
func (r *record) cheaper(w way) {
	for {
		old := r.way.Load()
		if w.cost >= unpacked(old).cost || r.way.CompareAndSwap(old, w.packed()) {
			return
		}
	}
}

// add notes a state. It reports its number, and whether it is new. A state that is
// reached again in the layer in which it was found keeps the cheaper way.
func (v *visited) add(f fingerprint, w way) (stateID, bool) {
	s := v.of(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	table := s.room()
	at, known := s.find(table, f)
	if known {
		if at >= s.layer {
			s.at(at).cheaper(w)
		}
		return v.id(f, at), false
	}
	slot := at
	at = s.n
	if at&(slab-1) == 0 {
		s.extend()
	}
	r := s.at(at)
	r.print = f
	r.way.Store(w.packed())
	atomic.StoreUint64(&table[slot], f.lo>>32<<32|uint64(at+1))
	s.n++
	return v.id(f, at), true
}

func (v *visited) id(f fingerprint, at uint32) stateID {
	return stateID(f.hi>>(64-shardBits))<<(32-shardBits) | stateID(at)
}

// at is the record at a place.
func (s *shard) at(place uint32) *record {
	return &(*s.slabs.Load())[place>>slabBits][place&(slab-1)]
}

// extend makes room for more records. Those who look meanwhile see the slabs as they were.
func (s *shard) extend() {
	var slabs []*[slab]record
	if old := s.slabs.Load(); old != nil {
		slabs = *old
	}
	slabs = append(slabs, new([slab]record))
	s.slabs.Store(&slabs)
}

// room is the table, with room for one more.
func (s *shard) room() []uint64 {
	var old []uint64
	if t := s.table.Load(); t != nil {
		old = *t
	}
	if 4*(s.n+1) <= 3*uint32(len(old)) {
		return old
	}
	table := make([]uint64, max(64, 2*len(old)))
	mask := uint32(len(table) - 1)
	for _, entry := range old {
		if entry == 0 {
			continue
		}
		slot := uint32(s.at(uint32(entry)-1).print.lo) & mask
		for table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		table[slot] = entry
	}
	s.table.Store(&table)
	return table
}

// way is how a state was reached.
func (v *visited) way(id stateID) way {
	return unpacked(v.shards[id.shard()].at(id.at()).way.Load())
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
		if t := s.table.Load(); t != nil {
			n += int64(len(*t)) * 8
		}
		n += int64((s.n+slab-1)/slab) * slab * int64(unsafe.Sizeof(record{}))
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

package table

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"oversell/internal/hugepages"
)

// Visited holds every state that the search has reached: a fingerprint of 128 bits, and the way there, which is the
// state before and the action that led from it.
type Visited struct {
	shards [shards]shard
}

const (
	shardBits = 6
	shards    = 1 << shardBits
	placeBits = 32 - shardBits
	slabBits  = 9
	slab      = 1 << slabBits // how many states are added at a time
)

// StateID numbers a visited state: its shard, and its place there.
type StateID uint32

func (id StateID) shard() int { return int(id >> placeBits) }
func (id StateID) at() uint32 { return uint32(id) & (1<<placeBits - 1) }

// NoState is the number of no state.
const NoState = ^StateID(0)

// Fingerprint stands for a state. Two states have the same one with a probability of 2^-128.
type Fingerprint struct{ hi, lo uint64 }

// Way is how a state was first reached.
type Way struct {
	From StateID
	By   uint16 // the action, in the search's own numbers
	Cost uint16
}

// record is the entry of a state. Only its way changes.
type record struct {
	print Fingerprint
	way   atomic.Uint64 // packed
}

// packed returns a way in one word: the cheaper of two ways is the lesser word.
func (w Way) packed() uint64 { return uint64(w.Cost)<<48 | uint64(w.By)<<32 | uint64(w.From) }

func unpacked(w uint64) Way {
	return Way{From: StateID(w), By: uint16(w >> 32), Cost: uint16(w >> 48)}
}

// shard is a part of the table. Its records lie in slabs, in the order of their arrival. Reading takes no lock; adding
// takes the shard's lock.
type shard struct {
	mu sync.Mutex
	// table has open addressing: a part of the fingerprint, and 1 + the place in placeBits; 0 for
	// free.
	table atomic.Pointer[[]uint32]
	slabs atomic.Pointer[[]*[slab]record]
	n     uint32
	layer uint32   // places from here on were reached in the present layer
	_     [24]byte // shards of different workers do not share a line of a processor's memory
}

func (v *Visited) of(f Fingerprint) *shard { return &v.shards[f.hi>>(64-shardBits)] }

// Near fetches into the cache the memory in which a state is looked up: the table first and, if twice, the state that
// it names. The result has no meaning.
func (v *Visited) Near(f Fingerprint, twice bool) uint64 {
	s := v.of(f)
	table := s.table.Load()
	if table == nil {
		return 0
	}
	entry := atomic.LoadUint32(&(*table)[uint32(f.lo)&uint32(len(*table)-1)])
	if !twice || entry == 0 {
		return uint64(entry)
	}
	return s.at(placeOf(entry)).print.lo
}

// tag returns the part of a fingerprint that the table stores.
func (f Fingerprint) tag() uint32 { return uint32(f.lo>>32) &^ (1<<placeBits - 1) }

// placeOf returns the place in a table entry.
func placeOf(entry uint32) uint32 { return entry&(1<<placeBits-1) - 1 }

// Knows reports whether a state has been noted. If it was reached in the present layer,
// it keeps the cheaper way.
func (v *Visited) Knows(f Fingerprint, w Way) bool {
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

// find returns the place of a state in the shard, or the slot of the table for it.
func (s *shard) find(table []uint32, f Fingerprint) (at uint32, known bool) {
	mask := uint32(len(table) - 1)
	for slot := uint32(f.lo) & mask; ; slot = (slot + 1) & mask {
		entry := atomic.LoadUint32(&table[slot])
		if entry == 0 {
			return slot, false
		}
		if at := placeOf(entry); entry&^(1<<placeBits-1) == f.tag() && s.at(at).print == f {
			return at, true
		}
	}
}

// cheaper replaces the way by one that costs less.
func (r *record) cheaper(w Way) {
	for {
		old := r.way.Load()
		if w.Cost >= unpacked(old).Cost || r.way.CompareAndSwap(old, w.packed()) {
			return
		}
	}
}

// Add notes a state. It returns its number, and whether it is new. A state that is
// reached again in the layer in which it was found keeps the cheaper way.
func (v *Visited) Add(f Fingerprint, w Way) (StateID, bool) {
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
	atomic.StoreUint32(&table[slot], f.tag()|(at+1))
	s.n++
	return v.id(f, at), true
}

func (v *Visited) id(f Fingerprint, at uint32) StateID {
	return StateID(f.hi>>(64-shardBits))<<placeBits | StateID(at)
}

// at returns the record at a place.
func (s *shard) at(place uint32) *record {
	return &(*s.slabs.Load())[place>>slabBits][place&(slab-1)]
}

// extend makes room for more records. Concurrent readers see the old slabs.
func (s *shard) extend() {
	var slabs []*[slab]record
	if old := s.slabs.Load(); old != nil {
		slabs = *old
	}
	fresh := new([slab]record)
	if s.n*uint32(unsafe.Sizeof(record{})) >= hugepages.Least {
		hugepages.Advise(fresh[:])
	}
	slabs = append(slabs, fresh)
	s.slabs.Store(&slabs)
}

// room returns the table, grown if necessary to hold one more entry.
func (s *shard) room() []uint32 {
	var old []uint32
	if t := s.table.Load(); t != nil {
		old = *t
	}
	if 4*(s.n+1) <= 3*uint32(len(old)) {
		return old
	}
	table := make([]uint32, max(64, 2*len(old)))
	if len(table)*4 >= hugepages.Least {
		hugepages.Advise(table)
	}
	mask := uint32(len(table) - 1)
	for _, entry := range old {
		if entry == 0 {
			continue
		}
		slot := uint32(s.at(placeOf(entry)).print.lo) & mask
		for table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		table[slot] = entry
	}
	s.table.Store(&table)
	return table
}

// Way returns how a state was reached.
func (v *Visited) Way(id StateID) Way {
	return unpacked(v.shards[id.shard()].at(id.at()).way.Load())
}

// Next begins a new layer.
func (v *Visited) Next() {
	for i := range v.shards {
		v.shards[i].layer = v.shards[i].n
	}
}

// Len returns how many states have been noted.
func (v *Visited) Len() (n int64) {
	for i := range v.shards {
		v.shards[i].mu.Lock()
		n += int64(v.shards[i].n)
		v.shards[i].mu.Unlock()
	}
	return n
}

// Bytes returns the memory of the states.
func (v *Visited) Bytes() (n int64) {
	for i := range v.shards {
		s := &v.shards[i]
		s.mu.Lock()
		if t := s.table.Load(); t != nil {
			n += int64(len(*t)) * 4
		}
		n += int64((s.n+slab-1)/slab) * slab * int64(unsafe.Sizeof(record{}))
		s.mu.Unlock()
	}
	return n
}

// Mixer makes fingerprints: two sums of products, each with keys of its own. The
// keys are fixed, so that a search is the same every time.
type Mixer struct{ a, b uint64 }

// NewMixer returns a mixer of no words.
func NewMixer() Mixer { return Mixer{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f} }

// Add mixes a word in.
func (m *Mixer) Add(word uint64) {
	m.a = fold(m.a^word, 0xa0761d6478bd642f)
	m.b = fold(m.b+word, 0xe7037ed1a0b428db)
}

// Sum returns the fingerprint of the words so far.
func (m Mixer) Sum() Fingerprint {
	return Fingerprint{fold(m.a^m.b<<1, 0x8ebc6af09c88c6e3), fold(m.b^bits.RotateLeft64(m.a, 29), 0x589965cc75374cc3)}
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x^y, y|1)
	return hi ^ lo ^ bits.RotateLeft64(x, 23)
}

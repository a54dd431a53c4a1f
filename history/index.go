package history

import (
	"hash/maphash"
	"math/bits"
)

// index finds operations by their key and an identity. It is an open hash table of the operations' numbers: building
// maps would take longer than reading the history.
type index struct {
	ops   []Op
	of    func(*Op) Value // the identity of an operation
	most  int             // the most operations in it
	slots []int32         // numbers of operations, plus one; 0: free
	seed  maphash.Seed
	key   Value // whose hash is known
	hash  uint64
}

// newIndex returns an index that can hold this many of the operations (most).
func newIndex(ops []Op, most int, of func(*Op) Value) index {
	return index{ops: ops, of: of, most: most}
}

// make makes the table, at its first use.
func (x *index) make() {
	width := bits.Len(uint(2*x.most + 1))
	x.slots, x.seed = make([]int32, 1<<width), maphash.MakeSeed()
	x.hash = mixed(x.hashed(x.key) + 1)
}

const scatter = 0x9e3779b97f4a7c15

func (x *index) hashed(v Value) uint64 {
	if n, ok := v.Num(); ok {
		return uint64(n)
	}
	return maphash.Comparable(x.seed, v.text)
}

// mixed spreads a hash over all bits.
func mixed(h uint64) uint64 {
	h = (h ^ h>>33) * scatter
	return h ^ h>>29
}

// slot returns the slot of the operation with this key and identity, or the free slot for it.
func (x *index) slot(key, id Value) *int32 {
	if x.slots == nil {
		x.make()
	}
	if key != x.key {
		x.key, x.hash = key, mixed(x.hashed(key)+1)
	}
	mask := uint64(len(x.slots) - 1)
	for at := mixed(x.hash^x.hashed(id)) & mask; ; at = (at + 1) & mask {
		s := &x.slots[at]
		if *s == 0 {
			return s
		}
		if op := &x.ops[*s-1]; x.of(op) == id && op.Key == key {
			return s
		}
	}
}

// find returns the number of the operation with this key and identity; -1: there is
// none.
func (x *index) find(key, id Value) int {
	if x.slots == nil {
		return -1
	}
	return int(*x.slot(key, id)) - 1
}

// put adds operation i and returns -1, unless another is there: then it returns that one's number.
func (x *index) put(i int, op *Op, id Value) int {
	s := x.slot(op.Key, id)
	if *s != 0 {
		return int(*s) - 1
	}
	*s = int32(i) + 1
	return -1
}

package lua

import (
	"math"
	"math/bits"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// layout is where Lua 5.1 keeps the keys of a table: in an array part, and in nodes that are found by a hash. The order of
// pairs, next and cjson.encode, and the length of a list with holes, follow from it. It depends on which keys were
// assigned to, in which order, and which of them had a value when the nodes were used up. The values are in gopher-lua's
// table.
//
// The algorithm is the one of ltable.c of Lua 5.1.5, as in deps/lua of Redis, whose names are in the comments. The hash of
// texts is the one of Redis 7.0 and later: earlier ones leave out bytes of texts of 32 bytes or more.
type layout struct {
	t     *lua.LTable
	array int    // the keys 1 to array are in the array part
	nodes []node // as many as a power of two, or none
	free  int    // all nodes from here on were used
	// unsure means that the order is unknown: it depends on the address of a key, or on the garbage collector.
	unsure bool
	last   lua.LValue   // the last key that next returned
	gone   []lua.LValue // keys that lost their node
	told   bool         // see placed
	// While a constructor runs: the length of the list so far, and values that are not in the table yet.
	listed  int
	pending []lua.LValue
}

// node is a place for a key in the hash part. The key stays if its value becomes nil.
type node struct {
	key  lua.LValue // nil if it was never used
	next int        // the index of the next node in the chain plus one, or 0
}

// mostArray is the largest key in an array part (MAXASIZE).
const mostArray = 1 << 26

// appended returns the layout of a table that was empty, and to which n values were appended one by one.
func appended(t *lua.LTable, n int) *layout { return &layout{t: t, array: powerOfTwo(n)} }

// sized returns the layout of an empty table created with these sizes of its two parts (luaH_new).
func sized(t *lua.LTable, array, hash int) *layout {
	a := &layout{t: t}
	a.resize(array, hash)
	return a
}

// powerOfTwo returns the least power of two that is not less than n; 0 for 0.
func powerOfTwo(n int) int {
	if n <= 0 {
		return 0
	}
	return 1 << bits.Len(uint(n-1))
}

// constructorSize returns the size that a constructor with n entries asks for, which is stored in a byte with a mantissa of
// four bits (luaO_int2fb).
func constructorSize(n int) int {
	e := 0
	for ; n >= 16; e++ {
		n = (n + 1) >> 1
	}
	return n << e
}

// hash returns Lua's hash of a string (luaS_newlstr).
func hash(s string) uint32 {
	h := uint32(len(s))
	for i := len(s) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(s[i])
	}
	return h
}

// index returns a key that is a positive integer, or 0 (arrayindex).
func index(key lua.LValue) int {
	n, ok := key.(lua.LNumber)
	if !ok || !(n >= 1 && n <= math.MaxInt32) || n != lua.LNumber(int(n)) {
		return 0
	}
	return int(n)
}

func (a *layout) inArray(key lua.LValue) bool {
	i := index(key)
	return i > 0 && i <= a.array
}

// filled reports whether the integer key i has a value.
func (a *layout) filled(i int) bool {
	if i < lua.MaxArrayIndex {
		return a.t.RawGetInt(i) != lua.LNil
	}
	return a.t.RawGet(lua.LNumber(i)) != lua.LNil
}

// live reports whether the key of a node has a value.
func (a *layout) live(n node) bool { return n.key != nil && a.t.RawGet(n.key) != lua.LNil }

// main returns the node where a key belongs (mainposition).
func (a *layout) main(key lua.LValue) int {
	last := uint32(len(a.nodes) - 1)
	switch key := key.(type) {
	case lua.LString:
		return int(hash(string(key)) & last)
	case lua.LBool:
		if key {
			return int(1 & last)
		}
	case lua.LNumber:
		if key != 0 {
			u := math.Float64bits(float64(key))
			return int((uint32(u) + uint32(u>>32)) % (last | 1))
		}
	}
	return 0
}

// find returns the node of a key, or -1.
func (a *layout) find(key lua.LValue) int {
	if len(a.nodes) == 0 {
		return -1
	}
	i := a.main(key)
	for a.nodes[i].key != key {
		if i = a.nodes[i].next - 1; i < 0 {
			return -1
		}
	}
	return i
}

// add makes a place for a key before a value, or nil, is assigned to it (luaH_set).
func (a *layout) add(key lua.LValue) {
	if a.unsure || a.inArray(key) || a.t.RawGet(key) != lua.LNil {
		return
	}
	text := false
	switch key.(type) {
	case lua.LString:
		text = true
	case lua.LNumber, lua.LBool, *lua.LUserData: // cjson.null, whose address is 0
	default: // hashed by its address
		a.unsure = true
		return
	}
	switch i := a.find(key); {
	case i < 0:
		a.insert(key)
	case text && i != a.main(key):
		a.unsure = true // the garbage collector may have removed the text: then it gets a new node
	}
}

// insert gives a new key a node. A key that is not where it belongs makes room for one that belongs there (newkey).
func (a *layout) insert(key lua.LValue) {
	if len(a.nodes) == 0 {
		a.rehash(key)
		return
	}
	at := a.main(key)
	if a.live(a.nodes[at]) {
		free := a.unused()
		if free < 0 {
			a.rehash(key)
			return
		}
		if other := a.main(a.nodes[at].key); other != at {
			for a.nodes[other].next-1 != at {
				other = a.nodes[other].next - 1
			}
			a.nodes[other].next = free + 1
			a.nodes[free] = a.nodes[at]
			a.nodes[at].next = 0
		} else {
			a.nodes[free].next = a.nodes[at].next
			a.nodes[at].next = free + 1
			at = free
		}
	}
	if old := a.nodes[at].key; old != nil && !a.live(a.nodes[at]) && old != key {
		a.gone = append(a.gone, old)
	}
	a.nodes[at].key, a.told = key, false
}

// placed returns the keys whose hashes determined the order of the entries, if there are several
// entries. Until the next insertion it returns them only once.
func (a *layout) placed() (keys []lua.LValue) {
	if a.told || len(a.nodes) == 0 || len(a.nodes) == 1 && len(a.gone) == 0 {
		return nil
	}
	a.told = true
	for _, n := range a.nodes {
		if n.key != nil {
			keys = append(keys, n.key)
		}
	}
	return append(keys, a.gone...)
}

// unused returns a node that was never used, or -1 (getfreepos).
func (a *layout) unused() int {
	for a.free > 0 {
		if a.free--; a.nodes[a.free].key == nil {
			return a.free
		}
	}
	return -1
}

// place puts a key that is not in the table into the part where it belongs.
func (a *layout) place(key lua.LValue) {
	if !a.inArray(key) {
		a.insert(key)
	}
}

// rehash computes the size of both parts for the keys that have a value and one more, which it places. More than half of
// the array part is used.
func (a *layout) rehash(extra lua.LValue) {
	var counts [27]int // of the integers from 2^(i-1) + 1 to 2^i
	total, integers := 1, 0
	count := func(i int) {
		if i > 0 && i <= mostArray {
			counts[bits.Len(uint(i-1))]++
			integers++
		}
	}
	for i := 1; i <= a.array; i++ {
		if a.filled(i) {
			total++
			count(i)
		}
	}
	for _, n := range a.nodes {
		if a.live(n) {
			total++
			count(index(n.key))
		}
	}
	count(index(extra))
	array, inArray, below := 0, 0, 0
	for i := 0; 1<<i/2 < integers && i < len(counts); i++ {
		if below += counts[i]; counts[i] > 0 && below > 1<<i/2 {
			array, inArray = 1<<i, below
		}
	}
	a.resize(array, total-inArray)
	a.place(extra)
}

// resize changes the sizes of both parts and places all keys that have a value anew.
func (a *layout) resize(array, hash int) {
	before, old := a.array, a.nodes
	a.array, a.nodes, a.free = array, nil, powerOfTwo(hash)
	if a.free > 0 {
		a.nodes = make([]node, a.free)
	}
	for i := array + 1; i <= before; i++ {
		if a.filled(i) {
			a.place(lua.LNumber(i))
		}
	}
	for _, n := range slices.Backward(old) {
		if a.live(n) {
			a.place(n.key)
		} else if n.key != nil {
			a.gone = append(a.gone, n.key)
		}
	}
}

// length is the operator # (luaH_getn).
func (a *layout) length() int {
	low, high := 0, a.array
	switch {
	case high > 0 && !a.filled(high):
	case len(a.nodes) == 0:
		return high
	default:
		for low, high = high, high+1; a.filled(high); low, high = high, high*2 {
		}
	}
	for high-low > 1 {
		if middle := (low + high) / 2; a.filled(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// next returns the key and the value after those of a key, nil without one (luaH_next). known is false if the key is not in
// the table, or was perhaps removed by the garbage collector.
func (a *layout) next(key lua.LValue) (k, v lua.LValue, known bool) {
	at := 0
	switch {
	case key == lua.LNil:
	case a.inArray(key):
		at = index(key)
	default:
		i := a.find(key)
		if i < 0 {
			return nil, nil, false
		}
		if _, text := key.(lua.LString); text && key != a.last && !a.live(a.nodes[i]) {
			return nil, nil, false
		}
		at = a.array + i + 1
	}
	for ; at < a.array+len(a.nodes); at++ {
		if at < a.array {
			if a.filled(at + 1) {
				return lua.LNumber(at + 1), a.t.RawGetInt(at + 1), true
			}
		} else if n := a.nodes[at-a.array]; a.live(n) {
			a.last = n.key
			return n.key, a.t.RawGet(n.key), true
		}
	}
	return lua.LNil, lua.LNil, true
}

// flush puts values that are pending at the end of the list in a constructor, the last one first (OP_SETLIST).
func (a *layout) flush() {
	a.listed += len(a.pending)
	if a.listed > a.array {
		a.resize(a.listed, len(a.nodes))
	}
	for i, v := range slices.Backward(a.pending) {
		n := a.listed - len(a.pending) + 1 + i
		a.add(lua.LNumber(n))
		a.t.RawSetInt(n, v)
	}
	a.pending = a.pending[:0]
}

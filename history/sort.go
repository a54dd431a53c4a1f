package history

import (
	"cmp"
	"math/bits"
	"slices"
)

// SortByCompletion puts operations into completion order, in which monitors read them: by Return, then Call, then
// Client; it is stable.
//
// A million operations of 120 bytes are too heavy to swap around: a radix sort orders their keys,
// in a time that does not depend on how the clients' operations are interleaved, and then each
// operation moves once.
func SortByCompletion(ops []Op) { sortInto(ops, completionOrder(ops)) }

// completionOrder is the order of the operations by Return; nil: they are in completion
// order.
func completionOrder(ops []Op) []sortKey {
	for i := range ops[min(1, len(ops)):] {
		if compareCompletion(&ops[i], &ops[i+1]) > 0 {
			return radixSort(keysOf(ops))
		}
	}
	return nil
}

// sortInto moves the operations to their places; it overwrites order.
func sortInto(ops []Op, order []sortKey) {
	if order != nil {
		permute(ops, order)
		sortTies(ops)
	}
}

// compareCompletion compares operations by completion order.
func compareCompletion(a, b *Op) int {
	return cmp.Or(cmp.Compare(a.Return, b.Return), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Client, b.Client))
}

func byCompletion(a, b Op) int { return compareCompletion(&a, &b) }

// sortKey represents an operation.
type sortKey struct {
	ret uint64 // since the earliest return
	at  uint32
}

func keysOf(ops []Op) []sortKey {
	earliest := ops[0].Return
	for i := range ops {
		earliest = min(earliest, ops[i].Return)
	}
	keys := make([]sortKey, len(ops))
	for i := range ops {
		keys[i] = sortKey{uint64(ops[i].Return) - uint64(earliest), uint32(i)}
	}
	return keys
}

// radixSort sorts stably, eleven bits at a time, and returns the sorted keys.
func radixSort(keys []sortKey) []sortKey {
	const width = 11
	latest := uint64(0)
	for _, k := range keys {
		latest = max(latest, k.ret)
	}
	other := make([]sortKey, len(keys))
	for shift := 0; shift < bits.Len64(latest); shift += width {
		var next [1 << width]int // the place of the next key with this digit
		for _, k := range keys {
			next[k.ret>>shift%(1<<width)]++
		}
		sum := 0
		for d, n := range next {
			next[d], sum = sum, sum+n
		}
		for _, k := range keys {
			d := k.ret >> shift % (1 << width)
			other[next[d]] = k
			next[d]++
		}
		keys, other = other, keys
	}
	return keys
}

// permute moves the operation at order[i].at to i, for all i; it overwrites order.
func permute(ops []Op, order []sortKey) {
	for i := range ops {
		if order[i].at == uint32(i) {
			continue
		}
		first := ops[i]
		for to := i; ; {
			from := int(order[to].at)
			order[to].at = uint32(to)
			if from == i {
				ops[to] = first
				break
			}
			ops[to] = ops[from]
			to = from
		}
	}
}

// sortTies orders the operations with equal returns.
func sortTies(ops []Op) {
	for from := 0; from < len(ops); {
		to := from + 1
		for to < len(ops) && ops[to].Return == ops[from].Return {
			to++
		}
		if to-from > 1 {
			slices.SortStableFunc(ops[from:to], byCompletion)
		}
		from = to
	}
}

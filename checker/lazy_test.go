package checker

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// TestCalmKeysAreAdvancedAlike checks the shortcut for a lock or a product with few operations, which is advanced
// only when its next operation comes: the verdicts are the same as if it had been advanced each time.
func TestCalmKeysAreAdvancedAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	rounds := 400
	if long() {
		rounds = 20_000
	}
	broken := 0
	for range rounds {
		h := history.Header{TTL: upTo(r, 40), Drift: upTo(r, 3), Grace: upTo(r, 20), Stock: int64(r.IntN(12)), Promises: []history.Promise{
			{Of: variant.Lock, Property: variant.Fencing}, {Of: variant.Lock, Property: variant.FIFO}, {Of: variant.Sale, Property: variant.Fencing},
		}, Objects: []variant.Object{variant.Lock, variant.Sale}}
		if chance(r, 20) {
			h.Refund = 0.5
		}
		ops := manyKeys(r, 1+r.IntN(5))
		every := 1 + r.IntN(40)
		told := func(calm int) (vs []Verdict) {
			s := &Shared{Header: &h, LazyBelow: calm}
			var ms []Monitor
			for _, j := range All {
				if h.Has(j.Of) {
					ms = append(ms, j.New(s))
				}
			}
			low := history.Forever
			lows := make([]time.Duration, len(ops)+1)
			for i := len(ops) - 1; i >= 0; i-- {
				lows[i+1] = low
				low = min(low, ops[i].Call)
			}
			for i := range ops {
				for _, m := range ms {
					m.Observe(&ops[i])
				}
				if (i+1)%every == 0 || i+1 == len(ops) {
					for _, m := range ms {
						m.Advance(lows[i+1])
					}
				}
			}
			for _, m := range ms {
				v := m.Verdict()
				if vs = append(vs, v); v.Result == Violated {
					broken++
				}
			}
			return vs
		}
		each, some, rarely := told(-1), told(7), told(0)
		for i, v := range each {
			if !reflect.DeepEqual(v, some[i]) || !reflect.DeepEqual(v, rarely[i]) {
				t.Fatalf("%s %s, advanced each time: %+v\nafter 7 operations: %+v\nwhen needed: %+v\n%s", v.Of, v.Property, v, some[i], rarely[i], show(&h, ops))
			}
		}
	}
	if broken == 0 {
		t.Error("nothing was ever broken")
	}
}

// manyKeys returns random operations of several locks and products, in completion order.
func manyKeys(r *rand.Rand, keys int) (ops []history.Op) {
	now := time.Duration(1)
	free := make([]time.Duration, 8)
	for session := int64(1); session < int64(20+r.IntN(200)); session++ {
		now += upTo(r, 8)
		c := r.IntN(len(free))
		key := history.Int(int64(r.IntN(keys)))
		next := func(op history.Op, wait int) history.Op {
			op.Client, op.Key, op.Arg = int32(c), key, history.Int(session)
			op.Call = max(now, free[c]+1) + upTo(r, wait)
			op.Return = op.Call + upTo(r, 10)
			free[c] = op.Return
			if op.Outcome = history.OK; chance(r, 12) {
				op.Outcome = history.Unknown
			}
			return op
		}
		switch {
		case chance(r, 50):
			op := next(history.Op{Kind: history.Buy, Fence: int64(r.IntN(3)) * session, Result: history.Int(-1)}, 3)
			switch {
			case chance(r, 10):
				op.Kind, op.Fence = history.Refund, 0
			case chance(r, 30) && op.Outcome == history.OK:
				op.Outcome, op.Reason = history.Refused, history.SoldOut
			case chance(r, 10) && op.Outcome == history.OK && op.Fence > 0:
				op.Outcome, op.Reason = history.Refused, history.Stale
			}
			ops = append(ops, op)
		case chance(r, 25):
			op := next(history.Op{Kind: history.Acquire}, 3)
			op.Outcome, op.Reason = history.Refused, history.Held
			ops = append(ops, op)
		default:
			if chance(r, 20) {
				ops = append(ops, next(history.Op{Kind: history.Join}, 3))
			}
			op := next(history.Op{Kind: history.Acquire, Fence: session}, 3)
			op.Until = op.Return + upTo(r, 40)
			ops = append(ops, op)
			for chance(r, 40) {
				op := next(history.Op{Kind: history.Extend}, 60)
				op.Until = op.Return + upTo(r, 40)
				ops = append(ops, op)
			}
			if chance(r, 60) {
				op := next(history.Op{Kind: history.Release}, 80)
				if op.Outcome == history.OK && chance(r, 15) {
					op.Outcome, op.Reason = history.Refused, history.Lost
				}
				ops = append(ops, op)
			}
		}
	}
	complete(ops)
	end := ops[len(ops)-1].Return + 1
	for k := range keys {
		op := read("left", int64(r.IntN(4)), end)
		op.Key = history.Int(int64(k))
		ops = append(ops, op)
	}
	return ops
}

package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// realTimeOrder judges that numbers rise in time: nobody who asks after a number
// was received is given a lower one. The smallest bad history:
//
//	client 1  next-id  [1, 2]  8
//	client 2  next-id  [3, 4]  7
type realTimeOrder struct {
	counters keyed[ascent]
}

type ascent struct {
	key      history.Value
	requests requests
	largest  rising
	n        int64
	broken   int
	why      string
	witness  []history.Op
}

func newRealTimeOrder() *realTimeOrder {
	return &realTimeOrder{counters: newKeyed(func(key history.Value) *ascent { return &ascent{key: key} })}
}

// Observe implements [Monitor].
func (m *realTimeOrder) Observe(op *history.Op) {
	switch {
	case answered(op):
		m.counters.at(op.Key).give(op)
	case op.Kind == history.NextID && op.Outcome == history.Unknown:
		m.counters.at(op.Key).requests.lost(op)
	}
}

func (a *ascent) give(op *history.Op) {
	v, ok := op.Result.Num()
	if !ok {
		return
	}
	a.n++
	if before := a.largest.before(a.requests.since(op)); before != nil && before.value > v {
		a.broken++
		if a.broken == 1 {
			a.why = fmt.Sprintf("%s asked for a number of %s only at %s and was given %s, though %s had been given %s by %s",
				client(op), title(a.key), at(op.Call), count(v), client(&before.op), count(before.value), at(before.op.Return))
			a.witness = inOrder(before.op, *op)
		}
	}
	a.largest.add(v, op)
}

// Advance implements [Monitor].
func (m *realTimeOrder) Advance(lowWater time.Duration) {
	for _, a := range m.counters.all {
		for _, first := range a.requests.tries { // these may be answered as of then
			lowWater = min(lowWater, first)
		}
		a.largest.forget(lowWater)
	}
}

// Verdict implements [Monitor].
func (m *realTimeOrder) Verdict() Verdict {
	return m.counters.verdict(variant.IDs, variant.RealTimeOrder, nothingNumbered, func(a *ascent) Verdict {
		switch {
		case a.broken > 0:
			return Verdict{Result: Violated, Count: a.broken, Why: a.why, Witness: a.witness}
		case a.n == 0:
			return Verdict{Why: nothingNumbered}
		}
		return Verdict{Result: Holds, Why: many(a.n, "number") + ", none lower than one received before it was asked for"}
	})
}

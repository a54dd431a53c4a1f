package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// idMonitors are the monitors of number generators.
func idMonitors(*history.Header) []Monitor {
	return []Monitor{newUniqueIDs(), newNoGaps(), newRealTimeOrder(), newIDLinear()}
}

// nothingNumbered is why nothing can be said.
const nothingNumbered = "nobody obtained a number"

// answered tells whether an operation is a number handed out anew.
func answered(op *history.Op) bool {
	return op.Kind == history.NextID && op.Outcome == history.OK && op.Reason != history.Repeated
}

// requests knows since when each request has been trying. A request that had no answer
// may be sent again, and a generator that knows requests answers with the number
// that it gave it the first time: so a number can be as old as the first try.
// Operations without a request (in Arg) stand for themselves.
type requests struct {
	tries map[history.Value]time.Duration
}

// lost notes a try without an answer.
func (r *requests) lost(op *history.Op) {
	if op.Arg == (history.Value{}) {
		return
	}
	if r.tries == nil {
		r.tries = make(map[history.Value]time.Duration)
	}
	if first, ok := r.tries[op.Arg]; !ok || op.Call < first {
		r.tries[op.Arg] = op.Call
	}
}

// since is the earliest time at which a number can have been given out.
func (r *requests) since(op *history.Op) time.Duration {
	if len(r.tries) > 0 && op.Arg != (history.Value{}) {
		if first, ok := r.tries[op.Arg]; ok {
			return min(first, op.Call)
		}
	}
	return op.Call
}

// uniqueIDs judges that no number is given out twice. A request that is sent
// again may get its number again. The smallest bad history:
//
//	client 1  next-id  [1, 2]  7
//	client 2  next-id  [3, 4]  7
type uniqueIDs struct {
	counters keyed[given]
}

type given struct {
	key     history.Value
	numbers table[owned]
	n       int64
	broken  int
	why     string
	witness []history.Op
}

// owned is who got a number first.
type owned struct {
	call, ret time.Duration
	request   history.Value
	client    int32
	taken     bool
}

func newUniqueIDs() *uniqueIDs {
	return &uniqueIDs{counters: newKeyed(func(key history.Value) *given { return &given{key: key} })}
}

// Observe implements [Monitor].
func (m *uniqueIDs) Observe(op *history.Op) {
	if answered(op) {
		m.counters.at(op.Key).give(op)
	}
}

func (g *given) give(op *history.Op) {
	g.n++
	o := g.numbers.at(op.Result)
	if !o.taken {
		*o = owned{op.Call, op.Return, op.Arg, op.Client, true}
		return
	}
	if op.Arg != (history.Value{}) && op.Arg == o.request {
		return
	}
	g.broken++
	if g.broken > 1 {
		return
	}
	before := history.Op{Client: o.client, Kind: history.NextID, Outcome: history.OK, Key: op.Key, Arg: o.request, Result: op.Result, Due: o.call, Call: o.call, Return: o.ret}
	g.why = fmt.Sprintf("%s of %s was given to %s between %s and %s, and to %s between %s and %s", op.Result, title(g.key),
		client(&before), at(o.call), at(o.ret), client(op), at(op.Call), at(op.Return))
	g.witness = inOrder(before, *op)
}

// Advance implements [Monitor]: a number may come again at any time.
func (m *uniqueIDs) Advance(time.Duration) {}

// Verdict implements [Monitor].
func (m *uniqueIDs) Verdict() Verdict {
	return m.counters.verdict(variant.IDs, variant.UniqueIDs, nothingNumbered, func(g *given) Verdict {
		if g.broken > 0 {
			return Verdict{Result: Violated, Count: g.broken, Why: g.why, Witness: g.witness}
		}
		return Verdict{Result: Holds, Why: many(g.n, "number") + ", none twice"}
	})
}

package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// grantTokens judges that fencing tokens rise from grant to grant: no token is
// granted twice, and in the order of the tokens each grant fits the greedy
// schedule t = max(t, earliest) <= return. The schedule fails if and only if
// some token was surely granted after a larger one, so it is enough to ask, at
// each grant, for the largest token granted before. The smallest bad history:
//
//	client 1  acquire  [1, 2]  fence 8
//	client 2  acquire  [3, 4]  fence 7
type grantTokens struct {
	h     *history.Header
	locks keyed[tokens]
}

type tokens struct {
	key     history.Value
	seen    table[bool]
	largest rising
	granted int64
	bare    int64 // grants without a token
	broken  int
	why     string
	witness []history.Op
}

func newGrantTokens(h *history.Header) *grantTokens {
	return &grantTokens{h: h, locks: newKeyed(func(key history.Value) *tokens { return &tokens{key: key} })}
}

// Observe implements [Monitor].
func (m *grantTokens) Observe(op *history.Op) {
	if op.Kind == history.Acquire && op.Outcome == history.OK {
		m.locks.at(op.Key).grant(m.h, op)
	}
}

func (t *tokens) grant(h *history.Header, op *history.Op) {
	if op.Fence <= 0 {
		t.bare++
		return
	}
	t.granted++
	seen := t.seen.at(history.Int(op.Fence))
	switch before := t.largest.before(granted(h, op)); {
	case before != nil && before.value >= op.Fence:
		t.fail(op, &before.op)
	case *seen:
		t.fail(op, nil)
	}
	*seen = true
	t.largest.add(op.Fence, op)
}

func (t *tokens) fail(op, before *history.Op) {
	t.broken++
	if t.broken > 1 {
		return
	}
	t.witness = []history.Op{*op}
	t.why = fmt.Sprintf("%s was granted %s at %s with the token %s, which had been granted before",
		client(op), title(t.key), at(op.Return), count(op.Fence))
	if before != nil {
		t.why = fmt.Sprintf("%s was granted %s at %s with the token %s, after %s had been granted it at %s with the token %s",
			client(op), title(t.key), at(op.Return), count(op.Fence), client(before), at(before.Return), count(before.Fence))
		t.witness = inOrder(*before, *op)
	}
}

// Advance implements [Monitor].
func (m *grantTokens) Advance(lowWater time.Duration) {
	for _, t := range m.locks.all {
		t.largest.forget(lowWater)
	}
}

// Verdict implements [Monitor].
func (m *grantTokens) Verdict() Verdict {
	return m.locks.verdict(variant.Lock, variant.Fencing, "nobody obtained the lock", func(t *tokens) Verdict {
		switch {
		case t.broken > 0:
			return Verdict{Result: Violated, Count: t.broken, Why: t.why, Witness: t.witness}
		case t.granted == 0:
			return Verdict{Why: "no grant carried a token"}
		case t.bare > 0:
			return Verdict{Why: fmt.Sprintf("%s rose from grant to grant, but %s carried none", many(t.granted, "token"), many(t.bare, "grant"))}
		}
		return Verdict{Result: Holds, Why: many(t.granted, "token") + ", each larger than those before"}
	})
}

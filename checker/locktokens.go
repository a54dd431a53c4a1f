package checker

import (
	"fmt"

	"oversell/history"
)

// tokens judges that fencing tokens rise from grant to grant: no token is
// granted twice, and in the order of the tokens each grant fits the greedy
// schedule t = max(t, earliest) <= return. The schedule fails if and only if
// some token was surely granted after a larger one, so it is enough to ask, at
// each grant, for the largest token granted before. The smallest bad history:
//
//	client 1  acquire  [1, 2]  fence 8
//	client 2  acquire  [3, 4]  fence 7
//
// An opportunity is a grant with a token before which another client had surely been
// granted one: a larger one would have shown.
type tokens struct {
	h       *history.Header
	key     history.Value
	seen    table[bool]
	largest rising
	grants  contention
	granted int64
	bare    int64 // grants without a token
	met     int64 // opportunities
	broken  int
	why     string
	witness []history.Op
}

func openTokens(ls *locks, l *lock) { l.tokens = &tokens{h: ls.h, key: l.key} }

func (t *tokens) observe(op *history.Op) {
	if op.Kind != history.Acquire || op.Outcome != history.OK {
		return
	}
	if op.Fence <= 0 {
		t.bare++
		return
	}
	t.granted++
	from := granted(t.h, op)
	if t.grants.follows(op.Client, from) {
		t.met++
	}
	t.grants.add(op.Client, op.Return)
	seen := t.seen.at(history.Int(op.Fence))
	switch before := t.largest.before(from); {
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
		client(op), titled("lock", t.key), at(op.Return), count(op.Fence))
	if before != nil {
		t.why = fmt.Sprintf("%s was granted %s at %s with the token %s, after %s had been granted it at %s with the token %s",
			client(op), titled("lock", t.key), at(op.Return), count(op.Fence), client(before), at(before.Return), count(before.Fence))
		t.witness = inOrder(*before, *op)
	}
}

// rise is the verdict on fencing.
func (l *lock) rise(*locks) Verdict {
	t := l.tokens
	v := Verdict{Opportunities: t.met}
	switch {
	case t.broken > 0:
		v.Result, v.Count, v.Why, v.Witness = Violated, t.broken, t.why, t.witness
	case t.granted == 0:
		v.Why, v.idle = "no grant carried a token", t.bare == 0
	case t.bare > 0:
		v.Why = fmt.Sprintf("%s rose from grant to grant, but %s carried none", many(t.granted, "token"), many(t.bare, "grant"))
	case t.met == 0:
		v.Result, v.say = Holds, func() string { return many(t.granted, "token") + ", and none after another client's" }
	default:
		v.Result, v.say = Holds, func() string {
			return fmt.Sprintf("%s, each larger than those before, %s after another client's", many(t.granted, "token"), count(t.met))
		}
	}
	return v
}

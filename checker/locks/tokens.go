package locks

import (
	"fmt"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// tokens judges that fencing tokens rise from grant to grant: no token is
// granted twice, and in the order of the tokens each grant fits the greedy
// schedule t = max(t, earliest) <= return. The schedule fails if and only if
// some token was surely granted after a larger one, so it is enough to compare each grant with the largest token
// granted before. The smallest bad history:
//
//	client 1  acquire  [1, 2]  fence 8
//	client 2  acquire  [3, 4]  fence 7
//
// An opportunity is a grant with a token after another client had surely been granted one: a larger one would have
// shown.
type tokens struct {
	h       *history.Header
	key     history.Value
	seen    monitor.Table[bool]
	largest monitor.RunningMax
	grants  monitor.Contention
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
	from := monitor.Granted(t.h, op)
	if t.grants.Follows(op.Client, from) {
		t.met++
	}
	t.grants.Add(op.Client, op.Return)
	seen := t.seen.At(history.Int(op.Fence))
	switch before := t.largest.Before(from); {
	case before != nil && before.Value >= op.Fence:
		t.fail(op, &before.Op)
	case *seen:
		t.fail(op, nil)
	}
	*seen = true
	t.largest.Add(op.Fence, op)
}

func (t *tokens) fail(op, before *history.Op) {
	t.broken++
	if t.broken > 1 {
		return
	}
	t.witness = []history.Op{*op}
	t.why = fmt.Sprintf("%s was granted %s at %s with the token %s, which had been granted before",
		say.Client(op), say.Titled("lock", t.key), say.At(op.Return), say.Thousands(op.Fence))
	if before != nil {
		t.why = fmt.Sprintf("%s was granted %s at %s with the token %s, after %s had been granted it at %s with the token %s",
			say.Client(op), say.Titled("lock", t.key), say.At(op.Return), say.Thousands(op.Fence), say.Client(before), say.At(before.Return), say.Thousands(before.Fence))
		t.witness = monitor.InOrder(*before, *op)
	}
}

// rise returns the verdict on fencing.
func (l *lock) rise(*locks) monitor.Verdict {
	t := l.tokens
	v := monitor.Verdict{Opportunities: t.met}
	switch {
	case t.broken > 0:
		v.Result, v.Count, v.Why, v.Witness = monitor.Violated, t.broken, t.why, t.witness
	case t.granted == 0:
		v.Why, v.Idle = "no grant carried a token", t.bare == 0
	case t.bare > 0:
		v.Why = fmt.Sprintf("%s rose from grant to grant, but %s carried none", say.Count(t.granted, "token"), say.Count(t.bare, "grant"))
	case t.met == 0:
		v.Result, v.Say = monitor.Holds, func() string { return say.Count(t.granted, "token") + ", and none after another client's" }
	default:
		v.Result, v.Say = monitor.Holds, func() string {
			return fmt.Sprintf("%s, each larger than those before, %s after another client's", say.Count(t.granted, "token"), say.Thousands(t.met))
		}
	}
	return v
}

package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// firstCome judges that who joined the line first is served first.
//
// It is broken for certain when a client had its place in the line before
// another one even called, and the other one's grant returned before the
// first can have had its own. A client that never got the lock is not counted:
// it may have left the line. The smallest bad history:
//
//	client 1  join     [1, 2]
//	client 2  acquire  [3, 4]
//	client 1  acquire  [1, 7]  until 5 + TTL: the winning attempt began at 5
type firstCome struct {
	h     *history.Header
	locks keyed[line]
}

type line struct {
	key     history.Value
	joined  map[int64]history.Op
	grants  rising // by the call: who called last among those served before t
	served  int64
	inLine  int64
	broken  int
	why     string
	witness []history.Op
}

func newFirstCome(h *history.Header) *firstCome {
	return &firstCome{h: h, locks: newKeyed(func(key history.Value) *line {
		return &line{key: key, joined: make(map[int64]history.Op)}
	})}
}

// Observe implements [Monitor].
func (m *firstCome) Observe(op *history.Op) {
	switch op.Kind {
	case history.Join:
		m.locks.at(op.Key).join(op)
	case history.Acquire:
		m.locks.at(op.Key).acquire(m.h, op)
	}
}

func (l *line) join(op *history.Op) {
	if op.Outcome == history.OK {
		l.joined[session(op)] = *op
	}
}

func (l *line) acquire(h *history.Header, op *history.Op) {
	joined, ok := l.joined[session(op)]
	if ok {
		delete(l.joined, session(op))
	}
	if op.Outcome != history.OK {
		return
	}
	l.served++
	if ok {
		l.inLine++
		from := granted(h, op)
		if other := l.grants.before(from); other != nil && time.Duration(other.value) > joined.Return {
			l.overtaken(&joined, op, &other.op, from)
		}
	}
	l.grants.add(int64(op.Call), op)
}

func (l *line) overtaken(joined, op, other *history.Op, from time.Duration) {
	l.broken++
	if l.broken > 1 {
		return
	}
	l.why = fmt.Sprintf("%s joined the line for %s at %s; %s called only at %s and was served at %s, before %s, served at %s at the earliest",
		client(op), title(l.key), at(joined.Return), client(other), at(other.Call), at(other.Return), client(op), at(from))
	l.witness = inOrder(*joined, *other, *op)
}

// Advance implements [Monitor].
func (m *firstCome) Advance(lowWater time.Duration) {
	for _, l := range m.locks.all {
		l.grants.forget(lowWater)
	}
}

// Verdict implements [Monitor].
func (m *firstCome) Verdict() Verdict {
	return m.locks.verdict(variant.Lock, variant.FIFO, "nobody tried to obtain the lock", func(l *line) Verdict {
		switch {
		case l.broken > 0:
			return Verdict{Result: Violated, Count: l.broken, Why: l.why, Witness: l.witness}
		case l.inLine == 0:
			return Verdict{Why: "nobody was served from a line"}
		}
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s from the line, nobody overtaken for certain", many(l.inLine, "grant"))}
	})
}

package monitor

import (
	"time"

	"oversell/history"
)

// Contention finds the operations on one key that contended with another client's: without contention, mutual exclusion
// was not tested. Add only operations with an answer, in completion order.
type Contention struct {
	last, other party // the last operation to end, and the last one of another client
	first, next party // the first operation to end, and the first one of another client
}

// party is an operation that has ended.
type party struct {
	ret    time.Duration
	client int32
	known  bool
}

// Meets adds an operation that its client wanted from a time on. It reports whether it
// overlaps an operation of another client that ended before it. Of two that overlap, it reports the one that ends last.
func (c *Contention) Meets(client int32, from, ret time.Duration) bool {
	overlaps := c.Overlaps(client, from)
	c.Add(client, ret)
	return overlaps
}

// Overlaps reports whether an operation of another client had not ended at a time.
func (c *Contention) Overlaps(client int32, from time.Duration) bool {
	p := &c.last
	if p.client == client {
		p = &c.other
	}
	return p.known && from < p.ret
}

// Follows reports whether an operation of another client had ended before a time.
func (c *Contention) Follows(client int32, call time.Duration) bool {
	p := &c.first
	if p.client == client {
		p = &c.next
	}
	return p.known && p.ret < call
}

// Add adds an operation.
func (c *Contention) Add(client int32, ret time.Duration) {
	now := party{ret, client, true}
	if c.last.known && c.last.client != client {
		c.other = c.last
	}
	c.last = now
	switch {
	case !c.first.known:
		c.first = now
	case !c.next.known && client != c.first.client:
		c.next = now
	}
}

// Wishes records since when a client has wanted an operation under a lock: since it asked for the lock. Two clients
// contend even if a lock keeps their critical sections apart.
type Wishes struct {
	byClient map[int32]wish
}

// wish is the last lock that a client was granted.
type wish struct {
	session history.Value
	call    time.Duration
}

// Grant adds a lock that was granted.
func (w *Wishes) Grant(op *history.Op) {
	if w.byClient == nil {
		w.byClient = make(map[int32]wish)
	}
	w.byClient[op.Client] = wish{op.Arg, op.Call}
}

// Since returns when the client began to want this operation.
func (w *Wishes) Since(op *history.Op) time.Duration {
	if op.Session == (history.Value{}) {
		return op.Call
	}
	if g, ok := w.byClient[op.Client]; ok && g.session == op.Session {
		return min(g.call, op.Call)
	}
	return op.Call
}

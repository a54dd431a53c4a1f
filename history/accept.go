package history

import (
	"time"

	"oversell/internal/numset"
	"oversell/variant"
)

// acceptor checks a history while it is read. It remembers recent operations, and at most one bit for each identity.
// validator accepts every history that acceptor accepts. A history that acceptor does not accept may still be valid:
// acceptor cannot decide on an operation that refers to one long ago, or that is in the file before the one it refers
// to, on identities that are texts, and on some rare cases. Then the history is read into memory, and validator
// decides.
type acceptor struct {
	h       *Header
	once    bool // a monitor judges a refund sent twice
	clients []recentOps
	keyed   [classes]struct{ any, key bool }
	asked   numset.Set // sessions that a client tried to acquire

	grants, holds, orders, pops identities
}

// newAcceptor returns nil if the header is invalid.
func newAcceptor(h *History) *acceptor {
	v := validator{h: h}
	if v.header() != nil {
		return nil
	}
	return &acceptor{h: &h.Header, once: h.Header.Promised(variant.Sale, variant.OncePerOrder)}
}

// op accepts the next operation of the file.
func (a *acceptor) op(op *Op) bool {
	if times(op) != nil || op.Amount < 0 || op.Session.blank() || op.Kind == NoKind {
		return false
	}
	if (op.Outcome != OK || op.Reason != NoReason) && answer(op) != nil {
		return false
	}
	return a.named(op) && a.inTime(op) && a.refers(op)
}

// named accepts a key if the other operations of the class have one, and none if they have none.
func (a *acceptor) named(op *Op) bool {
	k := &a.keyed[op.Kind.class()]
	has := op.Key != Value{}
	if !k.any {
		k.any, k.key = true, has
	}
	return k.key == has || op.Kind.class() == elsewhere
}

func (a *acceptor) refers(op *Op) bool {
	switch op.Kind {
	case Acquire:
		return a.acquire(op)
	case Take:
		return op.Outcome == Refused || op.Outcome == Unknown && op.Session == (Value{}) || a.holds.put(op, op.Session)
	case Extend, Release, Join:
		return op.Outcome == Refused && op.Arg == (Value{}) || a.grants.after(op, op.Arg) || a.own(op)
	case Submit:
		return a.holds.after(op, op.Session)
	case Buy:
		return a.buy(op)
	case Refund:
		return op.Outcome == Refused && !op.Arg.blank() || a.refund(op)
	case Pop:
		return op.Session == (Value{}) || op.Outcome == Refused || a.pop(op)
	case Ack:
		return op.Session == (Value{}) || a.ack(op)
	case ReadState:
		_, number := op.Result.Num()
		return number || op.Outcome != OK
	}
	return true
}

func (a *acceptor) acquire(op *Op) bool {
	id, number := op.Arg.Num()
	if !number || !a.asked.Add(id) {
		return false
	}
	return op.Outcome == Refused || a.grants.put(op, op.Arg)
}

func (a *acceptor) buy(op *Op) bool {
	e, known := a.orders.find(op.Key, op.Arg)
	switch {
	case known && e == nil:
		return false
	case !known:
		if !a.orders.enter(op, op.Arg) {
			return false
		}
	case e.pieces != op.Pieces():
		return false
	case op.Outcome != Refused && (e.outcome == Refused || op.Call < e.call):
		e.call, e.outcome = op.Call, op.Outcome
	}
	if op.Session == (Value{}) || !a.h.Has(variant.Lock) {
		return true
	}
	id, number := op.Session.Num()
	return number && a.asked.Has(id)
}

// refund accepts the first refund of a recent purchase.
func (a *acceptor) refund(op *Op) bool {
	e, known := a.orders.find(op.Key, op.Arg)
	if !known || e == nil || op.Pieces() > e.pieces || e.outcome == Refused || op.Return < e.call {
		return false
	}
	if op.Outcome != OK || op.Reason == Repeated || a.once {
		return true
	}
	first := !e.refunded
	e.refunded = true
	return first
}

func (a *acceptor) pop(op *Op) bool {
	e, known := a.pops.find(op.Key, op.Session)
	if !known {
		return a.pops.enter(op, op.Session)
	}
	if e == nil || e.client != op.Client || e.call != op.Call || e.ret != op.Return {
		return false
	}
	e.more = append(e.more, op.Result)
	return true
}

func (a *acceptor) ack(op *Op) bool {
	e, known := a.pops.find(op.Key, op.Session)
	if !known || e == nil || op.Call <= e.call || e.outcome == OK && op.Call <= e.ret {
		return false
	}
	if e.outcome != OK || e.task == op.Arg {
		return true
	}
	for _, task := range e.more {
		if task == op.Arg {
			return true
		}
	}
	return false
}

// recentOps are the last operations of a client.
type recentOps struct {
	last time.Duration // the latest return
	n    int
	ops  [6]recentOp
}

type recentOp struct {
	call, ret time.Duration
	key, arg  Value
	session   Value
	kind      Kind
	outcome   Outcome
}

// inTime accepts an operation that is called after the one before has returned, or around some recent ones on other
// objects.
func (a *acceptor) inTime(op *Op) bool {
	if op.Kind == Fault || op.Kind == Join {
		return true
	}
	if op.Client < 0 || op.Client >= 1<<20 {
		return false
	}
	for int(op.Client) >= len(a.clients) {
		a.clients = append(a.clients, recentOps{})
	}
	c := &a.clients[op.Client]
	if c.n > 0 && op.Call <= c.last {
		if b := &c.ops[(c.n-1)%len(c.ops)]; b.same(op) {
			return true
		}
		if !c.around(op) {
			return false
		}
	}
	c.last = max(c.last, op.Return)
	c.ops[c.n%len(c.ops)] = recentOp{op.Call, op.Return, op.Key, op.Arg, op.Session, op.Kind, op.Outcome}
	c.n++
	return true
}

// own reports whether the client of a lock's operation was itself granted the lock just before. One client may have
// recorded it long before others recorded their operations of that time.
func (a *acceptor) own(op *Op) bool {
	if op.Client < 0 || int(op.Client) >= len(a.clients) {
		return false
	}
	for _, b := range a.clients[op.Client].ops {
		if b.kind == Acquire && b.outcome == OK && b.key == op.Key && b.arg == op.Arg && b.ret < op.Call {
			return true
		}
	}
	return false
}

// same is sameRequest for operations of one client.
func (b *recentOp) same(op *Op) bool {
	x := Op{Client: op.Client, Kind: b.kind, Call: b.call, Return: b.ret, Session: b.session, Outcome: b.outcome}
	return sameRequest(&x, op)
}

// around reports whether op surely encloses the operations that had not returned before its call.
func (c *recentOps) around(op *Op) bool {
	for i := c.n - 1; i >= 0; i-- {
		if i < c.n-len(c.ops) {
			return false // too long ago to tell
		}
		b := &c.ops[i%len(c.ops)]
		switch {
		case b.ret < op.Call:
			return true
		case op.Call >= b.call || b.ret >= op.Return || b.kind.class() == op.Kind.class():
			return false
		}
	}
	return true
}

// identities holds the operations to which others can refer, each by a number of its own, for each key.
type identities struct {
	last *identitiesOf
	all  []*identitiesOf
}

type identitiesOf struct {
	key      Value
	known    numset.Set
	recent   []recentIdentity // by the last bits of the number
	returned time.Duration    // the latest return of those that are no longer recent
}

// recentIdentity is an identity that was given out recently.
type recentIdentity struct {
	id        int64
	call, ret time.Duration
	pieces    int64
	task      Value
	more      []Value // tasks of the same request
	client    int32
	outcome   Outcome
	used      bool
	refunded  bool
}

const (
	mostKeys   = 16
	mostRecent = 1 << 15
)

func (x *identities) of(key Value) *identitiesOf {
	if x.last != nil && x.last.key == key {
		return x.last
	}
	for _, k := range x.all {
		if k.key == key {
			x.last = k
			return k
		}
	}
	if len(x.all) == mostKeys {
		return nil
	}
	x.last = &identitiesOf{key: key, recent: make([]recentIdentity, mostRecent)}
	x.all = append(x.all, x.last)
	return x.last
}

// find reports whether an identity is known, or whether that is uncertain, and returns it if it is
// recent.
func (x *identities) find(key, id Value) (e *recentIdentity, known bool) {
	n, number := id.Num()
	k := x.of(key)
	if k == nil || !number { // it is not certain
		return nil, true
	}
	if !k.known.Has(n) {
		return nil, false
	}
	if e = &k.recent[n&(mostRecent-1)]; e.used && e.id == n {
		return e, true
	}
	return nil, true
}

// put enters an identity, which no other operation may have entered before.
func (x *identities) put(op *Op, id Value) bool {
	if id == (Value{}) || id.blank() {
		return false
	}
	if _, known := x.find(op.Key, id); known {
		return false
	}
	return x.enter(op, id)
}

func (x *identities) enter(op *Op, id Value) bool {
	n, _ := id.Num()
	k := x.of(op.Key)
	if !k.known.Add(n) {
		return false
	}
	e := &k.recent[n&(mostRecent-1)]
	if e.used {
		k.returned = max(k.returned, e.ret)
	}
	*e = recentIdentity{id: n, call: op.Call, ret: op.Return, pieces: op.Pieces(), task: op.Result, client: op.Client, outcome: op.Outcome, used: true}
	return true
}

// after accepts an operation that was called after the one that it refers to.
func (x *identities) after(op *Op, id Value) bool {
	if id == (Value{}) || id.blank() {
		return false
	}
	if _, number := id.Num(); op.Kind == Join && number {
		return true
	}
	e, known := x.find(op.Key, id)
	switch {
	case !known:
		return false // it may come later
	case e != nil:
		return op.Call > e.call && (e.outcome != OK || op.Call > e.ret)
	}
	k := x.of(op.Key)
	return k != nil && op.Call > k.returned
}

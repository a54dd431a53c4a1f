package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/variant"
)

// ErrInvalid says that a history contradicts itself: it records an impossible event, or identities that cannot be
// distinguished, so every verdict from it could be wrong.
var ErrInvalid = errors.New("invalid history")

// latest bounds all times of a history, some 73 years, so that sums of a few of them do
// not overflow. Only a lease may end later: at [Forever].
const latest = time.Duration(1 << 61)

// places gives the places of the operations in the file.
type places struct {
	lined bool    // in lines
	lines []int32 // by operation in the order of the file
}

func (p *places) of(i int) string {
	if p.lined {
		return "line " + group(int(p.lines[i]))
	}
	return "operation " + group(i+1)
}

func (p *places) header() string {
	if p.lined {
		return "line 1"
	}
	return "header"
}

// finish checks a history that was read, and puts it into completion order. It does not check a damaged one, which is
// not as it was written.
func finish(h *History, at *places, err error) (*History, error) {
	if err != nil {
		return nil, err
	}
	order := make(chan []sortKey, 1)
	go func() { order <- completionOrder(h.Ops) }() // meanwhile
	if !h.Damaged {
		v := validator{h: h, at: at, cut: h.Trailer == nil}
		err = v.run()
	}
	sorted := <-order
	if err != nil {
		return nil, err
	}
	sortInto(h.Ops, sorted)
	return h, nil
}

// validator checks, in the order of the file, the conditions on which all monitors rely.
//
// A history that was cut off lacks the operations in flight, so in it a reference to a
// missing operation is not a contradiction.
type validator struct {
	h   *History
	at  *places
	cut bool

	clients clients
	grants  index // acquisitions that may have succeeded, by session
	holds   index // takes that may have succeeded, by hold
	orders  index // purchases: of each order one that may have succeeded, the earliest, if any
	pops    index // requests, one operation each
	late    []int // operations to check when all the others are known
	refunds index // answered ones, the first of each order
	// sessions are the sessions that a client tried to acquire, built when they are needed.
	sessions map[Value]bool
	firsts   [classes]int // the first operation of each class, plus one
	// returned are the pieces of orders with several, by the first refund.
	returned map[int]int64
}

func (v *validator) run() error {
	if err := v.header(); err != nil {
		return fmt.Errorf("%s: %w: %w", v.at.header(), ErrInvalid, err)
	}
	ops := v.h.Ops
	var counts [256]int
	v.clients, counts = newClients(ops)
	arg, session := func(op *Op) Value { return op.Arg }, func(op *Op) Value { return op.Session }
	v.grants, v.orders = newIndex(ops, counts[Acquire], arg), newIndex(ops, counts[Buy], arg)
	v.refunds = newIndex(ops, counts[Refund], arg)
	v.holds, v.pops = newIndex(ops, counts[Take], session), newIndex(ops, counts[Pop], session)
	for i := range ops {
		if err := v.op(i, &ops[i]); err != nil {
			return v.wrong(i, err)
		}
	}
	for _, i := range v.late {
		if err := v.refers(i, &ops[i]); err != nil {
			return v.wrong(i, err)
		}
	}
	if i, err := v.clients.nested(v.at); err != nil {
		return v.wrong(i, err)
	}
	return nil
}

func (v *validator) wrong(i int, err error) error {
	return fmt.Errorf("%s: %w: %w", v.at.of(i), ErrInvalid, err)
}

func (v *validator) header() error {
	h := &v.h.Header
	for _, d := range []struct {
		name string
		of   time.Duration
	}{
		{"visibility_ns", h.Visibility}, {"delay_ns", h.Delay}, {"ttl_ns", h.TTL}, {"wait_ns", h.Wait}, {"retry_ns", h.Retry}, {"hold_ns", h.Hold},
		{"duration_ns", h.Duration}, {"timeout_ns", h.Timeout}, {"grace_ns", h.Grace}, {"drift_ns", h.Drift}, {"redial_ns", h.Redial},
	} {
		if d.of < 0 || d.of > latest {
			return fmt.Errorf("%q is %d: it must be from 0 to %d", d.name, d.of, latest)
		}
	}
	for _, n := range []struct {
		name string
		is   int64
	}{
		{"stock", h.Stock}, {"quantity", int64(h.Quantity)}, {"clients", int64(h.Clients)}, {"pool", int64(h.Pool)}, {"attempts", int64(h.Attempts)}, {"batch", int64(h.Batch)}, {"abandon", int64(h.Abandon)}, {"ops", h.Ops},
	} {
		if n.is < 0 || n.is > int64(latest) {
			return fmt.Errorf("%q is %d: it must be from 0 to %d", n.name, n.is, latest)
		}
	}
	for _, p := range []struct {
		name string
		is   float64
	}{{"resend", h.Resend}, {"refund", h.Refund}, {"repeat", h.Repeat}, {"die", h.Die}, {"withdraw", h.Withdraw}, {"peek", h.Peek}} {
		if !(p.is >= 0 && p.is <= 1) {
			return fmt.Errorf("%q is %v: a probability is from 0 to 1", p.name, p.is)
		}
	}
	if e := h.Expected; e != "" && e != "pass" && e != "violated" {
		return fmt.Errorf(`"expected" is %q: it must be "pass" or "violated", or absent where no outcome is declared`, printable.Short(e))
	}
	return nil
}

// op checks an operation, alone and against those before it in the file.
func (v *validator) op(i int, op *Op) error {
	if err := times(op); err != nil {
		return err
	}
	if op.Outcome != OK || op.Reason != NoReason {
		if err := answer(op); err != nil {
			return err
		}
	}
	if op.Amount < 0 {
		return fmt.Errorf("the amount is %d: it must be positive", op.Amount)
	}
	if op.Session.blank() {
		return errors.New("the session is an empty text: leave it out where there is none")
	}
	v.clients.observe(i, op)
	if err := v.named(i, op); err != nil {
		return err
	}
	switch op.Kind {
	case NoKind:
		return errors.New("the kind of the operation is missing")
	case Acquire:
		return v.grant(&v.grants, i, op, op.Arg, "session")
	case Take:
		return v.grant(&v.holds, i, op, op.Session, "hold")
	case Extend, Release, Join:
		return v.under(&v.grants, i, op, op.Arg, "session")
	case Submit:
		return v.under(&v.holds, i, op, op.Session, "hold")
	case Buy:
		if err := v.buy(i, op); err != nil {
			return err
		}
		return v.inside(i, op)
	case Ack:
		v.late = append(v.late, i)
	case Refund:
		if op.Arg.blank() {
			return errors.New("the order is an empty text: a refund needs the identity of its order")
		}
		if op.Outcome != Refused {
			v.late = append(v.late, i)
		}
	case Pop:
		return v.pop(i, op)
	case ReadState:
		_, number := op.Result.Num()
		if what := op.Arg.String(); op.Outcome == OK && !number && (what == "left" || what == "reserved" || what == "sold") {
			return fmt.Errorf("the result of reading %q is %q: it must be a whole number", what, printable.Short(op.Result.String()))
		}
	}
	return nil
}

func times(op *Op) error {
	// One comparison for all of them: a negative number converted to unsigned is very
	// large.
	if t := uint64(op.Due) | uint64(op.Call) | uint64(op.Return); t > uint64(latest) || op.Return < op.Call || op.Call < op.Due || op.Until < 0 || op.Until > latest && op.Until != Forever {
		end := "return_ns"
		if op.Outcome == Unknown {
			end = "gave_up_ns"
		}
		for _, t := range []struct {
			name string
			is   time.Duration
		}{{"call_ns", op.Call}, {"due_ns", op.Due}, {end, op.Return}, {"until_ns", op.Until}} {
			switch {
			case t.is < 0:
				return fmt.Errorf("%q is %d: no time may be before the start of the run", t.name, t.is)
			case t.is > latest && (t.name != "until_ns" || t.is != Forever):
				return fmt.Errorf("%q is %d: no time may be after %d ns", t.name, t.is, latest)
			}
		}
		if op.Return < op.Call {
			return fmt.Errorf("it returns at %d ns, before its call at %d ns", op.Return, op.Call)
		}
		if op.Call < op.Due {
			return fmt.Errorf("it is called at %d ns, before it was due at %d ns", op.Call, op.Due)
		}
	}
	return nil
}

// answer checks that the reason fits the outcome, and the kind of the operation.
func answer(op *Op) error {
	if op.Reason == NoReason {
		return nil
	}
	possible := true
	switch op.Outcome {
	case Unknown:
		possible = false
	case OK:
		possible = op.Reason == Repeated && repeats[op.Kind.class()]
	case Refused:
		possible = op.Reason != Repeated && !slices.Contains(foreign[op.Kind.class()], op.Reason) || op.Kind == Effect && op.Reason == SoldOut
	}
	if !possible {
		return fmt.Errorf("the outcome is %q with the reason %q: no %s ends so", op.Outcome, op.Reason, op.Kind)
	}
	return nil
}

// class is the class of objects that an operation works on.
type class uint8

const (
	elsewhere class = iota
	onLock
	onSale
	onQueue
	onIDs
	onPool
	classes
)

var classOf = [256]class{
	Acquire: onLock, Extend: onLock, Release: onLock, Join: onLock,
	Buy: onSale, Refund: onSale,
	Enqueue: onQueue, Dequeue: onQueue, Pop: onQueue, Ack: onQueue, Effect: onQueue,
	NextID: onIDs,
	Take:   onPool, Submit: onPool,
}

func (k Kind) class() class { return classOf[k] }

// repeats says which operations may succeed by repeating an earlier effect.
var repeats = [classes]bool{onSale: true, onQueue: true, onIDs: true, onPool: true}

// foreign lists the reasons for which no operation of a class is refused. An operation may be refused because of a lock
// inside it.
var foreign = [classes][]Reason{
	onLock: {SoldOut, Empty, Changed},
	onSale: {Empty, Changed}, onQueue: {SoldOut}, onIDs: {SoldOut, Changed}, onPool: {SoldOut},
}

// need is the set of fields that monitors need of an operation of some kind, besides its
// times and outcome.
type need uint8

const (
	needsArg need = 1 << iota
	needsResult
)

var needs = [256]need{
	Acquire: needsArg, Extend: needsArg, Release: needsArg, Join: needsArg, Buy: needsArg, Refund: needsArg,
	ReadState: needsArg | needsResult, Enqueue: needsArg, Dequeue: needsArg, Ack: needsArg, Effect: needsArg, Submit: needsArg,
	Pop: needsResult, NextID: needsResult, Take: needsResult,
}

// needed says, for each kind, which fields an operation must have: the error when one is missing.
var needed = [256]string{
	Acquire: "an acquisition needs the identity of its session", Extend: "an extension needs the identity of its session",
	Release: "a release needs the identity of its session", Join: "a place in a line needs the identity of its session",
	Buy: "a purchase needs the identity of its order", Refund: "a refund needs the identity of its order",
	ReadState: "a reading needs what was read, and its result", Enqueue: "it needs the task", Dequeue: "it needs the task", Ack: "it needs the task",
	Effect: "it needs the task", Submit: "it needs the task", Pop: "a delivery needs the task", NextID: "it needs the number", Take: "it needs the task",
}

// blank reports whether the value is an empty text.
func (v Value) blank() bool { return v == blankText }

var blankText = Text("")

// identity checks that an operation has an identity.
func identity(id Value, of Kind, what string) error {
	switch id {
	case Value{}:
		return fmt.Errorf("the identity of the %s is missing or 0: every %s needs one", what, of)
	case blankText:
		return fmt.Errorf("the identity of the %s is an empty text: every %s needs one", what, of)
	}
	return nil
}

// grant checks an operation that gives a client something to hold under an identity. The
// identity must be unique.
func (v *validator) grant(x *index, i int, op *Op, id Value, what string) error {
	if op.Outcome == Refused {
		return nil
	}
	if op.Outcome == Unknown && op.Kind == Take && id == (Value{}) {
		return nil // nothing refers to it
	}
	if err := identity(id, op.Kind, what); err != nil {
		return err
	}
	if other := x.put(i, op, id); other >= 0 {
		return fmt.Errorf("the %s %q is in use: the %s on %s has it, and each that may have been granted needs its own", what, printable.Short(id.String()), op.Kind, v.at.of(other))
	}
	return nil
}

// under checks an operation on a grant by its identity.
func (v *validator) under(x *index, i int, op *Op, id Value, what string) error {
	if op.Outcome == Refused && op.Kind != Submit && id == (Value{}) {
		return nil
	}
	if err := identity(id, op.Kind, what); err != nil {
		return err
	}
	if op.Kind == Join {
		return nil
	}
	if x.find(op.Key, id) < 0 {
		v.late = append(v.late, i)
		return nil
	}
	return v.refers(i, op)
}

// refers checks an operation against the one that it refers to, which may come later in the file.
func (v *validator) refers(i int, op *Op) error {
	switch op.Kind {
	case Refund:
		return v.refund(i, op)
	case Submit:
		return v.after(v.holds.find(op.Key, op.Session), op)
	case Ack:
		return v.ack(op)
	}
	return v.after(v.grants.find(op.Key, op.Arg), op)
}

// after checks that an operation came after the grant that it refers to. A reference without a grant is not an error:
// programs can do that.
func (v *validator) after(grant int, op *Op) error {
	if grant < 0 {
		return nil
	}
	g := &v.h.Ops[grant]
	switch {
	case g.Outcome == OK && op.Call <= g.Return:
		return fmt.Errorf("it is called at %d ns, and the %s that it refers to, on %s, returned at %d ns only", op.Call, g.Kind, v.at.of(grant), g.Return)
	case op.Call <= g.Call:
		return fmt.Errorf("it is called at %d ns, and the %s that it refers to, on %s, was called at %d ns only", op.Call, g.Kind, v.at.of(grant), g.Call)
	}
	return nil
}

func (v *validator) buy(i int, op *Op) error {
	if op.Arg.blank() {
		return errors.New("the order is an empty text: a purchase needs the identity of its order")
	}
	slot := v.orders.slot(op.Key, op.Arg)
	if *slot == 0 {
		*slot = int32(i) + 1
		return nil
	}
	first := &v.h.Ops[*slot-1]
	if first.Pieces() != op.Pieces() {
		return fmt.Errorf("order %q is of %s, and on %s of %s: an order sent again must be the same", printable.Short(op.Arg.String()), phrase.Count(int(op.Pieces()), "piece"), v.at.of(int(*slot-1)), group(int(first.Pieces())))
	}
	if op.Outcome != Refused && (first.Outcome == Refused || op.Call < first.Call) {
		*slot = int32(i) + 1
	}
	return nil
}

func (v *validator) refund(n int, op *Op) error {
	i := v.orders.find(op.Key, op.Arg)
	if i < 0 {
		if v.cut {
			return nil
		}
		return fmt.Errorf("order %q is refunded, and no purchase of it is in the history", printable.Short(op.Arg.String()))
	}
	buy := &v.h.Ops[i]
	switch {
	case op.Pieces() > buy.Pieces():
		return fmt.Errorf("order %q: %s refunded, and it was of %s on %s", printable.Short(op.Arg.String()), phrase.Count(int(op.Pieces()), "piece"), group(int(buy.Pieces())), v.at.of(i))
	case v.cut:
	case op.Outcome == Unknown: // it may have had no effect, or one at any time since its call
	case buy.Outcome == Refused:
		return fmt.Errorf("order %q is refunded, and every purchase of it was refused, as on %s", printable.Short(op.Arg.String()), v.at.of(i))
	case op.Return < buy.Call:
		return fmt.Errorf("order %q is refunded by %d ns, and bought on %s at %d ns only", printable.Short(op.Arg.String()), op.Return, v.at.of(i), buy.Call)
	}
	return v.sum(n, i, op)
}

// sum checks, at refund n of a purchase, that the refunds of an order do not come to more than it. Those without an
// answer may have had no effect. If once-per-order is promised, a monitor judges further ones.
func (v *validator) sum(n, bought int, op *Op) error {
	if op.Outcome != OK || op.Reason == Repeated || v.h.Header.Promised(variant.Sale, variant.OncePerOrder) {
		return nil
	}
	first := v.refunds.put(n, op, op.Arg)
	if first < 0 {
		return nil
	}
	if v.returned == nil {
		v.returned = make(map[int]int64)
	}
	if v.returned[first] == 0 {
		v.returned[first] = v.h.Ops[first].Pieces()
	}
	most := v.h.Ops[bought].Pieces()
	if v.returned[first] += op.Pieces(); v.returned[first] > most {
		return fmt.Errorf("order %q: %s refunded in all, with those on %s, and it was of %s on %s: what is refunded twice is judged only where %s is promised",
			printable.Short(op.Arg.String()), phrase.Count(int(v.returned[first]), "piece"), v.at.of(first), group(int(most)), v.at.of(bought), variant.OncePerOrder)
	}
	return nil
}

// pop checks that a request for tasks is one request: it may have several deliveries, at once and to one client.
func (v *validator) pop(i int, op *Op) error {
	if op.Session == (Value{}) || op.Outcome == Refused {
		return nil
	}
	slot := v.pops.slot(op.Key, op.Session)
	if *slot == 0 {
		*slot = int32(i) + 1
		return nil
	}
	if first := &v.h.Ops[*slot-1]; !sameRequest(first, op) {
		return fmt.Errorf("the request %q is in use: the pop on %s has it, and each needs its own", printable.Short(op.Session.String()), v.at.of(int(*slot-1)))
	}
	return nil
}

// ack checks that a task is acknowledged under the request that took it.
func (v *validator) ack(op *Op) error {
	if op.Session == (Value{}) {
		return nil
	}
	i := v.pops.find(op.Key, op.Session)
	if i < 0 {
		if v.cut {
			return nil
		}
		return fmt.Errorf("it names the request %q, and no pop has that", printable.Short(op.Session.String()))
	}
	first := &v.h.Ops[i]
	if err := v.after(i, op); err != nil || first.Outcome != OK {
		return err
	}
	for ; i < len(v.h.Ops) && v.h.Ops[i].Return == first.Return; i++ {
		if other := &v.h.Ops[i]; sameRequest(first, other) && other.Result == op.Arg {
			return nil
		}
	}
	if v.cut {
		return nil
	}
	return fmt.Errorf("it acknowledges task %q under the request %q, which handed out another: see %s", printable.Short(op.Arg.String()), printable.Short(op.Session.String()), v.at.of(int(v.pops.find(op.Key, op.Session))))
}

// inside checks that a client tried to acquire the session in which a purchase was made.
func (v *validator) inside(i int, op *Op) error {
	if v.cut || op.Session == (Value{}) || !v.h.Header.Has(variant.Lock) {
		return nil
	}
	if v.sessions == nil {
		v.sessions = map[Value]bool{}
		for i := range v.h.Ops {
			if op := &v.h.Ops[i]; op.Kind == Acquire {
				v.sessions[op.Arg] = true
			}
		}
	}
	if !v.sessions[op.Session] {
		return fmt.Errorf("it was made in the session %q, and no acquisition has that", printable.Short(op.Session.String()))
	}
	return nil
}

// named checks that either all operations on one kind of object name a key or none does: a
// missing key does not stand for another object.
func (v *validator) named(i int, op *Op) error {
	class := op.Kind.class()
	if class == elsewhere {
		return nil
	}
	first := &v.firsts[class]
	if *first == 0 {
		*first = i + 1
		return nil
	}
	with, without := i, *first-1
	if op.Key == (Value{}) {
		with, without = without, with
	}
	if (v.h.Ops[with].Key == Value{}) == (v.h.Ops[without].Key == Value{}) {
		return nil
	}
	if without == i {
		return fmt.Errorf("it has no key, and the %s on %s has one", v.h.Ops[with].Kind, v.at.of(with))
	}
	return fmt.Errorf("it has the key %q, and the %s on %s has none", printable.Short(op.Key.String()), v.h.Ops[without].Kind, v.at.of(without))
}

// sameRequest reports whether two operations belong to one request to a queue: a pop of several tasks, a peek at
// several, an enqueue of a list.
func sameRequest(a, b *Op) bool {
	if a.Kind != b.Kind || a.Client != b.Client || a.Call != b.Call || a.Return != b.Return || a.Session != b.Session {
		return false
	}
	switch a.Kind {
	case Pop:
		return a.Session != (Value{}) || a.Outcome == OK && b.Outcome == OK
	case Enqueue, Peek:
		return a.Session != (Value{})
	}
	return false
}

// clients checks that the times of each client strictly rise: it calls an operation after the one before has returned,
// or during one on another object, as a consumer takes a lock inside its queue. Faults belong to no client, and a join
// is recorded by its acquisition.
type clients struct {
	ops    []Op
	dense  []lifetime
	others map[int32]*lifetime
	unsure bool // the operations of some client overlap
}

// lifetime is the record of a client.
type lifetime struct {
	last   time.Duration // the latest return so far
	op     int32         // the operation before, plus one
	unsure bool          // its operations do not simply follow one another, in the order of the file
}

// newClients also counts the operations of each kind.
func newClients(ops []Op) (_ clients, counts [256]int) {
	most := int32(-1)
	limit := int32(min(4*len(ops)+1024, 1<<26))
	for i := range ops {
		counts[ops[i].Kind]++
		if c := ops[i].Client; c > most && c < limit {
			most = c
		}
	}
	return clients{ops: ops, dense: make([]lifetime, most+1), others: map[int32]*lifetime{}}, counts
}

func (c *clients) of(client int32) *lifetime {
	if uint32(client) < uint32(len(c.dense)) {
		return &c.dense[client]
	}
	l := c.others[client]
	if l == nil {
		l = new(lifetime)
		c.others[client] = l
	}
	return l
}

func (c *clients) observe(i int, op *Op) {
	if op.Kind == Fault || op.Kind == Join {
		return
	}
	l := c.of(op.Client)
	if l.op != 0 && op.Call <= l.last && !sameRequest(&c.ops[l.op-1], op) {
		l.unsure, c.unsure = true, true
	}
	l.last, l.op = max(l.last, op.Return), int32(i)+1
}

// nested checks the clients with overlapping operations more closely.
func (c *clients) nested(at *places) (int, error) {
	if !c.unsure {
		return 0, nil
	}
	var list []int32
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind != Fault && op.Kind != Join && c.of(op.Client).unsure {
			list = append(list, int32(i))
		}
	}
	ops := c.ops
	slices.SortFunc(list, func(i, j int32) int {
		a, b := &ops[i], &ops[j]
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Call, b.Call), cmp.Compare(b.Return, a.Return), cmp.Compare(i, j))
	})
	var open []int32 // operations, each within the one before
	for n, i := range list {
		op := &ops[i]
		if n > 0 && ops[list[n-1]].Client != op.Client {
			open = open[:0]
		}
		for len(open) > 0 && ops[open[len(open)-1]].Return < op.Call {
			open = open[:len(open)-1]
		}
		for k := len(open) - 1; k >= 0; k-- {
			outer := &ops[open[k]]
			if sameRequest(outer, op) {
				continue
			}
			if outer.Call == op.Call || op.Return >= outer.Return || outer.Kind.class() == op.Kind.class() {
				return int(i), fmt.Errorf("client %d calls %s at %d ns, and its %s on %s returned at %d ns only: the times of one client must strictly rise; concurrent work needs a client number of its own",
					op.Client, op.Kind, op.Call, outer.Kind, at.of(int(open[k])), outer.Return)
			}
		}
		open = append(open, i)
	}
	return 0, nil
}

package rules

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"oversell/history"
	"oversell/internal/names"
)

// Facts are what Rules must remember of a schedule so far, encoded: two pasts that no later event can distinguish have
// equal Facts. They are empty if there is nothing to remember.
type Facts string

// past is the contents of Facts.
type past struct {
	people []person
	// grants holds, for each of the two locks, the fencing tokens that are needed: the largest, and those above the
	// token that a waiting client must exceed.
	grants [2][]int64
	sale   stockPast
	ids    idsPast
	tasks  []task // by label
	// lostPops says that a pop without an answer may have taken anything.
	lostPops int64
}

// person is the past of one client.
type person struct {
	held  [2]hold // the scenario's lock, and that of its queue
	doing []doing // operations under way, each inside the one before
	// doubted is an order that may have had two effects and is no longer in the sale's orders; 0: none.
	doubted int64
	// asked is a request for a number that had no answer and may be sent again.
	asked doing
}

// hold is a client inside its section; until is the end of its lease, 0 if that is over or does not matter.
type hold struct {
	inside bool
	until  time.Duration
}

// doing is an operation under way.
type doing struct {
	kind  history.Kind
	inner int   // which lock, 1 for one inside a queue's operation
	what  label // the order, the task or the request for a number
	// floor is the least answer allowed: a token, a number; for an Enqueue 1 if it replaces or follows all earlier
	// ones; for a Release 1 if another client held the lock as well.
	floor  int64
	pieces int64
	paid   int64 // pieces refunded since the call
}

// label names an order or a task: number n of a client, or of none (noClient).
type label struct {
	of int
	n  int64
}

// noClient owns the numbers that no client made up.
const noClient = names.MaxClients

// labelOf returns the label of a value in the names of client.
func labelOf(v history.Value, client int) label {
	n, ok := v.Num()
	if !ok {
		for _, c := range []byte(v.String()) { // not one of ours; any label will do
			n = n*31 + int64(c)
		}
		return label{noClient, n & (1<<40 - 1)}
	}
	of, number, ok := names.NumberOwner(n)
	switch {
	case !ok:
		return label{noClient, n}
	case of == names.Self-'0':
		of = client
	}
	return label{of, number}
}

func (l label) String() string {
	if l.of == noClient {
		return fmt.Sprint(l.n)
	}
	return fmt.Sprintf("%d.%d", l.of, l.n)
}

func (l label) compare(m label) int { return cmp.Or(cmp.Compare(l.of, m.of), cmp.Compare(l.n, m.n)) }

// at returns the index in doing of an operation of this kind, -1 if there is none.
func (me *person) at(k history.Kind) int {
	return slices.IndexFunc(me.doing, func(d doing) bool { return d.kind == k })
}

// queueing returns 1 while a queue's operation is under way: its lock is not the scenario's.
func (me *person) queueing() int {
	for _, d := range me.doing {
		switch d.kind {
		case history.Enqueue, history.Dequeue, history.Pop, history.Ack, history.Take, history.Submit:
			return 1
		}
	}
	return 0
}

// leave ends the operation of this kind, with all inside it, and returns what was noted at its call; the zero value if
// it was not called.
func (p *past) leave(client int, k history.Kind) doing {
	me := &p.people[client]
	i := me.at(k)
	if i < 0 {
		return doing{kind: k, inner: me.queueing()}
	}
	d := me.doing[i]
	me.doing = me.doing[:i]
	return d
}

// lapse ends the leases that are over by now.
func (p *past) lapse(now time.Duration) {
	for i := range p.people {
		for k := range p.people[i].held {
			if h := &p.people[i].held[k]; h.until <= now {
				h.until = 0
			}
		}
	}
}

// underway returns the clients, a bit each, that have an operation of this kind under way,
// about what if that is given.
func (p *past) underway(k history.Kind, what *label) (mask int64) {
	for i := range p.people {
		for _, d := range p.people[i].doing {
			if d.kind == k && (what == nil || d.what == *what) {
				mask |= 1 << i
			}
		}
	}
	return mask
}

// forget drops what cannot matter any more, so that pasts with the same future are
// equal.
func (r *Rules) forget(p *past, now time.Duration) {
	for i := range p.people {
		if me := &p.people[i]; !r.lock.mutex && !r.lock.owner && !r.lock.excludes {
			me.held[0].until, me.held[1].until = 0, 0
		}
	}
	r.forgetGrants(p)
	r.forgetOrders(p)
	r.forgetTasks(p, now)
}

// relabel renames the clients everywhere but in the order of people.
func (p *past) relabel(perm []int) {
	name := func(l *label) {
		if l.of < len(perm) && *l != (label{}) {
			l.of = perm[l.of]
		}
	}
	mask := func(m *int64) {
		var out int64
		for rest := *m; rest != 0; rest &= rest - 1 {
			out |= 1 << perm[bits.TrailingZeros64(uint64(rest))]
		}
		*m = out
	}
	for i := range p.people {
		me := &p.people[i]
		for k := range me.doing {
			name(&me.doing[k].what)
		}
		name(&me.asked.what)
	}
	for i := range p.sale.orders {
		name(&p.sale.orders[i].what)
	}
	for i := range p.sale.refusals {
		name(&p.sale.refusals[i].what)
		mask(&p.sale.refusals[i].waits)
	}
	for i := range p.tasks {
		t := &p.tasks[i]
		name(&t.what)
		mask(&t.pops)
		mask(&t.hands)
	}
	p.sort()
}

// sort sorts the lists that have no order of their own.
func (p *past) sort() {
	slices.SortFunc(p.sale.orders, func(a, b order) int { return a.what.compare(b.what) })
	slices.SortFunc(p.sale.refusals, func(a, b refusal) int {
		return cmp.Or(a.what.compare(b.what), cmp.Compare(a.waits, b.waits), cmp.Compare(a.left, b.left), cmp.Compare(a.pieces, b.pieces))
	})
	slices.SortFunc(p.tasks, func(a, b task) int { return a.what.compare(b.what) })
}

// write and read are inverses: both walk the past in the same way.
func (r *Rules) write(p *past) Facts {
	p.sort()
	c := codec{}
	c.past(p)
	n := len(c.b)
	for n > 0 && c.b[n-1] == 0 { // missing bytes read as 0
		n--
	}
	return Facts(c.b[:n])
}

func (r *Rules) read(f Facts) *past {
	p := &past{people: make([]person, r.clients)}
	c := codec{b: []byte(f), reading: true}
	c.past(p)
	return p
}

// codec writes numbers, or reads them back into the same places.
type codec struct {
	b       []byte
	reading bool
}

// num codes a number.
func num[N ~int | ~int64 | ~uint8](c *codec, n *N) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, int64(*n))
		return
	}
	if len(c.b) > 0 && c.b[0] < 0x80 { // a small one, as nearly all are
		u := int64(c.b[0])
		c.b = c.b[1:]
		*n = N(u>>1 ^ -(u & 1))
		return
	}
	v, size := binary.Varint(c.b)
	c.b = c.b[max(size, 0):]
	*n = N(v)
}

// list codes a list; each codes one element.
func list[T any](c *codec, l *[]T, each func(*T)) {
	n := len(*l)
	num(c, &n)
	if c.reading && n > 0 {
		*l = make([]T, n)
	}
	for i := range n {
		each(&(*l)[i])
	}
}

// some codes parts that are present only if they are not zero: one bit each, then the parts.
type some struct {
	there bool
	walk  func()
}

func (c *codec) some(parts ...some) {
	mask := 0
	for i, p := range parts {
		if p.there {
			mask |= 1 << i
		}
	}
	num(c, &mask)
	for i, p := range parts {
		if mask>>i&1 == 1 {
			p.walk()
		}
	}
}

func (c *codec) past(p *past) {
	for i := range p.people {
		c.person(&p.people[i])
	}
	number := func(n *int64) { num(c, n) }
	c.some(
		some{p.sale.counts != (stockCounts{}), func() { c.counts(&p.sale.counts) }},
		some{p.sale.tokens.registered > 0 || len(p.sale.tokens.newer) > 0, func() { num(c, &p.sale.tokens.registered); list(c, &p.sale.tokens.newer, number) }},
		some{len(p.sale.orders) > 0, func() { list(c, &p.sale.orders, c.order) }},
		some{len(p.sale.refusals) > 0, func() { list(c, &p.sale.refusals, c.refusal) }},
		some{p.ids.top+p.ids.unknown > 0 || len(p.ids.given) > 0, func() { c.ids(&p.ids) }},
		some{len(p.tasks) > 0 || p.lostPops > 0, func() { list(c, &p.tasks, c.task); num(c, &p.lostPops) }},
		some{len(p.grants[0]) > 0, func() { list(c, &p.grants[0], number) }},
		some{len(p.grants[1]) > 0, func() { list(c, &p.grants[1], number) }},
	)
}

func (c *codec) person(me *person) {
	held := func(k int) some {
		return some{me.held[k].inside, func() { me.held[k].inside = true; num(c, &me.held[k].until) }}
	}
	c.some(held(0),
		some{len(me.doing) > 0, func() { list(c, &me.doing, c.doing) }},
		held(1),
		some{me.doubted != 0, func() { num(c, &me.doubted) }},
		some{me.asked != (doing{}), func() { c.doing(&me.asked) }},
	)
}

func (c *codec) doing(d *doing) {
	num(c, &d.kind)
	c.some(
		some{d.inner != 0, func() { num(c, &d.inner) }},
		some{d.what != (label{}), func() { c.label(&d.what) }},
		some{d.floor != 0, func() { num(c, &d.floor) }},
		some{d.pieces != 0, func() { num(c, &d.pieces) }},
		some{d.paid != 0, func() { num(c, &d.paid) }},
	)
}

func (c *codec) label(l *label) {
	n := l.n*(noClient+1) + int64(l.of)
	num(c, &n)
	l.n, l.of = n/(noClient+1), int(n%(noClient+1))
}

func (c *codec) counts(s *stockCounts) {
	num(c, &s.net)
	num(c, &s.balance)
	num(c, &s.untold)
	num(c, &s.bought)
}

func (c *codec) order(o *order) {
	c.label(&o.what)
	num(c, &o.flags)
	num(c, &o.pieces)
}

func (c *codec) refusal(f *refusal) {
	c.label(&f.what)
	num(c, &f.pieces)
	num(c, &f.left)
	num(c, &f.waits)
}

func (c *codec) ids(s *idsPast) {
	num(c, &s.top)
	num(c, &s.unknown)
	list(c, &s.given, func(g *stretch) { num(c, &g.from); num(c, &g.to) })
}

func (c *codec) task(t *task) {
	c.label(&t.what)
	num(c, &t.flags)
	num(c, &t.puts)
	num(c, &t.takes)
	num(c, &t.effects)
	c.some(
		some{t.supply != 0, func() { num(c, &t.supply) }},
		some{t.unknown != 0, func() { num(c, &t.unknown) }},
		some{t.due != 0, func() { num(c, &t.due) }},
		some{t.taken != 0, func() { num(c, &t.taken) }},
		some{t.pops != 0, func() { num(c, &t.pops) }},
		some{t.hands != 0, func() { num(c, &t.hands) }},
	)
}

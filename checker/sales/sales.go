package sales

import (
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// sales is the shared state of the monitors of sales. They judge the same operations, so they share one book. The first
// monitor that sees an operation enters it.
//
// An order takes 40 bytes and its share of an index. Operations in flight and those
// that a search may need take more; see [product.keep]. Nothing else grows with the
// history.
type sales struct {
	h            *history.Header
	all          monitor.Keyed[product]
	bought       orders
	returned     orders
	acquisitions acquisitions
	leases       leases
	told         [1 << toldBits]sale
	active       []*product // busy ones with operations for Advance to settle
	calm         int64      // the most operations of a product that is not busy
	kept         int        // operations kept for searches, of all products
	entered      int64
	settled      struct { // the last Advance
		low     time.Duration
		entered int64
		count   int // of those that there were
	}
	ended bool // the history was cut off
}

// saleMonitor is one property of all products.
type saleMonitor struct {
	*sales
	seen     int64
	property variant.Property
	nothing  string // why there is no verdict without an operation
	judge    func(*product) monitor.Verdict
}

// saleJudge makes a monitor of one property of sales. Those of one history share one
// book.
func saleJudge(p variant.Property, nothing string, judge func(*product) monitor.Verdict) func(*monitor.Shared) monitor.Monitor {
	return func(s *monitor.Shared) monitor.Monitor {
		return &saleMonitor{sales: monitor.StateOf(s, variant.Sale, newSales), property: p, nothing: nothing, judge: judge}
	}
}

func newSales(s *monitor.Shared) *sales {
	h := s.Header
	ss := &sales{h: h, calm: int64(s.Lazy()), bought: newOrders(), returned: newOrders()}
	ss.all = monitor.NewKeyed(func(key history.Value) *product {
		p := &product{sales: ss, key: key, number: int32(len(ss.all.All)), net: balance{stock: h.Stock}, out: soldOut{stock: h.Stock}}
		p.buys.closing, p.refunds.closing = history.Forever, history.Forever
		p.live = h.Refund > 0 || h.Quantity > 1
		return p
	})
	return ss
}

// Observe implements [monitor.Monitor].
func (m *saleMonitor) Observe(op *history.Op) {
	if m.seen++; m.seen > m.entered {
		m.entered = m.seen
		m.enter(op)
	}
}

// ObserveAll implements [monitor.Batcher].
func (m *saleMonitor) ObserveAll(ops []history.Op) {
	ops = monitor.Unseen(ops, &m.seen, &m.entered)
	for i := range ops {
		m.enter(&ops[i])
	}
}

func (ss *sales) enter(op *history.Op) {
	switch op.Kind {
	case history.Buy:
		p := ss.all.At(op.Key)
		p.touch()
		p.buy(op)
	case history.Refund:
		p := ss.all.At(op.Key)
		p.touch()
		p.refund(op)
	case history.ReadState:
		if readsStock(op) {
			ss.all.At(op.Key).final.observe(op)
		}
	case history.Acquire, history.Extend, history.Release:
		ss.leases.observe(op)
		ss.acquisitions.observe(op)
	}
}

// Advance implements [monitor.Monitor]. It settles shared state once.
func (m *saleMonitor) Advance(lowWater time.Duration) {
	if m.settled.entered == m.entered && m.settled.low == lowWater {
		return
	}
	m.settled.entered, m.settled.low = m.entered, lowWater
	m.settled.count++
	if lowWater == history.Forever {
		for _, p := range m.all.All {
			p.catchUp()
		}
	}
	busy := m.active[:0]
	for _, p := range m.active {
		if p.advance(lowWater); p.idle() {
			p.active = false
		} else {
			busy = append(busy, p)
		}
	}
	clear(m.active[len(busy):])
	m.active = busy
}

// Cut implements [monitor.CutAware].
func (m *saleMonitor) Cut(is bool) { m.ended = is }

// Verdict implements [monitor.Monitor].
func (m *saleMonitor) Verdict() monitor.Verdict {
	return m.all.Verdict(variant.Sale, m.property, m.nothing, m.judge)
}

// product is the book of one product.
type product struct {
	*sales
	key    history.Value
	number int32 // among the products
	active bool
	seen   int64 // operations
	count  int   // of sales.settled when it was settled

	buys, refunds ledger
	net           balance
	out           soldOut
	final         finalState
	contest       contention
	demand        int64 // pieces that a sale that accepts everything would have sold
	update        *[2]history.Op
	gate          *gate // nil without tokens
	givenBack
	linearization
}

// touch notes that Advance may have operations to settle. A product with few operations is settled when the next one
// comes, and at the end; see [monitor.Shared].
func (p *product) touch() {
	p.catchUp()
	if p.seen++; !p.active && (p.live || p.seen > p.calm) {
		p.active = true
		p.sales.active = append(p.sales.active, p)
	}
}

// catchUp settles what the last Advance would have settled of a product that is not busy. One step has the effect of
// several, except for a search.
func (p *product) catchUp() {
	if p.count == p.settled.count || p.active {
		return
	}
	p.count = p.settled.count
	if p.seen > 0 && p.seen <= p.calm && !p.live {
		p.advance(p.settled.low)
	}
}

func (p *product) advance(lowWater time.Duration) {
	p.out.advance(lowWater)
	p.net.advance(lowWater)
	p.tale.advance(p, lowWater)
	if p.gate != nil {
		p.gate.advance(lowWater)
	}
	if p.live && p.searching != nil {
		p.searching.advance(lowWater)
	}
}

func (p *product) idle() bool {
	return len(p.out.waiting) == 0 && len(p.net.waiting) == 0 && len(p.tale.pending) == 0 && (p.gate == nil || len(p.gate.waiting)+len(p.gate.open) == 0) &&
		(!p.live || p.searching == nil || p.searching.idle())
}

func (p *product) buy(op *history.Op) {
	p.final.moved(op)
	unknown := p.buys.unknown
	undated := p.undated(op)
	e, o := p.buys.observe(&p.bought, p, op)
	if e.more > 0 {
		p.net.sell(op, e.more)
	}
	if o.back > 0 {
		p.rebought(o, op, e.more, p.buys.unknown-unknown, !undated)
	}
	if e.second {
		p.twice(e.before, op)
	}
	if op.Outcome != history.Refused || op.Reason == history.SoldOut || op.Reason == history.Stale {
		p.demand += op.Pieces()
	}
	fresh := op.Outcome == history.OK && op.Reason != history.Repeated
	switch {
	case op.Outcome == history.Unknown, fresh:
		p.out.buy(op)
	case op.Reason == history.SoldOut:
		p.out.refuse(op)
		if p.buys.closing == history.Forever {
			p.buys.closing = op.Return
		}
	}
	if e.was != nil {
		p.out.withdraw(e.was)
	}
	if e.own != nil {
		p.out.suppose(e.own)
	}
	rival, met := p.contest.observe(op, p.acquisitions.since(op))
	if op.Fence > 0 {
		p.show(op, met && rival.fence > 0 && rival.fence != op.Fence)
	}
	p.prove(op)
	if fresh && p.update == nil {
		p.tell(op)
	}
	p.linearization.buy(p, op, fresh)
}

func (p *product) refund(op *history.Op) {
	p.final.moved(op)
	unknown := p.refunds.unknown
	e, _ := p.refunds.observe(&p.sales.returned, p, op)
	rival, met := p.contest.observe(op, p.acquisitions.since(op))
	if op.Fence > 0 {
		p.show(op, met && rival.fence > 0 && rival.fence != op.Fence)
	}
	p.prove(op)
	if op.Outcome == history.Refused {
		return
	}
	implied := op.Outcome == history.OK && p.implied(op)
	p.giveBack(op, e.more, p.refunds.unknown-unknown, implied)
	if e.second {
		if b := &p.list[p.sales.bought.of(p, op.Arg).back-1]; b.again == nil {
			b.again = &[2]history.Op{*e.before, *op}
		} else {
			b.again[1] = *op
		}
	}
	if op.Outcome == history.OK && op.Reason != history.Repeated {
		p.out.refund(op)
	}
	p.linearization.refund(p, op)
}

// undated reports whether a refund is the only evidence, if there is any, that an order was
// bought.
func (p *product) undated(op *history.Op) bool {
	if len(p.list) == 0 {
		return false
	}
	o := p.sales.bought.of(p, op.Arg)
	return o.back > 0 && (o.effects == 0 || o.tried > 0 && !o.fresh && p.sales.bought.tried[o.tried-1].given)
}

// implied enters that the order of a refund had been bought, and reports whether that was unknown.
func (p *product) implied(op *history.Op) bool {
	o := p.sales.bought.of(p, op.Arg)
	unknown := p.buys.unknown
	e := p.buys.imply(&p.sales.bought, p, op)
	if e.more > 0 {
		p.net.sell(op, e.more)
	}
	if o.back > 0 {
		p.enlarge(o, &p.list[o.back-1], op, e.more, p.buys.unknown-unknown)
	}
	return e.more > 0
}

// contention counts the operations of a product that met a rival: operations that were answered
// and that were under way at the same time as one of another client that was answered, too,
// one of the two having been accepted. Operations that follow one another do not contend, and
// neither do two refusals.
type contention struct {
	count    int64
	accepted rivals
	answered rivals
}

// rivals are the last operations of two clients.
type rivals [2]rival

type rival struct {
	client int32
	fence  int64
	ret    time.Duration // zero: none
}

func (r *rivals) add(op *history.Op) {
	if r[0].client != op.Client {
		r[1] = r[0]
	}
	r[0] = rival{op.Client, op.Fence, op.Return}
}

// of returns the last operation of another client, if it had not returned before since.
func (r *rivals) of(client int32, since time.Duration) (rival, bool) {
	other := r[0]
	if other.client == client {
		other = r[1]
	}
	return other, other.ret > 0 && other.ret >= since
}

// observe enters an operation that was under way since a time, and returns the rival that
// it met, if any. Its rival is the last one of another client to return before it did: if
// that one had returned before since, all had.
func (c *contention) observe(op *history.Op, since time.Duration) (other rival, met bool) {
	accepted := op.Outcome == history.OK && op.Reason != history.Repeated
	if !accepted && op.Outcome != history.OK && op.Reason != history.SoldOut && op.Reason != history.Stale {
		return rival{}, false
	}
	list := &c.accepted
	if accepted {
		list = &c.answered
	}
	if other, met = list.of(op.Client, since); met {
		c.count++
	}
	c.answered.add(op)
	if accepted {
		c.accepted.add(op)
	}
	return other, met
}

// acquisitions records since when each client has wanted the lock under which it buys. Under a working lock no two
// purchases overlap; a promise could break only if the clients did not wait for each other. So a purchase under a lock
// counts as under way from the first call of an acquisition.
type acquisitions struct {
	list   []acquisition // by client
	others map[int32]*acquisition
}

type acquisition struct {
	session history.Value
	call    time.Duration
	trying  bool // not granted so far
	granted bool
}

// mostClients is the number up to which clients are numbered consecutively.
const mostClients = 1 << 20

func (a *acquisitions) of(client int32) *acquisition {
	if client >= 0 && client < mostClients {
		for int(client) >= len(a.list) {
			a.list = append(a.list, acquisition{})
		}
		return &a.list[client]
	}
	t := a.others[client]
	if t == nil {
		if a.others == nil {
			a.others = make(map[int32]*acquisition)
		}
		t = new(acquisition)
		a.others[client] = t
	}
	return t
}

func (a *acquisitions) observe(op *history.Op) {
	if op.Kind != history.Acquire || op.Reason == history.Stopped {
		return
	}
	t := a.of(op.Client)
	if !t.trying {
		t.call, t.trying = op.Call, true
	}
	t.granted = op.Outcome == history.OK
	if t.granted {
		t.session, t.trying = op.Arg, false
	}
}

// since returns the time from which on a purchase or a refund was under way.
func (a *acquisitions) since(op *history.Op) time.Duration {
	if op.Session == (history.Value{}) || op.Client < 0 || op.Client < mostClients && int(op.Client) >= len(a.list) {
		return op.Call
	}
	if t := a.of(op.Client); t.granted && t.session == op.Session {
		return min(t.call, op.Call)
	}
	return op.Call
}

// contended says in words how many operations met a rival.
func (p *product) contended() string { return say.Count(p.contest.count, "contended operation") }

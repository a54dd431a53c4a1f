package rules

import (
	"fmt"
	"math/bits"
	"slices"

	"oversell/history"
	"oversell/internal/phrase"
	"oversell/variant"
)

// stockPast is the past of a sale.
type stockPast struct {
	counts   stockCounts
	tokens   tokensPast
	orders   []order   // that may yet be sent again, by label
	refusals []refusal // refusals that other orders may still justify
}

// stockCounts are pieces, of all orders.
type stockCounts struct {
	net     int64 // surely sold, less what refunds may have returned
	balance int64 // surely sold, less what was surely refunded
	untold  int64 // perhaps sold, of orders that are no longer in the list
	bought  int64 // ordered and not refused, less what was surely refunded
}

// tokensPast are the fencing tokens that the sale was shown.
type tokensPast struct {
	registered int64   // the least that it can have registered, as its answers show: one it accepted, or for which it refused another
	newer      []int64 // that it was shown, larger than that, in order
}

// order is the record of one order.
type order struct {
	what   label
	flags  int64
	pieces int64 // if it is not known whether it was sold
}

// Known facts about an order.
const (
	orderSold           = 1 << iota // an answer said so
	orderTold                       // an answer said that it had been
	orderLost                       // an attempt had no answer
	orderLost2                      // two had none
	orderReturned                   // it was refunded
	orderReturnedBefore             // an answer said that it had been
)

// had notes that an answer said that the order has its effect, and returns the pieces by which that is more than was
// known: an answer may have said before that it had been.
func (o *order) had(effect, before, pieces int64) (more int64) {
	if o.flags&(effect|before) != before {
		more = pieces
	}
	o.flags |= effect
	return more
}

// hadBefore notes that an answer said that the order had had its effect before, and returns the
// pieces by which that is more than was known.
func (o *order) hadBefore(effect, before, pieces int64) (more int64) {
	if o.flags&(effect|before) == 0 {
		more = pieces
	}
	o.flags |= before
	return more
}

// doubtful tells whether an order may have had more effects than it is known to have.
func (o *order) doubtful() bool {
	return o.flags&orderLost2 != 0 || o.flags&orderLost != 0 && o.flags&orderSold != 0
}

// untold returns how many pieces an order may have taken that no answer reported.
func (o *order) untold() int64 {
	if o.flags&orderLost == 0 || o.flags&(orderSold|orderTold) != 0 {
		return 0
	}
	return o.pieces
}

// refusal is an order that was refused as sold out. That is right only if some of the orders under way get what they
// ordered.
type refusal struct {
	what   label
	pieces int64
	left   int64 // pieces left if all orders under way get what they ordered
	waits  int64 // the clients whose orders are under way, a bit each
}

// order returns the entry of an order, made if necessary.
func (p *past) order(what label) *order {
	for i := range p.sale.orders {
		if o := &p.sale.orders[i]; o.what == what {
			return o
		}
	}
	p.sale.orders = append(p.sale.orders, order{what: what})
	return &p.sale.orders[len(p.sale.orders)-1]
}

// books reports whether the end of the sale is judged.
func (r *Rules) books() bool { return r.sale.undersell || r.sale.once }

// buys notes the call of a purchase.
func (r *Rules) buys(p *past, client int, op *history.Op, d *doing) {
	what := labelOf(op.Arg, client)
	if what.of == client {
		r.close(p, client, func(o label) bool { return o != what })
	}
	if r.books() {
		d.what, d.pieces = what, op.Pieces()
	}
	if r.sale.undersell {
		p.sale.counts.bought += op.Pieces()
	}
	r.shows(p, op, d)
}

// shows notes the token that an operation shows.
func (r *Rules) shows(p *past, op *history.Op, d *doing) {
	if r.sale.fencing && op.Fence > 0 {
		t := &p.sale.tokens
		d.floor = t.registered
		if i, found := slices.BinarySearch(t.newer, op.Fence); !found && op.Fence > t.registered {
			t.newer = slices.Insert(t.newer, i, op.Fence)
		}
	}
}

// bought judges a purchase that ended.
func (r *Rules) bought(p *past, client int, op *history.Op, d *doing) (b *Breach) {
	what := labelOf(op.Arg, client)
	o, q := p.order(what), op.Pieces()
	more := int64(0)
	// An order answered as repeated took its pieces earlier, if an earlier attempt can have taken them; otherwise the
	// program has sent it again by itself.
	none := op.Outcome == history.Refused || op.Reason == history.Repeated && o.flags&(orderSold|orderTold|orderLost) != 0
	switch {
	case op.Outcome == history.OK && op.Reason != history.Repeated:
		if r.sale.once && o.flags&orderSold != 0 {
			b = broken(variant.Sale, variant.OncePerOrder, "order %v was sold twice, now by client %d", what, client)
		}
		more = o.had(orderSold, orderTold, q)
	case op.Outcome == history.OK:
		more = o.hadBefore(orderSold, orderTold, q)
	case op.Outcome == history.Unknown:
		o.lose(q)
	}
	counts := &p.sale.counts
	if r.books() {
		counts.balance += more
	}
	if r.sale.oversell {
		if counts.net += more; b == nil && more > 0 && counts.net > r.stock {
			b = broken(variant.Sale, variant.NoOversell, "order %v was sold, and with it %s of a stock of %d", what, pieces(counts.net), r.stock)
		}
	}
	if r.sale.undersell {
		b = earlier(b, r.settle(p, client, op, d, none))
	}
	b = earlier(b, r.accepts(p, client, op, d))
	if answered := op.Outcome == history.OK && !r.refunds || op.Reason == history.SoldOut; answered {
		r.close(p, client, func(o label) bool { return o == what })
	}
	return b
}

// earlier returns a, or b if there is no a.
func earlier(a, b *Breach) *Breach {
	if a != nil {
		return a
	}
	return b
}

// lose notes an attempt without an answer.
func (o *order) lose(q int64) {
	if o.flags&orderLost != 0 {
		o.flags |= orderLost2
	}
	o.flags |= orderLost
	o.pieces = q
}

// close drops the client's own orders for which these returns true, and keeps only their totals. A
// buyer that has an answer, or places another order, does not send the old order again; consumers
// of a queue may.
func (r *Rules) close(p *past, client int, these func(label) bool) {
	if !r.final {
		return
	}
	p.sale.orders = slices.DeleteFunc(p.sale.orders, func(o order) bool {
		if o.what.of != client || !these(o.what) {
			return false
		}
		p.sale.counts.untold += o.untold()
		if r.sale.once && o.doubtful() {
			p.people[client].doubted = o.what.n
		}
		return true
	})
}

// settle judges whether refusals were right. Pieces were surely left if there were enough even with
// every order called by then and not refused; orders without an answer yet decide it later. none:
// the operation took no pieces.
func (r *Rules) settle(p *past, client int, op *history.Op, d *doing, none bool) (b *Breach) {
	counts := &p.sale.counts
	bit := int64(1) << client
	if none {
		counts.bought -= op.Pieces()
	}
	for i := range p.sale.refusals {
		f := &p.sale.refusals[i]
		if f.waits&bit == 0 {
			continue
		}
		if f.waits &^= bit; none {
			f.left += op.Pieces()
		}
		b = earlier(b, r.refusedWrongly(f))
	}
	if op.Reason == history.SoldOut {
		f := refusal{labelOf(op.Arg, client), op.Pieces(), r.stock - counts.bought - d.paid, p.underway(history.Buy, nil)}
		p.sale.refusals = append(p.sale.refusals, f)
		b = earlier(b, r.refusedWrongly(&f))
	}
	return b
}

func (r *Rules) refusedWrongly(f *refusal) *Breach {
	if f.left < f.pieces {
		return nil
	}
	return broken(variant.Sale, variant.NoUndersell, "order %v, of %s, was refused as sold out, though %d of %d were surely left", f.what, pieces(f.pieces), f.left, r.stock)
}

// accepts judges the token of a purchase or a refund that ended: no token is accepted after a newer one, and none is
// refused as stale unless a newer one was shown; then the least of those has been registered.
func (r *Rules) accepts(p *past, client int, op *history.Op, d *doing) (b *Breach) {
	t := &p.sale.tokens
	switch {
	case !r.sale.fencing || op.Fence <= 0:
	case op.Outcome == history.OK && op.Reason == history.NoReason:
		if op.Fence < d.floor {
			b = broken(variant.Sale, variant.Fencing, "the sale accepted the token %d of client %d (order %v), after an answer by which it had been shown %d", op.Fence, client, labelOf(op.Arg, client), d.floor)
		}
		t.register(op.Fence)
	case op.Outcome == history.Refused && op.Reason == history.Stale && t.registered <= op.Fence:
		i := slices.IndexFunc(t.newer, func(n int64) bool { return n > op.Fence })
		if i < 0 {
			return broken(variant.Sale, variant.Fencing, "the sale refused the token %d of client %d as stale, though nobody had shown it a newer one", op.Fence, client)
		}
		t.register(t.newer[i])
	}
	return b
}

func (t *tokensPast) register(n int64) {
	t.registered = max(t.registered, n)
	t.newer = slices.DeleteFunc(t.newer, func(n int64) bool { return n <= t.registered })
}

// refund notes the call of a refund, which may have taken effect by now.
func (r *Rules) refund(p *past, op *history.Op, d *doing) {
	if r.sale.oversell {
		p.sale.counts.net -= op.Pieces()
	}
	r.shows(p, op, d)
}

// refunded judges a refund that ended.
func (r *Rules) refunded(p *past, client int, op *history.Op, d *doing) (b *Breach) {
	what := labelOf(op.Arg, client)
	o, q := p.order(what), op.Pieces()
	counts := &p.sale.counts
	fresh := op.Outcome == history.OK && op.Reason != history.Repeated
	more := int64(0)
	switch {
	case fresh:
		if r.sale.once && o.flags&orderReturned != 0 {
			b = broken(variant.Sale, variant.OncePerOrder, "order %v was refunded twice, now to client %d", what, client)
		}
		more = o.had(orderReturned, orderReturnedBefore, q)
	case op.Outcome == history.OK:
		more = o.hadBefore(orderReturned, orderReturnedBefore, q)
	}
	if r.books() {
		counts.balance -= more
	}
	if r.sale.undersell && fresh {
		counts.bought -= q
		for i := range p.people { // earlier orders may have come too early for it
			for k := range p.people[i].doing {
				if x := &p.people[i].doing[k]; x.kind == history.Buy {
					x.paid += q
				}
			}
		}
	}
	if r.sale.oversell && !fresh && op.Outcome != history.Unknown { // it returned nothing
		if counts.net += q; b == nil && counts.net > r.stock {
			b = broken(variant.Sale, variant.NoOversell, "order %v was not refunded after all, and so %s of a stock of %d are sold", what, pieces(counts.net), r.stock)
		}
	}
	b = earlier(b, r.accepts(p, client, op, d))
	if op.Reason != history.Stale {
		r.close(p, client, func(o label) bool { return o == what })
	}
	return b
}

// forgetOrders drops facts about orders that are no longer needed.
func (r *Rules) forgetOrders(p *past) {
	keep := int64(0)
	if r.sale.oversell || r.books() {
		keep |= orderSold | orderTold
	}
	if r.books() {
		keep |= orderLost | orderReturned | orderReturnedBefore
	}
	if r.sale.once {
		keep |= orderLost2
	}
	p.sale.orders = slices.DeleteFunc(p.sale.orders, func(o order) bool { return o.flags&keep == 0 })
	for i := range p.sale.orders {
		o := &p.sale.orders[i]
		if o.flags &= keep; o.flags&(orderSold|orderTold) != 0 && !r.sale.once {
			o.flags &^= orderLost
		}
		if o.untold() == 0 {
			o.pieces = 0
		}
	}
	if !r.books() {
		p.sale.counts.untold = 0
	}
	p.sale.refusals = slices.DeleteFunc(p.sale.refusals, func(f refusal) bool {
		most := f.left
		for rest := f.waits; rest != 0; rest &= rest - 1 {
			me := &p.people[bits.TrailingZeros64(uint64(rest))]
			if i := me.at(history.Buy); i >= 0 {
				most += me.doing[i].pieces
			}
		}
		return f.left >= f.pieces || most < f.pieces // reported, or right in any case
	})
}

// soldInTheEnd judges the books of the sale: beyond the pieces surely sold, no more may be gone than were ordered
// without an answer, each order counted once. If more are gone, an order that was sent again had two effects, if there
// is one; otherwise they vanished. An order is sold as a whole. They also vanished if more are gone than there were: a sale that promises no-oversell has not sold
// them all. If fewer are gone than surely were sold, pieces were sold and are still there; sales
// with refunds are not judged for that.
func (r *Rules) soldInTheEnd(p *past, audit []history.Op) *Breach {
	if !r.books() {
		return nil
	}
	var known bool
	var left, booked int64
	for i := range audit {
		switch n, ok := audit[i].Result.Num(); {
		case audit[i].Kind != history.ReadState || !ok:
		case audit[i].Arg.String() == "left":
			known, left = true, left+n
		case audit[i].Arg.String() == "reserved":
			left += n
		case audit[i].Arg.String() == "sold":
			booked = n
		}
	}
	for i := range p.people {
		for _, d := range p.people[i].doing {
			if d.kind == history.Buy {
				p.order(d.what).lose(d.pieces)
			}
		}
	}
	p.sort()
	untold, doubted := p.sale.counts.untold, ""
	for i, me := range p.people {
		if me.doubted != 0 && doubted == "" {
			doubted = label{i, me.doubted}.String()
		}
	}
	for i := range p.sale.orders {
		o := &p.sale.orders[i]
		untold += o.untold()
		if o.doubtful() && doubted == "" {
			doubted = o.what.String()
		}
	}
	gone := booked
	if known {
		gone = max(gone, r.stock-left)
	}
	if there := p.sale.counts.balance - (r.stock - left); known && there > 0 && r.sale.undersell && !r.refunds {
		return broken(variant.Sale, variant.NoUndersell, "%s %s sold and still there: of a stock of %d, %d sold and %d left", pieces(there), phrase.Were(there), r.stock, p.sale.counts.balance, left)
	}
	sum := fmt.Sprintf("of a stock of %d, %s gone, but %d sold", r.stock, are(gone), p.sale.counts.balance)
	if untold > 0 {
		sum += fmt.Sprintf(" and %d perhaps", untold)
	}
	extra := gone - p.sale.counts.balance - untold
	if extra > 0 && r.sale.once && doubted != "" {
		return broken(variant.Sale, variant.OncePerOrder, "order %s was sent again and counted again: %s", doubted, sum)
	}
	if part := (gone - p.sale.counts.balance) % max(r.quantity, 1); known && !r.refunds && gone == r.stock-left && part > 0 && extra <= 0 {
		extra = part
		sum += fmt.Sprintf(", and each order is for %d", r.quantity)
	}
	if more := gone - r.stock; r.within && p.sale.counts.balance <= r.stock && more > max(extra, 0) {
		extra = more
		sum += fmt.Sprintf(", and no more than %d in all", r.stock)
	}
	if extra > 0 && r.sale.undersell {
		return broken(variant.Sale, variant.NoUndersell, "%s vanished: %s", pieces(extra), sum)
	}
	return nil
}

// are is "1 is", "2 are".
func are(n int64) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

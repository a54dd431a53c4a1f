package stockrules

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"oversell/internal/phrase"
	"oversell/stockimpl"
	"oversell/variant"
)

// Caller makes the calls of one client, and compares each answer with the expected one. If they differ, it returns an error
// that names the property of. A want of nil means success; left is the number of pieces that must be left afterwards.
type Caller struct {
	Buy, Refund func(of variant.Property, id int64, pieces int, want error, left int64) error
	// MustNotBuy and MustNotRefund make calls that must not succeed.
	MustNotBuy, MustNotRefund func(id int64, pieces int) error
	State                     func(of variant.Property, left, sold int64) error
	// Untouched expects State to say that all pieces are left.
	Untouched func(stock int64) error
}

// Turns makes random calls on a sale with a small stock, one call at a time: each is by one of several clients, and buys or
// refunds one of a few orders. Orders are accepted, refused, sent again and refunded, while the stock is sold out and comes
// back. Since no two calls overlap, the answer to each call is known.
type Turns struct {
	Rand  *rand.Rand
	Stock int64
	// Most is the largest quantity of an order.
	Most int
	// Copies says that orders may be sent again: the sale promises once-per-order. Refunds says that it refunds.
	Copies, Refunds bool
	Clients         []Caller

	left   int64
	next   int64 // the number of the last order
	back   bool  // pieces mostly come back
	orders []*order
	told   []string
}

// order is an order, and what has become of it.
type order struct {
	id     int64
	pieces int
	state  string
}

// The states of an order.
const (
	fresh    = "not sent"
	refused  = "refused"
	accepted = "accepted"
	refunded = "refunded"
)

// Make makes the given number of calls. A call that must be refused counts once, even if it is repeated.
func (t *Turns) Make(calls int) error {
	t.left = t.Stock
	for range 5 {
		t.orders = append(t.orders, t.order())
	}
	for range calls {
		i := t.pick()
		if o := t.orders[i]; o.state == refunded && t.Rand.IntN(2) == 0 || !t.Copies && (o.state == refused || o.state == refunded || o.state == accepted && !t.Refunds) {
			t.orders[i] = t.order()
		}
		if err := t.call(t.orders[i]); err != nil {
			const last = 15
			if n := len(t.told) - last; n > 0 {
				t.told = append([]string{fmt.Sprintf("%d calls", n)}, t.told[n:]...)
			}
			return fmt.Errorf("on a stock of %d, %s: %w", t.Stock, strings.Join(t.told, ", "), err)
		}
	}
	return nil
}

// pick chooses an order, and mostly one whose call changes the stock.
func (t *Turns) pick() (i int) {
	if t.Rand.IntN(5) == 0 {
		t.back = t.Refunds && !t.back
	}
	for range 8 {
		i = t.Rand.IntN(len(t.orders))
		if t.Rand.IntN(8) == 0 {
			break
		}
		switch o := t.orders[i]; {
		case t.back && o.state == accepted, !t.back && (o.state == fresh || o.state == refused) && int64(o.pieces) <= t.left:
			return i
		}
	}
	return i
}

// order returns an order that has not been sent.
func (t *Turns) order() *order {
	t.next++
	return &order{t.next, 1 + t.Rand.IntN(max(min(t.Most, int(t.Stock)+1), 1)), fresh}
}

// call makes a call for an order, and then may look at the stock.
func (t *Turns) call(o *order) error {
	c := t.Clients[t.Rand.IntN(len(t.Clients))]
	buys := o.state == fresh || o.state == refused || !t.Refunds || t.Copies && t.Rand.IntN(3) == 0
	note := func(what string) {
		t.told = append(t.told, fmt.Sprintf("order %d, of %s, %s", o.id, phrase.Count(o.pieces, "piece"), what))
	}
	var err error
	of := variant.NoUndersell
	switch {
	case buys && (o.state == fresh || o.state == refused) && int64(o.pieces) <= t.left:
		o.state, t.left = accepted, t.left-int64(o.pieces)
		note("is sent")
		err = c.Buy(variant.NoUndersell, o.id, o.pieces, nil, t.left)
	case buys && (o.state == fresh || o.state == refused):
		return t.refusals(c, o, note)
	case buys && o.state == accepted:
		of = variant.OncePerOrder
		note("is sent again")
		err = c.Buy(of, o.id, o.pieces, stockimpl.ErrRepeated, t.left)
	case buys:
		of = variant.OncePerOrder
		note("is sent again after its refund")
		err = c.MustNotBuy(o.id, o.pieces)
	case o.state == accepted:
		o.state, t.left = refunded, t.left+int64(o.pieces)
		note("is refunded")
		err = c.Refund(variant.NoUndersell, o.id, o.pieces, nil, t.left)
	default:
		of = variant.OncePerOrder
		note("is refunded again")
		err = c.MustNotRefund(o.id, o.pieces)
	}
	return t.looked(of, err)
}

// refusals sends an order that must be refused, and in one case of four sends it 45 times: more often than a limit on attempts
// may allow.
func (t *Turns) refusals(c Caller, o *order, note func(string)) error {
	times := 1
	if t.Rand.IntN(4) == 0 {
		times = 45
	}
	for n := range times {
		if n > 0 && !t.Copies {
			o = t.order()
			o.pieces = max(o.pieces, int(t.left)+1)
		}
		if err := c.Buy(variant.NoOversell, o.id, o.pieces, stockimpl.ErrSoldOut, t.left); err != nil {
			note("is sent")
			return err
		}
	}
	note("is refused")
	if times > 1 {
		note(fmt.Sprintf("is sent and refused %d times", times-1))
	}
	o.state = refused
	return t.looked(variant.NoOversell, nil)
}

// looked has a client look at the stock, unless err says that the call before was answered wrongly.
func (t *Turns) looked(of variant.Property, err error) error {
	if err != nil {
		return err
	}
	other := t.Clients[t.Rand.IntN(len(t.Clients))]
	if of != variant.NoUndersell || t.Rand.IntN(2) == 0 {
		return other.State(of, t.left, t.Stock-t.left)
	}
	return nil
}

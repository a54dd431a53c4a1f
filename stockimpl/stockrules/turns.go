package stockrules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"oversell/internal/phrase"
	"oversell/stockimpl"
	"oversell/variant"
)

// Caller is one client of a product. Its calls return an error if they are not answered as they should be, which of is the
// property for; want is nil for success, and left is what is left then.
type Caller struct {
	Buy, Refund func(of variant.Property, id int64, pieces int, want error, left int64) error
	// BuyInVain and RefundInVain make calls that must not be answered with success.
	BuyInVain, RefundInVain func(id int64, pieces int) error
	State                   func(of variant.Property, left, sold int64) error
}

// Turns are calls of several clients, one after the other, in a random order: a few orders are sold, sent again, refused,
// often many times, and refunded, while a small stock is sold out and comes back.
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
	orders []*turn
	told   []string
}

// turn is an order.
type turn struct {
	id     int64
	pieces int
	is     string
}

// What an order is.
const (
	fresh    = "not sent"
	refused  = "refused"
	accepted = "accepted"
	refunded = "refunded"
)

// Make makes this many calls, and more of those that are refused.
func (t *Turns) Make(calls int) error {
	t.left = t.Stock
	for range 5 {
		t.orders = append(t.orders, t.order())
	}
	for range calls {
		i := t.pick()
		if o := t.orders[i]; o.is == refunded && t.Rand.IntN(2) == 0 || !t.Copies && (o.is == refused || o.is == refunded || o.is == accepted && !t.Refunds) {
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
		case t.back && o.is == accepted, !t.back && (o.is == fresh || o.is == refused) && int64(o.pieces) <= t.left:
			return i
		}
	}
	return i
}

// order returns an order that has not been sent.
func (t *Turns) order() *turn {
	t.next++
	return &turn{t.next, 1 + t.Rand.IntN(max(min(t.Most, int(t.Stock)+1), 1)), fresh}
}

// call makes a call of a client for an order, and looks at the stock.
func (t *Turns) call(o *turn) error {
	c := t.Clients[t.Rand.IntN(len(t.Clients))]
	buys := o.is == fresh || o.is == refused || !t.Refunds || t.Copies && t.Rand.IntN(3) == 0
	note := func(what string) {
		t.told = append(t.told, fmt.Sprintf("order %d, of %s, %s", o.id, phrase.Count(o.pieces, "piece"), what))
	}
	var err error
	of := variant.NoUndersell
	switch {
	case buys && (o.is == fresh || o.is == refused) && int64(o.pieces) <= t.left:
		o.is, t.left = accepted, t.left-int64(o.pieces)
		note("is sent")
		err = c.Buy(variant.NoUndersell, o.id, o.pieces, nil, t.left)
	case buys && (o.is == fresh || o.is == refused):
		return t.refusals(c, o, note)
	case buys && o.is == accepted:
		of = variant.OncePerOrder
		note("is sent again")
		err = c.Buy(of, o.id, o.pieces, stockimpl.ErrRepeated, t.left)
	case buys:
		of = variant.OncePerOrder
		note("is sent again after its refund")
		err = c.BuyInVain(o.id, o.pieces)
	case o.is == accepted:
		o.is, t.left = refunded, t.left+int64(o.pieces)
		note("is refunded")
		err = c.Refund(variant.NoUndersell, o.id, o.pieces, nil, t.left)
	default:
		of = variant.OncePerOrder
		note("is refunded again")
		err = c.RefundInVain(o.id, o.pieces)
	}
	return t.and(c, of, err)
}

// refusals has orders refused: sometimes more often than a limit on attempts would allow.
func (t *Turns) refusals(c Caller, o *turn, note func(string)) error {
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
	o.is = refused
	return t.and(c, variant.NoOversell, nil)
}

// and looks at the stock after a call that was answered as it should be.
func (t *Turns) and(c Caller, of variant.Property, err error) error {
	if err != nil {
		return err
	}
	other := t.Clients[t.Rand.IntN(len(t.Clients))]
	if slices.Contains([]variant.Property{variant.OncePerOrder, variant.NoOversell}, of) || t.Rand.IntN(2) == 0 {
		return other.State(of, t.left, t.Stock-t.left)
	}
	return nil
}

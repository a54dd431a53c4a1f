package stocktest

import (
	"context"
	"errors"
	"sync"

	"oversell/lockimpl"
	"oversell/stockimpl"
)

// A sale may take one piece per order, such as one for each customer. Rules that make one call after the other are tried on
// it with several orders in place of one; rules that interfere with one call are tried with orders of one piece.

// oneAfterTheOther are the rules that make one call after the other, with small numbers of orders and pieces.
var oneAfterTheOther = []string{
	"refuses more than is left", "a refund returns to the stock", "the books add up", "a resent order has one effect",
	"a refunded order stays used up", "two products do not mix", "what other clients do counts", "an hour later", "a year later", "minutes, hours and days of the server's clock later",
	"products with similar names do not mix", "products with unlike names do not mix",
}

// several returns how many pieces an order of a rule has: n, or 1 if the sale takes one piece per order.
func (b bench) several(n int) int {
	if b.single {
		return 1
	}
	return n
}

// accepted are the orders that were accepted, by product. It is safe for concurrent use.
type accepted struct {
	mu     sync.Mutex
	orders map[acceptedOrder]bool
}

type acceptedOrder struct {
	product string
	id      int64
}

func (a *accepted) has(o acceptedOrder) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.orders[o]
}

func (a *accepted) add(o acceptedOrder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orders == nil {
		a.orders = map[acceptedOrder]bool{}
	}
	a.orders[o] = true
}

// inPieces is a sale of one piece per order as one that takes orders of several pieces. Its calls must come one after the
// other.
type inPieces struct {
	stockimpl.Sale
	product  string
	accepted *accepted
}

// mostOrders is how many orders there are for one at most.
const mostOrders = 64

// each makes a call for every piece. It returns ErrRepeated if all were repeated.
func (s *inPieces) each(o stockimpl.Order, call func(stockimpl.Order) (int64, error)) (left int64, err error) {
	if o.Quantity > mostOrders {
		return stockimpl.Unsaid, errors.ErrUnsupported
	}
	repeated := 0
	for k := range o.Quantity {
		one := order(o.ID, 1)
		if k > 0 {
			one.ID = 1<<40 + o.ID*mostOrders + int64(k)
		}
		if left, err = call(one); errors.Is(err, stockimpl.ErrRepeated) {
			repeated++
		} else if err != nil {
			return left, err
		}
	}
	if repeated < o.Quantity {
		err = nil
	}
	return left, err
}

// Buy implements stockimpl.Sale. It asks only for orders that can be had, since it cannot take all or nothing.
func (s *inPieces) Buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if o.Quantity < 2 {
		return s.Sale.Buy(ctx, o, l)
	}
	key := acceptedOrder{s.product, o.ID}
	if !s.accepted.has(key) {
		if there, err := s.State(ctx); err != nil {
			return stockimpl.Unsaid, err
		} else if there.Left < int64(o.Quantity) {
			return there.Left, stockimpl.ErrSoldOut
		}
	}
	left, err := s.each(o, func(one stockimpl.Order) (int64, error) { return s.Sale.Buy(ctx, one, l) })
	if err == nil {
		s.accepted.add(key)
	}
	return left, err
}

// Refund implements stockimpl.Sale.
func (s *inPieces) Refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if o.Quantity < 2 {
		return s.Sale.Refund(ctx, o, l)
	}
	return s.each(o, func(one stockimpl.Order) (int64, error) { return s.Sale.Refund(ctx, one, l) })
}

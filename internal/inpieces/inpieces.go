// Package inpieces splits an order of several pieces into orders of one piece, for a sale that takes one piece per order.
package inpieces

import (
	"context"
	"errors"
	"sync"

	"oversell/lockimpl"
	"oversell/stockimpl"
)

// Accepted are the orders that were accepted, by product. It is safe for concurrent use.
type Accepted struct {
	mu     sync.Mutex
	orders map[acceptedOrder]bool
}

type acceptedOrder struct {
	product string
	id      int64
}

func (a *Accepted) has(o acceptedOrder) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.orders[o]
}

func (a *Accepted) add(o acceptedOrder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orders == nil {
		a.orders = map[acceptedOrder]bool{}
	}
	a.orders[o] = true
}

// Of returns a sale of one piece per order as one that takes orders of several pieces. Its calls must come one after the
// other. The clients of a product share what was accepted.
func Of(s stockimpl.Sale, product string, accepted *Accepted) stockimpl.Sale {
	return &sale{s, product, accepted}
}

type sale struct {
	stockimpl.Sale
	product  string
	accepted *Accepted
}

// mostOrders is the largest quantity of an order; a larger one is errors.ErrUnsupported.
const mostOrders = 64

// number returns the ID of the order for piece k of order id. It has six digits if id is small: a sale need not accept more.
func number(id int64, k int) int64 {
	const six, end = 900_000, 1_000_000
	if n := six + id*mostOrders + int64(k); id >= 0 && n < end {
		return n
	}
	return 1<<40 + id*mostOrders + int64(k)
}

// each makes a call for every piece. It returns ErrRepeated if all were repeated.
func (s *sale) each(o stockimpl.Order, call func(stockimpl.Order) (int64, error)) (left int64, err error) {
	if o.Quantity > mostOrders {
		return stockimpl.Unsaid, errors.ErrUnsupported
	}
	repeated := 0
	for k := range o.Quantity {
		one := stockimpl.Order{ID: o.ID, Quantity: 1}
		if k > 0 {
			one.ID = number(o.ID, k)
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

// Buy implements stockimpl.Sale. It first reads the stock and refuses an order for more
// than is left, since it cannot take all pieces or none.
func (s *sale) Buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
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
func (s *sale) Refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if o.Quantity < 2 {
		return s.Sale.Refund(ctx, o, l)
	}
	return s.each(o, func(one stockimpl.Order) (int64, error) { return s.Sale.Refund(ctx, one, l) })
}

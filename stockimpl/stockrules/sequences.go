package stockrules

import (
	"fmt"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// The rules in this file make one call after the other, so that the answer to each is known.

const theInterface = stockmodel.TheInterface

// RefusesMore orders more than is left of 3 pieces, and orders it again when another client has refunded some.
func RefusesMore(one Caller, client func() Caller) error {
	other := client()
	return suitetest.FirstOf(
		func() error { return one.Buy(variant.NoOversell, 1, 4, stockimpl.ErrSoldOut, 3) },
		func() error { return one.State(theInterface, 3, 0) },
		func() error { return one.Buy(variant.NoUndersell, 2, 2, nil, 1) },
		func() error { return one.Buy(variant.NoOversell, 3, 2, stockimpl.ErrSoldOut, 1) },
		func() error { return one.State(theInterface, 1, 2) },
		// What was refused takes nothing from what there is.
		func() error { return one.Buy(variant.NoUndersell, 4, 1, nil, 0) },
		func() error { return one.State(variant.NoUndersell, 0, 3) },
		// A refused order may come again when pieces have come back.
		func() error { return other.Refund(variant.NoUndersell, 2, 2, nil, 2) },
		func() error {
			if err := one.Buy(variant.NoUndersell, 3, 2, nil, 0); err != nil {
				return fmt.Errorf("order 3, for 2 pieces, was refused with 1 piece left, then another client refunded 2 pieces, and order 3 was sent again: %w", err)
			}
			return nil
		},
		func() error { return one.State(variant.NoUndersell, 0, 3) },
	)
}

// RefundReturns refunds all of 2 pieces and buys them again.
func RefundReturns(c Caller) error {
	return suitetest.FirstOf(
		func() error { return c.Buy(variant.NoUndersell, 1, 2, nil, 0) },
		func() error { return c.Buy(variant.NoOversell, 2, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return c.Refund(variant.NoUndersell, 1, 2, nil, 2) },
		func() error { return c.State(variant.NoUndersell, 2, 0) },
		func() error { return c.Buy(variant.NoUndersell, 3, 2, nil, 0) },
		func() error { return c.Buy(variant.NoOversell, 4, 1, stockimpl.ErrSoldOut, 0) },
	)
}

// ResentOrder sends an order for 2 of 3 pieces again.
func ResentOrder(c Caller) error {
	const of = variant.OncePerOrder
	return suitetest.FirstOf(
		func() error { return c.Buy(of, 1, 2, nil, 1) },
		func() error { return c.Buy(of, 1, 2, stockimpl.ErrRepeated, 1) },
		func() error { return c.State(of, 1, 2) },
		func() error { return c.Buy(of, 2, 1, nil, 0) },
		// It had its effect, whatever has happened to the stock since.
		func() error { return c.Buy(of, 1, 2, stockimpl.ErrRepeated, 0) },
		func() error { return c.State(of, 0, 3) },
	)
}

// RefundedOrder refunds an order for 2 of 3 pieces, and sends its refund and the order again.
func RefundedOrder(c Caller) error {
	const of = variant.OncePerOrder
	return suitetest.FirstOf(
		func() error { return c.Buy(of, 1, 2, nil, 1) },
		func() error { return c.Refund(of, 1, 2, nil, 3) },
		func() error { return c.Refund(of, 1, 2, stockimpl.ErrRepeated, 3) },
		func() error { return c.State(of, 3, 0) },
		func() error { return c.MustNotBuy(1, 2) },
		func() error { return c.State(of, 3, 0) },
	)
}

// UnknownRefund refunds an order that was never sent.
func UnknownRefund(c Caller) error {
	const of = variant.OncePerOrder
	return suitetest.FirstOf(
		func() error { return c.Buy(of, 1, 1, nil, 2) },
		func() error { return c.MustNotRefund(2, 1) },
		func() error { return c.State(of, 2, 1) },
	)
}

// OtherClients has several clients buy and refund in turn, of a stock of 3: what one client knows of the stock, others change.
func OtherClients(one Caller, client func() Caller) error {
	two := client()
	return suitetest.FirstOf(
		func() error { return one.Buy(variant.NoUndersell, 1, 1, nil, 2) },
		func() error { return two.Buy(variant.NoUndersell, 2, 2, nil, 0) },
		func() error { return one.Buy(variant.NoOversell, 3, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return client().Buy(variant.NoOversell, 4, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return two.Refund(variant.NoUndersell, 2, 2, nil, 2) },
		func() error { return one.Buy(variant.NoUndersell, 5, 1, nil, 1) },
		func() error { return client().Buy(variant.NoUndersell, 6, 1, nil, 0) },
		func() error { return two.Buy(variant.NoOversell, 7, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return one.State(variant.NoUndersell, 0, 3) },
	)
}

// sizes are those of the orders that KeptAndReturned keeps. They make up KeptStock.
var sizes = []int{150, 150, 1, 7, 99, 100, 101, 255, 256, 257, 999, 1000, 1001}

// KeptStock is the stock for KeptAndReturned.
const KeptStock = 4376

// KeptAndReturned keeps orders of many sizes that make up the stock, and then refunds all.
func KeptAndReturned(c Caller) error {
	left := int64(KeptStock)
	for i, n := range sizes {
		left -= int64(n)
		if err := c.Buy(variant.NoUndersell, int64(i+1), n, nil, left); err != nil {
			return err
		}
	}
	if err := c.State(variant.NoUndersell, 0, KeptStock); err != nil {
		return err
	}
	for i, n := range sizes {
		left += int64(n)
		if err := suitetest.FirstOf(
			func() error { return c.Refund(variant.NoUndersell, int64(i+1), n, nil, left) },
			func() error { return c.State(variant.NoUndersell, left, KeptStock-left) },
		); err != nil {
			return fmt.Errorf("after orders of %v pieces, of which the first %d came back: %w", sizes, i, err)
		}
	}
	return c.Buy(variant.NoUndersell, 100, KeptStock, nil, 0)
}

// Pair is two products. No answer about one depends on what was done with the other.
type Pair struct {
	Clients []Caller
	// Alone puts a product on sale with the stock of one of the two, and returns its client.
	Alone func(product int) (Caller, error)
}

// Mixed buys from two products with stocks of 2 and 7, and refunds. The name of one begins with the other's.
func (p Pair) Mixed() error {
	return Beside(p.Clients, p.Alone, func(int) string { return "with two products, and the name of one begins with the other's" }, []Call[Caller]{
		For(0, func(c Caller) error { return c.Buy(theInterface, 1, 2, nil, 0) }),
		For(1, func(c Caller) error { return c.State(theInterface, 7, 0) }),
		For(1, func(c Caller) error { return c.Buy(theInterface, 1, 3, nil, 4) }), // order ids belong to a product
		For(0, func(c Caller) error { return c.Buy(theInterface, 2, 1, stockimpl.ErrSoldOut, 0) }),
		For(1, func(c Caller) error { return c.Refund(theInterface, 1, 3, nil, 7) }),
		For(0, func(c Caller) error { return c.State(theInterface, 0, 2) }),
		For(1, func(c Caller) error { return c.State(theInterface, 7, 0) }),
	})
}

// Unlike buys from two products with stocks of 3 and 9, whose names have nothing in common, in turn: neither learns of orders,
// stock, tokens and refusals of the other.
func (p Pair) Unlike() error {
	return Beside(p.Clients, p.Alone, func(int) string { return "with two products of unlike names" }, []Call[Caller]{
		For(0, func(c Caller) error { return c.Buy(theInterface, 1, 2, nil, 1) }),
		For(1, func(c Caller) error { return c.State(theInterface, 9, 0) }),
		For(1, func(c Caller) error { return c.Buy(theInterface, 1, 4, nil, 5) }),
		For(0, func(c Caller) error { return c.Buy(theInterface, 2, 1, nil, 0) }),
		For(0, func(c Caller) error { return c.Buy(theInterface, 3, 1, stockimpl.ErrSoldOut, 0) }),
		For(1, func(c Caller) error { return c.Buy(theInterface, 3, 1, nil, 4) }),
		For(0, func(c Caller) error { return c.Refund(theInterface, 1, 2, nil, 2) }),
		For(1, func(c Caller) error { return c.State(theInterface, 4, 5) }),
		For(1, func(c Caller) error { return c.Refund(theInterface, 1, 4, nil, 8) }),
		For(0, func(c Caller) error { return c.State(theInterface, 2, 1) }),
		For(1, func(c Caller) error { return c.State(theInterface, 8, 1) }),
	})
}

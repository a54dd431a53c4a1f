package stockrules

import (
	"errors"
	"fmt"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// Numbers are numbers of orders, all different, that a sale may confuse.
type Numbers struct {
	IDs []int64
	// Once says that the sale promises once-per-order, and Refunds that it refunds.
	Once, Refunds bool
	// Takes reports whether the sale takes orders of this number.
	Takes func(id int64) bool
	// Open puts a new product on sale. Its calls of Buy are repeated where the answer is stale or leaves the outcome open.
	Open func(stock int64) (Shop, error)
}

// Apart buys one piece of a product by an order of each number. Each must buy, be known again if the sale promises
// once-per-order, and then be refunded. If the sale confuses a number with one before it, the error names both.
func (n Numbers) Apart() error {
	s, err := n.Open(int64(len(n.IDs)))
	if err != nil {
		return err
	}
	var bought []int64
	var left error // a number that the sale does not take
	for _, id := range n.IDs {
		if left != nil && !n.Takes(id) {
			continue
		}
		switch err := buy(s, id); {
		case err == nil:
			bought = append(bought, id)
		case stockmodel.Declared(err):
			return n.Confused(bought, id, err)
		case id <= 0: // a sale need not take such numbers
		case n.Takes(id):
			return suitetest.Broken(variant.NoUndersell, "order %d was answered %s, after %d others of a stock of %d", id, stockmodel.Said(err), len(bought), len(n.IDs))
		default:
			left = &suitetest.NotJudged{Why: fmt.Sprintf("the sale takes no order with the number %d (%v); the numbers that it takes were tried", id, err)}
		}
	}
	if err := n.holds(s, variant.NoUndersell, len(bought)); err != nil || !n.Once {
		return errors.Join(err, left)
	}
	for _, id := range bought {
		if err := s.Once(id, 1); err == nil || errors.Is(err, stockimpl.ErrSoldOut) {
			return suitetest.Broken(variant.OncePerOrder, "order %d, which had bought, was sent again and answered %s; want %q", id, stockmodel.Said(err), stockimpl.ErrRepeated)
		}
	}
	if err := n.holds(s, variant.OncePerOrder, len(bought)); err != nil || !n.Refunds {
		return errors.Join(err, left)
	}
	for _, id := range bought {
		if err := s.Refund(id); err != nil {
			return suitetest.Broken(variant.NoUndersell, "order %d, one of %d that had bought, was refunded, and answered %s; want success", id, len(bought), stockmodel.Said(err))
		}
	}
	return errors.Join(n.holds(s, variant.OncePerOrder, 0), left)
}

// buy buys a piece. An order whose number is not positive is sent once if it is answered with an error of the sale's own.
func buy(s Shop, id int64) error {
	if id <= 0 {
		if err := s.Once(id, 1); !errors.Is(err, stockimpl.ErrStale) {
			return err
		}
	}
	return s.Buy(id, 1)
}

// holds expects State to say that so many pieces are sold.
func (n Numbers) holds(s Shop, of variant.Property, sold int) error {
	at, err := s.State()
	if err != nil {
		return suitetest.Broken(theInterface, "state: %w", err)
	}
	if want := int64(len(n.IDs) - sold); at.Left+at.Reserved != want || at.Sold != stockimpl.Unsaid && at.Sold != int64(sold) {
		return suitetest.Broken(of, "State says %v after orders of 1 piece with %d different numbers; want %d left, and %d sold", at, len(n.IDs), want, sold)
	}
	return nil
}

// Confused returns the error that an order was answered with err after others had bought, and pieces were left. It names one of the
// others if a new product answers the order in this way when only that other one has bought.
func (n Numbers) Confused(before []int64, id int64, err error) error {
	if other, found := n.partner(before, id); found {
		return suitetest.Broken(variant.NoUndersell, "order %d was answered %s after order %d had bought, with pieces left, and alone it is answered with success: the two numbers are different orders", id, stockmodel.Said(err), other)
	}
	return suitetest.Broken(variant.NoUndersell, "order %d was answered %s after %d orders with other numbers had bought, with pieces left", id, stockmodel.Said(err), len(before))
}

// partner finds one of the orders before which keeps an order from buying on a new product.
func (n Numbers) partner(before []int64, id int64) (int64, bool) {
	if n.refused(nil, id) {
		return 0, false
	}
	for len(before) > 1 {
		half := len(before) / 2
		if n.refused(before[:half], id) {
			before = before[:half]
		} else {
			before = before[half:]
		}
	}
	return before[0], n.refused(before, id)
}

// refused reports whether an order is refused on a new product, where these have bought and there are more pieces.
func (n Numbers) refused(before []int64, id int64) bool {
	s, err := n.Open(int64(len(before)) + 1)
	if err != nil {
		return false
	}
	for _, other := range before {
		if buy(s, other) != nil {
			return false
		}
	}
	err = buy(s, id)
	return err != nil && stockmodel.Declared(err)
}

// Scattered returns the n-th of many different positive numbers, counted from 1: those with an odd n are small and follow on each
// other, and the others are of up to 63 bits, and look random. Code that keeps a part of a number, or a hash of few bits, confuses
// some of thousands.
func Scattered(n int64) int64 {
	if n%2 == 1 {
		return n/2 + 1
	}
	z := uint64(n) * 0x9e3779b97f4a7c15 // SplitMix64, which is a bijection
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int64(z >> 1)
}

const (
	exactly        = 1 << 53 // up to which a floating-point number of 64 bits holds each whole number
	orders         = 40
	rounding int64 = 2
)

// BeyondDoubles is the stock for Exact.
const BeyondDoubles = exactly + 4*orders

// Exact sells single pieces of a stock that a floating-point number does not hold exactly, and takes some back if the sale
// refunds. A script in Lua rounds the numbers in its answers, also those of State, so State may be wrong by the rounding. But if
// orders take nothing, or too much, State is wrong by more with each order.
func Exact(s Shop, refunds bool) error {
	left := int64(BeyondDoubles)
	for id := int64(1); id <= orders; id++ {
		if err := s.Buy(id, 1); err != nil {
			if id == 1 && !stockmodel.Declared(err) {
				return nil // it need not sell of so many
			}
			return suitetest.Broken(variant.NoUndersell, "buy of 1 by order %d, with %d there, answered %s", id, left, stockmodel.Said(err))
		}
		left--
	}
	if err := nearly(s, left, ""); err != nil || !refunds {
		return err
	}
	for id := int64(1); id <= orders/2; id++ {
		if err := s.Refund(id); err != nil {
			return suitetest.Broken(variant.NoUndersell, "refund of 1 by order %d, with %d there, answered %s", id, left, stockmodel.Said(err))
		}
		left++
	}
	return nearly(s, left, fmt.Sprintf(", and %d refunded", orders/2))
}

// nearly expects State to be right but for the rounding; back says what was refunded.
func nearly(s Shop, left int64, back string) error {
	at, err := s.State()
	if err != nil {
		return suitetest.Broken(theInterface, "state: %w", err)
	}
	what := fmt.Sprintf("of %d pieces, %d were bought one by one%s: State says %v; want %d left, or nearly so", int64(BeyondDoubles), orders, back, at, left)
	sold := BeyondDoubles - left
	switch there := at.Left + at.Reserved; {
	case there > left+rounding:
		return suitetest.Broken(variant.NoOversell, "%s", what)
	case there < left-rounding, at.Sold != stockimpl.Unsaid && (at.Sold < sold-rounding || at.Sold > sold+rounding):
		return suitetest.Broken(variant.NoUndersell, "%s", what)
	}
	return nil
}

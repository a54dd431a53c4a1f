package stockrules

import (
	"errors"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
)

// Middle is a product, all pieces of which one buyer ordered that died in its purchase.
type Middle struct {
	Stock   int64
	Command int // the last one of the buyer that was executed
	At      stockimpl.State
	Other   error // the answer to another buyer's order for all pieces, after State was asked
	// Later lets the time of reservations pass, sells all pieces to others, and returns how many it sold.
	Later func() (int, error)
}

// Shown expects State to say what is reserved. If State says that any piece is, then left, reserved and sold are the whole stock. If
// pieces are missing in State, another buyer's order for them is stale, and they can be sold later, then they were reserved, and
// State did not say so.
func (m Middle) Shown() error {
	sum := m.At.Left + m.At.Reserved + max(m.At.Sold, 0)
	if sum == m.Stock {
		return nil
	}
	const what = "a buyer of %d pieces of %d died after command %d of its purchase, and State said %v"
	if m.At.Reserved != 0 {
		return suitetest.Broken(theInterface, what+": what is left, reserved and sold is %d in all; want %d", m.Stock, m.Stock, m.Command, m.At, sum, m.Stock)
	}
	if sum > m.Stock || !errors.Is(m.Other, stockimpl.ErrStale) {
		return nil // the purchase is in several steps, between which the pieces are nowhere
	}
	sold, err := m.Later()
	if err != nil || int64(sold) != m.Stock {
		return nil // other rules are about pieces that do not come back
	}
	return suitetest.Broken(theInterface, what+"; another order for all of them was answered %s, and when the time of reservations had passed they were sold: they were reserved, so want %d reserved", m.Stock, m.Stock, m.Command, m.At, stockmodel.Said(m.Other), m.Stock-sum)
}

// Package stockrules holds rules of package stocktest. Some are about pieces that return to the stock: those of a buyer
// that is stopped until its reservation is over, those that Reconcile returns, and those of many refunds, which one order
// then buys. Some are about what State says in the middle of a purchase, and about a [stockimpl.Optimist]. Some try names of
// products and numbers of orders that a sale may confuse. Others make calls whose context has ended, or without a lock on a
// sale that promises fencing.
package stockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// Shop is one product on sale. Its calls ask again where an answer leaves the outcome open.
type Shop struct {
	Buy    func(id int64, pieces int) error
	Refund func(id int64) error
	State  func() (stockimpl.State, error)
	// Once makes a purchase once, whatever the answer.
	Once func(id int64, pieces int) error
	// SellsOut sells single pieces, by orders from this one on, until all are sold, and returns how many.
	SellsOut func(from int64) (int, error)
}

// Held is a buyer that is held up before one of its commands.
type Held struct {
	Shop
	Stock, Pieces int // on sale, and of its order
	Command       int
	// Beside makes calls of others, and then lets the buyer go on to its end.
	Beside func(calls func()) error
	// Answer is what the buyer was told in the end.
	Answer func() error
}

// HeldBeyond stops buyers, buyer n before its n-th command, until the time of reservations has passed and others have
// bought all that is left. A buyer that then goes on must neither get pieces that others have, nor return its own
// pieces twice. hold returns nil if a purchase sends fewer commands; pass lets the time of reservations pass.
func HeldBeyond(commands int, hold func(command int) (*Held, error), pass func() error) error {
	var all []*Held
	for n := 1; n <= commands; n++ {
		h, err := hold(n)
		if err != nil {
			return err
		}
		if h != nil {
			all = append(all, h)
		}
	}
	if err := pass(); err != nil {
		return err
	}
	for _, h := range all {
		if err := h.sellsOnce(); err != nil {
			return err
		}
	}
	return nil
}

func (h *Held) sellsOnce() (err error) {
	var sold, more int
	if blocked := h.Beside(func() { sold, err = h.SellsOut(1000) }); blocked != nil || err != nil {
		return errors.Join(blocked, err)
	}
	if more, err = h.SellsOut(2000); err != nil {
		return err
	}
	sum := sold + more
	if h.Answer() == nil {
		sum += h.Pieces
	}
	if sum > h.Stock {
		return suitetest.Broken(variant.NoOversell, "a buyer of %d pieces of %d was held up before command %d of its purchase until the time of reservations was over, and others had bought %d; then it was answered %s, and others bought %d more", h.Pieces, h.Stock, h.Command, sold, stockmodel.Said(h.Answer()), more)
	}
	return nil
}

// RefundedBeside has another client refund the order of a buyer that is held up. If the refund succeeds, the pieces are back in
// the stock, whatever the buyer is told later: others can buy all pieces, and neither the order nor its refund succeeds again. If
// the refund is refused and the purchase succeeds, the buyer has its pieces, and others can buy the rest.
func (h *Held) RefundedBeside() error {
	var back error
	if blocked := h.Beside(func() { back = h.Refund(1) }); blocked != nil {
		return blocked
	}
	answer, want := h.Answer(), h.Stock
	what := fmt.Sprintf("a buyer of %d pieces of %d was held up before command %d of its purchase, and a refund of its order, repeated until the answer was definite, was answered %s; then the purchase was answered %s", h.Pieces, h.Stock, h.Command, stockmodel.Said(back), stockmodel.Said(answer))
	switch {
	case back == nil && h.Refund(1) == nil:
		return suitetest.Broken(variant.OncePerOrder, "%s, and another refund was answered with success", what)
	case back == nil && h.Buy(1, h.Pieces) == nil:
		return suitetest.Broken(variant.OncePerOrder, "%s, and when the order was sent again it bought", what)
	case back == nil:
	case answer == nil && !errors.Is(back, stockimpl.ErrRepeated):
		want -= h.Pieces
	default:
		return nil // the answers leave open who has the pieces
	}
	more, err := h.SellsOut(1000)
	if err != nil || more == want {
		return err
	}
	of := variant.NoUndersell
	if more > want {
		of = variant.NoOversell
	}
	return suitetest.Broken(of, "%s, and others could buy %d, want %d", what, more, want)
}

// ManyChangesBeside has others buy 256 pieces while a buyer is held up. It catches a sale that compares versions before it writes, and
// counts them in 8 bits: the version is the same again, and the buyer overwrites the stock.
func (h *Held) ManyChangesBeside() error {
	sold := 0
	if blocked := h.Beside(func() {
		for n := range 256 {
			if h.Buy(int64(1000+n), 1) == nil {
				sold++
			}
		}
	}); blocked != nil {
		return blocked
	}
	answer := h.Answer()
	had := sold
	if answer == nil {
		had += h.Pieces
	}
	more, err := h.SellsOut(5000)
	if err != nil || had+more == h.Stock {
		return err
	}
	of := variant.NoUndersell
	if had+more > h.Stock {
		of = variant.NoOversell
	} else if answer != nil && !errors.Is(answer, stockimpl.ErrSoldOut) && !errors.Is(answer, stockimpl.ErrStale) {
		return nil // it may have bought
	}
	return suitetest.Broken(of, "a buyer of %d was held up before command %d of its purchase while others bought %d of %d pieces; then it was answered %s, and others could buy %d more", h.Pieces, h.Command, sold, h.Stock, stockmodel.Said(answer), more)
}

// AllCameBack sells single pieces and then refunds them, for up to 1.5 s each, and then places one order for all pieces
// that are left. A sale that returns refunded pieces in batches must not refuse that order because some batches are
// still due.
func AllCameBack(s Shop, stock int64, declared func(error) bool) error {
	const atMost = 1500 * time.Millisecond
	var made int64
	for start := time.Now(); made < stock && time.Since(start) < atMost; made++ {
		if s.Buy(made+1, 1) != nil {
			return nil // another rule's business
		}
	}
	back := int64(0)
	for start := time.Now(); back < made && time.Since(start) < atMost; back++ {
		if s.Refund(back+1) != nil {
			return nil // the same
		}
	}
	there := stock - made + back
	what := fmt.Sprintf("%d pieces of %d were bought, one by one, and %d of them refunded", made, stock, back)
	return OrderForAll(s, stock+1, there, what, declared)
}

// OrderForAll expects that one order can buy all pieces that are left; what says what happened before. It uses order
// numbers from id on. If the sale does not take such large orders, other orders must be able to buy the pieces.
func OrderForAll(s Shop, id, pieces int64, what string, declared func(error) bool) error {
	err := s.Buy(id, int(pieces))
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*suitetest.Breach)), errors.As(err, new(*suitetest.NotJudged)):
		return fmt.Errorf("%s, and then an order for all came: %w", what, err)
	case !declared(err):
		more, err := s.SellsOut(id + 1)
		if err == nil && int64(more) != pieces {
			err = suitetest.Broken(variant.NoUndersell, "%s, and then others could buy %d", what, more)
		}
		return err
	}
	now, look := s.State()
	if look != nil {
		return fmt.Errorf("%s, and then an order for all %d answered %s, and State: %w", what, pieces, stockmodel.Said(err), look)
	}
	return suitetest.Broken(variant.NoUndersell, "%s, and then an order for all %d answered %s; State says %v", what, pieces, stockmodel.Said(err), now)
}

package stockrules

import (
	"errors"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// Ended makes each call of a shop once with a context that has ended (over), on a product with a stock of 3, of which
// order 1 has bought one piece; s makes calls with a valid context. A call may ignore its context and be carried out,
// or return an error that leaves the outcome open. It must not return a refusal.
func Ended(of variant.Property, under string, over, s Shop) error {
	left := int64(2)
	for _, c := range []struct {
		name string
		do   func() error
		adds int64
	}{
		{"buy", func() error { return over.Buy(2, 1) }, -1},
		{"refund", func() error { return over.Refund(1) }, 1},
		{"State", func() error {
			at, err := over.State()
			if err == nil && !has(at, left) {
				return suitetest.Broken(of, "State under %s says %v; want %d left", under, at, left)
			}
			return err
		}, 0},
	} {
		err := c.do()
		switch {
		case errors.Is(err, stockimpl.ErrSoldOut), errors.Is(err, stockimpl.ErrStale), errors.Is(err, stockimpl.ErrRepeated):
			return suitetest.Broken(of, "%s under %s answered %s, a declared answer; want success or another error", c.name, under, stockmodel.Said(err))
		case errors.As(err, new(*suitetest.Breach)), errors.As(err, new(*suitetest.NotJudged)):
			return err
		}
		at, e := s.State()
		switch {
		case e != nil:
			return suitetest.Broken(of, "state: %w", e)
		case has(at, left+c.adds):
			left += c.adds
		case err == nil || !has(at, left):
			return suitetest.Broken(of, "%s under %s answered %s, and State says %v; want %d left, or an error and %d", c.name, under, stockmodel.Said(err), at, left+c.adds, left)
		}
	}
	return nil
}

// has reports whether a state has so many left or reserved, of a stock of 3.
func has(s stockimpl.State, left int64) bool {
	return s.Left+s.Reserved == left && (s.Sold == stockimpl.Unsaid || s.Sold == 3-left)
}

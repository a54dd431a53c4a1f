package stockrules

import (
	"oversell/internal/suitetest"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// Unlocked makes a purchase and, if the sale refunds, a refund without a lock, after other orders came with tokens. A sale that promises
// fencing cannot tell how old such a holder is, so it answers with an error, and nothing changes.
func Unlocked(s Shop, refunds bool) error {
	before, err := s.State()
	if err != nil {
		return suitetest.Broken(variant.Fencing, "state: %w", err)
	}
	calls := map[string]func() error{"an order": func() error { return s.Buy(90, 1) }}
	if refunds {
		calls["a refund"] = func() error { return s.Refund(4) }
	}
	for what, call := range calls {
		err := call()
		now, e := s.State()
		if e != nil {
			return suitetest.Broken(variant.Fencing, "state: %w", e)
		}
		if err == nil || now != before {
			return suitetest.Broken(variant.Fencing, "%s without a lock, which has no token, came after an order with token 10: it was answered %s, and State says %v; want an error, and %v", what, stockmodel.Said(err), now, before)
		}
	}
	return nil
}

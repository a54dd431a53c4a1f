package stockrules

import (
	"math/rand/v2"
	"testing"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/variant"
)

// ledger is a sale in memory, which can have a flaw.
type ledger struct {
	stock, left int64
	bought      map[int64]int // pieces by order; 0: refunded
	refusals    int
	flaw        string
}

func (l *ledger) buy(id int64, pieces int) error {
	had, known := l.bought[id]
	switch {
	case known && had > 0 && l.flaw == "copies are told that all is sold":
		return stockimpl.ErrSoldOut
	case known && l.flaw != "copies buy":
		return stockimpl.ErrRepeated
	case l.flaw == "a limit on refusals" && l.refusals >= 40:
		return stockimpl.ErrSoldOut
	case int64(pieces) > l.left && l.flaw == "refusals are noted":
		l.bought[id] = 0
		return stockimpl.ErrSoldOut
	case int64(pieces) > l.left && l.flaw != "oversells":
		l.refusals++
		return stockimpl.ErrSoldOut
	}
	l.bought[id] = had + pieces
	l.left -= int64(pieces)
	return nil
}

func (l *ledger) refund(id int64, pieces int) error {
	if l.bought[id] == 0 && l.flaw != "refunds what was not bought" {
		return stockimpl.ErrRepeated
	}
	l.bought[id] = 0
	if l.flaw != "a refund is lost" {
		l.left += int64(pieces)
	}
	return nil
}

// caller compares the answers of the sale, as package stocktest does.
func (l *ledger) caller() Caller {
	wants := func(of variant.Property, got, want error, left int64) error {
		if got != want || got == nil && l.left != left {
			return suitetest.Broken(of, "it was answered %v, and %d are left; want %v, and %d left", got, l.left, want, left)
		}
		return nil
	}
	inVain := func(got error) error {
		if got == nil {
			return suitetest.Broken(variant.OncePerOrder, "it was answered with success")
		}
		return nil
	}
	return Caller{
		Buy: func(of variant.Property, id int64, pieces int, want error, left int64) error {
			return wants(of, l.buy(id, pieces), want, left)
		},
		Refund: func(of variant.Property, id int64, pieces int, want error, left int64) error {
			return wants(of, l.refund(id, pieces), want, left)
		},
		MustNotBuy:    func(id int64, pieces int) error { return inVain(l.buy(id, pieces)) },
		MustNotRefund: func(id int64, pieces int) error { return inVain(l.refund(id, pieces)) },
		State: func(of variant.Property, left, sold int64) error {
			return wants(of, nil, nil, left)
		},
	}
}

// TestTurns checks that a sound sale is not accused, whatever it promises, and that flaws of a few calls are found.
func TestTurns(t *testing.T) {
	for flaw, finds := range map[string]bool{
		"": false, "copies buy": true, "copies are told that all is sold": true, "a limit on refusals": true, "refusals are noted": true, "oversells": true, "refunds what was not bought": true, "a refund is lost": true,
	} {
		for _, bare := range []bool{false, true} {
			found := false
			for seed := range uint64(60) {
				l := &ledger{stock: 1 + int64(seed%7), bought: map[int64]int{}, flaw: flaw}
				l.left = l.stock
				turns := Turns{Rand: rand.New(rand.NewPCG(seed, 1)), Stock: l.stock, Most: 5, Copies: !bare, Refunds: !bare, Clients: []Caller{l.caller(), l.caller()}}
				if err := turns.Make(60); err != nil {
					found = true
					if !finds {
						t.Errorf("a sound sale, seed %d: %v", seed, err)
					}
				}
			}
			if finds && !found && (!bare || flaw == "oversells") {
				t.Errorf("%s: found nothing", flaw)
			}
		}
	}
}

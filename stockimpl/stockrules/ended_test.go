package stockrules

import (
	"context"
	"errors"
	"testing"

	"oversell/stockimpl"
)

// TestEnded checks that a call under a context that is over may be carried out, or not, but that its answer must be true.
func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		name             string
		buy, refund, say error
		buys, refunds    bool
		accused          bool
	}{
		{name: "minds the context", buy: context.Canceled, refund: context.Canceled, say: context.Canceled},
		{name: "minds no context", buys: true, refunds: true},
		{name: "minds it when all is done", buy: context.Canceled, refund: context.Canceled, buys: true, refunds: true},
		{name: "says that it sold", refund: context.Canceled, accused: true},
		{name: "says that it refunded", buy: context.Canceled, accused: true},
		{name: "says that it is sold out", buy: stockimpl.ErrSoldOut, refund: context.Canceled, accused: true},
		{name: "says that it is stale", buy: context.Canceled, refund: stockimpl.ErrStale, accused: true},
	} {
		at := stockimpl.State{Left: 2, Sold: 1}
		over := Shop{
			Buy: func(int64, int) error {
				if tt.buys {
					at.Left, at.Sold = at.Left-1, at.Sold+1
				}
				return tt.buy
			},
			Refund: func(int64) error {
				if tt.refunds {
					at.Left, at.Sold = at.Left+1, at.Sold-1
				}
				return tt.refund
			},
			State: func() (stockimpl.State, error) { return at, tt.say },
		}
		if err := Ended("the contract", "a context", over, Shop{State: func() (stockimpl.State, error) { return at, nil }}); (err != nil) != tt.accused {
			t.Errorf("%s: %v; want an accusation: %t", tt.name, err, tt.accused)
		}
	}
}

// TestUnlocked checks that a sale is caught that buys or refunds without a lock, also if it answers with an error.
func TestUnlocked(t *testing.T) {
	no := errors.New("no token")
	for _, tt := range []struct {
		name        string
		buy, refund error
		sells       bool
		refunds     bool // it takes refunds
		accused     bool
	}{
		{"refuses both", no, no, false, true, false},
		{"does not refund", no, nil, false, false, false},
		{"buys", nil, no, true, true, true},
		{"says that it bought", nil, no, false, true, true},
		{"buys, and answers with an error", no, no, true, true, true},
		{"says that it refunded", no, nil, false, true, true},
	} {
		at := stockimpl.State{Left: 2, Sold: 1}
		s := Shop{
			Buy: func(int64, int) error {
				if tt.sells {
					at.Left, at.Sold = at.Left-1, at.Sold+1
				}
				return tt.buy
			},
			Refund: func(int64) error { return tt.refund },
			State:  func() (stockimpl.State, error) { return at, nil },
		}
		if err := Unlocked(s, tt.refunds); (err != nil) != tt.accused {
			t.Errorf("%s: %v; want an accusation: %t", tt.name, err, tt.accused)
		}
	}
}

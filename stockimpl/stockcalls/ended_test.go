package stockcalls

import (
	"context"
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
		{name: "says that it is sold out", buy: stockimpl.ErrSoldOut, accused: true},
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

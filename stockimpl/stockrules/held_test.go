package stockrules

import (
	"errors"
	"testing"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/variant"
)

// TestRefundedBeside checks which answers to a refund beside a buyer are accused, and of which promise.
func TestRefundedBeside(t *testing.T) {
	none := errors.New("never bought")
	for _, tt := range []struct {
		name                  string
		back, answer          error
		backAgain, boughtOnce error // answers to another refund, and to a copy of the order
		others                int   // pieces that others could buy, of 3
		want                  variant.Property
	}{
		{"refunded after it was bought", nil, nil, stockimpl.ErrRepeated, stockimpl.ErrRepeated, 3, ""},
		{"refunded, and the buyer is told nothing", nil, stockimpl.ErrStale, none, none, 3, ""},
		{"not bought yet", none, nil, nil, nil, 2, ""},
		{"cancelled by the refund", none, stockimpl.ErrStale, nil, nil, 3, ""},
		{"told to be refunded before", stockimpl.ErrRepeated, nil, nil, nil, 3, ""},
		{"the pieces do not come back", nil, nil, none, none, 2, variant.NoUndersell},
		{"the pieces come back twice", nil, nil, none, none, 4, variant.NoOversell},
		{"a refused refund brings them back", none, nil, nil, nil, 3, variant.NoOversell},
		{"neither the buyer nor others have it", none, nil, nil, nil, 1, variant.NoUndersell},
		{"refunded twice", nil, nil, nil, none, 3, variant.OncePerOrder},
		{"bought twice", nil, nil, none, nil, 3, variant.OncePerOrder},
	} {
		refunds := []error{tt.back, tt.backAgain}
		h := Held{
			Shop: Shop{
				Buy:      func(int64, int) error { return tt.boughtOnce },
				Refund:   func(int64) (err error) { err, refunds = refunds[0], refunds[1:]; return err },
				SellsOut: func(int64) (int, error) { return tt.others, nil },
			},
			Stock: 3, Pieces: 1, Command: 2,
			Beside: func(calls func()) error { calls(); return nil }, Answer: func() error { return tt.answer },
		}
		err := h.RefundedBeside()
		broken := new(suitetest.Breach)
		switch {
		case errors.As(err, &broken) && broken.Promise == tt.want:
		case err != nil || tt.want != "":
			t.Errorf("%s: %v; want %q broken", tt.name, err, tt.want)
		}
	}
}

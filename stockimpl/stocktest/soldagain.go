package stocktest

import (
	"context"
	"errors"
	"fmt"

	"oversell/internal/interrupt"
	"oversell/stockimpl"
	"oversell/variant"
)

// soldAgain holds up a refund while a copy of it is carried out, and the piece that came back is sold to another. The refund
// that goes on then must not bring it back a second time.
func soldAgain(ctx context.Context, b bench) error {
	const stock = 2
	return b.eachOpened(ctx, stock, []interrupt.Action{interrupt.Pass}, func(y *buyer, n int, _ interrupt.Action) error {
		b, f := y.b, y.fences
		for id := int64(1); id <= stock; id++ {
			if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, stock-id); err != nil {
				return &setUp{err}
			}
		}
		c, line := b.buyerOf(ctx, b.Product, f)
		call := func() (int64, error) { return c.sale.Refund(ctx, order(1, 1), c.lock()) }
		var answer, other, next error
		s := stalled(ctx, line, n, func() { _, answer = call() })
		if s == nil {
			return nil
		}
		if blocked := s.beside(y, func() {
			_, other = y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(1, 1), y.lock()) })
			if other == nil || errors.Is(other, stockimpl.ErrRepeated) {
				_, next = y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(100, 1), y.lock()) })
			}
		}); blocked != nil {
			return blocked
		}
		got, _ := b.settle(ctx, answered{err: answer}, call)
		if other != nil && !errors.Is(other, stockimpl.ErrRepeated) || next != nil {
			return nil // nothing was sold again: other rules judge that
		}
		what := fmt.Sprintf("all %d pieces were sold; a refund of 1 was held up, a copy of it was answered %s, order 100 bought the piece, and then the refund went on and was answered %s", stock, say(other), say(got.err))
		state, err := y.sale.State(ctx)
		if err != nil {
			return broken(theInterface, "state: %w", err)
		}
		more, err := y.sellsOut(ctx, 1000, stock)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case more > 0:
			return broken(variant.NoOversell, "%s: others could buy %d more", what, more)
		case state.Left+state.Reserved != 0:
			return broken(variant.NoOversell, "%s: State says %v; want none left", what, state)
		}
		return nil
	})
}

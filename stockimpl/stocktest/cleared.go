package stocktest

import (
	"context"
	"fmt"

	"oversell/stockimpl"
	"oversell/variant"
)

// clearedOut is a sale of which all was sold before some time passed.
type clearedOut struct {
	y    *buyer
	back bool // order 1 was refunded after that
}

// stockCleared is how many pieces order 1 and order 2, the last one, have.
var stockCleared = [...]int{2, 1}

// clearOut sells out a product of its own, and has order 1 come back or not.
func (b bench) clearOut(ctx context.Context, back bool) (*clearedOut, error) {
	first, last := stockCleared[0], stockCleared[1]
	b.Product += fmt.Sprint("-sold-out-", back)
	y, err := opened(ctx, b, b.Product, int64(first+last))
	if err != nil {
		return nil, err
	}
	if err := firstOf(
		func() error { return y.buy(ctx, variant.NoUndersell, 1, first, nil, int64(last)) },
		func() error { return y.buy(ctx, variant.NoUndersell, 2, last, nil, 0) },
	); err != nil || !back {
		return &clearedOut{y, back}, err
	}
	return &clearedOut{y, back}, y.refund(ctx, variant.NoUndersell, 1, first, nil, int64(first))
}

// clearedOut sells out two products, in one of which an order comes back if the sale refunds.
func (b bench) clearedOut(ctx context.Context) (all []*clearedOut, err error) {
	for _, back := range []bool{false, true} {
		if back && b.noRefunds != nil {
			break
		}
		s, err := b.clearOut(ctx, back)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// afterwards looks, by another client, whether the orders are known, and can be refunded.
func (s *clearedOut) afterwards(ctx context.Context, late *buyer, when string) error {
	first, last := int64(stockCleared[0]), int64(stockCleared[1])
	left, what := int64(0), fmt.Sprintf("%s that left nothing", when)
	if s.back {
		left, what = first, what+", and a refund of another order"
	}
	const of = variant.OncePerOrder
	holds := func(left int64) func() error {
		return func() error { return late.state(ctx, variant.NoOversell, left, first+last-left) }
	}
	steps := []func() error{holds(left)}
	if late.b.promises(of) {
		steps = append(steps, func() error { return late.buy(ctx, of, 2, int(last), stockimpl.ErrRepeated, left) })
		if s.back {
			steps = append(steps, func() error { return late.used(ctx, 1, int(first)) })
		} else {
			steps = append(steps, func() error { return late.buy(ctx, of, 1, int(first), stockimpl.ErrRepeated, left) })
		}
	}
	if late.b.noRefunds == nil {
		steps = append(steps, func() error { return late.refund(ctx, variant.NoUndersell, 2, int(last), nil, left+last) }, holds(left+last))
	}
	if err := firstOf(steps...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// used expects that an order which was refunded neither buys nor comes back again.
func (y *buyer) used(ctx context.Context, id int64, pieces int) error {
	if _, err := y.sale.Buy(ctx, order(id, pieces), y.lock()); err == nil {
		return broken(variant.OncePerOrder, "order %d, which was bought and refunded, was sent again and bought again", id)
	}
	if _, err := y.sale.Refund(ctx, order(id, pieces), y.lock()); err == nil {
		return broken(variant.OncePerOrder, "the refund of order %d, which was carried out, was sent again and carried out again", id)
	}
	return nil
}

package stocktest

import (
	"context"
	"fmt"

	"oversell/internal/interrupt"
	"oversell/stockimpl/stockrules"
)

// manyAbandoned is how many buyers die with a piece set aside for each: a sale may end its reservations in batches of
// hundreds, but an order that needs the pieces of all must not be refused as sold out for that.
const manyAbandoned = 550

// abandoned is a sale whose pieces are all set aside for buyers that died.
type abandoned struct {
	y     *buyer
	stock int64
}

// abandon has buyers of single pieces die with their pieces set aside, as many as there are pieces. It returns nil if no
// buyer's death leaves a piece set aside.
func (b bench) abandon(ctx context.Context) (*abandoned, error) {
	steps := b.steps(ctx)
	for n := 1; n <= steps; n++ {
		for _, a := range bothWays {
			own := b
			own.Product = fmt.Sprintf("%s-abandoned-%d-%d", b.Product, n, a)
			s, err := own.abandonAt(ctx, n, a)
			if s != nil || err != nil {
				return s, err
			}
		}
	}
	return nil, nil
}

// abandonAt is abandon for buyers that die at their n-th command.
func (b bench) abandonAt(ctx context.Context, n int, a interrupt.Action) (*abandoned, error) {
	y, err := opened(ctx, b, b.Product, manyAbandoned)
	if err != nil {
		return nil, err
	}
	env := b.Env()
	b.practise(ctx, env, b.Product)
	for id := int64(1); id <= manyAbandoned; id++ {
		own, line := b.interrupted(env)
		c := &buyer{b: b, sale: b.newSale(own, b.Product), fences: y.fences}
		if !line.DiesAt(n, a, func() { _, _ = c.sale.Buy(ctx, order(id, 1), c.lock()) }) {
			return nil, nil
		}
		if s, err := y.sale.State(ctx); err != nil || s.Reserved == 0 {
			return nil, err
		}
	}
	return &abandoned{y, manyAbandoned}, nil
}

// comesBack expects that one order can have all pieces, when the time of their reservations is over.
func (s *abandoned) comesBack(ctx context.Context) error {
	y := s.y
	if how := stockrules.Reconciled(ctx, y.sale.Sale); how != nil {
		return broken(theInterface, "%d buyers died, for each of whom 1 piece was set aside, and the time of reservations passed: %w", manyAbandoned, how)
	}
	what := fmt.Sprintf("%d buyers died, for each of whom 1 piece of %d was set aside, the time of reservations passed", manyAbandoned, s.stock)
	return stockrules.OrderForAll(y.shop(ctx, int(s.stock)), manyAbandoned+1, s.stock, what, func(err error) bool { return declared(err) || ctx.Err() != nil })
}

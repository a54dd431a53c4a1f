package stocktest

import (
	"context"
	"fmt"

	"oversell/internal/interrupt"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
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
		if !y.dies(ctx, env, n, a, order(id, 1)) {
			return nil, nil
		}
		if s, err := y.sale.State(ctx); err != nil || s.Reserved == 0 {
			return nil, err
		}
	}
	return &abandoned{y, manyAbandoned}, nil
}

// dies has another buyer of the product send an order and die at its n-th command. It reports whether the order takes so many.
func (y *buyer) dies(ctx context.Context, env variant.Env, n int, a interrupt.Action, o stockimpl.Order) bool {
	own, line := y.b.interrupted(env)
	c := &buyer{b: y.b, sale: y.b.newSale(own, y.b.Product), fences: y.fences}
	return line.DiesAt(n, a, func() { _, _ = c.sale.Buy(ctx, o, c.lock()) })
}

// dying returns what [stockrules.Reconciled] needs to know of a product, whose buyers die at their n-th command, each with an order
// of so many pieces.
func (y *buyer) dying(ctx context.Context, env variant.Env, n int, a interrupt.Action, pieces int) *stockrules.Dying {
	return &stockrules.Dying{
		Sale:  y.sale.Sale,
		Dies:  func(id int64) { y.dies(ctx, env, n, a, order(id, pieces)) },
		Once:  y.shop(ctx, 0).Once,
		Holds: func() (string, error) { return stockrules.Holds(ctx, env.Redis[0], y.b.Product) },
	}
}

// pass lets the time of the reservations pass, and has Reconcile end them if the sale is a Reconciler.
func (s *abandoned) pass(ctx context.Context, pass func() error) error {
	at, err := s.y.sale.State(ctx)
	if err != nil || at.Reserved != s.stock { // some have ended
		return pass()
	}
	if err := stockrules.Reconciled(ctx, s.y.dying(ctx, s.y.b.Env(), 0, interrupt.Pass, 1), s.stock, 0, pass); err != nil {
		return fmt.Errorf("%d buyers died, for each of whom 1 piece was set aside, and the time of reservations passed: %w", manyAbandoned, err)
	}
	return nil
}

// comesBack expects that one order can have all pieces, when the time of their reservations is over.
func (s *abandoned) comesBack(ctx context.Context) error {
	what := fmt.Sprintf("%d buyers died, for each of whom 1 piece of %d was set aside, the time of reservations passed", manyAbandoned, s.stock)
	return stockrules.OrderForAll(s.y.shop(ctx, int(s.stock)), manyAbandoned+1, s.stock, what, func(err error) bool { return declared(err) || ctx.Err() != nil })
}

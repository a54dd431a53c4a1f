package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/stockimpl"
	"oversell/variant"
)

// recovers has calls of a buyer fail, or end early. Afterwards the same buyer is sold pieces, of which there are enough, and is told the
// truth: nothing that its client remembers of those calls keeps it from that.
func recovers(ctx context.Context, b bench) error {
	for i, t := range interrupt.Troubles {
		for _, call := range []string{"buy", "refund", "state"} {
			if call == "refund" && b.noRefunds != nil {
				continue
			}
			own := b
			own.Product = fmt.Sprintf("%s-%d-%s", b.Product, i, call)
			if err := own.recoversFrom(ctx, t, call); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b bench) recoversFrom(ctx context.Context, t interrupt.Trouble, call string) error {
	const stock, first = 1000, 5000 // more than all calls take, and the first order afterwards
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	if _, err := y.sale.Buy(ctx, order(1, 1), y.lock()); err != nil {
		return nil // another rule's business
	}
	env, line := b.interrupted(b.Env())
	c := &buyer{b: b, sale: b.newSale(env, b.Product), fences: f}
	if !t.First {
		_, _ = c.sale.Buy(ctx, order(2, 1), c.lock())
		_, _ = c.sale.State(ctx)
		if call == "refund" {
			_, _ = c.sale.Refund(ctx, order(2, 1), c.lock())
		}
	}
	made := int64(100)
	met := t.Makes(ctx, line, rand.IntN, func(ctx context.Context) {
		switch made++; call {
		case "buy":
			_, _ = c.sale.Buy(ctx, order(made, 1), c.lock())
		case "refund":
			_, _ = c.sale.Refund(ctx, order(1, 1), c.lock())
		case "state":
			_, _ = c.sale.State(ctx)
		}
	})
	if !met {
		return nil // the call sends no command
	}
	what := fmt.Sprintf("a client made calls of %s, %s", call, t.What)
	id := int64(first)
	for start := time.Now(); ; id++ {
		_, err := c.sale.Buy(ctx, order(id, 1), c.lock())
		if err == nil {
			break
		}
		if errors.Is(err, stockimpl.ErrSoldOut) {
			return broken(variant.NoUndersell, "%s; then its order was answered %s, with most of %d pieces left", what, say(err), stock)
		}
		if time.Since(start) > answer || ctx.Err() != nil {
			if _, e := y.sale.Buy(ctx, order(first+stock, 1), y.lock()); e != nil || ctx.Err() != nil {
				return nil // nobody is sold any: other rules are about that
			}
			return broken(variant.NoUndersell, "%s; then another client can buy, and this one cannot: its last order was answered %s", what, say(err))
		}
		_ = clock.Real{}.Sleep(ctx, answer/1000)
	}
	if !b.promises(variant.OncePerOrder) {
		return nil
	}
	if _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); err == nil {
		return broken(variant.NoUndersell, "%s; then an order of it was answered with success, and when another client sent the same order, that was answered with success, too: want %q, since the pieces were bought", what, stockimpl.ErrRepeated)
	} else if errors.Is(err, stockimpl.ErrSoldOut) {
		return broken(variant.NoUndersell, "%s; then a copy of its last order, which was answered with success, was answered %s", what, say(err))
	}
	return nil
}

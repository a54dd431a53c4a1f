package stocktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// The rules in this file hold up, or end, buyers whose orders cannot be had, refunds of what was the
// last, and holders of older fencing tokens.

// onRedis tells the sales whose commands can be acted upon.
func onRedis(v stockimpl.Variant) bool { return !v.Needs.SQL }

// promisesUndersell tells the sales whose commands can be acted upon and that promise to sell what is there.
func promisesUndersell(v stockimpl.Variant) bool {
	return onRedis(v) && slices.Contains(v.Promises, variant.NoUndersell)
}

// noBorrowing reports whether a sale declares no flaw by which an order that is refused takes pieces for a moment that
// others could buy.
func noBorrowing(v stockimpl.Variant) bool {
	for _, f := range v.Flaws {
		if f.Property == variant.NoUndersell && strings.Contains(f.Under, variant.WithQuantity) && (f.Fault == variant.NoFault || f.Fault == variant.Overrun) {
			return false
		}
	}
	return true
}

// fencedEvenHeldUp reports whether a sale declares no flaw of fencing for a holder whose lease runs out.
func fencedEvenHeldUp(v stockimpl.Variant) bool {
	for _, f := range v.Flaws {
		if f.Property == variant.Fencing && f.Fault != variant.Failover && f.Fault != variant.Retry && f.Fault != variant.RestartEmpty {
			return false
		}
	}
	return onRedis(v)
}

// stalledInVain holds up a buyer whose order cannot be had, while another buys what is there.
func stalledInVain(ctx context.Context, b bench) error {
	const stock = 2
	return b.eachOpened(ctx, stock, []interrupt.Action{interrupt.Pass}, func(y *buyer, n int, _ interrupt.Action) error {
		b, f := y.b, y.fences
		c, line := b.buyerOf(ctx, b.Product, f)
		var answer error
		s := stalled(ctx, line, n, func() { _, answer = c.sale.Buy(ctx, order(1, stock+1), c.lock()) })
		if s == nil {
			return nil
		}
		var small [stock]error
		if blocked := s.beside(y, func() {
			for i := range small {
				small[i] = y.decidedAlone(ctx, int64(10+i), 1)
			}
		}); blocked != nil {
			return blocked
		}
		if answer == nil {
			return broken(variant.NoOversell, "an order for %d pieces was accepted, of %d", stock+1, stock)
		}
		for i, err := range small {
			if errors.As(err, new(*suitetest.NotJudged)) {
				return err
			}
			if err != nil {
				return broken(variant.NoUndersell, "while an order for %d pieces of %d was held up, order %d of 1 answered %s, with %d there", stock+1, stock, i+1, say(err), stock-i)
			}
		}
		s2, err := y.sale.State(ctx)
		if err == nil && s2.Left != 0 {
			err = broken(variant.NoUndersell, "after an order that could not be had and the sale of all else State says %v; want none left", s2)
		}
		return err
	})
}

// deadInVain: a buyer that dies in an order that cannot be had leaves the stock as it was.
func deadInVain(ctx context.Context, b bench) error {
	const stock = 2
	return b.eachOpened(ctx, stock, bothWays, func(y *buyer, n int, a interrupt.Action) error {
		b, f := y.b, y.fences
		c, line := b.buyerOf(ctx, b.Product, f)
		if !line.DiesAt(n, a, func() { _, _ = c.sale.Buy(ctx, order(1, stock+1), c.lock()) }) {
			return nil
		}
		sold, err := y.sellsOut(ctx, 100, stock)
		if err != nil {
			return fmt.Errorf("after the death of a buyer whose order could not be had: %w", err)
		}
		s, err := y.sale.State(ctx)
		if err != nil {
			return broken(theInterface, "state: %w", err)
		}
		if sold != stock || s.Left != 0 {
			return broken(variant.NoUndersell, "a buyer died in an order for %d pieces of %d, and others could buy %d after that; State says %v", stock+1, stock, sold, s)
		}
		return nil
	})
}

// refundOfTheLast: when all is sold, and buyers were refused, a client dies in a refund. Whatever came
// back by then, or comes back when the refund is sent again, can be bought.
func refundOfTheLast(ctx context.Context, b bench) error {
	const stock = 2
	return b.eachOpened(ctx, stock, bothWays, func(y *buyer, n int, a interrupt.Action) error {
		b, f := y.b, y.fences
		if err := y.buy(ctx, variant.NoUndersell, 1, stock, nil, 0); err != nil {
			return &setUp{err}
		}
		c, line := b.buyerOf(ctx, b.Product, f)
		for _, z := range []*buyer{y, c} {
			if err := z.decided(ctx, 2, 1); errors.As(err, new(*suitetest.NotJudged)) {
				return err
			} else if !errors.Is(err, stockimpl.ErrSoldOut) {
				return broken(variant.NoOversell, "buy of 1 with all pieces sold answered %s", say(err))
			}
		}
		if !line.DiesAt(n, a, func() { _, _ = c.sale.Refund(ctx, order(1, stock), c.lock()) }) {
			return nil
		}
		if b.promises(variant.OncePerOrder) {
			_, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(1, stock), y.lock()) })
			if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
				return broken(variant.NoUndersell, "a refund, sent again after the death of its client, answered %s; want success or %q", say(err), stockimpl.ErrRepeated)
			}
		}
		s, err := y.sale.State(ctx)
		if err != nil {
			return broken(theInterface, "state: %w", err)
		}
		if b.promises(variant.OncePerOrder) && s.Left != stock {
			return broken(variant.NoUndersell, "a refund of %d was sent again after the death of its client, and State says %v; want %d left", stock, s, stock)
		}
		for _, z := range []*buyer{y, b.client(f)} {
			if s.Left == 0 {
				break
			}
			if err := z.decidedAlone(ctx, 100+s.Left, 1); errors.As(err, new(*suitetest.NotJudged)) {
				return err
			} else if err != nil {
				return broken(variant.NoUndersell, "after a refund whose client had died, with %d pieces there, buy of 1 answered %s", s.Left, say(err))
			}
			s.Left--
		}
		return nil
	})
}

// stalledFence holds up the holder of a token until one with a newer token has bought, or refunded. If
// it had had no effect by then it must have none.
func stalledFence(ctx context.Context, b bench) error {
	const stock = 6
	return b.each(ctx, []interrupt.Action{interrupt.Pass}, func(b bench, n int, _ interrupt.Action) error {
		for _, slow := range []string{"purchase", "refund"} {
			for _, quick := range []string{"purchase", "refund"} {
				own := b
				own.Product = b.Product + "-" + slow + "-" + quick
				f := &fences{}
				y, err := openedWith(ctx, own, own.Product, stock, f)
				if err != nil {
					return err
				}
				c, line := own.buyerOf(ctx, own.Product, f)
				for id := int64(1); id <= 2; id++ {
					if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, stock-id); err != nil {
						return &setUp{err}
					}
				}
				call := func(z *buyer, what string, id int64) (err error) {
					if what == "refund" {
						_, err = z.sale.Refund(ctx, order(id, 1), z.lock())
					} else {
						_, err = z.sale.Buy(ctx, order(10+id, 1), z.lock())
					}
					return err
				}
				before, err := y.sale.State(ctx)
				if err != nil {
					return broken(theInterface, "state: %w", err)
				}
				var answer error
				s := stalled(ctx, line, n, func() { answer = call(c, slow, 1) })
				if s == nil {
					continue
				}
				var now stockimpl.State
				var newer error
				if blocked := s.beside(y, func() {
					if now, err = y.sale.State(ctx); err == nil {
						newer = call(y, quick, 2)
					}
				}); blocked != nil {
					return blocked
				}
				if err != nil {
					return broken(theInterface, "state: %w", err)
				}
				if now != before || newer != nil {
					continue // it had its effect before, or keeps others out
				}
				if answer == nil {
					return broken(variant.Fencing, "a %s with an older token was held up, one with a newer token made a %s meanwhile, and the older one was accepted after that; want %q", slow, quick, stockimpl.ErrStale)
				}
			}
		}
		return nil
	})
}

// openedLarge puts a product on sale with as large a stock as the sale takes. A sale need not take
// every one: it may keep an entry for each piece.
func (b bench) openedLarge(ctx context.Context) (y *buyer, stock int64, err error) {
	stocks := []int64{200_000_000_000_000, 1_000_000_000, 1_000_000, 100_000, 1000} // the first has more than 14 digits, in which some write numbers
	if b.sale.Needs.SQL {
		stocks = stocks[1:]
	}
	for _, stock = range stocks {
		if y, err = opened(ctx, b, fmt.Sprint(b.Product, "-", stock), stock); err == nil || ctx.Err() != nil {
			break
		}
	}
	return y, stock, err
}

// everySize buys and refunds orders of many sizes, from a large stock.
func everySize(ctx context.Context, b bench) error {
	y, stock, err := b.openedLarge(ctx)
	if err != nil {
		return err
	}
	left := stock
	for i, pieces := range []int{1, 7, 9, 10, 11, 16, 63, 99, 100, 101, 127, 128, 150, 255, 256, 257, 999, 1000, 1001, 4096, 9999, 12345, 65535, 65536, 100_000, 1_234_567, 99_999_999, 123_456_789_012_345, 12_345_678_901_234, 98_765_432_109_876} {
		id, n := int64(i+1), int64(pieces)
		if n > left {
			break
		}
		if err := y.buy(ctx, variant.NoUndersell, id, pieces, nil, left-n); err != nil {
			if y.unlikely(ctx, pieces, left, stock) {
				break
			}
			return fmt.Errorf("with a stock of %d: %w", stock, err)
		}
		if err := y.state(ctx, variant.NoUndersell, left-n, stock-left+n); err != nil {
			return fmt.Errorf("after an order for %d: %w", pieces, err)
		}
		if i%2 == 0 || b.noRefunds != nil {
			left -= n
			continue
		}
		if err := y.refund(ctx, variant.NoUndersell, id, pieces, nil, left); err != nil {
			return err
		}
		if err := y.state(ctx, variant.NoUndersell, left, stock-left); err != nil {
			return fmt.Errorf("after a refund of %d: %w", pieces, err)
		}
	}
	if b.noRefunds != nil {
		return nil
	}
	// Orders 1, 3 and 5 were kept; they are of one digit and of two.
	for i, pieces := range []int{1, 9, 11} {
		if err := y.refund(ctx, variant.NoUndersell, int64(2*i+1), pieces, nil, left+int64(pieces)); err != nil {
			return err
		}
		left += int64(pieces)
	}
	return y.state(ctx, variant.NoUndersell, left, stock-left)
}

// unlikely tells whether a sale may have a limit for orders: it answers those of more than a million
// pieces with an error that is not declared, and changes nothing.
func (y *buyer) unlikely(ctx context.Context, pieces int, left, stock int64) bool {
	if pieces <= 1_000_000 {
		return false
	}
	_, err := y.sale.Buy(ctx, order(largeID-1, pieces), y.lock())
	return !declared(err) && y.state(ctx, variant.NoUndersell, left, stock-left) == nil
}

// unlikeProducts does the same with two products whose names have nothing in common, in turn.
func unlikeProducts(ctx context.Context, b bench) error {
	other := "a" + rand.Text()[:12]
	if b.sale.Needs.SQL {
		other = strings.ToLower(other)
	}
	return b.pair(ctx, other, [2]int64{3, 9}, 1000, stockrules.Pair.Unlike)
}

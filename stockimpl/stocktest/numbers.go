package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"oversell/internal/alike"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// The rules in this file try numbers and names that careless code takes for one another.

// manyIDs tries numbers of orders that differ in one digit, in few bits, or in the sign.
func manyIDs(ctx context.Context, b bench) error {
	ids := slices.Concat(alike.IDs(), alike.Digits(), alike.Bits())
	for _, pair := range alike.Colliding {
		ids = append(ids, pair[:]...)
	}
	return b.numbers(ctx, ids).Apart()
}

// numbers are numbers of orders to be tried; each product that is opened for them has a name of its own.
func (b bench) numbers(ctx context.Context, ids []int64) stockrules.Numbers {
	n := 0
	return stockrules.Numbers{
		IDs: ids, Once: b.promises(variant.OncePerOrder), Refunds: b.noRefunds == nil,
		Takes: func(id int64) bool { return id > 0 && id < largeID || !b.refusesID(ctx, id) },
		Open: func(stock int64) (stockrules.Shop, error) {
			n++
			y, err := opened(ctx, b, fmt.Sprintf("%s-numbers-%d", b.Product, n), stock)
			if err != nil {
				return stockrules.Shop{}, err
			}
			return y.shop(ctx, int(stock)), nil
		},
	}
}

// largeTokens are fencing tokens that are equal, or older, to code that computes with fewer digits.
func largeTokens(ctx context.Context, b bench) error {
	tokens := []int64{1<<31 + 1, 1<<32 + 1, 1<<53 + 1, 1e17 + 1, 1e18 + 1, 1<<62 + 1, math.MaxInt64 - 1}
	y, err := opened(ctx, b, b.Product, int64(2*len(tokens)))
	if err != nil {
		return err
	}
	for i, token := range tokens {
		id := int64(2*i + 1)
		if _, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(id, 1), withFence(token)) }); err != nil {
			return broken(variant.NoUndersell, "buy with token %d, newer than all before, answered %s", token, say(err))
		}
		if _, err := y.b.settled(ctx, func() (int64, error) { return y.sale.Buy(ctx, order(id+1, 1), withFence(token-1)) }); !errors.Is(err, stockimpl.ErrStale) {
			return broken(variant.Fencing, "buy with token %d after token %d answered %s; want %q", token-1, token, say(err), stockimpl.ErrStale)
		}
	}
	return nil
}

// hugeAfterSales orders more than there is when something has been sold: sums overflow.
func hugeAfterSales(ctx context.Context, b bench) error {
	const stock, sold = 10, 3
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	if err := y.buy(ctx, variant.NoUndersell, 1, sold, nil, stock-sold); err != nil {
		return err
	}
	for i, pieces := range []int{math.MaxInt64, math.MaxInt64 - sold, math.MaxInt64 - sold + 1, math.MaxInt64 - stock, math.MaxInt64 - 1, math.MaxInt32, math.MaxInt32 - sold + 1, math.MaxUint32 - sold + 1, math.MaxUint32} {
		if err := y.cannotBeHad(ctx, int64(10+i), pieces, stock-sold, sold); err != nil {
			return fmt.Errorf("after %d pieces were sold: %w", sold, err)
		}
	}
	return y.buy(ctx, variant.NoUndersell, 2, stock-sold, nil, 0)
}

// cannotBeHad sends an order for more pieces than are left, and sends it again under the same id. It must be refused
// without an effect each time: the stock does not change, there is nothing to refund, and no answer is ErrRepeated.
func (y *buyer) cannotBeHad(ctx context.Context, id int64, pieces int, left, sold int64) error {
	first := fmt.Sprintf("an order for %d pieces with %d there", pieces, left)
	for i, n := range []int{pieces, pieces, int(left) + 1} {
		what := first
		if i > 0 {
			what += fmt.Sprintf(", which was refused and sent again for %d,", n)
		}
		switch more, err := y.sale.Buy(ctx, order(id, n), y.lock()); {
		case err == nil:
			return broken(variant.NoOversell, "%s was accepted (%d left)", what, more)
		case errors.Is(err, stockimpl.ErrRepeated):
			return broken(variant.OncePerOrder, "%s was answered %s, and has never bought anything", what, say(err))
		}
		if err := y.state(ctx, variant.NoOversell, left, sold); err != nil {
			return fmt.Errorf("after %s: %w", what, err)
		}
	}
	if !y.b.promises(variant.OncePerOrder) || y.b.noRefunds != nil {
		return nil
	}
	if _, err := y.sale.Refund(ctx, order(id, pieces), y.lock()); err == nil {
		return broken(variant.OncePerOrder, "a refund of %s, which was refused, was answered %s: it had nothing to refund", first, say(err))
	}
	if err := y.state(ctx, variant.NoOversell, left, sold); err != nil {
		return fmt.Errorf("after a refund of %s, which was refused: %w", first, err)
	}
	return nil
}

// beyondDoubles tries a stock that a floating-point number does not hold exactly.
func beyondDoubles(ctx context.Context, b bench) error {
	y, err := opened(ctx, b, b.Product, stockrules.BeyondDoubles)
	if err != nil {
		return nil // a sale need not take so many
	}
	return stockrules.Exact(y.shop(ctx, 0), b.noRefunds == nil)
}

// joinedNames: a product's name and an order's number, written one after the other, make the same text
// as those of another product.
func joinedNames(ctx context.Context, b bench) error {
	pairs := []struct {
		more    string // added to the product's name
		id, own int64  // of the order of the product, and of the other
	}{{"1", 11, 1}, {"-1", 1, 11}, {"-", -5, 5}, {":1", 12, 2}, {"12", 123, 3}}
	for i, p := range pairs {
		name := fmt.Sprintf("%s-%d-", b.Product, i)
		one, err := opened(ctx, b, name, 5)
		if err != nil {
			return err
		}
		two, err := opened(ctx, b, name+p.more, 7)
		if err != nil {
			return err
		}
		if _, err := one.sale.Buy(ctx, order(p.id, 1), one.lock()); err != nil && !declared(err) && p.id < 0 {
			continue // it takes no such number
		}
		what := func(int) string {
			return fmt.Sprintf("order %d of product %q, and then order %d of product %q", p.id, name, p.own, name+p.more)
		}
		if err := stockrules.Beside([]*buyer{one, two}, func(product int) (*buyer, error) {
			y, err := opened(ctx, b, name+"alone", int64(5+2*product))
			if err == nil && product == 0 {
				_, err = y.sale.Buy(ctx, order(p.id, 1), y.lock())
			}
			return y, err
		}, what, []stockrules.Call[*buyer]{
			stockrules.For(1, func(y *buyer) error { return y.buy(ctx, variant.NoUndersell, p.own, 2, nil, 5) }),
			stockrules.For(0, func(y *buyer) error { return y.state(ctx, variant.NoUndersell, 4, 1) }),
			stockrules.For(1, func(y *buyer) error { return y.state(ctx, variant.NoUndersell, 5, 2) }),
		}); err != nil {
			return err
		}
	}
	return nil
}

// longNames differ only in the last byte, behind many, or in bytes that are no ASCII.
func longNames(ctx context.Context, b bench) error {
	pad := func(base string, n int) string { return base + strings.Repeat("n", max(n-len(base), 0)) }
	groups := [][]string{{"\xff", "\xfe", "\uFFFD", "\xc3", "?"}, {"é", "e", "e\u0301", "É"}, {"日", "月"}, {"\x00", "\x01", ""}, {" ", "\t", "_", "/", "\\", ".", "+", "#", "\""}}
	of := []func(base string) []string{}
	for _, length := range []int{63, 100, 128, 255, 512} {
		of = append(of, func(base string) []string { return []string{pad(base, length) + "a", pad(base, length) + "b"} })
	}
	for i, ends := range groups {
		of = append(of, func(base string) (names []string) {
			for _, end := range ends {
				names = append(names, fmt.Sprintf("%s-name-%d-%s", base, i, end))
			}
			return names
		})
	}
	for _, names := range of {
		if err := b.names(ctx, names, func(_ string, err error) bool { return ctx.Err() == nil }).Apart(); err != nil {
			return err
		}
	}
	return nil
}

// names are names of products to be tried; need reports that a sale need not take a name that it refuses with an error.
func (b bench) names(ctx context.Context, of func(base string) []string, need func(name string, err error) bool) stockrules.Names {
	open := func(name string, stock int64) (*stockrules.Caller, error) {
		y, err := opened(ctx, b, name, stock)
		if err != nil {
			return nil, err
		}
		c := y.caller(ctx)
		return &c, nil
	}
	return stockrules.Names{
		Of: of, Base: b.Product,
		Open: func(name string, stock int64) (*stockrules.Caller, error) {
			c, err := open(name, stock)
			if err != nil && need(name, err) {
				return nil, nil
			}
			return c, err
		},
		Alone: func(n int, stock int64) (*stockrules.Caller, error) {
			return open(fmt.Sprint(b.Product, "-alone-", n), stock)
		},
	}
}

// untouched expects a product to have all its pieces before its first order.
func (y *buyer) untouched(ctx context.Context, stock int64) error {
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	if s.Left != stock {
		p := variant.NoUndersell
		if s.Left > stock {
			p = variant.NoOversell
		}
		return broken(y.b.made(p), "it was put on sale with %d pieces, and State says %v of it before its first order", stock, s)
	}
	return nil
}

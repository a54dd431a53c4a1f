package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"oversell/internal/alike"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// The rules in this file try numbers and names that careless code takes for one another.

// manyIDs buys by orders of all these numbers, each of which counts once.
func manyIDs(ctx context.Context, b bench) error {
	ids := alike.IDs()
	for _, pair := range alike.Colliding {
		ids = append(ids, pair[:]...)
	}
	y, err := opened(ctx, b, b.Product, int64(len(ids)))
	if err != nil {
		return err
	}
	var bought []int64
	for _, id := range ids {
		call := func() (int64, error) { return y.sale.Buy(ctx, order(id, 1), y.lock()) }
		left, err := call()
		if id > 0 || declared(err) {
			_, err = y.againAfter(ctx, nil, answered{left, err}, call)
		}
		switch {
		case err == nil:
			bought = append(bought, id)
		case id <= 0 && !declared(err): // a sale need not take such numbers
		default:
			return broken(variant.NoUndersell, "order %d was answered %s; so far only the orders %v were made, of a stock of %d", id, say(err), bought, len(ids))
		}
	}
	n := int64(len(bought))
	if err := y.state(ctx, variant.NoUndersell, int64(len(ids))-n, n); err != nil {
		return fmt.Errorf("after the orders %v of 1 piece: %w", bought, err)
	}
	if !b.promises(variant.OncePerOrder) {
		return nil
	}
	for _, id := range bought {
		if _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); err == nil || errors.Is(err, stockimpl.ErrSoldOut) {
			return broken(variant.OncePerOrder, "order %d, which had bought, was sent again and answered %s; want %q", id, say(err), stockimpl.ErrRepeated)
		}
	}
	return y.state(ctx, variant.OncePerOrder, int64(len(ids))-n, n)
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

// beyondDoubles sells single pieces of a stock that a floating-point number does not hold exactly, and
// takes some back. A script in Lua rounds the numbers in its answers, also those of State, so State may be wrong by the
// rounding. But if orders take nothing, or too much, State is wrong by more with each order.
func beyondDoubles(ctx context.Context, b bench) error {
	const exactly, orders, rounding = 1 << 53, 40, 2 // up to exactly, each whole number is held
	const stock = exactly + 4*orders
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return nil // a sale need not take so many
	}
	left := int64(stock)
	holds := func(what string) error {
		s, err := y.sale.State(ctx)
		if err != nil {
			return broken(theInterface, "state: %w", err)
		}
		what = fmt.Sprintf("of %d pieces, %d were bought one by one%s: State says %v; want %d left, or nearly so", int64(stock), orders, what, s, left)
		switch there := s.Left + s.Reserved; {
		case there > left+rounding:
			return broken(variant.NoOversell, "%s", what)
		case there < left-rounding, s.Sold != stockimpl.Unsaid && (s.Sold < stock-left-rounding || s.Sold > stock-left+rounding):
			return broken(variant.NoUndersell, "%s", what)
		}
		return nil
	}
	for id := int64(1); id <= orders; id++ {
		if _, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(id, 1), y.lock()) }); err != nil {
			if id == 1 && !declared(err) {
				return nil // nor sell of so many
			}
			return broken(variant.NoUndersell, "buy of 1 by order %d, with %d there, answered %s", id, left, say(err))
		}
		left--
	}
	if err := holds(""); err != nil || y.b.noRefunds != nil {
		return err
	}
	for id := int64(1); id <= orders/2; id++ {
		if _, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(id, 1), y.lock()) }); err != nil {
			return broken(variant.NoUndersell, "refund of 1 by order %d, with %d there, answered %s", id, left, say(err))
		}
		left++
	}
	return holds(fmt.Sprintf(", and %d refunded", orders/2))
}

// keptAndReturned keeps orders of many sizes that make up the stock, and then refunds all.
func keptAndReturned(ctx context.Context, b bench) error {
	sizes := []int{150, 150, 1, 7, 99, 100, 101, 255, 256, 257, 999, 1000, 1001}
	stock := int64(0)
	for _, n := range sizes {
		stock += int64(n)
	}
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	left := stock
	for i, n := range sizes {
		left -= int64(n)
		if err := y.buy(ctx, variant.NoUndersell, int64(i+1), n, nil, left); err != nil {
			return err
		}
	}
	if err := y.state(ctx, variant.NoUndersell, 0, stock); err != nil {
		return err
	}
	for i, n := range sizes {
		left += int64(n)
		if err := y.refund(ctx, variant.NoUndersell, int64(i+1), n, nil, left); err != nil {
			return fmt.Errorf("after orders of %v pieces, of which the first %d came back: %w", sizes, i, err)
		}
		if err := y.state(ctx, variant.NoUndersell, left, stock-left); err != nil {
			return fmt.Errorf("after orders of %v pieces, of which the first %d came back: %w", sizes, i+1, err)
		}
	}
	return y.buy(ctx, variant.NoUndersell, 100, int(stock), nil, 0)
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
		}, what, []call{
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
	pad := func(n int) string { return b.Product + strings.Repeat("n", max(n-len(b.Product), 0)) }
	groups := [][]string{
		{pad(63) + "a", pad(63) + "b"}, {pad(100) + "a", pad(100) + "b"}, {pad(128) + "a", pad(128) + "b"}, {pad(255) + "a", pad(255) + "b"}, {pad(512) + "a", pad(512) + "b"},
		{"\xff", "\xfe", "\uFFFD", "\xc3", "?"}, {"é", "e", "e\u0301", "É"}, {"日", "月"}, {"\x00", "\x01", ""}, {" ", "\t", "_", "/", "\\", ".", "+", "#", "\""},
	}
	for i, names := range groups {
		var all []*buyer
		var used []string
		for _, name := range names {
			if i > 4 {
				name = fmt.Sprintf("%s-name-%d-%s", b.Product, i, name)
			}
			y, err := opened(ctx, b, name, int64(10+len(all)))
			if err != nil && ctx.Err() != nil {
				return err
			}
			if err != nil {
				continue // a sale need not take every name
			}
			all, used = append(all, y), append(used, name)
		}
		if err := b.eachNamed(ctx, all, used); err != nil {
			return err
		}
	}
	return nil
}

// eachNamed buys from each of several products, which have these names and were put on sale with 10, 11, 12 and so on pieces.
func (b bench) eachNamed(ctx context.Context, all []*buyer, names []string) error {
	var calls, later []call
	var stocks []int64
	for i := range all {
		stock, pieces := int64(10+i), i%3+1
		stocks = append(stocks, stock)
		calls = append(calls,
			stockrules.For(i, func(y *buyer) error { return y.untouched(ctx, stock) }),
			stockrules.For(i, func(y *buyer) error { return y.buy(ctx, variant.NoUndersell, 1, pieces, nil, stock-int64(pieces)) }))
		later = append(later, stockrules.For(i, func(y *buyer) error { return y.state(ctx, variant.NoUndersell, stock-int64(pieces), int64(pieces)) }))
	}
	return b.beside(ctx, all, stocks, func(i int) string { return fmt.Sprintf("product %q, one of %q", names[i], names) }, append(calls, later...))
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

package stocktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

func sellsExactly(ctx context.Context, b bench) error {
	const stock = 5
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	for id := int64(1); id <= stock; id++ {
		if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, stock-id); err != nil {
			return err
		}
	}
	for id := int64(stock + 1); id < stock+3; id++ {
		if err := y.buy(ctx, variant.NoOversell, id, 1, stockimpl.ErrSoldOut, 0); err != nil {
			return err
		}
		if err := y.state(ctx, theInterface, 0, stock); err != nil {
			return fmt.Errorf("after a refusal, which changes nothing: %w", err)
		}
	}
	return nil
}

func emptyIsSoldOut(ctx context.Context, b bench) error {
	y, err := opened(ctx, b, b.Product, 0)
	if err != nil {
		return &suitetest.NotJudged{Why: fmt.Sprintf("the sale does not put a product without pieces on sale (%v)", err)}
	}
	return firstOf(
		func() error { return y.buy(ctx, variant.NoOversell, 1, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return y.state(ctx, theInterface, 0, 0) },
	)
}

func booksAddUp(ctx context.Context, y *buyer) error {
	const stock = 20
	var sold int64
	for id := int64(1); id <= 12; id++ {
		pieces := int(id%3) + 1
		_, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(id, pieces), y.lock()) })
		switch {
		case err == nil:
			sold += int64(pieces)
		case !errors.Is(err, stockimpl.ErrSoldOut):
			return broken(theInterface, "buy of %d by order %d: %w", pieces, id, err)
		}
		if err == nil && id%4 == 0 && y.b.noRefunds == nil {
			if _, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(id, pieces), y.lock()) }); err != nil {
				return broken(theInterface, "refund of %d by order %d: %w", pieces, id, err)
			}
			sold -= int64(pieces)
		}
		if err := y.state(ctx, variant.NoUndersell, stock-sold, sold); err != nil {
			return fmt.Errorf("after order %d: %w", id, err)
		}
	}
	return nil
}

func copiesAtOnce(ctx context.Context, b bench) error {
	const copies, stock = 8, 20
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	answers := y.crowd(ctx, copies, func(client int, again func(int64) (int64, error)) error {
		_, err := again(1)
		return err
	})
	bought, open := 0, false
	for _, err := range answers {
		switch {
		case err == nil:
			bought++
		case !errors.Is(err, stockimpl.ErrRepeated):
			return broken(variant.OncePerOrder, "a copy of order 1 answered %s; want success or %q", say(err), stockimpl.ErrRepeated)
		}
		open = open || maybeItself(err)
	}
	if bought != 1 && !(bought == 0 && open) {
		return broken(variant.OncePerOrder, "%d of %d copies of order 1 were told that they bought; want 1", bought, copies)
	}
	return y.state(ctx, variant.OncePerOrder, stock-1, 1)
}

func olderToken(ctx context.Context, b bench) error {
	y, err := opened(ctx, b, b.Product, 5)
	if err != nil {
		return err
	}
	const of = variant.Fencing
	buy := func(id, fence int64, want error, left int64) func() error {
		return func() error {
			got, err := y.b.settled(ctx, func() (int64, error) { return y.sale.Buy(ctx, order(id, 1), withFence(fence)) })
			return b.expect(of, fmt.Sprintf("buy by order %d with token %d", id, fence), answered{got, unlessItself(err)}, answered{left, want})
		}
	}
	if err := firstOf(
		buy(1, 4, nil, 4),
		buy(2, 3, stockimpl.ErrStale, 4),
		func() error { return y.state(ctx, of, 4, 1) },
		buy(3, 4, nil, 3), // the same holder goes on
		buy(4, 10, nil, 2),
		buy(5, 9, stockimpl.ErrStale, 2), // newer as text, older as a number
		func() error { return y.state(ctx, of, 2, 3) },
		func() error { return stockrules.Unlocked(y.unlocked(ctx), b.noRefunds == nil) },
	); err != nil || b.noRefunds != nil {
		return err
	}
	return firstOf(
		func() error {
			got, err := y.b.settled(ctx, func() (int64, error) { return y.sale.Refund(ctx, order(1, 1), withFence(9)) })
			return b.expect(of, "refund with token 9 after token 10", answered{got, err}, answered{2, stockimpl.ErrStale})
		},
		func() error { return y.state(ctx, of, 2, 3) },
		func() error {
			got, err := y.b.settled(ctx, func() (int64, error) { return y.sale.Refund(ctx, order(4, 1), withFence(20)) })
			return b.expect(of, "refund with token 20", answered{got, unlessItself(err)}, answered{3, nil})
		},
		buy(6, 11, stockimpl.ErrStale, 3), // older than that of a refund
		func() error { return y.state(ctx, of, 3, 2) },
	)
}

func concurrentBuyers(ctx context.Context, b bench) error {
	const buyers, orders, stock = 16, 4, 40
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var said []int64
	sold := 0
	answers := y.crowd(ctx, buyers, func(client int, buy func(int64) (int64, error)) error {
		for i := range orders {
			left, err := buy(int64(client*orders + i + 1))
			if maybeItself(err) {
				left, err = stockimpl.Unsaid, nil
			}
			if errors.Is(err, stockimpl.ErrSoldOut) {
				continue
			}
			if err != nil {
				return err
			}
			mu.Lock()
			sold++
			if left != stockimpl.Unsaid {
				said = append(said, left)
			}
			mu.Unlock()
		}
		return nil
	})
	for _, err := range answers {
		if err != nil {
			return broken(theInterface, "a buyer was answered %s; want success or %q", say(err), stockimpl.ErrSoldOut)
		}
	}
	if sold > stock {
		return broken(variant.NoOversell, "%d buyers with %d orders each bought %d pieces of %d", buyers, orders, sold, stock)
	}
	if sold < stock {
		return broken(variant.NoUndersell, "%d orders came for %d pieces, and only %d were sold", buyers*orders, stock, sold)
	}
	slices.Sort(said)
	if twice := slices.Compact(slices.Clone(said)); len(twice) != len(said) && b.promises(variant.Linearizable) {
		return broken(variant.Linearizable, "two purchases were told that the same number is left: %v", said)
	}
	return y.state(ctx, variant.NoUndersell, 0, stock)
}

// crowd runs n clients at once, each with an environment of its own, and returns their errors. buy orders one piece,
// and repeats the order, each time with a newer fencing token, while the answer is stale. Clients of a sale that relies
// on a lock buy one at a time.
func (y *buyer) crowd(ctx context.Context, n int, client func(i int, buy func(id int64) (int64, error)) error) []error {
	var lock sync.Mutex
	locked := leansOnLock(y.b.sale)
	answers := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		sale := y.b.newSale(y.b.Env(), y.b.Product)
		once := func(id int64) (int64, error) {
			if locked {
				lock.Lock()
				defer lock.Unlock()
			}
			return sale.Buy(ctx, order(id, 1), y.lock())
		}
		all.Go(func() {
			answers[i] = client(i, func(id int64) (int64, error) {
				return y.b.insist(ctx, func() (int64, error) { return once(id) })
			})
		})
	}
	all.Wait()
	return answers
}

func leansOnLock(v stockimpl.Variant) bool {
	return v.Needs.Fence || slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Under == variant.Unserialized
	})
}

func twoProducts(ctx context.Context, b bench) error {
	// One name begins with the other, so that a key cut short would collide.
	return b.pair(ctx, b.Product+"2", [2]int64{2, 7}, 0, stockrules.Pair.Mixed)
}

// pair puts the product of the bench and another one on sale with these stocks, and makes a check. The tokens of the first are newer
// than this one.
func (b bench) pair(ctx context.Context, other string, stocks [2]int64, token int64, check func(stockrules.Pair) error) error {
	open := func(name string, i int) (stockrules.Caller, error) {
		y, err := opened(ctx, b, name, stocks[i])
		if err != nil {
			return stockrules.Caller{}, err
		}
		if i == 0 {
			y.fences.last.Store(token)
		}
		return y.caller(ctx), nil
	}
	p := stockrules.Pair{Alone: func(i int) (stockrules.Caller, error) { return open(fmt.Sprint(b.Product, "-alone-", i), i) }}
	for i, name := range []string{b.Product, other} {
		c, err := open(name, i)
		if err != nil {
			return err
		}
		p.Clients = append(p.Clients, c)
	}
	return check(p)
}

// among makes a rule of one about several clients of a product with this stock.
func among(stock int64, check func(one stockrules.Caller, client func() stockrules.Caller) error) func(context.Context, bench) error {
	return on(stock, func(ctx context.Context, y *buyer) error {
		return check(y.caller(ctx), func() stockrules.Caller { return y.b.client(y.fences).caller(ctx) })
	})
}

// by makes a rule of one about the first client of a product with this stock.
func by(stock int64, check func(stockrules.Caller) error) func(context.Context, bench) error {
	return on(stock, func(ctx context.Context, y *buyer) error { return check(y.caller(ctx)) })
}

func noQuantity(ctx context.Context, y *buyer) error {
	for _, pieces := range []int{0, -1} {
		_, err := y.sale.Buy(ctx, order(1, pieces), y.lock())
		if err == nil || errors.Is(err, stockimpl.ErrRepeated) {
			return broken(theInterface, "buy of %d answered %s; want an error", pieces, say(err))
		}
		_, _ = y.sale.Refund(ctx, order(1, pieces), y.lock()) // nothing was bought: it may say so
	}
	return y.state(ctx, theInterface, 3, 0)
}

func neverOpened(ctx context.Context, b bench) error {
	y := b.client(&fences{})
	left, err := y.sale.Buy(ctx, order(1, 1), y.lock())
	if err == nil || errors.Is(err, stockimpl.ErrRepeated) {
		return broken(variant.NoOversell, "a product that was never opened was sold (%d left, answer %s)", left, say(err))
	}
	return nil
}

// endedBefore: a context that was over when a call began is no answer.
func endedBefore(ctx context.Context, b bench) error {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for i, over := range []context.Context{dead, late} {
		y, err := opened(ctx, b, fmt.Sprint(b.Product, "-", i), 3)
		if err != nil {
			return err
		}
		if err := y.buy(ctx, theInterface, 1, 1, nil, 2); err != nil {
			return err
		}
		under := []string{"a cancelled context", "a context whose deadline has passed"}[i]
		if err := stockrules.Ended(theInterface, under, stockrules.Shop{
			Buy:    func(id int64, pieces int) error { _, err := y.sale.Buy(over, order(id, pieces), y.lock()); return err },
			Refund: func(id int64) error { _, err := y.sale.Refund(over, order(id, 1), y.lock()); return err },
			State:  func() (stockimpl.State, error) { return y.sale.State(over) },
		}, y.shop(ctx, 3)); err != nil {
			return err
		}
	}
	return nil
}

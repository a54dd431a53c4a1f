package stocktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/stockimpl"
	"oversell/variant"
)

// The rules in this file repeat the tests of others: buyers that die one after the other, and time that passes
// afterwards; larger orders and stocks; and many orders.

// reaped is how long the suite waits for others to clean up after a dead buyer.
const reaped = 2500 * time.Millisecond

// manyDead has buyers of one product die one after the other. Others buy the rest, at once and after a while, and then
// the orders of the dead are sent again.
func manyDead(ctx context.Context, b bench) error {
	const stock, dead = 25, 10
	return b.each(ctx, bothWays, func(b bench, n int, a interrupt.Action) error {
		f := &fences{}
		y, err := openedWith(ctx, b, b.Product, stock, f)
		if err != nil {
			return err
		}
		env := b.Env()
		for id := int64(1); id <= dead; id++ {
			own, line := interrupt.On(env)
			c := &buyer{b: b, sale: b.newSale(own, b.Product), fences: f}
			if !line.DiesAt(n, a, func() { _, _ = c.sale.Buy(ctx, order(id, 1), c.lock()) }) {
				return nil
			}
		}
		sold, err := y.sellsOut(ctx, 100, stock)
		if err != nil {
			return fmt.Errorf("after %d buyers died in their purchases: %w", dead, err)
		}
		if (clock.Real{}).Sleep(ctx, reaped) != nil {
			return context.Cause(ctx)
		}
		later, err := y.sellsOut(ctx, 1000, stock)
		if err != nil {
			return fmt.Errorf("%v after %d buyers died in their purchases: %w", reaped, dead, err)
		}
		what := fmt.Sprintf("%d buyers of 1 piece died in their purchases; of %d pieces others bought %d, and %d more %v later", dead, stock, sold, later, reaped)
		total := sold + later
		if total > stock {
			return broken(variant.NoOversell, "%s", what)
		}
		if !b.promises(variant.OncePerOrder) {
			if total < stock-dead {
				return broken(variant.NoUndersell, "%s: pieces are gone that nobody bought", what)
			}
			return nil
		}
		stands := 0
		for id := int64(1); id <= dead; id++ {
			switch err := y.decided(ctx, id, 1); {
			case err == nil, errors.Is(err, stockimpl.ErrRepeated):
				stands++
			case errors.As(err, new(*notJudged)):
				return err
			}
		}
		switch {
		case total+stands > stock && later == 0:
			return broken(variant.OncePerOrder, "%s; sent again, %d orders of the dead were told that they stand", what, stands)
		case total+stands > stock:
			return broken(variant.NoOversell, "%s; sent again, %d orders of the dead were told that they stand", what, stands)
		case total+stands < stock:
			return broken(variant.NoUndersell, "%s; sent again, %d orders of the dead were told that they stand: pieces are gone that nobody bought", what, stands)
		}
		return nil
	})
}

// twoReapers lets the reservation of a dead buyer run out, and then holds up a client that cleans it up while another
// does the same.
func twoReapers(ctx context.Context, b bench) error {
	steps := b.steps(ctx)
	return b.each(ctx, []interrupt.Action{interrupt.LoseRequest}, func(b bench, n int, _ interrupt.Action) error {
		waits := []time.Duration{1500 * time.Millisecond, 5500 * time.Millisecond}
		return atOnce(steps*len(waits), func(i int) error {
			m, k := i/len(waits)+1, i%len(waits)
			own := b
			own.Product = fmt.Sprintf("%s-%d-%d", b.Product, m, k)
			return own.twoReap(ctx, n, m, waits[k])
		})
	})
}

// twoReap has a buyer die before its n-th command, waits, and holds up the next buyer before its m-th.
func (b bench) twoReap(ctx context.Context, n, m int, wait time.Duration) error {
	const stock = 3
	y, c, line, err := b.rehearsed(ctx, stock)
	if err != nil {
		return err
	}
	if !line.DiesAt(n, interrupt.LoseRequest, func() { _, _ = c.sale.Buy(ctx, order(1, 1), c.lock()) }) {
		return nil
	}
	if s, err := y.sale.State(ctx); err != nil || s.Reserved == 0 {
		return err // nothing runs out
	}
	if (clock.Real{}).Sleep(ctx, wait) != nil {
		return context.Cause(ctx)
	}
	d, line := b.buyerOf(ctx, b.Product, y.fences)
	s := stalled(ctx, line, m, func() error { return d.buys(ctx, 2, 1) })
	if s == nil {
		return nil
	}
	sold := 0
	if blocked := s.beside(y, func() {
		for id := int64(10); id < 10+stock; id++ { // once each: reserved pieces may stay reserved
			if _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); err == nil {
				sold++
			}
		}
	}); blocked != nil {
		return blocked
	}
	if s.answer == nil {
		sold++
	}
	for id := int64(100); sold <= stock; id++ {
		if _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); err != nil {
			return nil // sold out, or the rest stays set aside for longer
		}
		sold++
	}
	return broken(variant.NoOversell, "a buyer died before its command %d, and %v later another was held up before its command %d while a third bought: %d pieces were sold in all, of %d", n, wait, m, sold, stock)
}

// largerOrders interrupts orders of many pieces if they use other commands than small ones, and small orders from large
// stocks.
func largerOrders(ctx context.Context, b bench) error {
	var cases []stalling
	small := b.sends(ctx, 2)
	for _, pieces := range []int{11, 25, 150} {
		if sent := b.sends(ctx, pieces); sent != small {
			for n := 1; n <= min(sent+1, most); n++ {
				cases = append(cases, stalling{n: n, i: everything, stock: pieces + 15, pieces: pieces})
			}
			break
		}
	}
	for _, stock := range []int{150, 20_000} {
		for n := 1; n <= min(small+1, most); n++ {
			cases = append(cases, stalling{n: n, i: everything, stock: stock, pieces: 1})
		}
	}
	return atOnce(len(cases), func(i int) error {
		own := b
		own.Product = fmt.Sprintf("%s-%d", b.Product, i)
		return own.larger(ctx, cases[i])
	})
}

// sends counts the commands of a purchase of so many pieces.
func (b bench) sends(ctx context.Context, pieces int) int {
	b.Product = fmt.Sprintf("%s-sends-%d", b.Product, pieces)
	_, c, line, err := b.rehearsed(ctx, 2*pieces)
	if err != nil {
		return 0
	}
	_, _ = c.sale.Buy(ctx, order(1, pieces), c.lock())
	return line.Sent()
}

func (b bench) larger(ctx context.Context, h stalling) error {
	h.what = whiles[h.i]
	if !b.hasFlaw(variant.Overrun) && !leansOnLock(b.sale) {
		if err := b.stalledWhile(ctx, h); err != nil {
			return fmt.Errorf("at command %d of an order for %d pieces of %d: %w", h.n, h.pieces, h.stock, err)
		}
	}
	if h.pieces == 1 || b.hasFlaw(variant.Crash) || b.hasFlaw(variant.DropReply) {
		return nil
	}
	for _, a := range bothWays {
		own := b
		own.Product += fmt.Sprint("-dead-", a)
		if err := own.deadBuyer(ctx, h.n, a, h.stock, h.pieces); err != nil {
			return fmt.Errorf("at command %d%s of an order for %d pieces of %d: %w", h.n, said[a], h.pieces, h.stock, err)
		}
	}
	return nil
}

// thousands has several clients make thousands of orders, some of them repeatedly.
func thousands(ctx context.Context, b bench) error {
	const orders, clients = 20_000, 6
	y, err := opened(ctx, b, b.Product, orders)
	if err != nil {
		return nil // a sale may have a lower limit
	}
	var next atomic.Int64
	end := time.Now().Add(4 * time.Second)
	errs := make([]error, clients)
	var all sync.WaitGroup
	call := b.turns(ctx)
	for i := range clients {
		c := b.client(y.fences)
		all.Go(func() {
			for time.Now().Before(end) {
				id := next.Add(1)
				if id > orders {
					return
				}
				if _, err := call(func() (int64, error) { return c.sale.Buy(ctx, order(id, 1), c.lock()) }); err != nil {
					errs[i] = broken(variant.NoUndersell, "buy of 1 by order %d, with a stock of %d at first, answered %s", id, orders, say(err))
					return
				}
			}
		})
	}
	all.Wait()
	if err := firstBreach(errs); err != nil {
		return err
	}
	made := min(next.Load(), orders) - clients
	for id := int64(1); id <= made; id += 1 + made/200 {
		if err := y.buy(ctx, variant.OncePerOrder, id, 1, stockimpl.ErrRepeated, 0); err != nil {
			return fmt.Errorf("after %d orders: %w", made, err)
		}
	}
	return nil
}

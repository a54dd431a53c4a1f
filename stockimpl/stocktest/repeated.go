package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// The rules in this file repeat what others do once: buyers that die one after the other, with time
// passing after that; orders and stocks that are larger; and many orders.

// reaped is how long the suite waits for what a dead buyer left to be cleared away by others.
const reaped = 2500 * time.Millisecond

// manyDead has ten buyers of one product die one after the other.
func manyDead(ctx context.Context, b bench) error { return b.allDie(ctx, 25, 10, bothWays) }

// crowdDies is manyDead with so many buyers that a count of orders under way, which the dead leave as it is, reaches any
// limit that a sale may have.
func crowdDies(ctx context.Context, b bench) error {
	return b.allDie(ctx, 150, 130, []interrupt.Action{interrupt.LoseReply})
}

// stillAside is the number of buyers up to which allDie also tries a sale that keeps the pieces of a dead buyer reserved.
const stillAside = 10

// allDie has dead buyers of one product die one after the other. Others buy what is left, at once and after a while, and
// then the orders of the dead come again.
func (b bench) allDie(ctx context.Context, stock, dead int, actions []interrupt.Action) error {
	return b.eachOpened(ctx, int64(stock), actions, func(y *buyer, n int, a interrupt.Action) error {
		b, f := y.b, y.fences
		env := b.Env()
		b.practise(ctx, env, b.Product)
		for id := int64(1); id <= int64(dead); id++ {
			own, line := b.interrupted(env)
			c := &buyer{b: b, sale: b.newSale(own, b.Product), fences: f}
			if !line.DiesAt(n, a, func() { _, _ = c.sale.Buy(ctx, order(id, 1), c.lock()) }) {
				return nil
			}
			if id > 1 || dead <= stillAside {
				continue
			}
			if s, err := y.sale.State(ctx); err != nil || s.Reserved > 0 {
				return err // other rules are about reservations, whose time must pass
			}
		}
		sold, err := y.sellsOut(ctx, 1000, stock)
		if err != nil {
			return fmt.Errorf("after %d buyers died in their purchases: %w", dead, err)
		}
		if (clock.Real{}).Sleep(ctx, reaped) != nil {
			return context.Cause(ctx)
		}
		later, err := y.sellsOut(ctx, 2000, stock)
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
				return broken(variant.NoUndersell, "%s: pieces are gone that no answer accounts for", what)
			}
			return nil
		}
		stands := 0
		for id := int64(1); id <= int64(dead); id++ {
			switch err := y.decided(ctx, id, 1); {
			case err == nil, errors.Is(err, stockimpl.ErrRepeated):
				stands++
			case errors.As(err, new(*suitetest.NotJudged)):
				return err
			case errors.As(err, new(*lasting)):
				return broken(theInterface, "%s; order %d of the dead, sent again, was answered %s; want success, %q or %q", what, id, say(err), stockimpl.ErrRepeated, stockimpl.ErrSoldOut)
			}
		}
		switch at, err := y.sale.State(ctx); {
		case err == nil && (at.Left < 0 || at.Sold > int64(stock)):
			return broken(variant.NoOversell, "%s; sent again, %d orders of the dead were told that they stand, and State says %v", what, stands, at)
		case total+stands > stock && later == 0:
			return broken(variant.OncePerOrder, "%s; sent again, %d orders of the dead were told that they stand", what, stands)
		case total+stands > stock:
			return broken(variant.NoOversell, "%s; sent again, %d orders of the dead were told that they stand", what, stands)
		case total+stands < stock:
			return broken(variant.NoUndersell, "%s; sent again, %d orders of the dead were told that they stand: pieces are gone that no answer accounts for", what, stands)
		}
		return nil
	})
}

// twoReapers lets what a dead buyer has set aside run out, and then holds up a client that clears it
// away while another does the same.
func twoReapers(ctx context.Context, b bench) error {
	steps := b.steps(ctx)
	return b.each(ctx, []interrupt.Action{interrupt.LoseRequest}, func(b bench, n int, _ interrupt.Action) error {
		waits := []time.Duration{1500 * time.Millisecond, 5500 * time.Millisecond}
		errs := make([]error, steps*len(waits))
		var all sync.WaitGroup
		for m := 1; m <= steps; m++ {
			for i, wait := range waits {
				own := b
				own.Product = fmt.Sprintf("%s-%d-%d", b.Product, m, i)
				all.Go(func() { errs[(m-1)*len(waits)+i] = own.twoReap(ctx, n, m, wait) })
			}
		}
		all.Wait()
		return firstBreach(errs)
	})
}

// twoReap has a buyer die before its n-th command, waits, and holds up the next buyer before its m-th.
func (b bench) twoReap(ctx context.Context, n, m int, wait time.Duration) error {
	const stock = 3
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	if !line.DiesAt(n, interrupt.LoseRequest, func() { _, _ = c.sale.Buy(ctx, order(1, 1), c.lock()) }) {
		return nil
	}
	if s, err := y.sale.State(ctx); err != nil || s.Reserved == 0 {
		return err // nothing runs out
	}
	if (clock.Real{}).Sleep(ctx, wait) != nil {
		return context.Cause(ctx)
	}
	d, line := b.buyerOf(ctx, b.Product, f)
	var answer error
	s := stalled(ctx, line, m, func() { _, answer = d.sale.Buy(ctx, order(2, 1), d.lock()) })
	if s == nil {
		return nil
	}
	sold := 0
	if blocked := s.beside(y, func() {
		for id := int64(10); id < 10+stock; id++ { // once each: what is set aside may stay so
			if _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); err == nil {
				sold++
			}
		}
	}); blocked != nil {
		return blocked
	}
	if answer == nil {
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

// largerOrders interferes with orders of many pieces if they take other commands than small ones, and
// with small orders from large stocks.
func largerOrders(ctx context.Context, b bench) error {
	var cases []stalling
	small := b.sends(ctx, 2)
	for _, pieces := range []int{11, 25, 150, 1001} {
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
	errs := make([]error, len(cases))
	var all sync.WaitGroup
	for i, h := range cases {
		own := b
		own.Product = fmt.Sprintf("%s-%d", b.Product, i)
		all.Go(func() { errs[i] = own.larger(ctx, h) })
	}
	all.Wait()
	return firstBreach(errs)
}

// sends counts the commands of a purchase of so many pieces.
func (b bench) sends(ctx context.Context, pieces int) int {
	f := &fences{}
	product := fmt.Sprintf("%s-sends-%d", b.Product, pieces)
	if _, err := openedWith(ctx, b, product, int64(2*pieces), f); err != nil {
		return 0
	}
	c, line := b.buyerOf(ctx, product, f)
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

// resending is for how long orders are sent again: calls may take their time.
const resending = 4 * time.Second

// thousands has several clients make up to 20,000 orders; it then sends some again, and refunds some.
func thousands(ctx context.Context, b bench) error {
	const orders = 20_000
	number := stockrules.Scattered
	if b.refusesID(ctx, math.MaxInt64) {
		number = func(n int64) int64 { return n }
	}
	var known atomic.Int64 // an order that was said to be known
	y, made, err := b.madeByMany(ctx, orders, 4*time.Second, "buy", func(c *buyer, n int64) error {
		_, err := c.sale.Buy(ctx, order(number(n), 1), c.lock())
		if errors.Is(err, stockimpl.ErrRepeated) {
			known.Store(n)
		}
		return err
	})
	if n := known.Load(); err != nil && n != 0 && strings.Contains(err.Error(), say(stockimpl.ErrRepeated)) {
		var before []int64
		for other := int64(1); other < n; other++ {
			before = append(before, number(other))
		}
		return b.numbers(ctx, nil).Confused(before, number(n), stockimpl.ErrRepeated)
	}
	if err != nil {
		return err
	}
	if s, err := y.sale.State(ctx); err == nil && made > 0 && s.Sold != stockimpl.Unsaid && s.Left+s.Reserved+s.Sold != orders {
		return broken(variant.NoUndersell, "of %d pieces, thousands were bought one by one, and State says %v: the pieces do not add up", orders, s)
	}
	for n, start := int64(1), time.Now(); n <= made && time.Since(start) < resending; n += 1 + made/200 {
		if err := y.buy(ctx, variant.OncePerOrder, number(n), 1, stockimpl.ErrRepeated, 0); err != nil {
			return fmt.Errorf("after %d orders: %w", made, err)
		}
	}
	for n, start := int64(1), time.Now(); n <= made && time.Since(start) < resending/4; n += 1 + made/20 {
		id := number(n)
		was, err := y.sale.State(ctx)
		if err != nil {
			return broken(theInterface, "state: %w", err)
		}
		_, err = y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(id, 1), y.lock()) })
		if now, look := y.sale.State(ctx); err != nil || look == nil && now.Left+now.Reserved != was.Left+was.Reserved+1 {
			return broken(variant.NoUndersell, "after %d orders of 1 piece order %d was refunded, which was answered %s; State said %v before, and says %v", made, id, say(err), was, now)
		}
	}
	return nil
}

// thousandsOfRefunds: orders are made and refunded by several clients, and then the first of them, and
// some of the others, come again.
func thousandsOfRefunds(ctx context.Context, b bench) error {
	const orders = 6_000
	y, made, err := b.madeByMany(ctx, orders, 3500*time.Millisecond, "buy and refund", func(c *buyer, id int64) error {
		_, err := c.sale.Buy(ctx, order(id, 1), c.lock())
		if err != nil && !errors.Is(err, stockimpl.ErrRepeated) { // its refund was stale
			return err
		}
		_, err = c.sale.Refund(ctx, order(id, 1), c.lock())
		return err
	})
	if err != nil {
		return err
	}
	const of = variant.OncePerOrder
	was, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	for id, start := int64(1), time.Now(); id <= made && time.Since(start) < resending; id += 1 + made/150 {
		what := fmt.Sprintf("order %d, which was bought and refunded, as were %d others after it", id, made-id)
		if _, err := y.sale.Refund(ctx, order(id, 1), y.lock()); err == nil {
			return broken(of, "%s, was refunded again", what)
		}
		if _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); err == nil {
			return broken(of, "%s, was sent again and bought again", what)
		}
	}
	if now, err := y.sale.State(ctx); err != nil || now.Left+now.Reserved != was.Left+was.Reserved {
		return broken(of, "after %d orders that were bought and refunded State said %v, and after copies of some of them it says %v (%s)", made, was, now, say(err))
	}
	return nil
}

// allCameBack: one order can have all that was sold by many others and refunded.
func allCameBack(ctx context.Context, b bench) error {
	const stock = 2500
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil || b.noRefunds != nil {
		return nil // a sale need not keep so many
	}
	return stockrules.AllCameBack(y.shop(ctx, stock), stock, declared)
}

// unlocked is the shop for a buyer that holds no lock.
func (y *buyer) unlocked(ctx context.Context) stockrules.Shop {
	s := y.shop(ctx, 0)
	s.Buy = func(id int64, pieces int) error {
		_, err := y.sale.Buy(ctx, order(id, pieces), lockimpl.Lock{})
		return err
	}
	s.Refund = func(id int64) error { _, err := y.sale.Refund(ctx, order(id, 1), lockimpl.Lock{}); return err }
	return s
}

// shop is a product by the calls of one buyer.
func (y *buyer) shop(ctx context.Context, stock int) stockrules.Shop {
	return stockrules.Shop{
		Buy:  func(id int64, pieces int) error { return y.decidedAlone(ctx, id, pieces) },
		Once: func(id int64, pieces int) error { _, err := y.sale.Buy(ctx, order(id, pieces), y.lock()); return err },
		Refund: func(id int64) error {
			_, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(id, 1), y.lock()) })
			return err
		},
		State:    func() (stockimpl.State, error) { return y.sale.State(ctx) },
		SellsOut: func(from int64) (int, error) { return y.sellsOut(ctx, from, stock) },
	}
}

// madeByMany has several clients make orders, each of which changes the stock by one piece, as long as
// time is left. It returns how many were made.
func (b bench) madeByMany(ctx context.Context, orders int64, atMost time.Duration, what string, do func(c *buyer, id int64) error) (y *buyer, made int64, err error) {
	const clients = 6
	f := &fences{}
	if y, err = openedWith(ctx, b, b.Product, orders, f); err != nil {
		return b.client(f), 0, nil // a sale need not keep so many
	}
	var next atomic.Int64
	end := time.Now().Add(atMost)
	errs := make([]error, clients)
	var all sync.WaitGroup
	var lock sync.Mutex
	locked := leansOnLock(b.sale)
	once := func(c *buyer, id int64) error {
		if locked {
			lock.Lock()
			defer lock.Unlock()
		}
		return do(c, id)
	}
	for i := range clients {
		c := b.client(f)
		all.Go(func() {
			for time.Now().Before(end) {
				id := next.Add(1)
				if id > orders {
					return
				}
				_, err := b.insist(ctx, func() (int64, error) { return stockimpl.Unsaid, once(c, id) })
				if err = unlessItself(err); err != nil {
					errs[i] = broken(variant.NoUndersell, "%s of 1 by order %d, with a stock of %d at first, answered %s", what, id, orders, say(err))
					return
				}
			}
		})
	}
	all.Wait()
	return y, min(next.Load(), orders) - clients, firstBreach(errs)
}

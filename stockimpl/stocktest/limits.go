package stocktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/variant"
)

// A sale may not do everything that the interface has: it may sell for good, or take small orders only. It then answers
// with an error that wraps errors.ErrUnsupported, or with an error of its own before it sends a command. Rules that need
// what the sale does not do are skipped.

// limits are calls of one rule that a sale may not support.
type limits struct {
	refundAsked atomic.Bool  // a refund, of a sale that does not refund
	cut         atomic.Int64 // the longest time, in nanoseconds, after which the context of a call was over
	interrupts  atomic.Bool  // the rule has made a client whose commands it holds up, loses or refuses
	moved       atomic.Int64 // when a call last began or returned, in nanoseconds since 1970
	mu          sync.Mutex
	orders      map[stockimpl.Order]error // that ended in an error which is no declared answer
}

// ended notes how long a call, or a series of them, had gone on if its context is over.
func (l *limits) ended(ctx context.Context, start time.Time) {
	l.moved.Store(time.Now().UnixNano())
	if took := int64(time.Since(start)); ctx.Err() != nil && took > l.cut.Load() {
		l.cut.Store(took) // two calls that end at once took about as long
	}
}

// still returns for how long no call has begun or returned.
func (l *limits) still() time.Duration { return time.Since(time.Unix(0, l.moved.Load())) }

// failed notes an order that ended in an error which is no declared answer.
func (l *limits) failed(o stockimpl.Order, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders == nil {
		l.orders = map[stockimpl.Order]error{}
	}
	l.orders[o] = err
}

// beyond returns why a rule that found a breach cannot judge the sale: the sale does not do what the rule needs. It is
// empty if that is not so.
func (b bench) beyond(ctx context.Context, found error) string {
	switch {
	case !errors.As(found, new(*suitetest.Breach)):
		return ""
	case b.limits.refundAsked.Load():
		return b.noRefunds.Error() + "; what comes before the first refund was tried"
	}
	b.limits.mu.Lock()
	orders := b.limits.orders
	b.limits.orders = nil
	b.limits.mu.Unlock()
	for o, answer := range orders {
		if !strings.Contains(found.Error(), strings.Trim(say(answer), `"`)) {
			continue
		}
		switch {
		case o.Quantity > 1 && b.refusesOrders(ctx, o.Quantity):
			return fmt.Sprintf("the sale takes no order of %d pieces (%v)", o.Quantity, answer)
		case (o.ID < 1 || o.ID >= largeID) && b.refusesID(ctx, o.ID):
			return fmt.Sprintf("the sale takes no order with the number %d (%v)", o.ID, answer)
		}
	}
	return ""
}

// counted puts a product on sale, and returns its first client and a function that makes a call and reports whether the
// sale does not support it.
func (b bench) counted(ctx context.Context, product string, stock int64) (*buyer, func(call func() error) bool, error) {
	env, line := interrupt.Intercept(b.Env())
	y := &buyer{b: b, sale: b.newSale(env, product), fences: &fences{}}
	err := y.sale.Open(ctx, stock)
	sends := line.Sent() > 0 // by a client that can be observed
	return y, func(call func() error) bool {
		line.Plan(nil)
		err := call()
		return errors.Is(err, errors.ErrUnsupported) || err != nil && !declared(err) && ctx.Err() == nil && sends && line.Sent() == 0
	}, err
}

// refusesOrders reports whether the sale sells single pieces of a product, but not so many in one order.
func (b bench) refusesOrders(ctx context.Context, quantity int) bool {
	y, unsupported, err := b.counted(ctx, fmt.Sprintf("%s-of-%d", b.Product, quantity), int64(quantity)+1)
	if err != nil {
		return false
	}
	buy := func(id int64, pieces int) error { _, err := y.sale.Buy(ctx, order(id, pieces), y.lock()); return err }
	return buy(1, 1) == nil && unsupported(func() error { return buy(2, quantity) })
}

// interrupted returns an environment whose commands the rule can act upon.
func (b bench) interrupted(env variant.Env) (variant.Env, *interrupt.Interceptor) {
	b.limits.interrupts.Store(true)
	return interrupt.Intercept(env)
}

// hidden reports whether a sale sells without a command through Env.Redis.
func (b bench) hidden(ctx context.Context) bool {
	env, line := interrupt.Intercept(b.Env())
	y := &buyer{b: b, sale: b.newSale(env, b.Product+"-seen"), fences: &fences{}}
	if b.sale.Needs.SQL || y.sale.Open(ctx, 1) != nil {
		return false
	}
	_, err := y.sale.Buy(ctx, order(1, 1), y.lock())
	return err == nil && line.Sent() == 0
}

// unseen is why a rule that interrupts commands does not judge a sale whose commands are hidden.
const unseen = "the sale sends no command through Env.Redis, so the suite cannot hold up or lose one: it does not see those of a client of the sale's own, at Env.Addr"

// largeID is a number from which on a sale may take no orders: all smaller ones have six digits at most.
const largeID = 1_000_000

// refusesID reports whether the sale takes order 1, but none with this number.
func (b bench) refusesID(ctx context.Context, id int64) bool {
	y, unsupported, err := b.counted(ctx, fmt.Sprintf("%s-number-%d", b.Product, uint64(id)), 3)
	if err != nil {
		return false
	}
	buy := func(id int64) error { _, err := y.sale.Buy(ctx, order(id, 1), y.lock()); return err }
	return buy(1) == nil && unsupported(func() error { return buy(id) })
}

// works reports why a sale cannot be opened, or does not accept a first purchase: then every rule would fail.
func (b bench) works(ctx context.Context) error {
	const tries = 3
	var err error
	for i := range tries {
		ctx, cancel := context.WithTimeout(ctx, patience/tries)
		var y *buyer
		if y, err = opened(ctx, b, fmt.Sprintf("%s-works-%d", b.Product, i), 3); err == nil {
			_, err = y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(1, 1), y.lock()) })
		}
		cancel()
		if err == nil || declared(err) && !b.promises(variant.NoUndersell) {
			return nil
		}
	}
	if declared(err) {
		return broken(variant.NoUndersell, "a sale of 3 pieces was opened, and one piece ordered, %d times, and the last answer was %s", tries, say(err))
	}
	return fmt.Errorf("a sale of 3 pieces was opened, and one piece ordered, %d times, and the last answer was: %w", tries, err)
}

// withoutRefunds returns the error with which the sale refuses to refund what was bought just now; nil if it refunds.
func (b bench) withoutRefunds(ctx context.Context) (why error) {
	y, unsupported, err := b.counted(ctx, b.Product, 3)
	for id := int64(1); id <= 3 && err == nil; id++ {
		if _, err = y.sale.Buy(ctx, order(id, 1), y.lock()); err != nil {
			break
		}
		if !unsupported(func() error { _, why = y.sale.Refund(ctx, order(id, 1), y.lock()); return why }) {
			return nil
		}
	}
	if err != nil && !errors.Is(why, errors.ErrUnsupported) {
		return nil
	}
	return fmt.Errorf("the sale does not refund (%w)", why)
}

// A sale may take one piece per order, such as one for each customer. Rules that make one call after the other are tried on
// it with several orders in place of one; rules that interfere with one call are tried with orders of one piece.

// oneAfterTheOther are the rules that make one call after the other, with small numbers of orders and pieces.
var oneAfterTheOther = []string{
	"refuses more than is left", "a refund returns to the stock", "the books add up", "a resent order has one effect",
	"a refunded order stays used up", "two products do not mix", "what other clients do counts", "an hour later", "a year later", "minutes, hours and days of the server's clock later",
	"products with similar names do not mix", "products with unlike names do not mix",
}

// several returns how many pieces an order of a rule has: n, or 1 if the sale takes one piece per order.
func (b bench) several(n int) int {
	if b.single {
		return 1
	}
	return n
}

package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"oversell/history"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// seckill is the flash sale: all buyers start at the same time, and each goes on ordering until it is told that the
// stock is gone.
var seckill = Scenario{
	Name:       "seckill",
	Source:     variant.TextListing + ", and " + variant.TextLease,
	Summary:    "a flash sale: every buyer acquires the lock, buys, releases the lock, and repeats until the stock is gone",
	Objects:    []variant.Object{variant.Sale, variant.Lock},
	Operations: []history.Kind{history.Acquire, history.Buy, history.Refund, history.Release},
	Defaults: func(c *Config) {
		if c.Hold == 0 {
			c.Hold = c.spread()
			c.spreadOut = c.Hold > 0
		}
		resendDefault(c)
		if c.Duration == 0 {
			c.cap()
		}
	},
	Open: putOnSale,
	Step: func(ctx context.Context, c *Client) bool {
		return buyOnce(ctx, c) && !c.driver.keepsComing()
	},
	Audit: auditStock,
}

// seckillResend is the default share of orders that are sent twice if the sale promises that each counts once.
// Controls get none: a control that broke only by resends would say nothing about the load.
const seckillResend = 0.1

func resendDefault(c *Config) {
	if c.Resend == 0 && !c.Sale.Control && slices.Contains(c.Sale.Promises, variant.OncePerOrder) {
		c.Resend, c.inTurn = seckillResend, c.Refund > 0
	}
}

// putOnSale opens the sale.
func putOnSale(ctx context.Context, c *Client) error {
	if err := c.sale.Open(ctx, c.stage.config.Stock); err != nil {
		return fmt.Errorf("put %d pieces on sale: %w", c.stage.config.Stock, err)
	}
	return nil
}

// hopeless is the number of pieces sold, less refunds, after which the sale is not expected to end, because lost
// updates keep the stock from falling. Further sales would show nothing new.
func (c Config) hopeless() int64 { return max(5*c.Stock, cmp.Or(c.leastHopeless, 100_000)) }

// countSold ends a hopeless sale: one without a limit of its own, without faults and a queue, and under a closed load.
func (r *run) countSold(op *history.Op, err error) {
	if err != nil || !r.config.capped || r.book != nil || r.injector != nil || r.config.Scenario.Uses(variant.Queue) {
		return
	}
	pieces := op.Pieces()
	switch op.Kind {
	case history.Buy:
	case history.Refund:
		pieces = -pieces
	default:
		return
	}
	if most := r.config.hopeless(); r.sold.Add(pieces) >= most && !r.hopeless.Swap(true) {
		r.halt()
	}
}

// auditStock records the final stock.
func auditStock(ctx context.Context, c *Client) error {
	for _, part := range []struct {
		name string
		of   func(stockimpl.State) int64
	}{
		{"left", func(s stockimpl.State) int64 { return s.Left }},
		{"reserved", func(s stockimpl.State) int64 { return s.Reserved }},
		{"sold", func(s stockimpl.State) int64 { return s.Sold }},
	} {
		s, err := c.sale.State(ctx)
		if err != nil {
			return fmt.Errorf("read the state of the sale: %w", err)
		}
		// A stock equal to Unsaid is possible: a sale that broke its promise may have a negative stock.
		if n := part.of(s); n != stockimpl.Unsaid || part.name == "left" {
			op := c.begin(history.Op{Kind: history.ReadState, Key: c.stage.product.key, Arg: history.Text(part.name)})
			op.Result = history.Int(n)
			c.record(op, nil)
		}
	}
	return nil
}

// buyOnce makes one order and, at random, sends it twice concurrently or refunds it.
func buyOnce(ctx context.Context, c *Client) (done bool) {
	if !c.driver.takeStep() {
		return true
	}
	o := c.nextOrder()
	if !c.chance(c.stage.config.Resend) {
		return c.order(ctx, o) == soldOut
	}
	var second answer
	if c.stage.config.inTurn {
		first := c.purchase(ctx, o, 0)
		second = c.order(ctx, o)
		return first == soldOut && second == soldOut
	}
	var first answer
	c.Both(func() { first = c.order(ctx, o) }, func() { second = c.twin.purchase(ctx, o, 0) })
	return first == soldOut && second == soldOut
}

// answer is how a purchase ended.
type answer int

const (
	noAnswer answer = iota // the lock was not obtained, or the outcome is unknown
	bought                 // or was counted before
	soldOut
	stale
	died // in the middle of the section
)

// patienceOfBuyers is how often a buyer without an answer sends the order again.
const patienceOfBuyers = 3

// order purchases o and, at random, refunds it.
func (c *Client) order(ctx context.Context, o stockimpl.Order) answer {
	a := c.purchase(ctx, o, 0)
	for again := 1; a == noAnswer && again <= patienceOfBuyers && !c.driver.enough(); again++ {
		a = c.purchase(ctx, o, again) // the same order: a buyer without an answer retries
	}
	if a == bought && c.chance(c.stage.config.Refund) {
		c.section(ctx, place{what: "refund", number: o.ID}, func(l lockimpl.Lock, session int64) answer { return c.refund(ctx, o, l, session) })
	}
	return a
}

func (c *Client) purchase(ctx context.Context, o stockimpl.Order, again int) answer {
	return c.section(ctx, place{what: "order", number: o.ID, again: again}, func(l lockimpl.Lock, session int64) answer { return c.buy(ctx, o, l, session) })
}

// section runs f under the lock, and again under a new lock while f reports a stale token, unless stale orders are
// refused. at is all that the step remembers.
func (c *Client) section(ctx context.Context, at place, f func(l lockimpl.Lock, session int64) answer) answer {
	for !c.driver.enough() {
		c.reaches(at)
		l, session, ok := c.acquire(ctx)
		if !ok {
			continue
		}
		lives := c.deaths
		c.reachesUnder(l, session, at, "order", noAnswer)
		a := f(l, session)
		if a == died || c.deaths != lives {
			return died // a dead client does not release
		}
		c.reachesUnder(l, session, at, "release", a)
		c.release(ctx, l, session)
		if a != stale || c.stage.config.RefuseStale {
			return a
		}
	}
	return noAnswer
}

func (c *Client) buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock, session int64) answer {
	a, _ := c.buyAs(ctx, o, l, session)
	return a
}

func (c *Client) buyAs(ctx context.Context, o stockimpl.Order, l lockimpl.Lock, session int64) (answer, error) {
	op := c.stockOp(history.Buy, o, l, session)
	ctx, done := c.holding(c.Trying(ctx), l)
	defer done()
	left, err := c.sale.Buy(ctx, o, l)
	op.Result = history.Int(left)
	c.record(op, err)
	return answerTo(err), err
}

// holding returns a context that makes a section last longer by the run's hold, after the sale's first command: it
// stands for what a program does between reading and writing the stock. A lock that reports its loss cuts this
// short.
func (c *Client) holding(ctx context.Context, l lockimpl.Lock) (context.Context, context.CancelFunc) {
	if c.stage.config.Hold == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return load.PauseAfterFirst(ctx, func(ctx context.Context) {
		if !c.rest(ctx, l, c.stage.config.Hold) {
			cancel(lockimpl.ErrLost)
		}
	}), func() { cancel(nil) }
}

func (c *Client) refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock, session int64) answer {
	op := c.stockOp(history.Refund, o, l, session)
	left, err := c.sale.Refund(ctx, o, l)
	op.Result = history.Int(left)
	c.record(op, err)
	return answerTo(err)
}

func (c *Client) stockOp(kind history.Kind, o stockimpl.Order, l lockimpl.Lock, session int64) history.Op {
	return c.begin(history.Op{
		Kind: kind, Key: c.stage.product.key, Arg: history.Int(o.ID),
		Amount: int32(o.Quantity), Fence: l.Fence, Session: history.Int(session),
	})
}

// answerTo translates a sale's error for the buyer.
func answerTo(err error) answer {
	switch outcome, reason := outcomeOf(err); {
	case outcome == history.OK:
		return bought
	case reason == history.SoldOut:
		return soldOut
	case reason == history.Stale:
		return stale
	}
	return noAnswer
}

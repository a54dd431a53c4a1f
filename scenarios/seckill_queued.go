package scenarios

import (
	"cmp"
	"context"
	"strconv"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// seckillQueued is the flash sale behind a queue: buyers only enqueue orders, and a smaller number of workers sell.
var seckillQueued = Scenario{
	Name:       "seckill-queued",
	Source:     variant.TextListing,
	Summary:    "the flash sale behind a queue: half of the clients enqueue orders, the other half take them and sell",
	Objects:    []variant.Object{variant.Sale, variant.Queue, variant.Lock},
	Operations: []history.Kind{history.Enqueue, history.Pop, history.Effect, history.Buy, history.Ack, history.Acquire, history.Release},
	Defaults:   queuedSaleDefaults,
	Open:       putOnSale,
	Step: func(ctx context.Context, c *Client) bool {
		if c.produces() {
			return c.produce(ctx)
		}
		return c.consume(ctx, c.sell)
	},
	Audit: func(ctx context.Context, c *Client) error {
		if err := auditStock(ctx, c); err != nil {
			return err
		}
		return auditQueue(ctx, c)
	},
}

// queuedSaleDefaults makes twice as many orders as there are pieces.
func queuedSaleDefaults(c *Config) {
	if c.Duration == 0 {
		c.Ops = cmp.Or(c.Ops, max(2*c.Stock, 1))
		c.cap()
	}
	resendDefault(c)
	queueDefaults(c)
}

// sell handles an order: it sells, under the run's lock if there is one. The order is handled when it is sold or
// declined.
func (c *Client) sell(ctx context.Context, t queueimpl.Task) bool {
	id, err := strconv.ParseInt(t.ID, 10, 64)
	if err != nil {
		return false // not one of ours
	}
	o := stockimpl.Order{ID: id, Quantity: 1}
	begun := false
	work := func(l lockimpl.Lock, session int64) answer {
		effect := c.taskEffect(t)
		a, err := c.buyAs(ctx, o, l, session)
		if a == bought && c.chance(c.stage.config.Resend) {
			_, err = c.buyAs(ctx, o, l, session) // a worker that is not sure
		}
		refused := a == soldOut || a == stale && c.stage.config.RefuseStale
		if refused {
			err = c.driver.decline(t.ID) // and so handled
		}
		if a == stale && !refused {
			c.driver.dropped(effect, err) // nothing has happened yet
			c.leave()
			begun = false
		} else {
			c.record(effect, err)
			begun = true
		}
		return a
	}
	a := noAnswer
	if c.locker != nil {
		a = c.section(ctx, place{what: "task", task: t}, work)
	} else {
		a = work(lockimpl.Lock{}, 0)
		for a == stale && !c.stage.config.RefuseStale && !c.driver.enough() {
			a = work(lockimpl.Lock{}, 0)
		}
	}
	if !begun && a != died && c.driver.stopping() {
		c.record(c.taskEffect(t), variant.ErrStopped) // it still has the task
	}
	return begun && a != noAnswer && a != died
}

func (c *Client) taskEffect(t queueimpl.Task) history.Op {
	return c.begin(history.Op{Kind: history.Effect, Key: c.stage.queue.key, Arg: history.Text(t.ID)})
}

package scenarios

import (
	"cmp"
	"context"
	"strconv"

	"oversell/faults"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/variant"
)

// ids generates numbers like order numbers of a shop: they must be unique and increasing.
var ids = Scenario{
	Name:       "ids",
	Source:     variant.TextLease + ", which names globally increasing ids among the uses of a lock",
	Summary:    "globally increasing ids: every client acquires the lock, generates the next number, and releases the lock",
	Objects:    []variant.Object{variant.IDs, variant.Lock},
	Operations: []history.Kind{history.Acquire, history.NextID, history.Release},
	Defaults:   countDefaults,
	Step:       nextNumber,
	Audit:      auditCounter,
}

// floors generates numbers like the posts of a forum thread: 1, 2, 3 … without gaps and repeats, even if the
// generator promises less. Every post is a request of its own.
var floors = Scenario{
	Name:       "floors",
	Source:     variant.TextLease + ", which names the floor numbers of a thread among the uses of a lock",
	Summary:    "floor numbers of a forum thread: as ids, and no number may be missing",
	Objects:    []variant.Object{variant.IDs, variant.Lock},
	Operations: []history.Kind{history.Acquire, history.NextID, history.Release},
	Promises:   []history.Promise{{Of: variant.IDs, Property: variant.UniqueIDs}, {Of: variant.IDs, Property: variant.NoGaps}},
	Defaults:   countDefaults,
	Step:       nextNumber,
	Audit:      auditCounter,
}

// countSteps is the default number of numbers.
const countSteps = 2000

func countDefaults(c *Config) {
	if c.Duration == 0 {
		c.Ops = cmp.Or(c.Ops, countSteps)
		c.cap()
	}
}

// nextNumber generates one number under the lock.
func nextNumber(ctx context.Context, c *Client) (done bool) {
	if !c.driver.takeStep() {
		return true
	}
	request := strconv.FormatInt(c.driver.number(numberedOrder), 10)
	c.section(ctx, place{what: "number", text: request}, func(l lockimpl.Lock, session int64) answer {
		op := c.begin(history.Op{Kind: history.NextID, Key: c.stage.counter.key, Arg: history.Text(request), Session: history.Int(session)})
		ctx, done := c.holding(c.Trying(ctx), l)
		defer done()
		n, err := c.ids.Next(ctx, request, l)
		if err == nil && c.chance(c.stage.config.Die) {
			op.Return = c.driver.now() // unknown: the number reached no client
			c.driver.ended(op, faults.ErrCrashed)
			c.leave()
			c.die(c.stage.counter.key)
			return died
		}
		op.Result = history.Int(n)
		c.record(op, err)
		return answerTo(err)
	})
	return false
}

// auditCounter records the highest number that the server holds.
func auditCounter(ctx context.Context, c *Client) error {
	op := c.begin(history.Op{Kind: history.ReadState, Key: c.stage.counter.key, Arg: history.Text("last")})
	n, err := c.ids.Last(ctx)
	if err != nil {
		return err
	}
	op.Result = history.Int(n)
	c.record(op, nil)
	return nil
}

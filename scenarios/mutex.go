package scenarios

import (
	"cmp"
	"context"
	"time"

	"oversell/history"
	"oversell/variant"
)

// mutex exercises the lock alone.
var mutex = Scenario{
	Name:       "mutex",
	Summary:    "every client acquires the lock, holds it for a time, extends it every half lease if that is long, and releases it",
	Objects:    []variant.Object{variant.Lock},
	Operations: []history.Kind{history.Acquire, history.Extend, history.Release},
	Extends:    true,
	EndsByTime: true,
	Defaults: func(c *Config) {
		c.Hold = cmp.Or(c.Hold, time.Millisecond)
		if c.Ops == 0 {
			c.Duration = cmp.Or(c.Duration, c.withFaults(2*time.Second))
		}
	},
	Step: func(ctx context.Context, c *Client) bool {
		if !c.driver.takeStep() {
			return true
		}
		l, session, ok := c.acquire(ctx)
		if !ok {
			return false
		}
		lives := c.deaths
		// A section that is long compared with its lease extends it every half lease, if the lock can.
		slice := c.stage.config.TTL / 2
		left := c.stage.config.Hold
		at := func(next string) {
			c.reachesUnder(l, session, place{left: left}, next, noAnswer)
		}
		for ; left > slice; left -= slice {
			at("rest")
			if !c.rest(ctx, l, slice) || c.driver.stopping() {
				break // a long section would go on extending its lock long after the run
			}
			able := false
			if l, ok, able = c.extend(ctx, l, session); !able {
				left -= slice
				break
			}
			if !ok {
				break
			}
		}
		if ok {
			at("last rest")
			c.rest(ctx, l, left)
		}
		at("release")
		if c.deaths == lives {
			c.release(ctx, l, session)
		}
		return false
	},
}

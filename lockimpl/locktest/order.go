package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/internal/keyname"
	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/variant"
)

func tokensRise(b *bench) error {
	var last int64
	rises := func(l lockimpl.Lock, after string) error {
		if l.Fence <= last {
			return broken(variant.Fencing, "token %d was granted after token %d, %s", l.Fence, last, after)
		}
		last = l.Fence
		return nil
	}
	c := b.client()
	for range 20 {
		l, err := c.Take(b.name, long, 0)
		if err != nil {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
		if err := rises(l, "by the same client"); err != nil {
			return err
		}
		if err := b.givesBack(c, l, "at once"); err != nil {
			return err
		}
	}
	for range 3 {
		c, l, err := b.holder(long)
		if err != nil {
			return err
		}
		if err := rises(l, "by a new client"); err != nil {
			return err
		}
		stranger := b.client()
		_, _ = stranger.Try(b.name, b.ttl) // a refusal is no grant, and may take a number
		if err := b.givesBack(c, l, "at once"); err != nil {
			return err
		}
	}
	holder, l, err := b.abandoned(b.ttl)
	if err != nil {
		return err
	}
	if err := rises(l, "by a client that died"); err != nil {
		return err
	}
	c, l, err = b.next(holder, l, b.ttl, long, "with a dead holder")
	if err != nil {
		return err
	}
	if err := rises(l, "after the end of a lease"); err != nil {
		return err
	}
	if err := b.givesBack(c, l, "at once"); err != nil {
		return err
	}
	for _, rdb := range b.client().Env.Redis { // a long time passes for the server
		if err := keyname.Expire(b.ctx, rdb, b.name, 1000*time.Hour); err != nil {
			return err
		}
	}
	if c, l, err = b.holder(long); err != nil {
		return err
	}
	if err := rises(l, "after a time in which everything that expires had expired"); err != nil {
		return err
	}
	return b.givesBack(c, l, "at once")
}

func tokensRiseAcrossClocks(b *bench) error {
	var last int64
	for _, ahead := range []time.Duration{time.Hour, 0, -time.Hour, time.Minute, 0} {
		c, l, err := b.holder(long, clockAhead(ahead))
		if err != nil {
			return err
		}
		if l.Fence <= last {
			return broken(variant.Fencing, "token %d was granted to a client whose clock is %s, after token %d", l.Fence, phrase.Clock(ahead), last)
		}
		last = l.Fence
		if err := b.givesBack(c, l, "at once"); err != nil {
			return err
		}
	}
	return nil
}

// servedInOrder lets three clients join the line one after the other, each only when the one before is known to be in
// it, and then frees the lock.
//
// A waiter that a busy machine holds up for too long may lose its place: the order must be
// wrong each time.
func servedInOrder(b *bench) (err error) {
	return b.together(4, []part{
		{"soon", func(b *bench) error { return b.line(waiting{looks: slices.Repeat([]time.Duration{pace}, 3)}) }},
		// Each has waited for another time, and none for less than most waiters stay silent.
		{"after a long wait", func(b *bench) error {
			return b.line(waiting{looks: slices.Repeat([]time.Duration{pace}, 6), pause: 370 * time.Millisecond, wait: 2500 * time.Millisecond})
		}},
		// A waiter that tries seldom is not dead, however often others try.
		{"waiters that look at other intervals", func(b *bench) error {
			const seldom, often = 2 * time.Second, 20 * time.Millisecond
			return b.line(waiting{looks: []time.Duration{seldom, often, seldom, often, often}, wait: 2500 * time.Millisecond})
		}},
		{"waiters that all look seldom", func(b *bench) error {
			const seldom = 2 * time.Second
			return b.line(waiting{looks: []time.Duration{seldom, seldom, seldom}, pause: 300 * time.Millisecond, wait: 2500 * time.Millisecond})
		}},
		{"a holder that dies", func(b *bench) error {
			const seldom, often = 600 * time.Millisecond, 20 * time.Millisecond
			return b.line(waiting{looks: []time.Duration{seldom, often, seldom, often}, dies: true})
		}},
		{"a long line", func(b *bench) error {
			return b.line(waiting{looks: slices.Repeat([]time.Duration{30 * time.Millisecond}, 40)})
		}},
	})
}

// waiting is a line of clients: how often each looks, the pauses between their arrivals, how long they wait then, and
// whether the holder dies, instead of releasing the lock.
type waiting struct {
	looks       []time.Duration
	pause, wait time.Duration
	dies        bool
}

// line tries a line a few times.
func (b *bench) line(w waiting) (err error) {
	for n := range 3 {
		own := b.with(fmt.Sprint(b.name, n))
		err = own.lineUp(w)
		own.close()
		var found *breach
		if err == nil || errors.As(err, &found) && found.Sure {
			return err
		}
	}
	return err
}

func (b *bench) lineUp(w waiting) error {
	clients, lease := len(w.looks), long
	if w.dies {
		lease = b.ttl
	}
	holder, l, err := b.holder(lease)
	if err != nil {
		return err
	}
	type turn struct {
		client int
		err    error
	}
	served := make(chan turn, clients)
	for i, every := range w.looks {
		joined := make(chan struct{})
		var once sync.Once
		waiter := b.client(func(c *client) {
			wait := c.Env.Wait
			c.Env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
				once.Do(func() { close(joined) }) // it waits: the first attempt has put it in line
				return wait(ctx, key, atMost)
			}
		})
		go func() {
			m, err := waiter.TakeEvery(b.name, b.ttl, every, 2*patience+w.wait)
			served <- turn{i, err}
			if err == nil {
				_ = waiter.Release(m) // if it is not, the next one says so
			}
		}()
		select {
		case <-joined:
		case <-time.After(2 * time.Second): // a lock that waits by its own means
		}
		b.sleep(w.pause)
	}
	b.sleep(w.wait)
	if w.dies {
		holder.Die()
	} else if err := b.givesBack(holder, l, "with others in line"); err != nil {
		return err
	}
	for want := range clients {
		switch got := <-served; {
		case got.err != nil:
			return broken(variant.Progress, "client %d of a line of %d did not get the lock, which its holder had released: %v", got.client+1, clients, got.err)
		case got.client != want:
			return broken(variant.FIFO, "client %d of the line was served as number %d", got.client+1, want+1)
		}
	}
	return nil
}

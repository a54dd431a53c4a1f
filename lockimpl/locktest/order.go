package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/internal/keyname"
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
	given := func(c *client, l lockimpl.Lock, after string) error {
		if err := rises(l, after); err != nil {
			return err
		}
		return b.givesBack(c, l, "at once")
	}
	c := b.client()
	for range 20 {
		l, err := c.takesFree(b.name, long)
		if err != nil {
			return err
		}
		if err := given(c, l, "by the same client"); err != nil {
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
		_, _ = stranger.Try(b.name, b.ttl) // a refusal is not a grant, and may use up a number
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
	if err := given(c, l, "after the end of a lease"); err != nil {
		return err
	}
	if err := b.laterOn(); err != nil {
		return err
	}
	if c, l, err = b.holder(long); err != nil {
		return err
	}
	return given(c, l, "after a time in which everything that expires had expired")
}

// laterOn lets a long time pass for the server: every key of this lock with an expiry expires.
func (b *bench) laterOn() error {
	for _, rdb := range b.client().Env.Redis {
		if err := keyname.Expire(b.ctx, rdb, b.name, 1000*time.Hour); err != nil {
			return err
		}
	}
	return nil
}

func tokensRiseAcrossClocks(b *bench) error {
	var last int64
	for _, ahead := range []time.Duration{time.Hour, 0, -time.Hour, time.Minute, 0} {
		c, l, err := b.holder(long, clockAhead(ahead))
		if err != nil {
			return err
		}
		if l.Fence <= last {
			return broken(variant.Fencing, "token %d was granted to a client with its clock %v ahead, after token %d", l.Fence, ahead, last)
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
	return b.together(2, []part{
		{"soon", func(b *bench) error { return b.line(3, 0, 0) }},
		// Each has waited for a different time, and none for less than most waiters stay silent.
		{"after a long wait", func(b *bench) error { return b.line(6, 370*time.Millisecond, 2500*time.Millisecond) }},
	})
}

// line lets clients join with pauses in between, and goes on for a time.
func (b *bench) line(clients int, pause, wait time.Duration) (err error) {
	for n := range 3 {
		own := b.with(fmt.Sprint(b.name, n))
		err = own.lineUp(clients, pause, wait)
		own.close()
		var w *breach
		if err == nil || errors.As(err, &w) && w.sure {
			return err
		}
	}
	return err
}

func (b *bench) lineUp(clients int, pause, wait time.Duration) error {
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	type turn struct {
		client int
		err    error
	}
	served := make(chan turn, clients)
	for i := range clients {
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
			m, err := waiter.Take(b.name, b.ttl, patience+wait)
			served <- turn{i, err}
			if err == nil {
				_ = waiter.Release(m) // if it is not, the next one says so
			}
		}()
		select {
		case <-joined:
		case <-time.After(2 * time.Second): // a lock that does not wait by Env.Clock
		}
		b.sleep(pause)
	}
	b.sleep(wait)
	if err := b.givesBack(holder, l, "with others in line"); err != nil {
		return err
	}
	for want := range clients {
		switch got := <-served; {
		case got.err != nil:
			return broken(variant.Progress, "client %d of a line of %d did not get the lock, which its holder had given back: %v", got.client+1, clients, got.err)
		case got.client != want:
			return broken(variant.FIFO, "client %d of the line was served as number %d", got.client+1, want+1)
		}
	}
	return nil
}

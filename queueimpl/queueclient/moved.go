package queueclient

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/realtime"
	"oversell/server"
	"oversell/variant"
)

// Moved has a check run on the emulation, on a clock that stands far ahead of the real one and that
// only the check moves: a day is over in no time. Code that tells the server the time of the real
// clock cannot be judged there, nor can code that the emulation does not understand: both are tried
// first, with short times. What comes early there is early, whatever the emulation understands.
func (b Bench) Moved(short, check func(Bench) error) error {
	clk := clock.NewVirtual(time.Now().Add(realtime.Ahead).Truncate(time.Second))
	target, err := server.OpenEmbedded(clk, 1)
	if err != nil {
		return err
	}
	defer target.Close()
	var real atomic.Bool
	var mu sync.Mutex
	var conns []redis.UniversalClient
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
	}()
	on := func(queue string) Bench {
		return Bench{Variant: b.Variant, last: b.last, Queue: b.Queue + queue, Pass: clk.Advance, Env: func() variant.Env {
			c := target.Client(0, server.ConnOptions{PoolSize: 4})
			c.AddHook(realtime.Hook{Seen: &real})
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
			return variant.Env{Redis: []redis.UniversalClient{c}, Clock: clk, Token: rand.Text, Addr: target.Addrs,
				Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
					return clock.Real{}.Sleep(ctx, min(atMost, time.Millisecond))
				}}
		}}
	}
	switch err := short(on("-short")); {
	case real.Load():
		return nil
	case isEarly(err):
		return err
	case err != nil:
		return nil // other rules test short times
	}
	if err := check(on("-long")); err != nil && !real.Load() {
		return err
	}
	return nil
}

// isEarly reports whether something came before its time.
func isEarly(err error) bool {
	b := new(Breach)
	return errors.As(err, &b) && (b.Promise == variant.NotEarly || b.Promise == variant.NoDuplicateDelivery)
}

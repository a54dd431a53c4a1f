package locksearch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/freeport"
	"oversell/lockimpl"
	"oversell/variant"
)

// connectsItself reports whether a lock connects to Env.Addr with a Redis client of its own. A
// search can only step the commands of the clients in Env.Redis. No server answers at either
// address here.
func connectsItself(ctx context.Context, v lockimpl.Variant) (own bool, err error) {
	const limit = 2 * time.Second // for code that keeps trying
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	env := variant.Env{
		Clock: clock.Real{}, Token: rand.Text,
		Wait: func(context.Context, string, time.Duration) error { return variant.ErrStopped },
	}
	var beside sync.WaitGroup
	env.Go = func(f func(context.Context)) func(context.Context) error {
		over := make(chan struct{})
		beside.Go(func() {
			defer close(over)
			defer func() { _ = recover() }() // the search reports what is wrong with it
			f(ctx)
		})
		return variant.Join(over)
	}
	var came atomic.Bool
	for range max(v.Needs.Masters, 1) {
		l, err := freeport.ListenTCP(context.Background())
		if err != nil {
			return false, fmt.Errorf("look whether the lock connects to Env.Addr by itself: %w", err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				came.Store(true)
				conn.Close()
				cancel()
			}
		}()
		env.Addr = append(env.Addr, l.Addr().String())
		c := redis.NewClient(&redis.Options{MaxRetries: -1})
		c.AddHook(unanswered{})
		defer c.Close()
		env.Redis = append(env.Redis, c)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		_, _ = v.New(env).Acquire(ctx, rand.Text(), lockimpl.Options{TTL: time.Second, RetryEvery: time.Millisecond})
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
	return came.Load(), nil
}

var errNobody = errors.New("nobody answers here")

// unanswered stops every command of a client.
type unanswered struct{}

func (unanswered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (unanswered) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.SetErr(errNobody)
		return errNobody
	}
}

func (unanswered) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			cmd.SetErr(errNobody)
		}
		return errNobody
	}
}

// steppable returns an error if a search cannot step a lock.
func steppable(ctx context.Context, v lockimpl.Variant) error {
	own := true
	for range 2 { // once, it may be another process, whose server had this port before
		again, err := connectsItself(ctx, v)
		if err != nil {
			return err
		}
		own = own && again
	}
	if own {
		return fmt.Errorf("%w: lock %s cannot be stepped, since it connects to Env.Addr by a Redis client of its own, and a search steps the commands of the clients in Env.Redis; Run tries it, by proxies at Env.Addr", errInconclusive, v.Name)
	}
	return nil
}

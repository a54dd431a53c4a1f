package queuetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/realtime"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/variant"
)

// moved runs a check on the emulation, with a clock that is far ahead of the real one and that only the check moves: a
// day is over at once. Code that sends the server times of the real clock cannot be judged there, nor can code that the
// emulation does not support; both are tried first with short times.
func (b bench) moved(check func(bench) error) error {
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
	on := func(queue string) bench {
		return bench{v: b.v, last: b.last, Bench: Bench{Queue: b.Queue + queue, Pass: clk.Advance, Env: func() variant.Env {
			c := target.Client(0, server.ConnOptions{PoolSize: 4})
			c.AddHook(realtime.Hook{Seen: &real})
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
			return variant.Env{Redis: []redis.UniversalClient{c}, Clock: clk, Token: rand.Text, Addr: target.Addrs,
				Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
					return clock.Real{}.Sleep(ctx, min(atMost, time.Millisecond))
				}}
		}}}
	}
	if err := shortTimes(on("-short")); err != nil || real.Load() {
		return nil // other rules test short times
	}
	if err := check(on("-long")); err != nil && !real.Load() {
		return err
	}
	return nil
}

// shortTimes finds out whether a queue works at all with a clock that is moved.
func shortTimes(b bench) error {
	ctx := context.Background()
	if can[queueimpl.Delayer](b.v) {
		if err := delayOf(ctx, b, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if lends(b.v) {
		return claimOf(ctx, b, "claimed", visibility)
	}
	return nil
}

// longDelays delays tasks for longer than a test on the real clock can wait.
func longDelays(ctx context.Context, b bench) error {
	return b.moved(func(b bench) error {
		for _, after := range []time.Duration{1900 * time.Millisecond, 90 * time.Second, 16 * time.Minute, 61*time.Minute + 30*time.Second, 100 * time.Minute, 26 * time.Hour, 40 * 24 * time.Hour} {
			if err := delayOf(ctx, b, after); err != nil {
				return fmt.Errorf("with a delay of %v: %w", after, err)
			}
		}
		return nil
	})
}

// parts returns the moments at which to check that a long time is not over too early.
func parts(of time.Duration) []time.Duration {
	all := []time.Duration{of / 1000, of / 60, of / 4, of / 2, of * 9 / 10, of - of/1000 - time.Millisecond}
	slices.Sort(all)
	return all
}

// nothingFor lets a long time pass, and expects nothing at some moments of it; format tells of them.
func (c *client) nothingFor(ctx context.Context, of variant.Property, long time.Duration, format string) error {
	gone := time.Duration(0)
	for _, at := range parts(long) {
		c.b.Pass(at - gone)
		gone = at
		if _, err := c.popped(ctx, of, 1); err != nil {
			return fmt.Errorf(format, at, long, err)
		}
	}
	c.b.Pass(long - gone + grain)
	return nil
}

func delayOf(ctx context.Context, b bench, after time.Duration) error {
	c := b.client()
	id := "delayed by " + after.String()
	if _, err := c.enqueueAfter(ctx, variant.NotEarly, after, id); err != nil {
		return err
	}
	if err := c.nothingFor(ctx, variant.NotEarly, after, "after %[1]v: %[3]w"); err != nil {
		return err
	}
	tasks, err := c.popped(ctx, variant.Progress, 1, id)
	if err != nil {
		return err
	}
	return c.done(ctx, tasks...)
}

// longClaims hides tasks for longer than a test on the real clock can wait.
func longClaims(ctx context.Context, b bench) error {
	return b.moved(func(b bench) error {
		for _, hidden := range []time.Duration{1900 * time.Millisecond, 90 * time.Second, 16 * time.Minute, 100*time.Minute + 30*time.Second, 26 * time.Hour} {
			if err := claimOf(ctx, b, "hidden for "+hidden.String(), hidden); err != nil {
				return fmt.Errorf("with a visibility time-out of %v: %w", hidden, err)
			}
		}
		return nil
	})
}

func claimOf(ctx context.Context, b bench, id string, hidden time.Duration) error {
	lasting := func(o *queueimpl.Options) { o.Visibility = hidden }
	c, other := b.client(lasting), b.client(lasting)
	if _, err := c.enqueue(ctx, theInterface, id); err != nil {
		return err
	}
	if _, err := c.popped(ctx, theInterface, 1, id); err != nil {
		return err
	}
	if err := other.nothingFor(ctx, variant.NoDuplicateDelivery, hidden, "%v after the beginning of a claim of %v: %w"); err != nil {
		return err
	}
	tasks, err := other.popped(ctx, variant.NoLostTask, 1, id)
	if err != nil {
		return fmt.Errorf("after it was over: %w", err)
	}
	return other.done(ctx, tasks...)
}

// manyDeliveries lets the claims of one task run out again and again. No limit is set.
func manyDeliveries(ctx context.Context, b bench) error {
	const deliveries = 300
	return b.moved(func(b bench) error {
		c := b.client(impatient)
		if _, err := c.enqueue(ctx, theInterface, "a"); err != nil {
			return err
		}
		start := time.Now()
		for n := 1; n <= deliveries; n++ {
			tasks, err := c.popped(ctx, variant.NoLostTask, 1, "a")
			if err != nil {
				var w *breach
				if n > 2 && errors.As(err, &w) {
					return broken(w.promise, "delivery %d of a task whose claims run out: %w", n, w.how)
				}
				return err
			}
			if n == deliveries || time.Since(start) > patience/2 { // calls may be slow
				return c.done(ctx, tasks...)
			}
			b.Pass(visibility + grain)
		}
		return nil
	})
}

// everythingLasts: tasks stay in a queue until a client takes them. A journal must last for an hour.
func everythingLasts(ctx context.Context, b bench) error {
	return b.moved(func(b bench) error {
		first := b
		first.Queue += "-first"
		if err := lasts(ctx, first); err != nil {
			return nil // the emulation does not support some command
		}
		return lasts(ctx, b, 6*time.Minute, 53*time.Minute, 23*time.Hour, 39*24*time.Hour)
	})
}

// lasts puts one task in each state, and compares the queue after some times.
func lasts(ctx context.Context, b bench, times ...time.Duration) error {
	c := b.client(func(o *queueimpl.Options) { o.Visibility = 100 * 24 * time.Hour })
	letters, keepsDead := c.Queue.(queueimpl.DeadLetters)
	if keepsDead = keepsDead && lends(b.v); keepsDead {
		if _, err := c.enqueue(ctx, theInterface, "a"); err != nil {
			return err
		}
		if err := deadOut(ctx, b); err != nil {
			return err
		}
	}
	if d, ok := c.Queue.(queueimpl.Delayer); ok {
		if _, err := d.EnqueueAfter(ctx, c.name, 99*24*time.Hour, "later"); err != nil {
			return broken(theInterface, "enqueue answered %q", err)
		}
	}
	var took []queueimpl.Task
	var err error
	j, journals := c.Queue.(queueimpl.Journaler)
	if _, err := c.enqueue(ctx, theInterface, "taken"); err != nil {
		return err
	}
	if journals {
		took, err = j.PopAs(ctx, c.name, "request", 1)
	} else {
		_, err = c.Pop(ctx, c.name, 1)
	}
	if err != nil {
		return broken(theInterface, "pop answered %q", err)
	}
	if _, err := c.enqueue(ctx, theInterface, "waits"); err != nil {
		return err
	}
	was, err := c.State(ctx, c.name)
	if err != nil {
		return broken(theInterface, "state answered %q", err)
	}
	var gone time.Duration
	for _, d := range append([]time.Duration{0}, times...) {
		b.Pass(d)
		gone += d
		if err := c.holds(ctx, variant.NoLostTask, idsOf(was.Waiting), idsOf(was.Claimed)); err != nil {
			return fmt.Errorf("after %v: %w", gone, err)
		}
		if keepsDead {
			if dead, err := letters.Dead(ctx, c.name); err != nil || !slices.Equal(idsOf(dead), []string{"a"}) {
				return broken(variant.NoLostTask, "after %v the dead letters are %q (%s); want %q", gone, idsOf(dead), say(err), "a")
			}
		}
		if journals && gone < time.Hour {
			if err := c.journal(ctx, "request", took); err != nil {
				return fmt.Errorf("after %v: %w", gone, err)
			}
		}
		if !can[queueimpl.Deduper](b.v) {
			continue
		}
		if in, err := c.Enqueue(ctx, c.name, "waits"); err != nil || len(in) > 0 {
			return broken(variant.OneEntryPerID, "after %v, enqueue of an id that waits entered %q (%s); want that it is ignored", gone, idsOf(in), say(err))
		}
	}
	return nil
}

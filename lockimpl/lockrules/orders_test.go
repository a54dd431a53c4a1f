package lockrules

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// reentrant grants its holder the lock again, by what it remembers.
type reentrant struct {
	careless
	again *redis.Script // answers 0 if the lock is not the holder's
	mine  map[string]lockimpl.Lock
}

var (
	againSound   = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') return 1`)
	againSeconds = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('EXPIRE', KEYS[1], math.max(1, math.floor(ARGV[2] / 1000)), 'GT') return 1`)
	againBlind   = redis.NewScript(`redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') return 1`)
)

func (r reentrant) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	now := r.env.Clock.Now()
	if l, held := r.mine[key]; held && now.Before(l.Until) {
		if end := now.Add(o.TTL); end.After(l.Until) {
			l.Until = end
		}
		if err := r.run(ctx, r.again, lockimpl.ErrHeld, key, l.Token, o.TTL.Milliseconds()); err == nil {
			r.mine[key] = l
			return l, nil
		}
	}
	l, err := r.careless.Acquire(ctx, key, o)
	if err == nil {
		r.mine[key] = l
	}
	return l, err
}

func (r reentrant) Release(ctx context.Context, l lockimpl.Lock) error {
	delete(r.mine, l.Key)
	return r.careless.Release(ctx, l)
}

// caller waits for a message of the holder that releases. The first time, or each time if it is wary, it waits no longer than
// the lease that it has seen.
type caller struct {
	careless
	wary bool
}

func (c caller) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	rdb := c.env.Redis[0]
	free := rdb.Subscribe(ctx, key)
	defer free.Close()
	if _, err := free.Receive(ctx); err != nil {
		return lockimpl.Lock{}, err
	}
	end := time.Now().Add(o.Wait)
	for n := 1; ; n++ {
		l, err := c.careless.Acquire(ctx, key, o)
		left := time.Until(end)
		if !errors.Is(err, lockimpl.ErrHeld) || left <= 0 {
			return l, err
		}
		if n == 1 || c.wary {
			left = min(left, max(rdb.PTTL(ctx, key).Val(), time.Millisecond))
		}
		select {
		case <-free.Channel():
		case <-time.After(left):
		case <-ctx.Done():
			return l, ctx.Err()
		}
	}
}

func (c caller) Release(ctx context.Context, l lockimpl.Lock) error {
	err := c.careless.Release(ctx, l)
	c.env.Redis[0].Publish(ctx, l.Key, "free")
	return err
}

// fencer has fencing tokens from a counter, or from the server's clock.
type fencer struct {
	careless
	script *redis.Script
}

var (
	fenceCounted = redis.NewScript(`if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[1] .. ':n') end return 0`)
	fenceByTime  = redis.NewScript(`local t = redis.call('TIME') if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return t[1] * 1000 + math.floor(t[2] / 1000) end return 0`)
)

func (f fencer) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: f.env.Token(), Until: f.env.Clock.Now().Add(o.TTL)}
	n, err := f.script.Run(ctx, f.env.Redis[0], []string{key}, l.Token, o.TTL.Milliseconds()).Int64()
	if l.Fence = n; err == nil && n == 0 {
		err = lockimpl.ErrHeld
	}
	return l, err
}

// TestOrders checks that each list of cases catches a lock with a flaw of its kind, and passes a sound one.
func TestOrders(t *testing.T) {
	again := func(s *redis.Script) func(variant.Env) lockimpl.Locker {
		return func(e variant.Env) lockimpl.Locker { return reentrant{careless{e}, s, map[string]lockimpl.Lock{}} }
	}
	s := opentest.Open(t, server.Spec{Target: "process"})
	for _, tt := range []struct {
		name  string
		cases []Case
		lock  func(variant.Env) lockimpl.Locker
		flaw  bool
	}{
		{"again sound", AsksAgain, again(againSound), false},
		{"again in whole seconds", AsksAgain, again(againSeconds), true},
		{"held up sound", HeldUpAgain, again(againSound), false},
		{"held up blind", HeldUpAgain, again(againBlind), true},
		{"waits wary", WinnerDies, func(e variant.Env) lockimpl.Locker { return caller{careless{e}, true} }, false},
		{"waits for a message", WinnerDies, func(e variant.Env) lockimpl.Locker { return caller{careless{e}, false} }, true},
		{"fence counted", QuickFences, func(e variant.Env) lockimpl.Locker { return fencer{careless{e}, fenceCounted} }, false},
		{"fence by time", QuickFences, func(e variant.Env) lockimpl.Locker { return fencer{careless{e}, fenceByTime} }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found := make(chan error, len(tt.cases))
			for i, c := range tt.cases {
				b := bench(t, s, fmt.Sprintf("%s-%d", tt.name, i), tt.lock)
				go func() { found <- c.Try(b) }()
			}
			var errs error
			for range tt.cases {
				errs = errors.Join(errs, <-found)
			}
			if (errs != nil) != tt.flaw {
				t.Errorf("the cases say %v; want that they find something: %t", errs, tt.flaw)
			}
			t.Log(errs)
		})
	}
}

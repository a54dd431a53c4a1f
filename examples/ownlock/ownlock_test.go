// Package ownlock is an example to begin with: a small lock, and the tests that show whether it is correct. Copy this file
// to your module and replace the lock by yours.
package ownlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/lockimpl/locktest"
	"oversell/reports"
	"oversell/variant"
)

// lock is one client's view of the lock.
type lock struct{ env variant.Env }

var (
	extend  = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`)
	release = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
)

// Acquire tries until it has the lock, until o.Wait is over, or until it has tried o.MaxTries times.
func (l lock) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	deadline := l.env.Clock.Now().Add(o.Wait)
	for try := 1; ; try++ {
		start, token := l.env.Clock.Now(), l.env.Token()
		err := l.env.Redis[0].SetArgs(ctx, lockimpl.Key(key), token, redis.SetArgs{Mode: "NX", TTL: o.TTL}).Err()
		if err == nil {
			return lockimpl.Lock{Key: key, Token: token, Until: start.Add(o.TTL)}, nil
		}
		if !errors.Is(err, redis.Nil) {
			return lockimpl.Lock{}, err // the key may have been set; only ErrHeld is a refusal
		}
		left := deadline.Sub(l.env.Clock.Now())
		if left <= 0 || try == o.MaxTries || l.env.Wait(ctx, key, min(left, o.RetryEvery)) != nil {
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
	}
}

// Extend sets the lease of the lock to ttl from now, if k still holds it.
func (l lock) Extend(ctx context.Context, k lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	k.Until = l.env.Clock.Now().Add(ttl)
	return k, l.changed(ctx, extend, k, ttl.Milliseconds())
}

// Release releases the lock, if k still holds it.
func (l lock) Release(ctx context.Context, k lockimpl.Lock) error { return l.changed(ctx, release, k) }

func (l lock) changed(ctx context.Context, s *redis.Script, k lockimpl.Lock, args ...any) error {
	n, err := s.Run(ctx, l.env.Redis[0], []string{lockimpl.Key(k.Key)}, append([]any{k.Token}, args...)...).Int()
	if err == nil && n == 0 {
		return lockimpl.ErrLost
	}
	return err
}

var mine = lockimpl.Variant{
	Name:     "mine",
	Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
	New:      func(env variant.Env) lockimpl.Locker { return lock{env} },
}

// TestLock takes samples: it runs the lock under load and under faults, on a redis-server if there is one, otherwise on
// the emulation.
func TestLock(t *testing.T) { locktest.Run(t, mine, locktest.Auto) }

// TestEveryInterleaving proves: it tries every interleaving of two clients, within these bounds.
func TestEveryInterleaving(t *testing.T) {
	locktest.Explore(t, mine, reports.Bounds{})
}

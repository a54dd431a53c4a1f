package golocks

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"oversell/lockimpl"
	"oversell/variant"
)

// bsm is one client of github.com/bsm/redislock.
type bsm struct {
	env    variant.Env
	client *redislock.Client
	held   map[string]*redislock.Lock // by token
}

func newBSM(env variant.Env) *bsm {
	return &bsm{env: env, client: redislock.New(env.Redis[0]), held: map[string]*redislock.Lock{}}
}

func (b *bsm) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	start := time.Now()
	// As many retries as MaxTries allows; none without it.
	retry := redislock.LimitRetry(redislock.LinearBackoff(o.RetryEvery), max(o.MaxTries-1, 0))
	l, err := b.client.Obtain(ctx, lockimpl.Key(key), o.TTL, &redislock.Options{Token: b.env.Token(), RetryStrategy: retry})
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		return lockimpl.Lock{}, lockimpl.ErrHeld
	case err != nil:
		return lockimpl.Lock{}, err
	}
	b.held[l.Token()] = l
	return lockimpl.Lock{Key: key, Token: l.Token(), Until: start.Add(o.TTL), Via: "Obtain"}, nil
}

func (b *bsm) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	held := b.held[l.Token]
	if held == nil {
		return l, lockimpl.ErrLost
	}
	start := time.Now()
	err := held.Refresh(ctx, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		err = lockimpl.ErrLost
	}
	l.Until = start.Add(ttl)
	return l, err
}

func (b *bsm) Release(ctx context.Context, l lockimpl.Lock) error {
	err := b.held[l.Token].Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return lockimpl.ErrLost
	}
	return err
}

// Redislock is github.com/bsm/redislock.
var Redislock = lockimpl.Variant{
	Name:     "bsm/redislock",
	Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease},
	New:      func(env variant.Env) lockimpl.Locker { return newBSM(env) },
}

package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// newPHPLock returns the lock of [variant.TextLease]: the lease is the right number,
// the takeover sets an expiry, and isLocking compares. The value is still a whole-second time fixed at the call, so it
// does not identify its owner.
func newPHPLock(env variant.Env) Locker {
	h := &phpLock{env: env, values: map[string]string{}}
	h.setExpiry = func(ctx context.Context, key string, expire time.Duration, _ int64) error {
		return env.Redis[0].Expire(ctx, key, expire).Err()
	}
	h.takeOver = func(ctx context.Context, key string, expire time.Duration, expireAt int64) error {
		return env.Redis[0].Set(ctx, key, expireAt, expire).Err()
	}
	h.isOurs = func(name, current string) bool { return h.values[name] == current }
	return h
}

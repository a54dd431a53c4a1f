package lockimpl

import (
	"context"
	"time"

	"oversell/variant"
)

// newPHPLockPrinted returns the lock of [variant.TextListing] exactly as printed,
// with its three slips: EXPIRE is given an absolute time as a number of seconds
// (a lease as long as the time since 1970), the takeover sets no expiry, and isLocking
// assigns where a comparison was meant.
func newPHPLockPrinted(env variant.Env) Locker {
	h := &phpLock{env: env, values: map[string]string{}}
	h.setExpiry = func(ctx context.Context, key string, _ time.Duration, expireAt int64) error {
		return env.Redis[0].Expire(ctx, key, time.Duration(expireAt)*time.Second).Err()
	}
	h.takeOver = func(ctx context.Context, key string, _ time.Duration, expireAt int64) error {
		return env.Redis[0].Set(ctx, key, expireAt, 0).Err()
	}
	h.isOurs = func(name, current string) bool {
		h.values[name] = current // the printed "=": whatever is there becomes ours
		return current != ""
	}
	return h
}

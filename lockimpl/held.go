package lockimpl

import (
	"context"
	"errors"
	"strconv"
	"time"

	"oversell/variant"
)

// phpLock is the memory of the documents' lock object: the value it wrote under each name. The two listings differ in
// three places, which are fields here.
type phpLock struct {
	env    variant.Env
	values map[string]string
	// setExpiry is the EXPIRE after a SETNX that was granted.
	setExpiry func(ctx context.Context, key string, expire time.Duration, expireAt int64) error
	// takeOver is the SET after TTL has answered below zero.
	takeOver func(ctx context.Context, key string, expire time.Duration, expireAt int64) error
	// isOurs decides, and may change, whether the remembered value is the one
	// in Redis.
	isOurs func(name, current string) bool
}

// errEmptyName rejects a lock without a name, as the documents' code does.
var errEmptyName = errors.New("the name of a lock must not be empty")

// Acquire is the documents' lock(name, timeout, expire, retryEvery). Both times
// are fixed when it is called, however long the wait.
func (h *phpLock) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	if name == "" {
		return Lock{}, errEmptyName
	}
	key := Key(name)
	now := h.env.Clock.Now()
	expireAt := now.Unix() + int64(o.TTL/time.Second)
	// timeoutAt is counted from the whole second, so up to a second is missing.
	o.Wait -= now.Sub(now.Truncate(time.Second))
	value := strconv.FormatInt(expireAt, 10)
	return acquire(ctx, h.env, name, o, func(start time.Time) (Lock, error) {
		set, err := sendSETNX(ctx, h.env.Redis[0], key, value)
		if err != nil {
			return Lock{}, err
		}
		if set {
			if err := h.setExpiry(ctx, key, o.TTL, expireAt); err != nil {
				return Lock{}, err
			}
			h.values[name] = value
			return granted(name, value, "SETNX", start, o.TTL), nil
		}
		ttl, err := h.env.Redis[0].TTL(ctx, key).Result()
		if err != nil {
			return Lock{}, err
		}
		if ttl < 0 { // go-redis gives -1 and -2 as they are, in nanoseconds
			if err := h.takeOver(ctx, key, o.TTL, expireAt); err != nil {
				return Lock{}, err
			}
			h.values[name] = value
			via := "SET after TTL -1 (takeover)"
			if ttl == -2 {
				via = "SET after TTL -2 (takeover)"
			}
			return granted(name, value, via, start, o.TTL), nil
		}
		return Lock{}, ErrHeld
	})
}

// IsLocking is the documents' isLocking(name).
func (h *phpLock) IsLocking(ctx context.Context, name string) (bool, error) {
	if _, known := h.values[name]; !known {
		return false, nil
	}
	current, err := h.env.Redis[0].Get(ctx, Key(name)).Result()
	if ok, err := did(err); err != nil {
		return false, err
	} else if !ok {
		current = ""
	}
	return h.isOurs(name, current), nil
}

// Unlock is the documents' unlock(name): isLocking, then DEL.
func (h *phpLock) Unlock(ctx context.Context, name string) (bool, error) {
	if ours, err := h.IsLocking(ctx, name); err != nil || !ours {
		return false, err
	}
	n, err := h.env.Redis[0].Del(ctx, Key(name)).Result()
	if err != nil || n == 0 {
		return false, err
	}
	delete(h.values, name)
	return true, nil
}

// UnlockAll is the documents' unlockAll().
func (h *phpLock) UnlockAll(ctx context.Context) (bool, error) {
	all := true
	for name := range h.values {
		ok, err := h.Unlock(ctx, name)
		if err != nil {
			return false, err
		}
		all = all && ok
	}
	return all, nil
}

// Expire is the documents' expire(name, seconds): isLocking, then EXPIRE.
func (h *phpLock) Expire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	if ours, err := h.IsLocking(ctx, name); err != nil || !ours {
		return false, err
	}
	return h.env.Redis[0].Expire(ctx, Key(name), max(ttl.Truncate(time.Second), time.Second)).Result()
}

func (h *phpLock) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	start := h.env.Clock.Now()
	n, err := count(h.Expire(ctx, l.Key, ttl))
	return extended(l, start, ttl, n, err)
}

func (h *phpLock) Release(ctx context.Context, l Lock) error {
	n, err := count(h.Unlock(ctx, l.Key))
	return changed("release", l.Key, n, err)
}

package lockimpl

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// token is the acquiring half of tokenDel, tokenGetDel and luaRelease: SET key token NX EX ttl, with a
// fresh token for every attempt, so that a late request of an earlier attempt is never taken for the present one.
type token struct{ env variant.Env }

func (t token) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, t.env, name, o, func(start time.Time) (Lock, error) {
		return setToken(ctx, t.env, name, t.env.Token(), start, o.TTL)
	})
}

// setToken makes one attempt to set the lock to this token.
func setToken(ctx context.Context, env variant.Env, name, token string, start time.Time, ttl time.Duration) (Lock, error) {
	set, err := setNXWithExpiry(ctx, env.Redis[0], Key(name), token, ttl)
	if err != nil {
		return Lock{}, err
	}
	if !set {
		return Lock{}, ErrHeld
	}
	return granted(name, token, "SET NX EX", start, ttl), nil
}

// scriptExtend compares the token and sends PEXPIRE, in one script.
func scriptExtend(ctx context.Context, env variant.Env, s *redis.Script, l Lock, ttl time.Duration) (Lock, error) {
	start := env.Clock.Now()
	n, err := s.Run(ctx, env.Redis[0], []string{Key(l.Key)}, l.Token, ms(ttl)).Int64()
	return extended(l, start, ttl, n, err)
}

// scriptRelease compares the token and sends DEL, in one script.
func scriptRelease(ctx context.Context, env variant.Env, s *redis.Script, l Lock) error {
	n, err := s.Run(ctx, env.Redis[0], []string{Key(l.Key)}, l.Token).Int64()
	return changed("release", l.Key, n, err)
}

package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mark"
	"oversell/lockimpl"
	"oversell/variant"
)

// The scripts of a lock on two keys. Its release removes the second, whoever holds it.
var (
	takeBoth   = redis.NewScript(`if redis.call('MSETNX', KEYS[1], ARGV[1], KEYS[2], ARGV[1]) == 0 then return 0 end redis.call('PEXPIRE', KEYS[1], ARGV[2]) redis.call('PEXPIRE', KEYS[2], ARGV[2]) return 1`)
	extendBoth = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end redis.call('PEXPIRE', KEYS[1], ARGV[2]) redis.call('PEXPIRE', KEYS[2], ARGV[2]) return 1`)
	dropBoth   = redis.NewScript(`redis.call('DEL', KEYS[2]) if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

type twoKeys struct{ env variant.Env }

func (k *twoKeys) run(ctx context.Context, s *redis.Script, key string, refusal error, args ...any) error {
	done, err := s.Run(ctx, k.env.Redis[0], []string{lockimpl.Key(key), lockimpl.Key(key) + ":two"}, args...).Bool()
	if err == nil && !done {
		err = refusal
	}
	return err
}

func (k *twoKeys) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	for end := k.env.Clock.Now().Add(o.Wait); ; {
		l := lockimpl.Lock{Key: key, Token: k.env.Token(), Until: k.env.Clock.Now().Add(o.TTL)}
		err := k.run(ctx, takeBoth, key, lockimpl.ErrHeld, l.Token, o.TTL.Milliseconds())
		if !errors.Is(err, lockimpl.ErrHeld) || !k.env.Clock.Now().Before(end) {
			return l, err
		}
		if err := k.env.Wait(ctx, key, o.RetryEvery); err != nil {
			return l, lockimpl.ErrHeld
		}
	}
}

func (k *twoKeys) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	l.Until = k.env.Clock.Now().Add(ttl)
	return l, k.run(ctx, extendBoth, l.Key, lockimpl.ErrLost, l.Token, ttl.Milliseconds())
}

func (k *twoKeys) Release(ctx context.Context, l lockimpl.Lock) error {
	return k.run(ctx, dropBoth, l.Key, lockimpl.ErrLost, l.Token)
}

// TestLateReleaseIsSeenByExtend checks that the suite notices a late release after which the next holder still has the lock,
// but can no longer extend it.
func TestLateReleaseIsSeenByExtend(t *testing.T) {
	v, _ := lockimpl.Find("lua-release")
	v.New = func(env variant.Env) lockimpl.Locker { return &twoKeys{env: env} }
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	err = r.try(t.Context(), ruleOf(t, "a late release or extend leaves the next holder alone"), mark.New()+"late")
	var b *breach
	if !errors.As(err, &b) || b.Property != variant.OwnerOnlyRelease || !strings.Contains(err.Error(), "the holder's extend was answered with ErrLost") {
		t.Errorf("the rule says %v; want that %s is broken, by an extend", err, variant.OwnerOnlyRelease)
	}
}

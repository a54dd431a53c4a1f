package locktest

import (
	"cmp"
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

// extending is a sound lock with an Extend of its own.
type extending struct {
	lockimpl.Locker
	extend func(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error)
}

func (e extending) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	return e.extend(ctx, l, ttl)
}

// TestExtends checks that the rule about long leases finds an Extend that cannot shorten a lease, and one that returns ErrLost
// if the end of the lease would not change. Another rule, which extends a lease after a refusal, must not blame the refusal
// if Extend would have returned ErrLost without it.
func TestExtends(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	longer := redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 1`)
	for name, tt := range map[string]struct {
		extend func(env variant.Env, in lockimpl.Locker) func(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error)
		of     variant.Property
		says   string
		rule   string
	}{
		"cannot shorten": {func(env variant.Env, _ lockimpl.Locker) func(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
			return func(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
				l.Until = env.Clock.Now().Add(ttl)
				held, err := longer.Run(ctx, env.Redis[0], []string{lockimpl.Key(l.Key)}, l.Token, ttl.Milliseconds()).Bool()
				if err == nil && !held {
					err = lockimpl.ErrLost
				}
				return l, err
			}
		}, variant.Progress, "nobody could take the lock", ""},
		"nothing changes": {func(env variant.Env, in lockimpl.Locker) func(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
			return func(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
				if env.Clock.Now().Add(ttl).UnixMilli() == l.Until.UnixMilli() {
					return l, lockimpl.ErrLost
				}
				return in.Extend(ctx, l, ttl)
			}
		}, variant.Linearizable, "was told that its lock is lost", ""},
		"refuses to shorten": {func(env variant.Env, in lockimpl.Locker) func(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
			return func(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
				if env.Clock.Now().Add(ttl).Before(l.Until) {
					return l, lockimpl.ErrLost
				}
				return in.Extend(ctx, l, ttl)
			}
		}, variant.Linearizable, "a lock that nobody else had asked for was extended to 1s", "a held lock is refused to others"},
	} {
		t.Run(name, func(t *testing.T) {
			v := sound
			v.New = func(env variant.Env) lockimpl.Locker {
				in := sound.New(env)
				return extending{in, tt.extend(env, in)}
			}
			r, end, err := trial(t, v)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			for _, u := range rules {
				if u.name != cmp.Or(tt.rule, "long leases") {
					continue
				}
				var b *breach
				if err := r.try(t.Context(), u, mark.New()+"long"); !errors.As(err, &b) || b.Property != tt.of || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("the rule says %v; want that %s is broken: %s", err, tt.of, tt.says)
				}
			}
		})
	}
}

// fixed is a sound lock that extends by the length of the first lease, whatever it is asked for, and promises one percent
// less: the library redsync does.
type fixed struct {
	lockimpl.Locker
	first map[string]time.Duration // by token
}

func (f fixed) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := f.Locker.Acquire(ctx, key, o)
	f.first[l.Token] = o.TTL
	return l, err
}

func (f fixed) Extend(ctx context.Context, l lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	ttl := f.first[l.Token]
	m, err := f.Locker.Extend(ctx, l, ttl)
	m.Until = m.Until.Add(-ttl / 100)
	return m, err
}

// TestFixedExtension checks that a lock that extends by a length of its own, and says so by Lock.Until, breaks no promise.
func TestFixedExtension(t *testing.T) {
	v, _ := lockimpl.Find("lua-release")
	sound := v.New
	v.New = func(env variant.Env) lockimpl.Locker { return fixed{sound(env), map[string]time.Duration{}} }
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	tried := 0
	for _, u := range rules {
		if u.name != "long leases" && u.name != "a lock is released inside a later lease than its first" {
			continue
		}
		tried++
		if err := r.try(t.Context(), u, mark.New()+"fixed"); err != nil {
			t.Errorf("%s: %v", u.name, err)
		}
	}
	if tried != 2 {
		t.Errorf("%d rules were tried; want 2", tried)
	}
}

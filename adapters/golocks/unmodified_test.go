package golocks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"

	"oversell/explore"
	"oversell/lockimpl"
	"oversell/lockimpl/locktest"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// bsmOwn is bsm with tokens that the library draws itself.
type bsmOwn struct{ *bsm }

func (b bsmOwn) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	start := b.env.Clock.Now()
	l, err := b.client.Obtain(ctx, lockimpl.Key(key), o.TTL, nil)
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		return lockimpl.Lock{}, lockimpl.ErrHeld
	case err != nil:
		return lockimpl.Lock{}, err
	}
	b.held[l.Token()] = l
	return lockimpl.Lock{Key: key, Token: l.Token(), Until: start.Add(o.TTL), Via: "Obtain"}, nil
}

// rsyncOwn is redsyncLocker with values that the library draws itself.
type rsyncOwn struct{ *redsyncLocker }

func (s rsyncOwn) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	m := s.rs.NewMutex(lockimpl.Key(key), redsync.WithExpiry(o.TTL), redsync.WithTries(1))
	err := m.LockContext(ctx)
	taken := &redsync.ErrTaken{}
	switch {
	case errors.As(err, &taken), errors.Is(err, redsync.ErrFailed):
		return lockimpl.Lock{}, lockimpl.ErrHeld
	case err != nil:
		return lockimpl.Lock{}, err
	}
	s.held[m.Value()] = m
	return lockimpl.Lock{Key: key, Token: m.Value(), Until: m.Until(), Via: "LockContext"}, nil
}

// careless is a lock whose release deletes the key, whoever holds the lock.
type careless struct {
	lockimpl.Locker
	env variant.Env
}

func (c careless) Release(ctx context.Context, l lockimpl.Lock) error {
	return c.env.Redis[0].Del(ctx, lockimpl.Key(l.Key)).Err()
}

// TestOwnValues checks that libraries that draw their values themselves can be searched without a change.
func TestOwnValues(t *testing.T) {
	for name, open := range map[string]func(variant.Env) lockimpl.Locker{
		"bsm/redislock": func(env variant.Env) lockimpl.Locker { return bsmOwn{newBSM(env)} },
		"redsync":       func(env variant.Env) lockimpl.Locker { return rsyncOwn{newRsync(env)} },
	} {
		promises := []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease}
		v := lockimpl.Variant{Name: name, Promises: promises, New: open}
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			locktest.ExploreBubble(t, v, reports.Bounds{Clients: 2, Tries: 1, Advances: 1, Lost: -1, Late: -1, Stalls: -1})
			t.Log(time.Since(start))
		})
		t.Run(name+", a wrong release", func(t *testing.T) {
			v.New = func(env variant.Env) lockimpl.Locker { return careless{open(env), env} }
			r := search(t, scenarios.Config{Lock: v}, reports.Bounds{Clients: 2, Tries: 1, Advances: 1})
			if r.Verdict != reports.Violated {
				t.Errorf("it is %s: %s", r.Verdict, r.Why)
			}
		})
	}
}

// TestOwnValuesWithoutBubbles checks that redislock can be searched without bubbles: it starts no goroutine, and its own
// deadline is far away in real time. The sections are too short for an extension, because the library would give the end
// of an extended lease in real time.
func TestOwnValuesWithoutBubbles(t *testing.T) {
	v := lockimpl.Variant{Name: "bsm/redislock", Promises: Redislock.Promises, New: func(env variant.Env) lockimpl.Locker { return bsmOwn{newBSM(env)} }}
	verdict := func(want string) {
		t.Helper()
		c := scenarios.Config{Lock: v}
		c.Scenario, _ = scenarios.Find("mutex")
		r, err := explore.Run(t.Context(), explore.Config{Run: c, Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 1}})
		if err != nil || r.Verdict != want {
			t.Errorf("%s: %s, %v; want %s", r.Verdict, r.Why, err, want)
		}
	}
	verdict(reports.Pass)
	v.New = func(env variant.Env) lockimpl.Locker { return careless{bsmOwn{newBSM(env)}, env} }
	verdict(reports.Violated)
}

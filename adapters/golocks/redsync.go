// Package golocks wraps locks of Go libraries as variants: each file is complete, and is what a user of the library
// would write to test it.
package golocks

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// redsyncLocker is one client of github.com/go-redsync/redsync.
type redsyncLocker struct {
	env  variant.Env
	rs   *redsync.Redsync
	held map[string]*redsync.Mutex // by value
}

func newRsync(env variant.Env) *redsyncLocker {
	var pools []redsyncredis.Pool
	for _, c := range env.Redis {
		pools = append(pools, goredis.NewPool(c))
	}
	return &redsyncLocker{env: env, rs: redsync.New(pools...), held: map[string]*redsync.Mutex{}}
}

func (s *redsyncLocker) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	m := s.rs.NewMutex(lockimpl.Key(key), redsync.WithExpiry(o.TTL), redsync.WithTries(max(o.MaxTries, 1)),
		redsync.WithRetryDelay(o.RetryEvery), redsync.WithGenValueFunc(func() (string, error) { return s.env.Token(), nil }))
	err := m.LockContext(ctx)
	taken := &redsync.ErrTaken{}
	switch {
	case err != nil && unanswered(err):
		return lockimpl.Lock{}, err
	case errors.As(err, &taken):
		return lockimpl.Lock{}, lockimpl.ErrHeld
	case err != nil: // also ErrFailed: a majority was late, and it is unknown whether the lock was released
		return lockimpl.Lock{}, err
	}
	s.held[m.Value()] = m
	return lockimpl.Lock{Key: key, Token: m.Value(), Until: m.Until(), Via: "LockContext"}, nil
}

// Extend ignores the length that is asked for: the library extends by the length of the first lease.
func (s *redsyncLocker) Extend(ctx context.Context, l lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	m := s.held[l.Token]
	if m == nil {
		return l, lockimpl.ErrLost
	}
	ok, err := m.ExtendContext(ctx)
	l.Until = m.Until()
	return l, lostUnless(ok, err)
}

func (s *redsyncLocker) Release(ctx context.Context, l lockimpl.Lock) error {
	m := s.held[l.Token]
	if m == nil {
		return lockimpl.ErrLost
	}
	ok, err := m.UnlockContext(ctx)
	return lostUnless(ok, err)
}

func lostUnless(ok bool, err error) error {
	taken := &redsync.ErrTaken{}
	switch {
	case ok:
		return nil
	case err != nil && unanswered(err):
		return err
	case err == nil, errors.As(err, &taken), errors.Is(err, redsync.ErrLockAlreadyExpired):
		return lockimpl.ErrLost
	}
	return err
}

// unanswered reports whether a master did not answer: its command may have been executed.
func unanswered(err error) bool {
	failed := &redsync.RedisError{}
	return errors.As(err, &failed)
}

// Redsync is github.com/go-redsync/redsync, on all masters of the run.
var Redsync = lockimpl.Variant{
	Name:     "redsync",
	Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease},
	New:      func(env variant.Env) lockimpl.Locker { return newRsync(env) },
}

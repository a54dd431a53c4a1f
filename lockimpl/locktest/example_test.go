package locktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/lockimpl/locktest"
	"oversell/variant"
)

// setNX is one client's view of a plain lock: SET NX PX, and a script that compares and deletes. The suite needs no more
// than this.
type setNX struct{ env variant.Env }

func (s setNX) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	end := s.env.Clock.Now().Add(o.Wait)
	for try := 1; ; try++ {
		start := s.env.Clock.Now() // the lease begins before the command is sent
		token := s.env.Token()
		err := s.env.Redis[0].SetArgs(ctx, "lock:"+key, token, redis.SetArgs{Mode: "NX", TTL: o.TTL}).Err()
		switch {
		case err == nil:
			return lockimpl.Lock{Key: key, Token: token, Until: start.Add(o.TTL)}, nil
		case !errors.Is(err, redis.Nil):
			return lockimpl.Lock{}, err // nobody knows whether the lock was taken
		}
		left := end.Sub(s.env.Clock.Now())
		if left <= 0 || try == o.MaxTries || s.env.Wait(ctx, key, min(left, o.RetryEvery)) != nil {
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
	}
}

func (s setNX) Release(ctx context.Context, l lockimpl.Lock) error {
	const script = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`
	n, err := s.env.Redis[0].Eval(ctx, script, []string{"lock:" + l.Key}, l.Token).Int()
	if err == nil && n == 0 {
		err = lockimpl.ErrLost
	}
	return err
}

// Extend returns errors.ErrUnsupported, so the suite does not test extensions.
func (s setNX) Extend(_ context.Context, l lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	return l, errors.ErrUnsupported
}

// The test of a lock belongs in a file whose name ends in _test.go.
func ExampleRun() {
	testMyLock := func(t *testing.T) { // func TestMyLock
		locktest.Run(t, lockimpl.Variant{
			Name:     "mine",
			Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
			New:      func(env variant.Env) lockimpl.Locker { return setNX{env} },
		}, locktest.Auto)
	}
	_ = testMyLock
}

// TestExample runs the suite on the example's lock, with a short load.
func TestExample(t *testing.T) {
	locktest.RunWith(t, lockimpl.Variant{
		Name:     "mine",
		Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
		New:      func(env variant.Env) lockimpl.Locker { return setNX{env} },
	}, locktest.Auto, locktest.Options{Load: 300 * time.Millisecond})
}

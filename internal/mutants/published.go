//go:build !race

package mutants

import (
	"context"
	"errors"
	"time"

	"oversell/adapters/golocks"
	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// publishedLocks are locks of published libraries. Builds with the race detector leave them out, since they take half a minute to compile.
func publishedLocks() []Lock {
	promises := []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress}
	of := func(v lockimpl.Variant, masters int) lockimpl.Variant {
		once := v.New
		v.New = func(env variant.Env) lockimpl.Locker { return retrying{once(env)} }
		v.Promises, v.Needs.Masters = promises, masters
		return v
	}
	// The library waits for an answer for 20 ms by itself, and takes the lock for refused then, which the server may have granted. That is
	// too short beside other suites.
	rueidis := of(golocks.RueidislockWithin(250*time.Millisecond), 0)
	rueidis.Promises = []variant.Property{variant.MutualExclusion, variant.Progress}
	return []Lock{
		{Entry: entry.New("bsm/redislock", "the library", nil, "https://github.com/bsm/redislock"), Variant: of(golocks.Redislock, 0), Bubble: true},
		{Entry: entry.New("redsync", "the library, on one master", nil, "https://github.com/go-redsync/redsync"), Variant: of(golocks.Redsync, 0), Bubble: true},
		{Entry: entry.New("redsync-3", "the library, on three masters", nil, "https://github.com/go-redsync/redsync"), Variant: of(golocks.Redsync, 3), Bubble: true},
		{Entry: entry.New("rueidislock", "the library, with its own client, lease and renewal", nil, "https://github.com/redis/rueidis"), Variant: rueidis, Bubble: true},
	}
}

// retrying is a lock of a library that makes one attempt: it tries until Options.Wait is over.
type retrying struct{ lockimpl.Locker }

func (r retrying) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	begin, once := time.Now(), o
	once.MaxTries = 1
	for try := 1; ; try++ {
		l, err := r.Locker.Acquire(ctx, key, once)
		left := o.Wait - time.Since(begin)
		if !errors.Is(err, lockimpl.ErrHeld) || left <= 0 || try == o.MaxTries {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, context.Cause(ctx)
		case <-time.After(min(left, max(o.RetryEvery, time.Millisecond))):
		}
	}
}

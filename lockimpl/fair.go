package lockimpl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/variant"
)

// fair serves waiters in the order in which they came. A waiter keeps its place with every attempt. With reap, one that
// is silent for longer than patience is considered dead and loses its place. A client that asks only once does not join
// the line and is served only when the line is empty.
type fair struct {
	luaRelease
	// reap is false in the control: there a dead head blocks the line.
	reap bool
}

func newFair(env variant.Env) Locker       { return fair{luaRelease{token{env}}, true} }
func newFairNoReap(env variant.Env) Locker { return fair{luaRelease{token{env}}, false} }

// patience returns how long a waiter that looks every retry may be silent: several looks, and at least the time of one
// look on a busy machine.
func patience(retry time.Duration) time.Duration { return max(5*retry, time.Second) }

func (f fair) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	keys := []string{Key(name), "Line:" + Key(name), "Seen:" + Key(name)}
	var silence time.Duration
	if f.reap {
		silence = patience(o.RetryEvery)
	}
	token := f.env.Token()
	once := 0
	if o.Wait <= 0 {
		once = 1
	}
	var joined time.Time
	l, err := acquire(ctx, f.env, name, o, func(start time.Time) (Lock, error) {
		n, err := fairAcquireScript.Run(ctx, f.env.Redis[0], keys, token, ms(o.TTL), ms(silence), once).Int64()
		if err != nil {
			return Lock{}, err
		}
		switch n {
		case 1:
			return granted(name, token, "script (head of the line)", start, o.TTL), nil
		case 2:
			joined = f.env.Clock.Now()
		}
		return Lock{}, ErrHeld
	})
	if err != nil && (once == 0 || !errors.Is(err, ErrHeld)) {
		// The wait is over, perhaps because ctx is: leaving must not fail with it.
		ctx, cancel := f.env.Clock.WithTimeout(context.WithoutCancel(ctx), o.TTL)
		defer cancel()
		if left := fairLeaveScript.Run(ctx, f.env.Redis[0], keys, token).Err(); left != nil {
			return Lock{}, fmt.Errorf("leave the line of %q: %w", name, left)
		}
	}
	l.Joined = joined
	return l, err
}

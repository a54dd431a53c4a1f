package lockimpl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// redlock is the lock of a majority of independent masters, as described in [variant.TextScripts]
// and https://redis.io/docs/latest/develop/use/patterns/distributed-locks/.
type redlock struct{ env variant.Env }

func newRedlock(env variant.Env) Locker { return redlock{env} }

// quorum returns the size of a majority.
func (r redlock) quorum() int { return len(r.env.Redis)/2 + 1 }

// nodeTimeout bounds the time for one node, so that a blocked node is skipped: 1/20 of the lease, but at least 5 ms.
func nodeTimeout(ttl time.Duration) time.Duration { return max(ttl/20, 5*time.Millisecond) }

// drift returns the allowed difference of the nodes' clocks within a lease, plus 2 ms for the resolution of expiry.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

func (r redlock) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	return acquire(ctx, r.env, name, o, func(start time.Time) (Lock, error) {
		l := granted(name, r.env.Token(), fmt.Sprintf("SET NX PX on a majority of %d", len(r.env.Redis)), start, o.TTL-drift(o.TTL))
		n, no, err := r.all(ctx, o.TTL, func(ctx context.Context, c redis.UniversalClient) (bool, error) {
			return setNXWithExpiry(ctx, c, Key(name), l.Token, o.TTL)
		})
		if n >= r.quorum() && r.env.Clock.Now().Before(l.Until) {
			return l, nil
		}
		// Not acquired: release on all nodes, including those that seemed to refuse.
		_, undo := r.release(context.WithoutCancel(ctx), l, o.TTL)
		switch {
		case ctx.Err() != nil:
			return Lock{}, errors.Join(context.Cause(ctx), err, undo)
		case n < r.quorum() && len(r.env.Redis)-no >= r.quorum():
			// Too few nodes answered to say that it is held.
			return Lock{}, fmt.Errorf("%w: %w", errNoMajority, errors.Join(err, undo))
		}
		return Lock{}, ErrHeld
	})
}

func (r redlock) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	start := r.env.Clock.Now()
	n, no, err := r.all(ctx, ttl, func(ctx context.Context, c redis.UniversalClient) (bool, error) {
		n, err := extendScript.Run(ctx, c, []string{Key(l.Key)}, l.Token, ms(ttl)).Int()
		return n == 1, err
	})
	if n < r.quorum() {
		return extended(l, start, ttl, 0, r.unlessRefused(no, err))
	}
	return extended(l, start, ttl-drift(ttl), 1, nil)
}

func (r redlock) Release(ctx context.Context, l Lock) error {
	n, no, err := r.all(ctx, max(l.Until.Sub(r.env.Clock.Now()), time.Second), r.releaseOn(l))
	if n >= r.quorum() {
		return nil
	}
	return changed("release", l.Key, 0, r.unlessRefused(no, err))
}

// unlessRefused returns err, or nil if so many nodes refused that the others do not matter.
func (r redlock) unlessRefused(no int, err error) error {
	if no >= r.quorum() {
		return nil
	}
	return err
}

// release releases on all nodes; the error joins the failures.
func (r redlock) release(ctx context.Context, l Lock, ttl time.Duration) (int, error) {
	n, _, err := r.all(ctx, ttl, r.releaseOn(l))
	return n, err
}

func (r redlock) releaseOn(l Lock) func(context.Context, redis.UniversalClient) (bool, error) {
	return func(ctx context.Context, c redis.UniversalClient) (bool, error) {
		n, err := releaseScript.Run(ctx, c, []string{Key(l.Key)}, l.Token).Int()
		return n == 1, err
	}
}

// all asks every node at once, each within the node timeout, and counts the nodes that said yes and that said no. The
// error joins the failures of the rest.
func (r redlock) all(ctx context.Context, ttl time.Duration, ask func(context.Context, redis.UniversalClient) (bool, error)) (yes, no int, err error) {
	type answer struct {
		yes bool
		err error
	}
	answers := make([]answer, len(r.env.Redis))
	joins := make([]func(context.Context) error, len(r.env.Redis))
	for i, c := range r.env.Redis {
		joins[i] = r.env.Go(func(context.Context) {
			ctx, cancel := r.env.Clock.WithTimeout(ctx, nodeTimeout(ttl))
			defer cancel()
			answers[i].yes, answers[i].err = ask(ctx, c)
		})
	}
	var errs []error
	for i, join := range joins {
		// Every ask ends by its own time limit, so this wait ignores ctx.
		if err := join(context.WithoutCancel(ctx)); err != nil {
			return 0, 0, err
		}
		switch {
		case answers[i].err != nil:
			errs = append(errs, fmt.Errorf("node %d: %w", i+1, answers[i].err))
		case answers[i].yes:
			yes++
		default:
			no++
		}
	}
	return yes, no, errors.Join(errs...)
}

package lockimpl

import (
	"context"
	"errors"
	"sync"
	"time"

	"oversell/variant"
)

// watchdog is luaRelease with a background renewal. A renewal compares the
// token, tells the holder when the lock is lost, and has ended before the
// release begins.
type watchdog struct {
	luaRelease
	renewals map[string]*renewal // by token
}

func newWatchdog(env variant.Env) Locker {
	return watchdog{luaRelease{token{env}}, map[string]*renewal{}}
}

func (w watchdog) Acquire(ctx context.Context, name string, o Options) (Lock, error) {
	l, err := w.luaRelease.Acquire(ctx, name, o)
	if err != nil {
		return l, err
	}
	w.renew(l, o.TTL)
	return l, nil
}

// renew begins to renew l for ttl at a time.
func (w watchdog) renew(l Lock, ttl time.Duration) {
	stopped, stop := context.WithCancel(context.Background())
	r := &renewal{lock: l, ttl: ttl, stopped: stopped, stop: stop, lost: make(chan struct{})}
	r.join = w.env.Go(func(ctx context.Context) { r.run(ctx, w.luaRelease) })
	w.renewals[l.Token] = r
}

// stopRenewal ends the renewal of l, and returns when it has ended.
func (w watchdog) stopRenewal(ctx context.Context, l Lock) error {
	r := w.renewals[l.Token]
	if r == nil {
		return nil
	}
	r.stop()
	if err := r.join(ctx); err != nil {
		return err
	}
	delete(w.renewals, l.Token)
	return nil
}

// Extend ends the renewal, extends, and begins to renew for the new length. A channel that Lost returned earlier says
// nothing about the new lease.
func (w watchdog) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	if err := w.stopRenewal(ctx, l); err != nil {
		return l, err
	}
	l, err := w.luaRelease.Extend(ctx, l, ttl)
	if err == nil {
		w.renew(l, ttl)
	}
	return l, err
}

func (w watchdog) Release(ctx context.Context, l Lock) error {
	if err := w.stopRenewal(ctx, l); err != nil {
		return err
	}
	return w.luaRelease.Release(ctx, l)
}

// Lost returns a channel that is closed when a renewal found the lock lost, or could not renew it before the lease ran
// out.
func (w watchdog) Lost(l Lock) <-chan struct{} {
	if r := w.renewals[l.Token]; r != nil {
		return r.lost
	}
	return nil
}

// Renewed returns l with the lease as last renewed.
func (w watchdog) Renewed(l Lock) Lock {
	if r := w.renewals[l.Token]; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.lock
	}
	return l
}

// renewal keeps one lock alive.
type renewal struct {
	mu   sync.Mutex // guards lock
	lock Lock
	ttl  time.Duration

	stopped context.Context
	stop    context.CancelFunc
	join    func(context.Context) error
	lost    chan struct{}
}

// run renews every third of the lease, and sooner after a failure, until it is
// stopped or the lock is lost. Stopping takes effect at once.
func (r *renewal) run(ctx context.Context, l luaRelease) {
	defer context.AfterFunc(ctx, r.stop)()
	for pause := r.ttl / 3; l.env.Clock.Sleep(r.stopped, pause) == nil; {
		var more bool
		if pause, more = r.renew(r.stopped, l); !more {
			close(r.lost)
			return
		}
	}
}

// renew makes one attempt and returns the pause before the next, or that there is nothing left to renew.
func (r *renewal) renew(ctx context.Context, l luaRelease) (pause time.Duration, more bool) {
	pause = r.ttl / 3
	ctx, cancel := l.env.Clock.WithTimeout(ctx, pause)
	defer cancel()
	renewed, err := l.Extend(ctx, r.lock, r.ttl)
	switch {
	case err == nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lock = renewed
		return pause, true
	case errors.Is(err, ErrLost):
		return 0, false
	}
	left := r.lock.Until.Sub(l.env.Clock.Now())
	return min(left, pause/4), left > 0
}

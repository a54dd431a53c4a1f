package golocks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"oversell/lockimpl"
	"oversell/variant"
)

// rueidisLocker is one client of github.com/redis/rueidis/rueidislock, which opens its own connections and renews its
// leases.
type rueidisLocker struct {
	env     variant.Env
	answer  time.Duration // how long it waits for an answer
	mutex   sync.Mutex
	lockers map[time.Duration]rueidislock.Locker // by lease
	held    map[string]rueidisHeld               // by token
}

type rueidisHeld struct {
	ctx    context.Context // ends when the library notices that the lock is lost
	cancel context.CancelFunc
}

// locker returns the library's locker for a lease; it is created on first use.
func (r *rueidisLocker) locker(ttl time.Duration) (rueidislock.Locker, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if l := r.lockers[ttl]; l != nil {
		return l, nil
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{r.env.Addr[0]}, DisableCache: true, ForceSingleClient: true},
		KeyMajority:  1, KeyValidity: ttl, NoLoopTracking: true, KeyPrefix: "Lock",
		TryNextAfter: r.answer,
	})
	if err == nil {
		r.lockers[ttl] = l
	}
	if err == nil && r.env.Go != nil {
		r.env.Go(func(ctx context.Context) {
			<-ctx.Done()
			l.Close()
		})
	}
	return l, err
}

func (r *rueidisLocker) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	locker, err := r.locker(o.TTL)
	if err != nil {
		return lockimpl.Lock{}, err
	}
	start := time.Now()
	held, cancel, err := locker.TryWithContext(context.WithoutCancel(ctx), key) // a deadline of ctx would end the lock
	switch {
	case errors.Is(err, rueidislock.ErrNotLocked):
		return lockimpl.Lock{}, lockimpl.ErrHeld
	case err != nil:
		return lockimpl.Lock{}, err
	}
	// The end of the first lease: the library does not report renewals.
	l := lockimpl.Lock{Key: key, Token: r.env.Token(), Until: start.Add(o.TTL), Via: "TryWithContext"}
	r.held[l.Token] = rueidisHeld{held, cancel}
	return l, nil
}

// Extend is unsupported: the library renews by itself.
func (r *rueidisLocker) Extend(_ context.Context, l lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	return l, errors.ErrUnsupported
}

func (r *rueidisLocker) Release(_ context.Context, l lockimpl.Lock) error {
	h, ok := r.held[l.Token]
	if !ok {
		return lockimpl.ErrLost
	}
	delete(r.held, l.Token)
	lost := h.ctx.Err() != nil
	h.cancel() // it waits for the release, but does not report the result
	if lost {
		return lockimpl.ErrLost
	}
	return nil
}

// Rueidislock is github.com/redis/rueidis/rueidislock, on the first master of the run. It waits for an answer for as long as a busy machine
// may take.
var Rueidislock = RueidislockWithin(2 * time.Second)

// RueidislockWithin is Rueidislock with another time limit for an answer; 0 means the library's own.
func RueidislockWithin(answer time.Duration) lockimpl.Variant {
	return lockimpl.Variant{
		Name:     "rueidislock",
		Promises: []variant.Property{variant.MutualExclusion},
		Renews:   true,
		New: func(env variant.Env) lockimpl.Locker {
			return &rueidisLocker{env: env, answer: answer, lockers: map[time.Duration]rueidislock.Locker{}, held: map[string]rueidisHeld{}}
		},
	}
}

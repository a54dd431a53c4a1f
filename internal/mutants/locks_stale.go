package mutants

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// staleMutants go by what they remember of a lock: of its holder, of its first lease, of its loss, or of a place in the line.
func staleMutants() []Lock {
	exclusion, progress := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.Progress)
	counted := fenceBy(`
		if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
		return redis.call('INCR', KEYS[2])`, counterKey)
	return []Lock{
		{Entry: entry.New("fence-of-32-bits", "the client keeps the fencing token in 32 bits", entry.Breaks(variant.Fencing), ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := counted(ctx, c, l, o)
				l.Fence = int64(int32(l.Fence))
				return ok, err
			}})},
		{Entry: entry.New("extend-checked-once", "an extend within ten seconds of the last one sets the expiry without comparing the token", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				now := c.env.Clock.Now()
				if last, err := time.Parse(time.RFC3339Nano, c.tokens[l.Token]); err == nil && now.Sub(last) < 10*time.Second {
					return c.redis().PExpire(ctx, c.key(l.Key), ttl).Result()
				}
				ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
				if ok {
					c.tokens[l.Token] = now.Format(time.RFC3339Nano)
				}
				return ok, err
			}})},
		{Entry: entry.New("loss-told-for-all", "the loss of one lock closes the channels of all of its client's locks", progress, ""),
			Variant: lockimpl.Variant{Promises: usual, Renews: true, New: func(env variant.Env) lockimpl.Locker {
				shipped, _ := lockimpl.Find("watchdog")
				return &oneAlarm{telling: shipped.New(env).(telling), env: env, any: make(chan struct{})}
			}}},
		{Entry: entry.New("loss-told-once", "Lost returns nil when the lock is known to be lost", progress, ""), Variant: watchdogThat(func(w telling) lockimpl.Locker { return forgetful{w} })},
		{Entry: entry.New("loss-told-by-value", "the channel of Lost is found by the whole lock, with the end of the lease that was granted", exclusion, ""),
			Variant: watchdogThat(func(w telling) lockimpl.Locker { return byValue{w, map[lockimpl.Lock]<-chan struct{}{}} })},
		{Entry: entry.New("released-by-first-lease", "a release after the end of the lease that was granted ends the renewals and says that the lock is lost", progress, ""),
			Variant: lockimpl.Variant{Promises: usual, Renews: true, New: func(env variant.Env) lockimpl.Locker {
				return firstLease{&slowStop{client: newClient(steps{}, env), renewals: map[string]*stopped{}}}
			}}},
		{Entry: entry.New("unheard-release-undone", "after a release without an answer, the client's next acquire returns the lock that it had", exclusion, ""),
			Variant: whole(func(env variant.Env) lockimpl.Locker {
				return undone{newClient(steps{}, env), map[string]lockimpl.Lock{}}
			})},
		{Entry: entry.New("line-place-kept", "a client that gives up keeps its place in the line for when it comes back", entry.Breaks(variant.FIFO), ""), Variant: placesKept()},
	}
}

// oneAlarm has one channel for all losses of a client.
type oneAlarm struct {
	telling
	env   variant.Env
	any   chan struct{}
	close sync.Once
}

// watch waits for the loss of a lock.
func (o *oneAlarm) watch(l lockimpl.Lock) {
	lost := o.telling.Lost(l)
	o.env.Go(func(ctx context.Context) {
		select {
		case <-lost:
			o.close.Do(func() { close(o.any) })
		case <-ctx.Done():
		}
	})
}

func (o *oneAlarm) Acquire(ctx context.Context, name string, options lockimpl.Options) (lockimpl.Lock, error) {
	l, err := o.telling.Acquire(ctx, name, options)
	if err == nil {
		o.watch(l)
	}
	return l, err
}

func (o *oneAlarm) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	l, err := o.telling.Extend(ctx, l, ttl)
	if err == nil {
		o.watch(l)
	}
	return l, err
}

func (o *oneAlarm) Lost(lockimpl.Lock) <-chan struct{} { return o.any }

// forgetful forgets a lock when it is lost.
type forgetful struct{ telling }

func (f forgetful) Lost(l lockimpl.Lock) <-chan struct{} {
	lost := f.telling.Lost(l)
	select {
	case <-lost:
		return nil
	default:
		return lost
	}
}

// byValue knows a lock as it was granted.
type byValue struct {
	telling
	lost map[lockimpl.Lock]<-chan struct{}
}

func (b byValue) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := b.telling.Acquire(ctx, name, o)
	if err == nil {
		b.lost[l] = b.telling.Lost(l)
	}
	return l, err
}

func (b byValue) Lost(l lockimpl.Lock) <-chan struct{} { return b.lost[l] }

// firstLease is a lock that renews, and whose release goes by the lease that was granted.
type firstLease struct{ *slowStop }

func (f firstLease) Release(ctx context.Context, l lockimpl.Lock) error {
	f.renewal(l).stop()
	if f.env.Clock.Now().After(l.Until) {
		return lockimpl.ErrLost
	}
	return f.client.Release(ctx, l)
}

// undone takes a release without an answer for one that was not carried out.
type undone struct {
	*client
	had map[string]lockimpl.Lock // by name
}

func (u undone) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, ok := u.had[name]
	delete(u.had, name)
	if ok && l.Until.After(u.env.Clock.Now()) {
		return l, nil
	}
	return u.client.Acquire(ctx, name, o)
}

func (u undone) Release(ctx context.Context, l lockimpl.Lock) error {
	err := u.client.Release(ctx, l)
	if err != nil && !errors.Is(err, lockimpl.ErrLost) {
		u.had[l.Key] = l
	}
	return err
}

// placesKept is the sound lock with its line in a list, except that a client has one place for each name until it is granted the lock.
func placesKept() lockimpl.Variant {
	v := inList(func(ctx context.Context, rdb redis.UniversalClient, line, head string) error {
		return rdb.LRem(ctx, line, 0, head).Err()
	})
	sound := v.New
	v.New = func(env variant.Env) lockimpl.Locker {
		f := sound(env).(listed)
		f.places = map[string]string{}
		return f
	}
	return v
}

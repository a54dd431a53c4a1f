package mutants

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// singleMutants fail clients that do not wait, or fall back on another way when a command fails.
func singleMutants() []Lock {
	progress := entry.Breaks(variant.Progress)
	compareGetDelete := releaseBy(compareDelete)
	return []Lock{
		{Entry: entry.New("refusal-remembered", "after a refusal, a client that does not wait is refused without a command, until the lease that it saw would be over", progress, ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					if till, err := time.Parse(time.RFC3339Nano, c.tokens[l.Key]); err == nil && o.Wait == 0 && c.env.Clock.Now().Before(till) {
						return false, nil
					}
					return setNX(ctx, c, l, o)
				},
				refused: func(ctx context.Context, c *client, l *lockimpl.Lock) error {
					left, err := c.redis().PTTL(ctx, c.key(l.Key)).Result()
					if left > 0 {
						c.tokens[l.Key] = c.env.Clock.Now().Add(left).Format(time.RFC3339Nano)
					}
					return err
				},
			})},
		{Entry: entry.New("line-reaped-by-waiters", "a client that does not wait is refused while others stand in line, and only those that wait remove the dead", progress, ""),
			Variant: inLineUnlessOnce()},
		{Entry: entry.New("release-falls-back", "a release whose script fails reads the lock, compares and deletes it by commands of their own", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				ok, err := compareGetDelete(ctx, c, l)
				if err == nil {
					return ok, nil
				}
				value, err := get(ctx, c, l.Key)
				if value != l.Token || err != nil {
					return false, err
				}
				return del(ctx, c, l)
			}})},
		{Entry: entry.New("renewal-counts-failures", "a renewal ends with the third failure in all, however many have succeeded between them, and the holder is told nothing", entry.Breaks(variant.MutualExclusion), ""),
			Variant: untold(func() renewal {
				failures := 0
				return renewal{pause: func(ttl time.Duration) time.Duration { return ttl / 4 }, goesOn: true, renew: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
					if err != nil {
						failures++
					}
					return ok || err != nil && failures < 3, nil
				}}
			})},
		{Entry: entry.New("loss-told-after-release", "the renewal is stopped when the release has been answered, and one that comes between closes the channel of Lost", progress, ""),
			Variant: lockimpl.Variant{Promises: usual, Renews: true, New: func(env variant.Env) lockimpl.Locker {
				return &slowStop{client: newClient(steps{}, env), renewals: map[string]*stopped{}}
			}}},
	}
}

// inLineUnlessOnce is the sound lock with a line, except that an attempt with Options.Wait = 0 is refused if anybody is in the line, dead or
// alive.
func inLineUnlessOnce() lockimpl.Variant {
	v := inLine(joinLine, leaveLine)
	waits := v.New
	once := takeBy(`
		if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('ZCARD', 'Line:' .. KEYS[1]) > 0 then return 0 end
		redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
		return 1`)
	v.New = func(env variant.Env) lockimpl.Locker {
		return unlessOnce{waits(env), newClient(steps{attempt: once}, env)}
	}
	return v
}

type unlessOnce struct {
	lockimpl.Locker
	once *client
}

func (u unlessOnce) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	if o.Wait <= 0 {
		return u.once.Acquire(ctx, name, o)
	}
	return u.Locker.Acquire(ctx, name, o)
}

// untold is a lock that renews, and tells nothing of it.
func untold(how func() renewal) lockimpl.Variant {
	v := renewed(renewal{})
	v.New = func(env variant.Env) lockimpl.Locker {
		return struct{ lockimpl.Locker }{renewed(how()).New(env)}
	}
	return v
}

// slowStop is a lock that renews, tells of a loss, and stops its renewal after the release.
type slowStop struct {
	*client
	mu       sync.Mutex
	renewals map[string]*stopped // by token
}

type stopped struct {
	stop context.CancelFunc
	lost chan struct{}
	ttl  atomic.Int64
}

func (s *slowStop) renewal(l lockimpl.Lock) *stopped {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewals[l.Token] == nil {
		s.renewals[l.Token] = &stopped{stop: func() {}, lost: make(chan struct{})}
	}
	return s.renewals[l.Token]
}

func (s *slowStop) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := s.client.Acquire(ctx, name, o)
	if err != nil {
		return l, err
	}
	r := s.renewal(l)
	r.ttl.Store(int64(o.TTL))
	beside, stop := context.WithCancel(context.Background())
	r.stop = stop
	s.env.Go(func(life context.Context) {
		defer context.AfterFunc(life, stop)()
		for s.env.Clock.Sleep(beside, o.TTL/3) == nil {
			n, err := redis.NewScript(compareExpire).Run(beside, s.redis(), []string{s.key(l.Key)}, l.Token, time.Duration(r.ttl.Load()).Milliseconds()).Int64()
			if err == nil && n == 0 {
				close(r.lost)
				return
			}
		}
	})
	return l, nil
}

func (s *slowStop) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	s.renewal(l).ttl.Store(int64(ttl))
	return s.client.Extend(ctx, l, ttl)
}

func (s *slowStop) Release(ctx context.Context, l lockimpl.Lock) error {
	err := s.client.Release(ctx, l)
	s.renewal(l).stop()
	return err
}

// Lost implements lockimpl.LossNotifier.
func (s *slowStop) Lost(l lockimpl.Lock) <-chan struct{} { return s.renewal(l).lost }

package mutants

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// extendMutants prolong another client's lock, or promise more than they prolong.
func extendMutants() []Lock {
	exclusion, owner := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.OwnerOnlyRelease)
	script := extendBy(compareExpire)
	return []Lock{
		{Entry: entry.New("extend-blind", "extend is PEXPIRE without a look at the value", owner, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return c.redis().PExpire(ctx, c.key(l.Key), ttl).Result()
			}})},
		{Entry: entry.New("extend-get-pexpire", "extend reads the value, compares it in the client, and extends in a second command", owner, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				value, err := get(ctx, c, l.Key)
				if err != nil || value != l.Token {
					return false, err
				}
				return c.redis().PExpire(ctx, c.key(l.Key), ttl).Result()
			}})},
		{Entry: entry.New("extend-set-xx", "extend writes the caller's token if the key exists, whoever holds it", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return set(ctx, c, l, "XX", ttl)
			}})},
		{Entry: entry.New("extend-adds", "extend adds to the time that is left, so a client that extends often and dies blocks the lock for far longer than its lease", entry.Breaks(variant.Progress), "https://github.com/redis/redis-py/issues/629"),
			Variant: of(steps{extend: extendBy(`
				if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
				return redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[2])`)})},
		{Entry: entry.New("extend-seconds-as-ms", "extend sends the lease's seconds as milliseconds", exclusion, "https://github.com/FoundatioFx/Foundatio.Redis/issues/73"),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return script(ctx, c, l, max(time.Duration(ttl.Seconds())*time.Millisecond, time.Millisecond))
			}})},
		{Entry: entry.New("extend-whole-seconds", "extend cuts the lease to whole seconds; less than one deletes the lock", exclusion, "https://github.com/kent8192/reinhardt-web/issues/2719"),
			Variant: of(steps{extend: extendBy(`
				if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
				return redis.call('EXPIRE', KEYS[1], math.floor(ARGV[2] / 1000))`)})},
		{Entry: entry.New("extend-from-old-end", "extend promises the old end and the new lease, and the server counts from now", exclusion, ""),
			Variant: of(keepsOldEnd(func(c *client, l *lockimpl.Lock, was time.Time) {
				if left := was.Sub(c.env.Clock.Now()); left > 0 {
					l.Until = l.Until.Add(left)
				}
			}))},
		{Entry: entry.New("extend-keeps-longer-promise", "an extension by less than is left shortens the lease, and the client goes by the longer one", exclusion, ""),
			Variant: of(keepsOldEnd(func(_ *client, l *lockimpl.Lock, was time.Time) {
				if was.After(l.Until) {
					l.Until = was
				}
			}))},
		{Entry: entry.New("extend-capped", "an extension of more than ten seconds is cut to ten", exclusion, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return script(ctx, c, l, min(ttl, 10*time.Second))
			}})},
		{Entry: entry.New("extend-never-lost", "extend reports success when the lock is another's, or free", exclusion, "https://github.com/samcook/RedLock.net/issues/93"),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				_, err := script(ctx, c, l, ttl)
				return true, err
			}})},
		{Entry: entry.New("extend-error-is-success", "an extend whose answer is lost counts as done", exclusion, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := script(ctx, c, l, ttl)
				return ok || err != nil, nil
			}})},
		{Entry: entry.New("extend-error-retakes", "an extend whose answer is lost is followed by SET, to have the lock for certain", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := script(ctx, c, l, ttl)
				if err == nil {
					return ok, nil
				}
				l.Until = c.env.Clock.Now().Add(ttl)
				ok, again := set(context.WithoutCancel(ctx), c, l, "", ttl)
				if again != nil {
					return false, errors.Join(err, again)
				}
				return ok, nil
			}})},
		{Entry: entry.New("extend-from-answer", "the extended lease is promised from the answer", exclusion, "https://github.com/go-redsync/redsync/pull/71"),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := script(ctx, c, l, ttl)
				l.Until = c.env.Clock.Now().Add(ttl)
				return ok, err
			}})},
		{Entry: entry.New("extend-by-first-lease", "extend takes the first lease's length, and promises the length that was asked for", exclusion, ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					c.tokens["ttl:"+l.Key] = o.TTL.String()
					return setNX(ctx, c, l, o)
				},
				extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					if first, err := time.ParseDuration(c.tokens["ttl:"+l.Key]); err == nil {
						ttl = first
					}
					return script(ctx, c, l, ttl)
				}})},
		{Entry: entry.New("extend-persists", "extend takes the expiry away, and leaves it to the release to end the lock", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{extend: extendBy(`
				if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
				redis.call('PERSIST', KEYS[1])
				return 1`)})},
		{Entry: entry.New("extend-new-token", "extend writes a new token and returns the old one, so the lock cannot be released", entry.Breaks(variant.Progress, variant.OwnerOnlyRelease), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return yes(replace.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, ttl.Milliseconds(), c.env.Token()).Int64())
			}})},
		{Entry: entry.New("extend-drops-expiry", "extend writes the value again, which drops the expiry, and sets that in a second command", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := yes(rewrite.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token).Int64())
				if !ok || err != nil {
					return ok, err
				}
				return script(ctx, c, l, ttl)
			}})},
	}
}

// keepsOldEnd remembers the end of the lease that was promised first, and changes what an extension promises by it.
func keepsOldEnd(change func(c *client, l *lockimpl.Lock, was time.Time)) steps {
	script := extendBy(compareExpire)
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			ok, err := setNX(ctx, c, l, o)
			c.tokens[l.Token] = l.Until.Format(time.RFC3339Nano)
			return ok, err
		},
		extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
			if was, err := time.Parse(time.RFC3339Nano, c.tokens[l.Token]); err == nil {
				change(c, l, was)
			}
			return script(ctx, c, l, ttl)
		},
	}
}

var (
	replace = redis.NewScript(`
		if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
		redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
		return 1`)
	rewrite = redis.NewScript(`
		if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
		redis.call('SET', KEYS[1], ARGV[1])
		return 1`)
)

// renewal is how a lock renews itself.
type renewal struct {
	// pause is how long after a renewal the next one begins.
	pause func(ttl time.Duration) time.Duration
	// renew renews once, and reports whether there is anything left to renew.
	renew func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error)
	// rests reports whether a release first waits until the renewal has ended.
	rests bool
	// goesOn reports whether an error is followed by another try.
	goesOn bool
	// believes says that the lock believes that it is renewed when it is not.
	believes bool
	// adopts says that an acquire that failed is renewed, too.
	adopts bool
	// stays says that a release does not end the renewal.
	stays bool
	// confuses says that a renewal sends the lease that the client asked for last, of whatever name.
	confuses bool
}

// soundRenewal returns the renewal without a flaw.
func soundRenewal() renewal {
	return renewal{
		pause: func(ttl time.Duration) time.Duration { return ttl / 3 },
		renew: extendBy(compareExpire), rests: true, goesOn: true,
	}
}

// renewing is a lock that renews itself.
type renewing struct {
	*client
	how     renewal
	running map[string]*running // by token
	asked   *atomic.Int64       // the lease that was asked for last
}

type running struct {
	mu   sync.Mutex // guards lock
	lock lockimpl.Lock
	stop context.CancelFunc
	join func(context.Context) error
}

func renewed(how renewal) lockimpl.Variant {
	return lockimpl.Variant{Promises: usual, Renews: true, New: func(env variant.Env) lockimpl.Locker {
		return &renewing{newClient(steps{}, env), how, map[string]*running{}, new(atomic.Int64)}
	}}
}

func (r *renewing) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	r.asked.Store(int64(o.TTL))
	var last lockimpl.Lock
	r.client.attempt = func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		ok, err := setNX(ctx, c, l, o)
		last = *l
		return ok, err
	}
	l, err := r.client.Acquire(ctx, name, o)
	if err == nil || r.how.adopts && !errors.Is(err, lockimpl.ErrHeld) {
		r.start(last, o.TTL)
	}
	return l, err
}

func (r *renewing) start(l lockimpl.Lock, ttl time.Duration) {
	stopped, stop := context.WithCancel(context.Background())
	run := &running{lock: l, stop: stop}
	run.join = r.env.Go(func(ctx context.Context) {
		defer context.AfterFunc(ctx, stop)()
		for r.env.Clock.Sleep(stopped, r.how.pause(ttl)) == nil {
			next := run.get()
			next.Until = r.env.Clock.Now().Add(ttl)
			ctx, cancel := r.env.Clock.WithTimeout(stopped, ttl/3)
			sent := ttl
			if r.how.confuses {
				sent = time.Duration(r.asked.Load())
			}
			more, err := r.how.renew(ctx, r.client, &next, sent)
			cancel()
			if err == nil && more || r.how.believes {
				run.set(next)
			}
			if err == nil && !more || err != nil && !r.how.goesOn {
				return
			}
		}
	})
	r.running[l.Token] = run
}

func (r *running) get() lockimpl.Lock {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lock
}

func (r *running) set(l lockimpl.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lock = l
}

// rest ends the renewal of l.
func (r *renewing) rest(ctx context.Context, l lockimpl.Lock) error {
	run := r.running[l.Token]
	if run == nil || r.how.stays {
		return nil
	}
	delete(r.running, l.Token)
	run.stop()
	if !r.how.rests {
		return nil
	}
	return run.join(ctx)
}

func (r *renewing) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	if err := r.rest(ctx, l); err != nil {
		return l, err
	}
	l, err := r.client.Extend(ctx, l, ttl)
	if err == nil {
		r.start(l, ttl)
	}
	return l, err
}

func (r *renewing) Release(ctx context.Context, l lockimpl.Lock) error {
	if err := r.rest(ctx, l); err != nil {
		return err
	}
	return r.client.Release(ctx, l)
}

// Renewed implements lockimpl.Renewer.
func (r *renewing) Renewed(l lockimpl.Lock) lockimpl.Lock {
	if run := r.running[l.Token]; run != nil {
		renewed := run.get()
		if r.how.believes {
			renewed.Until = r.env.Clock.Now().Add(time.Second)
		}
		return renewed
	}
	return l
}

// renewalMutants renew for too long, too late, or a lock that is not theirs.
func renewalMutants() []Lock {
	with := func(change func(*renewal)) lockimpl.Variant {
		r := soundRenewal()
		change(&r)
		return renewed(r)
	}
	write := func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
		return set(ctx, c, l, "", ttl)
	}
	return []Lock{
		{Entry: entry.New("renewal-outlives-release", "a renewal writes the token again, and one under way at the release brings the lock back", entry.Breaks(variant.Progress, variant.OwnerOnlyRelease, variant.MutualExclusion), "https://github.com/samcook/RedLock.net/pull/64"),
			Variant: with(func(r *renewal) { r.renew, r.rests = write, false })},
		{Entry: entry.New("renewal-never-ends", "a release does not end the renewal, which writes the token if the lock is free", entry.Breaks(variant.Progress, variant.MutualExclusion), "https://github.com/redisson/redisson/issues/1626"),
			Variant: with(func(r *renewal) {
				r.stays = true
				r.renew = extendBy(`
					if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
					if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
					return 1`)
			})},
		{Entry: entry.New("renewal-of-names", "the renewal renews every name that the client ever took, without a look at the value", entry.Breaks(variant.OwnerOnlyRelease, variant.Progress), ""),
			Variant: with(func(r *renewal) {
				r.stays = true
				r.renew = func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					return true, c.redis().PExpire(ctx, c.key(l.Key), ttl).Err()
				}
			})},
		{Entry: entry.New("renewal-of-last-length", "a renewal sends the lease that the client asked for last, for whatever name", entry.Breaks(variant.MutualExclusion, variant.Progress), ""),
			Variant: with(func(r *renewal) { r.confuses = true })},
		{Entry: entry.New("renewal-gives-up", "the first renewal that fails is the last, and the holder is told that all is well", entry.Breaks(variant.MutualExclusion), "https://github.com/redisson/redisson/issues/2515"),
			Variant: with(func(r *renewal) { r.goesOn, r.believes = false, true })},
		{Entry: entry.New("renewal-of-abandoned", "an acquire whose answer is lost is renewed for ever, and no client holds the lock", entry.Breaks(variant.Progress), "https://github.com/redisson/redisson/issues/7272"),
			Variant: with(func(r *renewal) { r.adopts = true })},
		{Entry: entry.New("renewal-too-late", "the renewal comes when the lease is over, and takes the lock again if it is free", entry.Breaks(variant.MutualExclusion), ""),
			Variant: with(func(r *renewal) {
				r.believes = true
				r.pause = func(ttl time.Duration) time.Duration { return ttl }
				r.renew = extendBy(`
					if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
					if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
					return 0`)
			})},
		{Entry: entry.New("renewal-steals-back", "a holder that finds its lease over and another in its place writes its own token", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease), ""),
			Variant: with(func(r *renewal) { r.renew = write })},
	}
}

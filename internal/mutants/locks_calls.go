package mutants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// callMutants show their flaw in the calls of one client: after some that failed or were cancelled, while it holds several locks,
// or by the options that it gives.
func callMutants() []Lock {
	stuck, shared := entry.Breaks(variant.Progress), entry.Breaks(variant.MutualExclusion)
	return []Lock{
		{Entry: entry.New("refuses-after-errors", "after three calls in a row that failed, a client answers for a minute that the lock is held", stuck, ""), Variant: whole(newBreaker)},
		{Entry: entry.New("cancelled-wait-remembered", "a client whose wait was cancelled thinks that it still waits, and refuses to wait twice", stuck, ""),
			Variant: of(steps{
				attempt: unlessRemembered,
				wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
					err := c.env.Wait(ctx, name, min(left, o.RetryEvery))
					if err != nil {
						c.tokens[name] = "waits"
					}
					return err
				},
			})},
		{Entry: entry.New("failed-release-remembered", "a client refuses to take a lock whose release has failed until that release succeeds", stuck, ""),
			Variant: of(steps{
				attempt: unlessRemembered,
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					c.tokens[l.Key] = l.Token
					ok, err := releaseBy(compareDelete)(ctx, c, l)
					if err == nil {
						delete(c.tokens, l.Key)
					}
					return ok, err
				},
			})},
		{Entry: entry.New("setup-error-kept", "a client prepares its connection once, and answers every call with the error of that", stuck, ""), Variant: whole(newPrepared)},
		{Entry: entry.New("connection-for-each-lock", "a client keeps a connection of its pool for each lock that it holds", stuck, ""), Variant: whole(newDedicated)},
		{Entry: entry.New("wait-ignores-context", "an acquire goes on although its context has ended", stuck, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return stubborn{newClient(steps{}, env)} })},
		{Entry: entry.New("only-attempt-wasted", "the number of attempts is looked at before the answer to the last one", stuck, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return wasteful{newClient(steps{}, env)} })},
		{Entry: entry.New("late-grant-forgotten", "a grant that arrives after the wait is answered with ErrHeld, and not released", stuck, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return punctual{newClient(steps{}, env)} })},
		{Entry: entry.New("end-from-first-attempt", "the end of the lease counts from the first attempt, and not from the one that succeeded", stuck, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return fromFirst{newClient(steps{}, env)} })},
		{Entry: entry.New("pauses-grow-for-life", "each refusal makes all later pauses of a client longer by two milliseconds", stuck, ""),
			Variant: of(steps{
				refused: func(_ context.Context, c *client, _ *lockimpl.Lock) error { c.count++; return nil },
				wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
					return c.env.Wait(ctx, name, min(left, o.RetryEvery+time.Duration(c.count)*2*time.Millisecond))
				},
			})},
		{Entry: entry.New("waited-for-an-hour", "a client that has waited for more than an hour takes the holder for dead, whatever its lease", shared, ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					if c.tokens[l.Key] != "" {
						return set(ctx, c, l, "", o.TTL)
					}
					return setNX(ctx, c, l, o)
				},
				wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
					if o.Wait-left > time.Hour {
						c.tokens[name] = "waited"
					}
					return c.env.Wait(ctx, name, min(left, o.RetryEvery))
				},
			})},
		{Entry: entry.New("grant-in-the-future", "the value begins with the time of the grant by the holder's clock, and a client whose own clock is behind that takes the lock over", shared, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				now := c.env.Clock.Now().UnixMilli()
				l.Token = fmt.Sprint(now, " ", l.Token)
				return yes(futureScript.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds(), now).Int64())
			}})},
		{Entry: entry.New("refusal-kept-for-a-moment", "a refusal is remembered for 50 ms", entry.Breaks(variant.Linearizable), ""), Variant: linearizable(cachedRefusals)},
		{Entry: entry.New("answer-of-earlier-call", "a call whose context ends leaves its answer behind, and the next attempt takes it for its own", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress), ""), Variant: whole(newShifted)},
		{Entry: entry.New("script-stops-half-way", "the script sets the key, and stops at the expiry if the lease has a fraction of a millisecond", stuck, ""), Variant: of(steps{attempt: halfWay})},
		{Entry: entry.New("functions-loaded-once", "a library of functions is loaded once by each client, and a server that has lost it answers with an error for ever", stuck, ""), Variant: whole(functions(false))},
		{Entry: entry.New("script-error-is-refusal", "each client loads its script once, and takes NOSCRIPT for a refusal", stuck, ""), Variant: of(steps{attempt: byOwnHash()})},
		{Entry: entry.New("short-names-share", "names of fewer than three letters have one key", stuck, ""),
			Variant: of(steps{key: func(name string) string {
				return lockimpl.Key(strings.Repeat("-", max(3-len(name), 0)) + name[min(len(name), 2*max(3-len(name), 0)):])
			}})},
		{Entry: entry.New("fence-lost-by-extend", "an extended lock has no fencing token", entry.Breaks(variant.Fencing), ""),
			Variant: fencing(steps{
				attempt: fenceBy(`if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end return redis.call('INCR', KEYS[2])`, counterKey),
				extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					l.Fence = 0
					return extendBy(compareExpire)(ctx, c, l, ttl)
				},
			})},
		{Entry: entry.New("lease-as-float32", "a lease is kept in seconds, in a floating-point number of 32 bits", shared, ""), Variant: of(leaseOf(func(d time.Duration) time.Duration {
			return time.Duration(float32(d.Seconds())*1000) * time.Millisecond
		}))},
		{Entry: entry.New("no-brief-lease-else-cut", "leases below a second are answered with an error, and others are cut to whole seconds", shared, ""), Variant: of(leaseOf(func(d time.Duration) time.Duration { return d.Truncate(time.Second) }))},
		{Entry: entry.New("lease-less-slowest-answer", "the time of one answer is taken off the lease, and not that of all", shared, ""),
			Variant: onMasters(func(m *majority) {
				m.until = func(began, ended time.Time, ttl time.Duration) time.Time {
					return ended.Add(ttl - ended.Sub(began)/3 - ttl/100 - 2*time.Millisecond)
				}
			})},
		{Entry: entry.New("thirty-renewals", "a lease is renewed thirty times", shared, ""),
			Variant: renewed(thirtyRenewals())},
		{Entry: entry.New("loss-told-at-one-silence", "the channel of Lost is closed when one renewal has no answer", stuck, ""), Variant: lockimpl.Variant{Promises: usual, Renews: true, New: newNervous}},
		{Entry: entry.New("loss-timer-not-reset", "an extend does not put off the time at which the holder is told that its lease is over", stuck, ""),
			Variant: whole(func(env variant.Env) lockimpl.Locker {
				return punctualTimer{&timer{client: newClient(steps{}, env), leases: map[string]lease{}}}
			})},
		{Entry: entry.New("extend-in-the-last-twentieth", "an extend in the last twentieth of a lease is answered with ErrLost", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion, variant.Progress), ""),
			Variant: of(steps{extend: extendBy(`
				if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('PTTL', KEYS[1]) < ARGV[2] / 20 then return 0 end
				return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)})},
		{Entry: entry.New("renewal-ends-with-extend", "an extend ends the renewal", shared, ""), Variant: lockimpl.Variant{Promises: usual, Renews: true, New: func(env variant.Env) lockimpl.Locker {
			return endsRenewal{&renewing{newClient(steps{}, env), soundRenewal(), map[string]*running{}, new(atomic.Int64)}}
		}}},
		{Entry: entry.New("line-open-after-expiry", "a release passes the lock on to the head of the line, and when a lease ends, whoever looks first takes it", entry.Breaks(variant.FIFO), ""), Variant: openLine()},
		{Entry: entry.New("refusals-use-up-slots", "each refusal uses up one of the forty slots of a client", stuck, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if c.count >= 40 {
					return false, nil
				}
				ok, err := setNX(ctx, c, l, o)
				if !ok && err == nil {
					c.count++
				}
				return ok, err
			}})},
		{Entry: entry.New("extend-counts-token-up", "an extend adds one to the fencing token of the client, and to nothing else", entry.Breaks(variant.Fencing), ""),
			Variant: fencing(steps{
				attempt: fenceBy(`if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end return redis.call('INCR', KEYS[2])`, counterKey),
				extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					l.Fence++
					return extendBy(compareExpire)(ctx, c, l, ttl)
				},
			})},
		{Entry: entry.New("record-of-the-day", "the token is kept under the client's date, so after midnight a release does not find it", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress), ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					return yes(datedTake.Run(ctx, c.redis(), []string{c.key(l.Key), c.dated(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
				},
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					return yes(datedRelease.Run(ctx, c.redis(), []string{c.key(l.Key), c.dated(l.Key)}, l.Token).Int64())
				},
			})},
		{Entry: entry.New("release-up-to-a-dash", "release compares tokens up to the first dash or colon", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and string.match(value, '^[^-:]*') == string.match(ARGV[1], '^[^-:]*') then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-64-letters", "release compares the first 64 letters of tokens, as many as a SHA-256 has", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and string.sub(value, 1, 64) == string.sub(ARGV[1], 1, 64) then return redis.call('DEL', KEYS[1]) end
				return 0`)})},

		{Entry: entry.New("sound-token-changes", "an extend changes the token, and returns the lock with the new one; until that is used, the one before it is good, too", nil, ""),
			Variant: of(steps{extend: changesToken(changesTokenKeeping), release: releaseBy(releasesEither)})},
		{Entry: entry.New("sound-key-of-server", "Lock.Key is the key in Redis, and not the name", nil, ""), Variant: whole(func(env variant.Env) lockimpl.Locker {
			return stored{newClient(steps{key: func(key string) string { return key }}, env)}
		})},
		{Entry: entry.New("sound-names-limited", "names of more than a hundred bytes are answered with an error, before any command", nil, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return limited{newClient(steps{}, env)} })},
		{Entry: entry.New("sound-functions", "a library of functions is loaded again by a client to which the server says that it does not know it", nil, ""), Variant: whole(functions(true))},
	}
}

// dated is the key of the token on the client's day.
func (c *client) dated(name string) string {
	return c.key(name) + ":on:" + c.env.Clock.Now().UTC().Format(time.DateOnly)
}

var (
	datedTake = redis.NewScript(`
		if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
		redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
		return 1`)
	datedRelease = redis.NewScript(`
		if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
		redis.call('DEL', KEYS[2])
		return redis.call('DEL', KEYS[1])`)
)

// unlessRemembered is the sound attempt, unless the client has a note about the name: then it refuses.
func unlessRemembered(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
	if c.tokens[l.Key] != "" {
		return false, nil
	}
	return setNX(ctx, c, l, o)
}

// thirtyRenewals renews each grant thirty times, and then says that it has.
func thirtyRenewals() renewal {
	how := soundRenewal()
	var made sync.Map // renewals by token
	how.renew = func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
		n, _ := made.LoadOrStore(l.Token, new(atomic.Int64))
		if n.(*atomic.Int64).Add(1) > 30 {
			return true, nil
		}
		return extendBy(compareExpire)(ctx, c, l, ttl)
	}
	return how
}

// breaker is a client that stops asking after some errors.
type breaker struct {
	*client
	errors int
	closed time.Time
}

func newBreaker(env variant.Env) lockimpl.Locker { return &breaker{client: newClient(steps{}, env)} }

func (b *breaker) note(err error) {
	b.errors++
	if err == nil || errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, lockimpl.ErrLost) {
		b.errors = 0
	}
	if b.errors == 3 {
		b.errors, b.closed = 0, b.env.Clock.Now().Add(time.Minute)
	}
}

func (b *breaker) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	if b.env.Clock.Now().Before(b.closed) {
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	l, err := b.client.Acquire(ctx, name, o)
	b.note(err)
	return l, err
}

func (b *breaker) Release(ctx context.Context, l lockimpl.Lock) error {
	err := b.client.Release(ctx, l)
	b.note(err)
	return err
}

// prepared is a client that sends PING before its first call.
type prepared struct {
	*client
	once sync.Once
	err  error
}

func newPrepared(env variant.Env) lockimpl.Locker { return &prepared{client: newClient(steps{}, env)} }

func (p *prepared) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	p.once.Do(func() { p.err = p.redis().Ping(ctx).Err() })
	if p.err != nil {
		return lockimpl.Lock{}, fmt.Errorf("connect: %w", p.err)
	}
	return p.client.Acquire(ctx, name, o)
}

// dedicated is a client that keeps a connection for each lock.
type dedicated struct {
	*client
	conns map[string]*redis.Conn // by token
}

func newDedicated(env variant.Env) lockimpl.Locker {
	return &dedicated{newClient(steps{}, env), map[string]*redis.Conn{}}
}

func (d *dedicated) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := d.client.Acquire(ctx, name, o)
	pool, ok := d.redis().(*redis.Client)
	if err != nil || !ok {
		return l, err
	}
	conn := pool.Conn()
	if err := conn.Ping(ctx).Err(); err != nil {
		_, _ = releaseBy(compareDelete)(context.WithoutCancel(ctx), d.client, l)
		return lockimpl.Lock{}, errors.Join(err, conn.Close())
	}
	d.conns[l.Token] = conn
	return l, nil
}

func (d *dedicated) Release(ctx context.Context, l lockimpl.Lock) error {
	if conn := d.conns[l.Token]; conn != nil {
		_ = conn.Close()
		delete(d.conns, l.Token)
	}
	return d.client.Release(ctx, l)
}

type stubborn struct{ *client }

func (s stubborn) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	return s.client.Acquire(context.WithoutCancel(ctx), name, o)
}

type wasteful struct{ *client }

func (w wasteful) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	if o.MaxTries == 0 {
		return w.client.Acquire(ctx, name, o)
	}
	if o.MaxTries--; o.MaxTries > 0 {
		return w.client.Acquire(ctx, name, o)
	}
	if _, err := w.attempt(ctx, w.client, &lockimpl.Lock{Key: name, Token: w.env.Token()}, o); err != nil {
		return lockimpl.Lock{}, err
	}
	return lockimpl.Lock{}, lockimpl.ErrHeld
}

type punctual struct{ *client }

func (p punctual) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	began := p.env.Clock.Now()
	l, err := p.client.Acquire(ctx, name, o)
	if err == nil && o.Wait > 0 && p.env.Clock.Now().Sub(began) > o.Wait {
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	return l, err
}

type fromFirst struct{ *client }

func (f fromFirst) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	until := f.env.Clock.Now().Add(o.TTL)
	l, err := f.client.Acquire(ctx, name, o)
	l.Until = until
	return l, err
}

// cachedRefusals remembers refusals for a while.
var cachedRefusals = steps{
	attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		now := c.env.Clock.Now()
		if at, err := time.Parse(time.RFC3339Nano, c.tokens[l.Key]); err == nil && now.Sub(at) < 50*time.Millisecond {
			return false, nil
		}
		ok, err := setNX(ctx, c, l, o)
		if err == nil && !ok {
			c.tokens[l.Key] = now.Format(time.RFC3339Nano)
		}
		return ok, err
	},
}

// shifted is a client whose connection goes on with the answer that was awaited when a context ended. It does so without a
// connection of its own: the attempt goes on beside, and the next one is answered with its result.
type shifted struct {
	left chan bool // answers that nobody has read
}

func newShifted(env variant.Env) lockimpl.Locker {
	s := &shifted{make(chan bool, 1000)}
	return newClient(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		var ok bool
		var err error
		done := make(chan struct{})
		_ = c.env.Go(func(own context.Context) {
			defer close(done)
			ok, err = setNX(own, c, l, o)
			if ctx.Err() != nil && err == nil {
				s.left <- ok
			}
		})
		select {
		case <-done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		select {
		case earlier := <-s.left:
			s.left <- ok
			return earlier, nil
		default:
			return ok, err
		}
	}}, env)
}

// halfWay passes the lease on with its fraction of a millisecond.
func halfWay(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
	return yes(halfWayScript.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Seconds()*1000).Int64())
}

var halfWayScript = redis.NewScript(`
	if redis.call('SETNX', KEYS[1], ARGV[1]) == 0 then return 0 end
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
	return 1`)

var futureScript = redis.NewScript(`
	local granted = tonumber(string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) '))
	if granted and granted <= tonumber(ARGV[3]) then return 0 end
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
	return 1`)

// byOwnHash makes attempts by the hash of a script that a client loads before its first one.
func byOwnHash() func(context.Context, *client, *lockimpl.Lock, lockimpl.Options) (bool, error) {
	const text = `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`
	return func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		if c.tokens["script"] == "" {
			hash, err := c.redis().ScriptLoad(ctx, text).Result()
			if err != nil {
				return false, err
			}
			c.tokens["script"] = hash
		}
		ok, err := yes(c.redis().EvalSha(ctx, c.tokens["script"], []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			return false, nil
		}
		return ok, err
	}
}

// functions makes a lock of functions of the server (Redis 7). If again is set, a client loads them again when the server does not
// know them.
func functions(again bool) func(variant.Env) lockimpl.Locker {
	const library = `#!lua name=oversell_lock
		redis.register_function('oversell_take', function(keys, args) if redis.call('SET', keys[1], args[1], 'NX', 'PX', args[2]) then return 1 end return 0 end)
		redis.register_function('oversell_extend', function(keys, args) if redis.call('GET', keys[1]) == args[1] then return redis.call('PEXPIRE', keys[1], args[2]) end return 0 end)
		redis.register_function('oversell_drop', function(keys, args) if redis.call('GET', keys[1]) == args[1] then return redis.call('DEL', keys[1]) end return 0 end)`
	call := func(ctx context.Context, c *client, name, lock string, args ...any) (bool, error) {
		for try := 1; ; try++ {
			if c.tokens["library"] == "" {
				if err := c.redis().FunctionLoadReplace(ctx, library).Err(); err != nil {
					return false, err
				}
				c.tokens["library"] = "loaded"
			}
			ok, err := yes(c.redis().FCall(ctx, name, []string{c.key(lock)}, args...).Int64())
			if !again || try > 1 || err == nil || !strings.Contains(err.Error(), "Function not found") {
				return ok, err
			}
			delete(c.tokens, "library")
		}
	}
	return with(steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			return call(ctx, c, "oversell_take", l.Key, l.Token, o.TTL.Milliseconds())
		},
		extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
			return call(ctx, c, "oversell_extend", l.Key, l.Token, ttl.Milliseconds())
		},
		release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
			return call(ctx, c, "oversell_drop", l.Key, l.Token)
		},
	})
}

var errTooBrief = errors.New("a lease must be at least a second")

// leaseOf sends another lease than was asked for, and refuses one that comes to nothing.
func leaseOf(sent func(time.Duration) time.Duration) steps {
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			if sent(o.TTL) <= 0 {
				return false, errTooBrief
			}
			return set(ctx, c, l, "NX", sent(o.TTL))
		},
		extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
			if sent(ttl) <= 0 {
				return false, errTooBrief
			}
			return extendBy(compareExpire)(ctx, c, l, sent(ttl))
		},
	}
}

// nervous tells of a loss as soon as one renewal has no answer.
type nervous struct {
	*renewing
	mu   sync.Mutex
	told map[string]chan struct{} // by token
}

func newNervous(env variant.Env) lockimpl.Locker {
	n := &nervous{told: map[string]chan struct{}{}}
	how := soundRenewal()
	how.renew = func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
		ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // no release has ended it
			n.tell(l.Token)
		}
		return ok, err
	}
	n.renewing = &renewing{newClient(steps{}, env), how, map[string]*running{}, new(atomic.Int64)}
	return n
}

func (n *nervous) tell(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if told := n.told[token]; told != nil {
		close(told)
		delete(n.told, token)
	}
}

func (n *nervous) Lost(l lockimpl.Lock) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := make(chan struct{})
	n.told[l.Token] = told
	return told
}

// punctualTimer keeps the first end of a lease.
type punctualTimer struct{ *timer }

func (p punctualTimer) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	return p.client.Extend(ctx, l, ttl)
}

type endsRenewal struct{ *renewing }

func (e endsRenewal) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	m, err := e.renewing.Extend(ctx, l, ttl)
	if run := e.running[l.Token]; run != nil && err == nil {
		run.stop()
	}
	return m, err
}

// openLine is a line whose order holds as long as the lock is released.
func openLine() lockimpl.Variant {
	v := inLine(entry.Changed(joinLine, `and (not head or head == ARGV[1]) then`, `and (not head or head == ARGV[1] or redis.call('DEL', KEYS[1] .. ':held') == 1) then
		redis.call('SET', KEYS[1] .. ':held', '1')`), leaveLine)
	sound := v.New
	v.New = func(env variant.Env) lockimpl.Locker {
		f := sound(env).(line)
		f.client.release = releaseBy(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('DEL', KEYS[1] .. ':held') return redis.call('DEL', KEYS[1])`)
		return f
	}
	return v
}

// changesToken makes an extend from a script that puts another token in the place of the one before.
func changesToken(script string) func(context.Context, *client, *lockimpl.Lock, time.Duration) (bool, error) {
	s := redis.NewScript(script)
	return func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
		before := l.Token
		l.Token = c.env.Token()
		return yes(s.Run(ctx, c.redis(), []string{c.key(l.Key)}, before, l.Token, ttl.Milliseconds()).Int64())
	}
}

const (
	changesTokenOnly = `
		if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
		redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
		return 1`
	// The value is one token, or the present one, a space and the one before.
	changesTokenKeeping = `
		local value = redis.call('GET', KEYS[1])
		if not value or value ~= ARGV[1] and not string.find(' ' .. value .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then return 0 end
		redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[1], 'PX', ARGV[3])
		return 1`
	releasesEither = `
		local value = redis.call('GET', KEYS[1])
		if not value or value ~= ARGV[1] and not string.find(' ' .. value .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then return 0 end
		return redis.call('DEL', KEYS[1])`
)

// stored is a client that asks for keys.
type stored struct{ *client }

func (s stored) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	return s.client.Acquire(ctx, lockimpl.Key(name), o)
}

type limited struct{ *client }

func (l limited) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	if len(name) > 100 {
		return lockimpl.Lock{}, errors.New("the name has more than 100 bytes")
	}
	return l.client.Acquire(ctx, name, o)
}

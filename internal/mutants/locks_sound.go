package mutants

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// soundLocks keep their promises, in different ways.
func soundLocks() []Lock {
	reacquiring := of(steps{attempt: takeBy(`
		if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end
		if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
		return 0`)})
	noExtend := of(steps{extend: func(context.Context, *client, *lockimpl.Lock, time.Duration) (bool, error) {
		return false, errors.ErrUnsupported
	}})
	noWait := whole(func(env variant.Env) lockimpl.Locker { return noWaiting{newClient(steps{}, env)} })
	self := renewed(soundRenewal())
	own := lockimpl.Variant{Promises: usual, Renews: true, New: newSelfRenewing}
	return []Lock{
		{Entry: entry.New("sound-set-nx", "SET NX PX, compare and delete", nil, ""), Variant: of(steps{})},
		{Entry: entry.New("sound-reacquires", "one script takes the lock or renews what is the caller's already", nil, ""), Variant: reacquiring},
		{Entry: entry.New("sound-no-extend", "extend is not supported", nil, ""), Variant: noExtend},
		{Entry: entry.New("sound-no-wait", "acquire makes one attempt whatever Options.Wait says", nil, ""), Variant: noWait},
		{Entry: entry.New("sound-two-permits", "two clients at a time may enter, and mutual-exclusion is not promised", nil, ""), Variant: lockimpl.Variant{
			Promises: []variant.Property{variant.OwnerOnlyRelease, variant.Progress}, New: with(twoPermits())}},
		{Entry: entry.New("sound-one-hash", "all locks are in one hash, each with the end of its lease", nil, ""), Variant: of(oneHash())},
		{Entry: entry.New("sound-renewing", "a renewal that compares and ends before the release", nil, ""), Variant: self},
		{Entry: entry.New("sound-self-renewing", "a goroutine of the client renews with a timer of its own", nil, ""), Variant: own, Bubble: true},
		{Entry: entry.New("sound-sha1", "the value is the hash of the token", nil, ""), Variant: of(steps{
			attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return hashed(*l, func(h lockimpl.Lock) (bool, error) { return setNX(ctx, c, &h, o) })
			},
			extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return hashed(*l, func(h lockimpl.Lock) (bool, error) { return extendBy(compareExpire)(ctx, c, &h, ttl) })
			},
			release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				return hashed(l, func(h lockimpl.Lock) (bool, error) { return releaseBy(compareDelete)(ctx, c, h) })
			}})},
		{Entry: entry.New("sound-own-random", "tokens come from crypto/rand and not from the environment", nil, ""), Variant: of(steps{token: func(*client) string { return rand.Text() }})},
		{Entry: entry.New("sound-watch", "release and extend compare under WATCH and change in a transaction", nil, ""), Variant: of(steps{
			extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return watched(ctx, c, *l, func(p redis.Pipeliner) { p.PExpire(ctx, c.key(l.Key), ttl) })
			},
			release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				return watched(ctx, c, l, func(p redis.Pipeliner) { p.Del(ctx, c.key(l.Key)) })
			}})},
		{Entry: entry.New("sound-untold", "release does not tell whether there was anything to release", nil, ""), Variant: of(steps{
			release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				_, err := releaseBy(compareDelete)(ctx, c, l)
				return true, err
			}})},
		{Entry: entry.New("sound-reentrant", "its holder may take it again, and releases it as often", nil, ""), Variant: reentrant(reenter, reextend, leave)},
		{Entry: entry.New("sound-fence", "the script that takes the lock draws a number from a counter without an expiry", nil, ""), Variant: fencing(steps{attempt: soundFence})},
		{Entry: entry.New("sound-line", "first come, first served, with a line that drops the dead", nil, ""), Variant: inLine(joinLine, leaveLine)},
		{Entry: entry.New("sound-line-in-list", "first come, first served, with a line in a list, from which waiters remove the dead by name", nil, ""),
			Variant: inList(func(ctx context.Context, rdb redis.UniversalClient, line, head string) error {
				return rdb.LRem(ctx, line, 0, head).Err()
			})},
		{Entry: entry.New("sound-masters", "a majority of three masters, asked one after the other", nil, ""), Variant: onMasters(nil)},
	}
}

// noWaiting makes one attempt.
type noWaiting struct{ *client }

func (n noWaiting) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	o.Wait = 0
	return n.client.Acquire(ctx, name, o)
}

// hashed calls a step with the hash of a lock's token.
func hashed(l lockimpl.Lock, do func(lockimpl.Lock) (bool, error)) (bool, error) {
	sum := sha1.Sum([]byte(l.Token))
	l.Token = hex.EncodeToString(sum[:])
	return do(l)
}

// watched changes the lock if it is and remains the caller's.
func watched(ctx context.Context, c *client, l lockimpl.Lock, change func(redis.Pipeliner)) (mine bool, err error) {
	err = c.redis().Watch(ctx, func(tx *redis.Tx) error {
		value, err := tx.Get(ctx, c.key(l.Key)).Result()
		if errors.Is(err, redis.Nil) || err == nil && value != l.Token {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { change(p); return nil }); err != nil {
			return err
		}
		mine = true
		return nil
	}, c.key(l.Key))
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil // the lease ended in between
	}
	return mine, err
}

// selfRenewing renews in a goroutine of its own, by a timer of its own.
type selfRenewing struct {
	*client
	mu   sync.Mutex
	ends map[string]func()    // by token
	till map[string]time.Time // by token
}

func newSelfRenewing(env variant.Env) lockimpl.Locker {
	return &selfRenewing{client: newClient(steps{}, env), ends: map[string]func(){}, till: map[string]time.Time{}}
}

func (s *selfRenewing) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := s.client.Acquire(ctx, name, o)
	if err == nil {
		s.keep(l, o.TTL)
	}
	return l, err
}

func (s *selfRenewing) keep(l lockimpl.Lock, ttl time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	// The client's end ends the renewal: a process that dies renews nothing.
	s.env.Go(func(client context.Context) {
		defer context.AfterFunc(client, stop)()
		<-over
	})
	go func() {
		defer close(over)
		tick := time.NewTicker(ttl / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := time.Now()
			ok, err := extendBy(compareExpire)(ctx, s.client, &l, ttl)
			if err == nil && !ok {
				return
			}
			if ok {
				s.mu.Lock()
				s.till[l.Token] = now.Add(ttl)
				s.mu.Unlock()
			}
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.till[l.Token] = l.Until
	s.ends[l.Token] = func() {
		stop()
		<-over
	}
}

// rest ends the renewal of l.
func (s *selfRenewing) rest(l lockimpl.Lock) {
	s.mu.Lock()
	end := s.ends[l.Token]
	delete(s.ends, l.Token)
	s.mu.Unlock()
	if end != nil {
		end()
	}
}

func (s *selfRenewing) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	s.rest(l)
	l, err := s.client.Extend(ctx, l, ttl)
	if err == nil {
		s.keep(l, ttl)
	}
	return l, err
}

func (s *selfRenewing) Release(ctx context.Context, l lockimpl.Lock) error {
	s.rest(l)
	return s.client.Release(ctx, l)
}

// Renewed implements lockimpl.Renewer.
func (s *selfRenewing) Renewed(l lockimpl.Lock) lockimpl.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	if till, ok := s.till[l.Token]; ok {
		l.Until = till
	}
	return l
}

// twoPermits are the steps of a semaphore: a sorted set of tokens by the ends of their leases.
func twoPermits() steps {
	attempt := redis.NewScript(entry.ClockLua + `
		redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
		if redis.call('ZCARD', KEYS[1]) >= 2 then return 0 end
		return redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2] * 1000), ARGV[1])`)
	const held = `local till = redis.call('ZSCORE', KEYS[1], ARGV[1])
		if not till or tonumber(till) <= now then return 0 end `
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			return yes(attempt.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
		},
		extend:  extendBy(entry.ClockLua + held + `redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2] * 1000), ARGV[1]) return 1`),
		release: releaseBy(entry.ClockLua + held + `return redis.call('ZREM', KEYS[1], ARGV[1])`),
	}
}

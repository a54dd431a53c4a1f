package mutants

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// timeMutants ignore that time passes: while an answer is lost, while a call is held up, without any event.
func timeMutants() []Lock {
	exclusion, owner := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.OwnerOnlyRelease)
	renewing := func(change func(*renewal)) lockimpl.Variant {
		r := soundRenewal()
		change(&r)
		return renewed(r)
	}
	return []Lock{
		{Entry: entry.New("lost-answer-counts-anew", "an attempt whose answer is lost is made again with the same token, and the lease is promised from the second one, which finds it there", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return again(c, l, o, func() (bool, error) {
					ok, err := setNX(ctx, c, l, o)
					if ok || err != nil {
						return ok, err
					}
					value, err := get(ctx, c, l.Key)
					return value == l.Token, err
				})
			}})},
		{Entry: entry.New("grant-remembered-for-a-day", "a request that was granted is remembered for a day, and granted when it is made again, whoever holds the lock by then", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return again(c, l, o, func() (bool, error) {
					return yes(rememberingTake.Run(ctx, c.redis(), []string{c.key(l.Key), "Granted:" + l.Token + ":" + c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
				})
			}})},
		{Entry: entry.New("waits-for-message-only", "a waiter looks again when a release has left a message, and the end of a lease leaves none", entry.Breaks(variant.Progress), "https://github.com/redisson/redisson/issues/3004"),
			Variant: of(steps{wait: awaitMessage, release: releaseBy(`
				if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
				redis.call('DEL', KEYS[1], 'Message:' .. KEYS[1])
				redis.call('RPUSH', 'Message:' .. KEYS[1], 1)
				return redis.call('PEXPIRE', 'Message:' .. KEYS[1], 1000)`)})},
		{Entry: entry.New("masters-grant-late", "an attempt that took most of the lease, or longer, is promised a quarter of it from its end", exclusion, "https://github.com/mike-marcacci/node-redlock/pull/369"),
			Variant: onMasters(func(m *majority) {
				m.until = func(began, ended time.Time, ttl time.Duration) time.Time {
					if until := began.Add(ttl - ttl/100 - 2*time.Millisecond); until.After(ended.Add(ttl / 4)) {
						return until
					}
					return ended.Add(ttl / 4)
				}
			})},
		{Entry: entry.New("renewal-from-answer", "a renewed lease is promised from the answer", exclusion, ""),
			Variant: renewing(func(r *renewal) {
				r.renew = func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
					l.Until = c.env.Clock.Now().Add(ttl)
					return ok, err
				}
			})},
		{Entry: entry.New("renewal-error-is-success", "a renewal that fails counts as done", exclusion, ""),
			Variant: renewing(func(r *renewal) {
				r.renew = func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					if ok, err := extendBy(compareExpire)(ctx, c, l, ttl); err == nil {
						return ok, nil
					}
					return true, nil
				}
			})},
		{Entry: entry.New("fence-drawn-after", "the number is drawn after the lock was taken, so a slow client whose lease is over has a newer one than the holder", entry.Breaks(variant.Fencing), ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := setNX(ctx, c, l, o)
				if ok && err == nil {
					l.Fence, err = c.redis().Incr(ctx, counterKey(c, l.Key)).Result()
				}
				return ok, err
			}})},
		{Entry: entry.New("extend-until-client-time", "extend tells the server the end of the lease by the client's clock", exclusion, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, _ time.Duration) (bool, error) {
				return yes(expireAtScript.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, l.Until.UnixMilli()).Int64())
			}})},
		{Entry: entry.New("extend-newest-token", "the client keeps one token for each name, and extend shows the newest one whatever lock it is given", owner, ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					ok, err := setNX(ctx, c, l, o)
					if ok {
						c.tokens[l.Key] = l.Token
					}
					return ok, err
				},
				extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					newest := lockimpl.Lock{Key: l.Key, Token: c.tokens[l.Key]}
					return extendBy(compareExpire)(ctx, c, &newest, ttl)
				}})},
	}
}

// again repeats a failed attempt a second and a third time; the lease is promised from the last one.
func again(c *client, l *lockimpl.Lock, o lockimpl.Options, attempt func() (bool, error)) (ok bool, err error) {
	for range 3 {
		l.Until = c.env.Clock.Now().Add(o.TTL)
		if ok, err = attempt(); err == nil {
			return ok, nil
		}
	}
	return ok, err
}

// awaitMessage waits for the message that a release leaves.
func awaitMessage(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
	for end := c.env.Clock.Now().Add(left); c.env.Clock.Now().Before(end); {
		if err := c.redis().LPop(ctx, "Message:"+c.key(name)).Err(); !errors.Is(err, redis.Nil) {
			return err
		}
		if err := c.env.Wait(ctx, name, o.RetryEvery); err != nil {
			return err
		}
	}
	return errors.New("no message")
}

var (
	rememberingTake = redis.NewScript(`
		if redis.call('EXISTS', KEYS[2]) == 1 then return 1 end
		if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
		redis.call('SET', KEYS[2], 1, 'EX', 86400)
		return 1`)
	expireAtScript = redis.NewScript(`
		if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIREAT', KEYS[1], ARGV[2]) end
		return 0`)
)

// soundInTime handle correctly what timeMutants do not.
func soundInTime() []Lock {
	leaving := whole(newLeavingMasters)
	leaving.Needs.Masters = 3
	return []Lock{
		{Entry: entry.New("sound-answer-lost", "an attempt whose answer is lost is made again with the same token, and renews what is the caller's already", nil, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return again(c, l, o, func() (bool, error) {
					return yes(renewingTake.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
				})
			}})},
		{Entry: entry.New("sound-extend-retakes", "an extend of a lease that is over takes the lock again if it is free; not after a release", nil, ""),
			Variant: of(steps{
				extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					if c.tokens[l.Token] == "released" {
						return false, nil
					}
					return yes(renewingTake.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, ttl.Milliseconds()).Int64())
				},
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					c.tokens[l.Token] = "released"
					return releaseBy(compareDelete)(ctx, c, l)
				}})},
		{Entry: entry.New("sound-masters-leftover", "an attempt without a majority takes back what it knows that it took; an answer that was lost leaves a key until its lease is over", nil, ""),
			Variant: leaving},
	}
}

var renewingTake = redis.NewScript(`
	local value = redis.call('GET', KEYS[1])
	if value and value ~= ARGV[1] then return 0 end
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
	return 1`)

// newLeavingMasters makes a lock on masters that releases only those that said yes.
func newLeavingMasters(env variant.Env) lockimpl.Locker {
	m := soundMajority()
	m.undo = func(ctx context.Context, m *masters, l lockimpl.Lock) {
		for i, r := range m.env.Redis {
			if !m.took[i] {
				continue
			}
			ctx, cancel := m.env.Clock.WithTimeout(ctx, time.Second)
			_ = deleteScript.Run(ctx, r, []string{lockimpl.Key(l.Key)}, l.Token).Err()
			cancel()
		}
	}
	return &masters{majority: m, env: env, took: make([]bool, len(env.Redis))}
}

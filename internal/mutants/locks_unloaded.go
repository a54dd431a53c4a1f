package mutants

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// unloadedMutants do in two commands what a script does, while the server does not know the script.
func unloadedMutants() []Lock {
	const take = `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`
	compared := func(ctx context.Context, c *client, key string, token any) (bool, error) {
		got, err := c.redis().Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil && got == token, err
	}
	acquire := byHash(take, func(ctx context.Context, c *client, _ *redis.Script, key string, args ...any) (bool, error) {
		ok, err := c.redis().SetNX(ctx, key, args[0], 0).Result()
		if err != nil || !ok {
			return false, err
		}
		return true, c.redis().Do(ctx, "PEXPIRE", key, args[1]).Err()
	})
	extend := byHash(compareExpire, func(ctx context.Context, c *client, _ *redis.Script, key string, args ...any) (bool, error) {
		if ok, err := compared(ctx, c, key, args[0]); err != nil || !ok {
			return false, err
		}
		return yes(c.redis().Do(ctx, "PEXPIRE", key, args[1]).Int64())
	})
	release := byHash(compareDelete, func(ctx context.Context, c *client, _ *redis.Script, key string, args ...any) (bool, error) {
		if ok, err := compared(ctx, c, key, args[0]); err != nil || !ok {
			return false, err
		}
		return yes(c.redis().Del(ctx, key).Result())
	})
	unasked := byHash(compareExpire, func(ctx context.Context, c *client, _ *redis.Script, key string, args ...any) (bool, error) {
		return yes(c.redis().Do(ctx, "PEXPIRE", key, args[1]).Int64())
	})
	return []Lock{
		{Entry: entry.New("unloaded-acquire", "a server that does not know the script of the acquire gets SET NX, and then PEXPIRE", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return acquire(ctx, c, l.Key, l.Token, o.TTL.Milliseconds())
			}})},
		{Entry: entry.New("unloaded-extend", "a server that does not know the script of the extend gets GET, and then PEXPIRE", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return extend(ctx, c, l.Key, l.Token, ttl.Milliseconds())
			}})},
		{Entry: entry.New("unloaded-release", "a server that does not know the script of the release gets GET, and then DEL", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				return release(ctx, c, l.Key, l.Token)
			}})},
		{Entry: entry.New("extend-without-script", "a server that does not know the script of the extend gets PEXPIRE", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease), ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return unasked(ctx, c, l.Key, l.Token, ttl.Milliseconds())
			}})},
	}
}

// numberMutants lose a part of a number: of a lease, of a token, or of how long a second key is kept.
func numberMutants() []Lock {
	exclusion, owner := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.OwnerOnlyRelease)
	float := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', -1, 64) }
	unnoticed := redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) return 1`)
	untimed := redis.NewScript(`if redis.call('SETNX', KEYS[1], ARGV[1]) == 0 then return 0 end redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) return 1`)
	emptied := oneHash()
	emptied.release = func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
		ok, err := oneHash().release(ctx, c, l)
		if err != nil || !ok {
			return ok, err
		}
		if n, err := c.redis().HLen(ctx, "Locks").Result(); err != nil || n > 0 {
			return true, err
		}
		return true, c.redis().Del(ctx, "Locks").Err()
	}
	numbered := redis.NewScript(`local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return n`)
	return []Lock{
		{Entry: entry.New("lease-fraction-unnoticed", "the lease is sent with its fraction of a millisecond, and that the server refuses it is not noticed", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return yes(untimed.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, float(o.TTL)).Int64())
			}})},
		{Entry: entry.New("extend-fraction-unnoticed", "the lease of an extend is sent with its fraction of a millisecond, and that the server refuses it is not noticed", exclusion, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				return yes(unnoticed.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, float(ttl)).Int64())
			}})},
		{Entry: entry.New("lease-without-zeros", "seconds and milliseconds of a lease are joined without the zeros between them", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				lease := o.TTL
				if rest := lease % time.Second / time.Millisecond; lease > time.Second && rest > 0 {
					n, err := strconv.Atoi(fmt.Sprintf("%d%d", lease/time.Second, rest))
					if err != nil {
						return false, err
					}
					lease = time.Duration(n) * time.Millisecond
				}
				return set(ctx, c, l, "NX", lease)
			}})},
		{Entry: entry.New("extend-seldom", "an extend within a tenth of a second after the last one is promised, and not sent", exclusion, ""),
			Variant: whole(func(env variant.Env) lockimpl.Locker {
				sent := map[string]time.Time{}
				return newClient(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					if now := env.Clock.Now(); now.Sub(sent[l.Token]) >= 100*time.Millisecond {
						sent[l.Token] = now
						return extendBy(compareExpire)(ctx, c, l, ttl)
					}
					return true, nil
				}}, env)
			})},
		{Entry: entry.New("token-of-16-bits", "the token is a short checksum of a random text", owner, ""),
			Variant: of(steps{token: func(c *client) string {
				return fmt.Sprintf("%04x", crc32.ChecksumIEEE([]byte(c.env.Token()))&0xffff)
			}})},
		{Entry: entry.New("token-counter-expires", "tokens are counted by the server, which forgets the counter when nobody has asked for ten seconds", owner, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				n, err := numbered.Run(ctx, c.redis(), []string{"Count:" + c.key(l.Key)}, 10_000).Int64()
				if err != nil {
					return false, err
				}
				l.Token = strconv.FormatInt(n, 10)
				return set(ctx, c, l, "NX", o.TTL)
			}})},
		{Entry: entry.New("fence-wraps", "the fencing number is a counter modulo 65,535, plus one", entry.Breaks(variant.Fencing), ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := set(ctx, c, l, "NX", o.TTL)
				if err != nil || !ok {
					return ok, err
				}
				n, err := c.redis().Incr(ctx, counterKey(c, l.Key)).Result()
				l.Fence = n%65_535 + 1
				return err == nil, err
			}})},
		{Entry: entry.New("leases-in-one-hash", "all locks are in one hash, which expires with the lease that was asked for last", entry.Breaks(variant.MutualExclusion, variant.Progress), ""),
			Variant: of(steps{
				attempt: takeBy(`
					if redis.call('HEXISTS', 'Locks', KEYS[1]) == 1 then return 0 end
					redis.call('HSET', 'Locks', KEYS[1], ARGV[1])
					redis.call('PEXPIRE', 'Locks', ARGV[2])
					return 1`),
				extend: extendBy(`
					if redis.call('HGET', 'Locks', KEYS[1]) ~= ARGV[1] then return 0 end
					return redis.call('PEXPIRE', 'Locks', ARGV[2])`),
				release: releaseBy(`
					if redis.call('HGET', 'Locks', KEYS[1]) == ARGV[1] then return redis.call('HDEL', 'Locks', KEYS[1]) end
					return 0`),
			})},
		{Entry: entry.New("empty-hash-deleted", "all locks are in one hash, and a release that finds it empty deletes it by a command of its own", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(emptied)},
		{Entry: entry.New("second-key-ends", "a second key without which others get in is kept for an hour, and extends of up to 25 minutes leave it as it is", exclusion, ""),
			Variant: of(steps{
				attempt: takeBy(`
					if redis.call('EXISTS', KEYS[1], 'Second:' .. KEYS[1]) == 2 then return 0 end
					redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
					redis.call('SET', 'Second:' .. KEYS[1], ARGV[1], 'PX', math.max(3600000, 2 * ARGV[2]))
					return 1`),
				extend: extendBy(`
					if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
					if tonumber(ARGV[2]) > 1500000 then redis.call('PEXPIRE', 'Second:' .. KEYS[1], 2 * ARGV[2]) end
					return redis.call('PEXPIRE', KEYS[1], ARGV[2])`),
				release: releaseBy(`
					if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1], 'Second:' .. KEYS[1]) end
					return 0`),
			})},
	}
}

// oneHash returns the steps of a lock that keeps all locks in one hash, each with the time at which its lease is over.
func oneHash() steps {
	const entry = `
		local time = redis.call('TIME')
		local now = time[1] * 1000 + math.floor(time[2] / 1000)
		local value = redis.call('HGET', 'Locks', KEYS[1]) or '0 nobody'
		local ends, token = tonumber(value:match('%d+')), value:match(' (.*)')
	`
	const write = `
		redis.call('HSET', 'Locks', KEYS[1], string.format('%.0f', now + ARGV[2] + 1) .. ' ' .. ARGV[1]) -- now is rounded down
		return 1
	`
	const check = `if ends <= now or token ~= ARGV[1] then return 0 end`
	return steps{
		attempt: takeBy(entry + `if ends > now then return 0 end` + write),
		extend:  extendBy(entry + check + write),
		release: releaseBy(entry + check + ` return redis.call('HDEL', 'Locks', KEYS[1])`),
	}
}

// refusedMutants take an error that the server answers with for a success.
func refusedMutants() []Lock {
	exclusion := entry.Breaks(variant.MutualExclusion)
	begins := func(err error, classes ...string) bool {
		for _, class := range classes {
			if err != nil && strings.HasPrefix(err.Error(), class) {
				return true
			}
		}
		return false
	}
	return []Lock{
		{Entry: entry.New("replica-grants", "a server that is a replica, or loads its data, lets everybody in", exclusion, ""),
			Variant: of(steps{failed: func(_ context.Context, _ *client, _ *lockimpl.Lock, err error) (bool, error) {
				if begins(err, "READONLY", "LOADING") {
					return true, nil
				}
				return false, err
			}})},
		{Entry: entry.New("replica-extends", "an extend that a replica refuses is taken for done", exclusion, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
				if begins(err, "READONLY") {
					return true, nil
				}
				return ok, err
			}})},
		{Entry: entry.New("busy-releases", "a release that a busy server refuses is taken for done", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				ok, err := releaseBy(compareDelete)(ctx, c, l)
				if begins(err, "BUSY") {
					return true, nil
				}
				return ok, err
			}})},
	}
}

package mutants

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// fencing makes a variant from steps that grant fencing tokens.
func fencing(s steps) lockimpl.Variant {
	v := of(s)
	v.Fences = true
	v.Promises = append([]variant.Property{variant.Fencing}, usual...)
	return v
}

// counterKey returns the key of the counter of a name.
func counterKey(c *client, name string) string { return "Fence:" + c.key(name) }

// fenceBy makes an attempt from a script that returns the fencing token, 0 when refused; KEYS[2] is the counter.
func fenceBy(text string, counter func(c *client, name string) string) func(context.Context, *client, *lockimpl.Lock, lockimpl.Options) (bool, error) {
	s := redis.NewScript(text)
	return func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (ok bool, err error) {
		l.Fence, err = s.Run(ctx, c.redis(), []string{c.key(l.Key), counter(c, l.Key)}, l.Token, o.TTL.Milliseconds()).Int64()
		return l.Fence > 0, err
	}
}

// fenceMutants grant numbers that do not rise.
func fenceMutants() []Lock {
	falls := entry.Breaks(variant.Fencing)
	return []Lock{
		{Entry: entry.New("fence-by-client-clock", "the fencing token is the client's time in microseconds", falls, ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := setNX(ctx, c, l, o)
				l.Fence = c.env.Clock.Now().UnixMicro()
				return ok, err
			}})},
		{Entry: entry.New("fence-expires", "the counter expires with the lease, and begins anew when the lock was free for a while", falls, ""),
			Variant: fencing(steps{attempt: fenceBy(`
				if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
				local n = redis.call('INCR', KEYS[2])
				redis.call('PEXPIRE', KEYS[2], ARGV[2] * 2)
				return n`, counterKey)})},
		{Entry: entry.New("fence-refused-resets", "an attempt that is refused sets a number above a million back by one", falls, ""),
			Variant: fencing(steps{attempt: fenceBy(`
				if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
					if tonumber(redis.call('GET', KEYS[2]) or 0) > 1000000 then redis.call('DECR', KEYS[2]) end
					return 0
				end
				return redis.call('INCR', KEYS[2])`, counterKey)})},
		{Entry: entry.New("fence-of-16-bits", "the number is kept in 16 bits, and begins anew after 65,535", falls, ""),
			Variant: fencing(steps{attempt: fenceBy(`
				if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
				local n = redis.call('INCR', KEYS[2]) % 65536
				if n == 0 then n = 1 end
				redis.call('SET', KEYS[2], n)
				return n`, counterKey)})},
		{Entry: entry.New("fence-drawn-before", "the number is drawn before the lock is taken, so a slow client is granted an old one", falls, ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				n, err := c.redis().Incr(ctx, counterKey(c, l.Key)).Result()
				if err != nil {
					return false, err
				}
				l.Fence = n
				return setNX(ctx, c, l, o)
			}})},
		{Entry: entry.New("fence-given-back", "a client draws a number before it asks, and counts back when it is refused, though others may have drawn since", falls, ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				n, err := c.redis().Incr(ctx, counterKey(c, l.Key)).Result()
				if err != nil {
					return false, err
				}
				l.Fence = n
				ok, err := setNX(ctx, c, l, o)
				if ok || err != nil {
					return ok, err
				}
				return false, c.redis().Decr(ctx, counterKey(c, l.Key)).Err()
			}})},
		{Entry: entry.New("fence-read-and-written", "the counter is read and written by two commands after the lock is taken, and a lease that ends between them gives a number twice", falls, ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := setNX(ctx, c, l, o)
				if !ok || err != nil {
					return ok, err
				}
				was, err := c.redis().Get(ctx, counterKey(c, l.Key)).Int64()
				if err != nil && err != redis.Nil {
					return false, err
				}
				l.Fence = was + 1
				return true, c.redis().Set(ctx, counterKey(c, l.Key), l.Fence, 0).Err()
			}})},
		{Entry: entry.New("fence-in-value", "the number stands in the lock's value: it goes with the lock when that expires", falls, ""),
			Variant: fencing(steps{
				attempt: fenceBy(`
					local was = redis.call('HMGET', KEYS[1], 'owner', 'fence')
					if was[1] and was[1] ~= '' then return 0 end
					local n = (tonumber(was[2]) or 0) + 1
					redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'fence', n)
					redis.call('PEXPIRE', KEYS[1], ARGV[2])
					return n`, counterKey),
				extend: extendBy(`
					if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
					return 0`),
				release: releaseBy(`
					if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
					redis.call('HSET', KEYS[1], 'owner', '')
					redis.call('PERSIST', KEYS[1])
					return 1`)})},
		{Entry: entry.New("fence-reset-by-set-up", "the first use by each client sets the counter to zero", falls, ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if c.tokens["set-up:"+l.Key] == "" {
					c.tokens["set-up:"+l.Key] = "done"
					if err := c.redis().Set(ctx, counterKey(c, l.Key), 0, 0).Err(); err != nil {
						return false, err
					}
				}
				return soundFence(ctx, c, l, o)
			}})},
		{Entry: entry.New("fence-time-of-fourteen-digits", "the number is the server's time in microseconds, which Lua prints with fourteen digits: grants within 100 microseconds have the same", falls, ""),
			Variant: fencing(steps{attempt: fenceBy(`
				if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
				local time = redis.call('TIME')
				return string.format('%.0f', tonumber('' .. time[1] * 1000000 + time[2]))`, counterKey)})},
		{Entry: entry.New("fence-one-byte", "the number is counted modulo 256", falls, ""),
			Variant: fencing(steps{attempt: fenceBy(`
				if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
				return redis.call('INCR', KEYS[2]) % 256 + 1`, counterKey)})},
		{Entry: entry.New("fence-cached", "a client draws ten numbers at a time", falls, ""),
			Variant: fencing(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := setNX(ctx, c, l, o)
				if !ok || err != nil {
					return ok, err
				}
				next, _ := strconv.ParseInt(c.tokens["next"], 10, 64)
				if next%10 == 0 {
					end, err := c.redis().IncrBy(ctx, counterKey(c, l.Key), 10).Result()
					if err != nil {
						return false, err
					}
					next = end - 10 + 1
				} else {
					next++
				}
				c.tokens["next"] = strconv.FormatInt(next, 10)
				l.Fence = next
				return true, nil
			}})},
	}
}

// soundFence draws the number in the script that takes the lock.
var soundFence = fenceBy(`
	if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end
	return 0`, counterKey)

// setupMutants prepare, on first use, data that others are using.
func setupMutants() []Lock {
	return []Lock{
		{Entry: entry.New("set-up-deletes", "the first use by each client removes what an earlier run of the program may have left", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if c.tokens["set-up:"+l.Key] == "" {
					c.tokens["set-up:"+l.Key] = "done"
					if err := c.redis().Del(ctx, c.key(l.Key)).Err(); err != nil {
						return false, err
					}
				}
				return setNX(ctx, c, l, o)
			}})},
		{Entry: entry.New("reaper-deletes-live", "every tenth refused attempt of a client frees the lock if its owner is not in the set of known clients, which is empty", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease), "https://github.com/zoolutions/sidekiq-unique-jobs/issues/580"),
			Variant: of(steps{refused: func(ctx context.Context, c *client, l *lockimpl.Lock) error {
				if c.count++; c.count%10 != 0 {
					return nil
				}
				value, err := get(ctx, c, l.Key)
				if err != nil || value == "" {
					return err
				}
				if known, err := c.redis().SIsMember(ctx, "Clients", value).Result(); known || err != nil {
					return err
				}
				_, err = releaseBy(compareDelete)(ctx, c, lockimpl.Lock{Key: l.Key, Token: value})
				return err
			}})},
		{Entry: entry.New("permit-list", "the lock is a permit in a list, put there on first use by a look and a write; a holder that dies takes it along", entry.Breaks(variant.MutualExclusion, variant.Progress), ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, _ lockimpl.Options) (bool, error) {
					k := c.key(l.Key)
					if n, err := c.redis().Exists(ctx, "Made:"+k).Result(); err != nil {
						return false, err
					} else if n == 0 {
						if err := c.redis().Set(ctx, "Made:"+k, 1, 0).Err(); err != nil {
							return false, err
						}
						if err := c.redis().RPush(ctx, k, "permit").Err(); err != nil {
							return false, err
						}
					}
					err := c.redis().LPop(ctx, k).Err()
					return did(err)
				},
				extend:  permitExtend,
				release: permitRelease})},
		{Entry: entry.New("permit-returned-twice", "the lock is a permit in a list, and a second release puts a second permit there", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress), ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, _ lockimpl.Options) (bool, error) {
					return yes(permitTake.Run(ctx, c.redis(), []string{c.key(l.Key), "Made:" + c.key(l.Key)}, l.Token).Int64())
				},
				extend:  permitExtend,
				release: permitRelease})},
	}
}

var permitTake = redis.NewScript(`
	if redis.call('SETNX', KEYS[2], 1) == 1 then redis.call('RPUSH', KEYS[1], 'permit') end
	if redis.call('LPOP', KEYS[1]) then return 1 end
	return 0`)

// permitExtend has nothing to extend: a permit has no lease.
func permitExtend(context.Context, *client, *lockimpl.Lock, time.Duration) (bool, error) {
	return true, nil
}

func permitRelease(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
	return yes(c.redis().RPush(ctx, c.key(l.Key), "permit").Result())
}

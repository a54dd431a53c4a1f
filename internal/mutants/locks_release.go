package mutants

import (
	"context"
	"strconv"
	"time"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// releaseMutants delete another client's lock, or do not release their own.
func releaseMutants() []Lock {
	owner := entry.Breaks(variant.OwnerOnlyRelease)
	return []Lock{
		{Entry: entry.New("release-del", "release is DEL without a look at the value", owner, "https://github.com/laravel/framework/issues/26213"),
			Variant: of(steps{release: del})},
		{Entry: entry.New("release-get-del", "release reads the value, compares it in the client, and deletes in a second command", owner, "https://github.com/BerriAI/litellm/issues/21225"),
			Variant: of(steps{release: getDel})},
		{Entry: entry.New("release-prefix", "release compares the first eight characters of the token only", owner, ""),
			Variant: of(steps{release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and string.sub(value, 1, 8) == string.sub(ARGV[1], 1, 8) then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-folds-case", "release compares tokens without regard to case", owner, ""),
			Variant: of(steps{release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and string.lower(value) == string.lower(ARGV[1]) then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-contains", "release looks whether the value contains the caller's token", owner, ""),
			Variant: of(steps{release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and string.find(value, ARGV[1], 1, true) then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-ends-with", "the token is a random text and the client's count of attempts joined by a colon, and release compares what follows the colon", owner, ""),
			Variant: of(steps{token: func(c *client) string {
				c.count++
				return c.env.Token() + ":" + strconv.Itoa(c.count)
			}, release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and string.match(value, '[^:]*$') == string.match(ARGV[1], '[^:]*$') then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-tonumber", "release compares tokens as numbers; all texts that are not numbers are equal", owner, ""),
			Variant: of(steps{release: releaseBy(`
				local value = redis.call('GET', KEYS[1])
				if value and tonumber(value) == tonumber(ARGV[1]) then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-newest-token", "the client keeps one token for each name, and release shows the newest one whatever lock it is given", owner, "https://github.com/redis/redis-py/pull/489"),
			Variant: of(steps{
				attempt: remembering(setNX),
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					l.Token = c.tokens[l.Key]
					return releaseBy(compareDelete)(ctx, c, l)
				}})},
		{Entry: entry.New("release-one-token-field", "the client keeps one token for all names, so taking a second name loses the first one's, and a late release shows that of the next grant", entry.Breaks(variant.Progress, variant.OwnerOnlyRelease), ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					ok, err := setNX(ctx, c, l, o)
					if ok {
						c.tokens[""] = l.Token
					}
					return ok, err
				},
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					l.Token = c.tokens[""]
					return releaseBy(compareDelete)(ctx, c, l)
				}})},
		{Entry: entry.New("release-guard-in-seconds", "release deletes unless the lease is over by the client's clock, and takes the lease's milliseconds for seconds", owner, "https://github.com/nateware/redis-objects/issues/234"),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				if c.env.Clock.Now().After(l.Until.Add(1000 * time.Second)) {
					return false, nil
				}
				return del(ctx, c, l)
			}})},
		{Entry: entry.New("release-guard-by-clock", "release deletes without comparing while the lease is not over by the client's clock", owner, ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				if !c.env.Clock.Now().Before(l.Until) {
					return false, nil
				}
				return del(ctx, c, l)
			}})},
		{Entry: entry.New("release-again-by-del", "a release whose answer is lost is sent again as DEL", owner, ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				ok, err := releaseBy(compareDelete)(ctx, c, l)
				if err != nil {
					return del(context.WithoutCancel(ctx), c, l)
				}
				return ok, nil
			}})},
		{Entry: entry.New("release-if-alive", "release deletes whatever has time to live left", owner, ""),
			Variant: of(steps{release: releaseBy(`
				if redis.call('PTTL', KEYS[1]) > 0 then return redis.call('DEL', KEYS[1]) end
				return 0`)})},
		{Entry: entry.New("release-by-pattern", "release deletes every key that begins with the lock's", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				ok, err := releaseBy(compareDelete)(ctx, c, l)
				if !ok || err != nil {
					return ok, err
				}
				keys, err := c.redis().Keys(ctx, c.key(l.Key)+"*").Result()
				if err != nil || len(keys) == 0 {
					return true, err
				}
				return true, c.redis().Del(ctx, keys...).Err()
			}})},
		{Entry: entry.New("release-glob", "release finds its keys by KEYS, and a name can hold what KEYS reads as a pattern", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				keys, err := c.redis().Keys(ctx, c.key(l.Key)).Result()
				if err != nil {
					return false, err
				}
				any := false
				for _, k := range keys {
					if k == c.key(l.Key) {
						ok, err := releaseBy(compareDelete)(ctx, c, l)
						if err != nil {
							return false, err
						}
						any = any || ok
						continue
					}
					if err := c.redis().Del(ctx, k).Err(); err != nil {
						return any, err
					}
				}
				return any, nil
			}})},
		{Entry: entry.New("release-owner-key", "the owner stands in a second key, written after the lock was taken, and release compares that", entry.Breaks(variant.OwnerOnlyRelease, variant.Progress), ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					ok, err := setNX(ctx, c, l, o)
					if !ok || err != nil {
						return ok, err
					}
					return true, c.redis().Set(ctx, "Owner:"+c.key(l.Key), l.Token, 0).Err()
				},
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					return yes(ownerDelete.Run(ctx, c.redis(), []string{c.key(l.Key), "Owner:" + c.key(l.Key)}, l.Token).Int64())
				}})},
		{Entry: entry.New("token-two-characters", "tokens have two characters, so one in a thousand fits", owner, ""),
			Variant: of(steps{token: func(c *client) string { return c.env.Token()[:2] }})},
		{Entry: entry.New("token-counter", "each client counts its tokens from 1", owner, ""),
			Variant: of(steps{token: func(c *client) string {
				c.count++
				return strconv.Itoa(c.count)
			}})},
		{Entry: entry.New("token-milliseconds", "the token is the client's time in milliseconds", owner, ""),
			Variant: of(steps{token: func(c *client) string { return strconv.FormatInt(c.env.Clock.Now().UnixMilli(), 10) }})},
		{Entry: entry.New("token-of-client", "a client has one token for all of its grants, so its late release fits its own next lock", owner, ""),
			Variant: of(steps{token: func(c *client) string {
				if c.tokens[""] == "" {
					c.tokens[""] = c.env.Token()
				}
				return c.tokens[""]
			}})},
		{Entry: entry.New("token-wraps", "the token is the client's number and a counter of one digit, so it comes again after ten grants", owner, ""),
			Variant: of(steps{token: func(c *client) string {
				if c.tokens[""] == "" {
					c.tokens[""] = c.env.Token()
				}
				c.count++
				return c.tokens[""] + ":" + strconv.Itoa(c.count%10)
			}})},
	}
}

// getDel sends GET, compares, and sends DEL.
func getDel(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
	value, err := get(ctx, c, l.Key)
	if err != nil || value != l.Token {
		return false, err
	}
	return del(ctx, c, l)
}

// remembering wraps an attempt and stores the token of each grant under the lock's name.
func remembering(attempt func(context.Context, *client, *lockimpl.Lock, lockimpl.Options) (bool, error)) func(context.Context, *client, *lockimpl.Lock, lockimpl.Options) (bool, error) {
	return func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		ok, err := attempt(ctx, c, l, o)
		if ok {
			c.tokens[l.Key] = l.Token
		}
		return ok, err
	}
}

package mutants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// roundedMutants take a lease other than promised, by a little or by much.
func roundedMutants() []Lock {
	exclusion, progress := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.Progress)
	lasting := func(lease func(time.Duration) time.Duration) lockimpl.Variant {
		return of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			return set(ctx, c, l, "NX", lease(o.TTL))
		}})
	}
	return []Lock{
		{Entry: entry.New("lease-to-nearest-second", "leases are rounded to whole seconds, so one of 1.3 s lasts for 1 s", exclusion, ""),
			Variant: lasting(func(d time.Duration) time.Duration { return max(d.Round(time.Second), time.Second) })},
		{Entry: entry.New("lease-in-tenths", "leases are cut to tenths of a second", exclusion, ""),
			Variant: lasting(func(d time.Duration) time.Duration { return d.Truncate(100 * time.Millisecond) })},
		{Entry: entry.New("lease-in-hundredths", "leases are cut to hundredths of a second", exclusion, ""),
			Variant: lasting(func(d time.Duration) time.Duration { return d.Truncate(10 * time.Millisecond) })},
		{Entry: entry.New("lease-a-thousand-times", "milliseconds are sent as seconds, so no client gets the lock of a holder that died", progress, ""),
			Variant: lasting(func(d time.Duration) time.Duration { return d * 1000 })},
		{Entry: entry.New("extend-hundred-times", "a client extends a lock a hundred times, and from then on says only that it did", exclusion, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				n, _ := strconv.Atoi(c.tokens[l.Token])
				c.tokens[l.Token] = strconv.Itoa(n + 1)
				if n >= 100 {
					return true, nil
				}
				return extendBy(compareExpire)(ctx, c, l, ttl)
			}})},
		{Entry: entry.New("lost-answer-counts-later", "an acquire without an answer leaves its token to the next one, which finds it there, and promises the lease from then on", exclusion, ""),
			Variant: of(steps{
				token: func(c *client) string {
					if left := c.tokens["left"]; left != "" {
						return left
					}
					return c.env.Token()
				},
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					left := c.tokens["left"]
					c.tokens["left"] = ""
					ok, err := setNX(ctx, c, l, o)
					switch {
					case err != nil:
						c.tokens["left"] = l.Token
					case !ok && left == l.Token:
						value, err := get(ctx, c, l.Key)
						return value == l.Token, err
					}
					return ok, err
				}})},
		{Entry: entry.New("error-is-refusal", "an attempt that fails is told as refused, though it may have taken the lock", entry.Breaks(variant.Linearizable), ""),
			Variant: linearizable(steps{failed: func(context.Context, *client, *lockimpl.Lock, error) (bool, error) { return false, nil }})},
		{Entry: entry.New("failed-attempt-repeated", "an attempt that fails is sent once more, and is then refused by the lock that the first one took", entry.Breaks(variant.Linearizable), ""),
			Variant: linearizable(steps{failed: func(ctx context.Context, c *client, l *lockimpl.Lock, err error) (bool, error) {
				if ctx.Err() != nil {
					return false, err
				}
				return c.redis().SetNX(ctx, c.key(l.Key), l.Token, l.Until.Sub(c.env.Clock.Now())).Result()
			}})},
		{Entry: entry.New("retry-begins-lease-anew", "the attempts of an acquire have one token, and one that finds that an earlier one took the lock promises the whole lease from then on", entry.Breaks(variant.MutualExclusion), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				open := "open:" + l.Key
				l.Token = cmp.Or(c.tokens[open], l.Token)
				ok, err := setNX(ctx, c, l, o)
				switch {
				case err != nil && ctx.Err() == nil && o.Wait > 0:
					c.tokens[open] = l.Token
					return false, nil
				case !ok && err == nil && c.tokens[open] != "":
					value, look := get(ctx, c, l.Key)
					ok, err = value == l.Token, look
				}
				c.tokens[open] = ""
				return ok, err
			}})},
		{Entry: entry.New("slow-answer-is-refusal", "an attempt that takes longer than half of the lease is told as refused, though it may have taken the lock", entry.Breaks(variant.Linearizable), ""),
			Variant: linearizable(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				began := time.Now()
				ok, err := setNX(ctx, c, l, o)
				return ok && time.Since(began) < o.TTL/2, err
			}})},
		{Entry: entry.New("release-by-own-clock", "a release after the end of the lease that the client knows is told that the lock is lost, and sends nothing", progress, ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				if c.env.Clock.Now().After(l.Until) {
					return false, nil
				}
				return releaseBy(compareDelete)(ctx, c, l)
			}})},
		{Entry: entry.New("line-asker-to-end", "each attempt moves its client to the end of the line, and only the head is granted the lock, so that of two waiting clients neither ever gets it", progress, ""),
			Variant: unordered(inLine(entry.Changed(joinLine, `local head = `, `
				redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[4]), ARGV[1])
				redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f', now + ARGV[3]))
				local head = `), leaveLine))},
	}
}

// soundInWords are sound, but answer differently from most.
func soundInWords() []Lock {
	numbered := func(fence bool) steps {
		take := redis.NewScript(`
			if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
			local n = redis.call('INCR', KEYS[2])
			redis.call('SET', KEYS[1], n, 'PX', ARGV[1])
			return n`)
		return steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			n, err := take.Run(ctx, c.redis(), []string{c.key(l.Key), counterKey(c, l.Key)}, o.TTL.Milliseconds()).Int64()
			l.Token = strconv.FormatInt(n, 10)
			if fence {
				l.Fence = n
			}
			return n > 0, err
		}}
	}
	return []Lock{
		{Entry: entry.New("sound-counted-token", "the tokens of a name are counted by the server, so two names have the same ones", nil, ""), Variant: of(numbered(false))},
		{Entry: entry.New("sound-fence-is-token", "the fencing number is the token, too", nil, ""), Variant: fencing(numbered(true))},
		{Entry: entry.New("sound-attempt-repeated", "an attempt that fails is sent once more, and finds that the first one took the lock", nil, ""),
			Variant: flawed(linearizable(steps{failed: func(ctx context.Context, c *client, l *lockimpl.Lock, err error) (bool, error) {
				if ctx.Err() != nil {
					return false, err
				}
				return yes(takeOnce.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, l.Until.Sub(c.env.Clock.Now()).Milliseconds()).Int64())
			}}), variant.Flaw{Property: variant.Linearizable, Fault: variant.LateRequest, Why: "the first attempt may arrive after the release of the second, and nobody holds what it takes"})},
		{Entry: entry.New("sound-strict-names", "names that are long, or have control characters in them, are answered with an error, and nothing is sent", nil, ""),
			Variant: whole(func(env variant.Env) lockimpl.Locker { return strict{newClient(steps{}, env)} })},
		{Entry: entry.New("sound-no-extend-in-words", "extend is answered with an error in words of its own", nil, ""),
			Variant: of(steps{extend: func(context.Context, *client, *lockimpl.Lock, time.Duration) (bool, error) {
				return false, errors.New("leases of this lock cannot be prolonged")
			}})},
		{Entry: entry.New("sound-lease-longer", "the server keeps the lock for a tenth longer than is promised", nil, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return set(ctx, c, l, "NX", time.Duration(math.Ceil(float64(o.TTL)*1.1)).Round(time.Millisecond))
			}})},
	}
}

// takeOnce takes a lock, or finds that an attempt with the same token has taken it.
var takeOnce = redis.NewScript(`
	if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
	if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
	return 0`)

// strict takes short names only.
type strict struct{ *client }

func (s strict) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	if len(name) > 200 || strings.ContainsFunc(name, unicode.IsControl) {
		return lockimpl.Lock{}, fmt.Errorf("%.200q is no name of a lock", name)
	}
	return s.client.Acquire(ctx, name, o)
}

// linearizable makes a variant from steps and adds the promise to be linearizable.
func linearizable(s steps) lockimpl.Variant {
	v := of(s)
	v.Promises = append([]variant.Property{variant.Linearizable}, usual...)
	return v
}

// flawed returns a variant that declares a flaw.
func flawed(v lockimpl.Variant, f variant.Flaw) lockimpl.Variant {
	v.Flaws = append(slices.Clone(v.Flaws), f)
	return v
}

// unordered returns a variant that does not promise an order.
func unordered(v lockimpl.Variant) lockimpl.Variant {
	v.Promises = slices.DeleteFunc(slices.Clone(v.Promises), func(p variant.Property) bool { return p == variant.FIFO })
	return v
}

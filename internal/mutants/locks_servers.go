package mutants

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// byHash runs a script by its hash and handles a server that does not know it.
func byHash(text string, unknown func(ctx context.Context, c *client, s *redis.Script, key string, args ...any) (bool, error)) func(context.Context, *client, string, ...any) (bool, error) {
	s := redis.NewScript(text)
	return func(ctx context.Context, c *client, name string, args ...any) (bool, error) {
		n, err := s.EvalSha(ctx, c.redis(), []string{c.key(name)}, args...).Int64()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			if err := s.Load(ctx, c.redis()).Err(); err != nil {
				return false, err
			}
			return unknown(ctx, c, s, c.key(name), args...)
		}
		return yes(n, err)
	}
}

// runsAgain runs a script that has just been loaded.
func runsAgain(ctx context.Context, c *client, s *redis.Script, key string, args ...any) (bool, error) {
	return yes(s.EvalSha(ctx, c.redis(), []string{key}, args...).Int64())
}

// serverMutants misread names and what a server reports about itself.
func serverMutants() []Lock {
	replaces := func(old, by string) func(string) string {
		return func(name string) string { return lockimpl.Key(strings.ReplaceAll(name, old, by)) }
	}
	release := byHash(compareDelete, func(ctx context.Context, c *client, _ *redis.Script, key string, _ ...any) (bool, error) {
		return yes(c.redis().Del(ctx, key).Result())
	})
	loadedRelease, loadedExtend := byHash(compareDelete, runsAgain), byHash(compareExpire, runsAgain)
	return []Lock{
		{Entry: entry.New("release-without-script", "a server that does not know the script of the release is sent DEL instead", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				return release(ctx, c, l.Key, l.Token)
			}})},
		{Entry: entry.New("refusal-grants", "an error reply of the server, such as OOM, lets every client in; a network error does not", entry.Breaks(variant.MutualExclusion), ""),
			Variant: of(steps{failed: func(_ context.Context, _ *client, _ *lockimpl.Lock, err error) (bool, error) {
				var reply redis.Error
				if errors.As(err, &reply) {
					return true, nil
				}
				return false, err
			}})},
		{Entry: entry.New("takeover-getset", "a client that finds the lock over writes its own end by GETSET and compares the old value; the second to do so has overwritten the first", entry.Breaks(variant.Progress, variant.MutualExclusion, variant.OwnerOnlyRelease), "https://redis.io/docs/latest/commands/setnx/"),
			Variant: of(steps{attempt: getSet})},
		{Entry: entry.New("script-loaded-once", "each client loads its script once, and calls it by its hash until it ends", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if c.tokens["hash"] == "" {
					hash, err := c.redis().ScriptLoad(ctx, `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`).Result()
					if err != nil {
						return false, err
					}
					c.tokens["hash"] = hash
				}
				return yes(c.redis().EvalSha(ctx, c.tokens["hash"], []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
			}})},
		{Entry: entry.New("hash-per-kind", "locks whose names are the same before a colon are fields of one hash, and it is the hash that expires", entry.Breaks(variant.MutualExclusion, variant.Progress), ""),
			Variant: of(hashPerKind())},
		{Entry: entry.New("names-by-last-part", "the key is the part of the name behind the last slash", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{key: func(name string) string { return lockimpl.Key(path.Base(name)) }})},
		{Entry: entry.New("names-before-at", "the key is the part of the name before an @", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{key: func(name string) string { name, _, _ = strings.Cut(name, "@"); return lockimpl.Key(name) }})},
		{Entry: entry.New("names-one-separator", "colons in names become underscores", entry.Breaks(variant.Progress), ""), Variant: of(steps{key: replaces(":", "_")})},
		{Entry: entry.New("renewal-dies-with-acquire", "the renewal runs under the context of the acquire, which ends with it", entry.Breaks(variant.MutualExclusion), ""), Variant: boundRenewal()},
		{Entry: entry.New("sound-loaded-scripts", "scripts are sent by hash, and loaded when the server does not know them", nil, "https://redis.readthedocs.io/en/stable/lua_scripting.html"),
			Variant: of(steps{
				release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
					return loadedRelease(ctx, c, l.Key, l.Token)
				},
				extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
					return loadedExtend(ctx, c, l.Key, l.Token, ttl.Milliseconds())
				},
			})},
	}
}

// getSet keeps the end of the lease in the value, by the server's clock, and no expiry.
func getSet(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
	now, err := c.redis().Time(ctx).Result()
	if err != nil {
		return false, err
	}
	end := now.Add(o.TTL).UTC().Format("20060102150405.000000")
	l.Token = end + " " + l.Token
	if ok, err := c.redis().SetNX(ctx, c.key(l.Key), l.Token, 0).Result(); ok || err != nil {
		return ok, err
	}
	held, err := c.redis().Get(ctx, c.key(l.Key)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if until, _, _ := strings.Cut(held, " "); until > now.UTC().Format("20060102150405.000000") {
		return false, nil
	}
	before, err := c.redis().GetSet(ctx, c.key(l.Key), l.Token).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	return before == held, nil
}

// boundRenewal returns a lock whose renewal ends with the acquire that started it.
func boundRenewal() lockimpl.Variant {
	v := of(steps{})
	v.Renews = true
	v.New = func(env variant.Env) lockimpl.Locker { return bound{newClient(steps{}, env)} }
	return v
}

type bound struct{ *client }

func (b bound) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	l, err := b.client.Acquire(ctx, name, o)
	if err == nil {
		b.env.Go(func(context.Context) {
			for b.env.Clock.Sleep(ctx, o.TTL/3) == nil {
				m := l
				if ok, err := b.extend(ctx, b.client, &m, o.TTL); err != nil || !ok {
					return
				}
			}
		})
	}
	return l, err
}

// hashPerKind are the steps of a lock that keeps all names of a kind in one hash.
func hashPerKind() steps {
	script := func(text string) func(context.Context, *client, string, ...any) (bool, error) {
		s := redis.NewScript(text)
		return func(ctx context.Context, c *client, name string, args ...any) (bool, error) {
			kind, _, _ := strings.Cut(name, ":")
			return yes(s.Run(ctx, c.redis(), []string{c.key(kind)}, append([]any{name}, args...)...).Int64())
		}
	}
	take := script(`if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[3])`)
	extend := script(`if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('PEXPIRE', KEYS[1], ARGV[3]) end return 0`)
	release := script(`if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end return 0`)
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			return take(ctx, c, l.Key, l.Token, o.TTL.Milliseconds())
		},
		extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
			return extend(ctx, c, l.Key, l.Token, ttl.Milliseconds())
		},
		release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
			return release(ctx, c, l.Key, l.Token)
		},
	}
}

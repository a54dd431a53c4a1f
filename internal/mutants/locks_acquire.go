package mutants

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// ownerDelete deletes the lock if the key of owners names the caller.
var ownerDelete = redis.NewScript(`if redis.call('GET', KEYS[2]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// get reads the value of a lock, which is empty if no client holds it.
func get(ctx context.Context, c *client, name string) (string, error) {
	value, err := c.redis().Get(ctx, c.key(name)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}

// acquireMutants grant a held lock, or grant it for another time than they promise.
func acquireMutants() []Lock {
	exclusion, progress := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.Progress)
	both := entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease)
	return []Lock{
		{Entry: entry.New("setnx-pexpire", "the expiry is set by a second command, which a client that dies never sends", progress, "https://github.com/redis/redis-py/issues/554"),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := c.redis().SetNX(ctx, c.key(l.Key), l.Token, 0).Result()
				if !ok || err != nil {
					return ok, err
				}
				return c.redis().PExpire(ctx, c.key(l.Key), o.TTL).Result()
			}})},
		{Entry: entry.New("pexpire-always", "SETNX and PEXPIRE go in one transaction, so a refused attempt sets the holder's lease", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				p := c.redis().TxPipeline()
				ok := p.SetNX(ctx, c.key(l.Key), l.Token, 0)
				p.PExpire(ctx, c.key(l.Key), o.TTL)
				_, err := p.Exec(ctx)
				return ok.Val(), err
			}})},
		{Entry: entry.New("setnx-pexpire-pipelined", "SETNX and PEXPIRE NX are sent in one pipeline, which is no transaction: a connection that ends between them leaves a lock without an end", progress, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				p := c.redis().Pipeline()
				ok := p.SetNX(ctx, c.key(l.Key), l.Token, 0)
				p.Do(ctx, "PEXPIRE", c.key(l.Key), o.TTL.Milliseconds(), "NX")
				_, err := p.Exec(ctx)
				return ok.Val(), err
			}})},
		{Entry: entry.New("get-set", "an attempt reads whether the lock is free, and then sends SET without a condition", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if value, err := get(ctx, c, l.Key); value != "" || err != nil {
					return false, err
				}
				return set(ctx, c, l, "", o.TTL)
			}})},
		{Entry: entry.New("get-watch-set", "an attempt reads the lock before it watches it", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if value, err := get(ctx, c, l.Key); value != "" || err != nil {
					return false, err
				}
				err := c.redis().Watch(ctx, func(tx *redis.Tx) error {
					_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
						return p.Set(ctx, c.key(l.Key), l.Token, o.TTL).Err()
					})
					return err
				}, c.key(l.Key))
				if errors.Is(err, redis.TxFailedErr) {
					return false, nil
				}
				return err == nil, err
			}})},
		{Entry: entry.New("takeover-del", "the value is the end of the lease; a client that finds it over deletes the key and tries again, so two of them delete each other's", both, "https://github.com/phpnode/YiiRedis/pull/18"),
			Variant: of(steps{token: expiryToken, attempt: takeover(func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options, _ string) (bool, error) {
				if err := c.redis().Del(ctx, c.key(l.Key)).Err(); err != nil {
					return false, err
				}
				return c.redis().SetNX(ctx, c.key(l.Key), deadline(l), 0).Result()
			}), extend: valueExtend, release: valueRelease})},
		{Entry: entry.New("takeover-by-client-clock", "the value is the end of the lease by the holder's clock, and a client whose clock is ahead takes over early", both, ""),
			Variant: of(steps{token: expiryToken, attempt: takeover(func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options, was string) (bool, error) {
				return yes(swap.Run(ctx, c.redis(), []string{c.key(l.Key)}, was, deadline(l)).Int64())
			}), extend: valueExtend, release: valueRelease})},
		{Entry: entry.New("refusal-renews", "each refused attempt begins the holder's lease anew, so a dead holder's never ends while others try", entry.Breaks(variant.Progress, variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{refused: func(ctx context.Context, c *client, l *lockimpl.Lock) error {
				return c.redis().PExpire(ctx, c.key(l.Key), l.Until.Sub(c.env.Clock.Now())).Err()
			}})},
		{Entry: entry.New("refusal-deletes", "a refused attempt cleans up by DEL", both, ""),
			Variant: of(steps{refused: func(ctx context.Context, c *client, l *lockimpl.Lock) error {
				return c.redis().Del(ctx, c.key(l.Key)).Err()
			}})},
		{Entry: entry.New("refusal-persists", "a refused attempt looks for a lease with PERSIST, which takes it away", entry.Breaks(variant.Progress, variant.OwnerOnlyRelease), ""),
			Variant: of(steps{refused: func(ctx context.Context, c *client, l *lockimpl.Lock) error {
				return c.redis().Persist(ctx, c.key(l.Key)).Err()
			}})},
		{Entry: entry.New("last-try-by-force", "a client that has waited for as long as the lease takes the lock by SET, since the lease must be over", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := setNX(ctx, c, l, o)
				if ok || err != nil {
					c.tokens["since:"+l.Key] = ""
					return ok, err
				}
				now := c.env.Clock.Now()
				since, _ := strconv.ParseInt(c.tokens["since:"+l.Key], 10, 64)
				if since == 0 {
					c.tokens["since:"+l.Key] = strconv.FormatInt(now.UnixMilli(), 10)
					return false, nil
				}
				if now.UnixMilli()-since < o.TTL.Milliseconds() {
					return false, nil
				}
				c.tokens["since:"+l.Key] = ""
				return set(ctx, c, l, "", o.TTL)
			}})},
		{Entry: entry.New("error-deletes", "an attempt whose answer is lost is taken back by DEL, whoever holds the lock", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: of(steps{failed: func(ctx context.Context, c *client, l *lockimpl.Lock, err error) (bool, error) {
				return false, errors.Join(err, c.redis().Del(context.WithoutCancel(ctx), c.key(l.Key)).Err())
			}})},
		{Entry: entry.New("error-grants", "an attempt that ends in an error, as when the server does not answer, is granted", exclusion, "https://github.com/simstudioai/sim/pull/6864"),
			Variant: of(steps{failed: func(context.Context, *client, *lockimpl.Lock, error) (bool, error) { return true, nil }})},
		{Entry: entry.New("error-means-mine", "after a lost answer the client looks whether the lock is held, and takes it for its own if it is", exclusion, ""),
			Variant: of(steps{failed: func(ctx context.Context, c *client, l *lockimpl.Lock, err error) (bool, error) {
				value, look := get(context.WithoutCancel(ctx), c, l.Key)
				if look != nil {
					return false, errors.Join(err, look)
				}
				return value != "", nil
			}})},
		{Entry: entry.New("one-in-500", "every 500th attempt of a client goes without NX", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if c.count++; c.count%500 == 0 {
					return set(ctx, c, l, "", o.TTL)
				}
				return setNX(ctx, c, l, o)
			}})},
		{Entry: entry.New("no-script-no-expiry", "where the server does not know the script yet, the lock is taken by SETNX, without an expiry", progress, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				n, err := atomicTake.EvalSha(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64()
				if err == nil || !strings.Contains(err.Error(), "NOSCRIPT") {
					return yes(n, err)
				}
				if err := atomicTake.Load(ctx, c.redis()).Err(); err != nil {
					return false, err
				}
				return c.redis().SetNX(ctx, c.key(l.Key), l.Token, 0).Result()
			}})},
		{Entry: entry.New("lease-whole-seconds", "the lease is cut to whole seconds, and the client is promised all of it", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return set(ctx, c, l, "NX", max(o.TTL.Truncate(time.Second), time.Second))
			}})},
		{Entry: entry.New("lease-ignored", "the lease is five minutes whatever is asked for", progress, "https://github.com/symfony/symfony/issues/29458"),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, _ lockimpl.Options) (bool, error) {
				return set(ctx, c, l, "NX", 5*time.Minute)
			}})},
		{Entry: entry.New("lease-capped", "leases of more than three seconds are cut to three, and the client is promised all of it", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return set(ctx, c, l, "NX", min(o.TTL, 3*time.Second))
			}})},
		{Entry: entry.New("lease-capped-at-an-hour", "leases of more than an hour are cut to one, as by a limit in a configuration", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				return set(ctx, c, l, "NX", min(o.TTL, time.Hour))
			}})},
		{Entry: entry.New("long-lease-in-seconds", "leases of more than a minute are cut to whole seconds", exclusion, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if o.TTL > time.Minute {
					return set(ctx, c, l, "NX", o.TTL.Truncate(time.Second))
				}
				return set(ctx, c, l, "NX", o.TTL)
			}})},
		{Entry: entry.New("wait-as-lease", "a client that waits gets a lease as long as its wait", entry.Breaks(variant.MutualExclusion, variant.Progress), ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				if o.Wait > 0 {
					return set(ctx, c, l, "NX", o.Wait)
				}
				return setNX(ctx, c, l, o)
			}})},
		{Entry: entry.New("lease-from-answer", "the promised lease begins when the answer is there, and the server's when the command was", exclusion, "https://github.com/mike-marcacci/node-redlock/pull/167"),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				ok, err := setNX(ctx, c, l, o)
				l.Until = c.env.Clock.Now().Add(o.TTL)
				return ok, err
			}})},
		{Entry: entry.New("lease-and-2-ms", "two milliseconds are added to the promised lease", exclusion, "https://github.com/go-redsync/redsync/issues/37"),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				l.Until = l.Until.Add(2 * time.Millisecond)
				return setNX(ctx, c, l, o)
			}})},
		{Entry: entry.New("lease-of-first-try", "the lease sent shrinks by the time waited so far, and the client is promised all of it", exclusion, ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					return set(ctx, c, l, "NX", max(o.TTL-time.Duration(c.count)*o.RetryEvery, 20*time.Millisecond))
				},
				wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
					c.count++
					return c.env.Wait(ctx, name, min(left, o.RetryEvery))
				}})},
		{Entry: entry.New("wait-in-wrong-unit", "a waiter sleeps for the holder's milliseconds as if they were seconds", progress, "https://github.com/coleifer/walrus/issues/110"),
			Variant: of(steps{wait: func(ctx context.Context, c *client, name string, left time.Duration, _ lockimpl.Options) error {
				ms, err := c.redis().PTTL(ctx, c.key(name)).Result()
				if err != nil {
					return err
				}
				return c.env.Clock.Sleep(ctx, min(left, 1000*max(ms, time.Millisecond)))
			}})},
		{Entry: entry.New("refusal-cached", "a client that was refused reports the lock as held, without asking the server, until the holder's lease would be over", progress, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
				now := c.env.Clock.Now().UnixMilli()
				if until, _ := strconv.ParseInt(c.tokens[l.Key], 10, 64); now < until {
					return false, nil
				}
				ok, err := setNX(ctx, c, l, o)
				if err != nil || ok {
					return ok, err
				}
				left, err := c.redis().PTTL(ctx, c.key(l.Key)).Result()
				c.tokens[l.Key] = strconv.FormatInt(now+left.Milliseconds(), 10)
				return false, err
			}})},
		{Entry: entry.New("notification-grants", "a waiter that is woken and finds the lock free takes it by SET without NX, as do all others that were woken", exclusion, ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					if c.tokens["woken"] == "" {
						return setNX(ctx, c, l, o)
					}
					c.tokens["woken"] = ""
					if n, err := c.redis().Exists(ctx, c.key(l.Key)).Result(); n > 0 || err != nil {
						return false, err
					}
					return set(ctx, c, l, "", o.TTL)
				},
				wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
					c.tokens["woken"] = "yes"
					return c.env.Wait(ctx, name, min(left, o.RetryEvery))
				}})},
		{Entry: entry.New("abandoned-wait", "a wait that is cancelled leaves a goroutine behind, which takes the lock and keeps it", progress, ""), Bubble: true,
			Variant: whole(newAbandoned)},
		{Entry: entry.New("no-lease", "the lock has no lease on the server: only a release ends it", progress, ""),
			Variant: of(steps{attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, _ lockimpl.Options) (bool, error) {
				return set(ctx, c, l, "NX", 0)
			}})},
	}
}

// atomicTake is SET NX PX as a script.
var atomicTake = redis.NewScript(`if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`)

// swap replaces a value if it is still the one that was read.
var swap = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) return 1 end return 0`)

// expiryToken returns a token for values that begin with the end of the lease.
func expiryToken(c *client) string { return c.env.Token() }

// deadline is a lock value that holds the end of the lease.
func deadline(l *lockimpl.Lock) string {
	return strconv.FormatInt(l.Until.UnixMilli(), 10) + ":" + l.Token
}

// takeover sends SETNX, and calls over if by the value and the client's clock the lease is over.
func takeover(over func(context.Context, *client, *lockimpl.Lock, lockimpl.Options, string) (bool, error)) func(context.Context, *client, *lockimpl.Lock, lockimpl.Options) (bool, error) {
	return func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		ok, err := c.redis().SetNX(ctx, c.key(l.Key), deadline(l), 0).Result()
		if ok || err != nil {
			return ok, err
		}
		was, err := get(ctx, c, l.Key)
		if err != nil || was == "" {
			return false, err
		}
		until, _, _ := strings.Cut(was, ":")
		if ms, err := strconv.ParseInt(until, 10, 64); err != nil || c.env.Clock.Now().UnixMilli() <= ms {
			return false, nil
		}
		return over(ctx, c, l, o, was)
	}
}

// valueOwned runs the rest of a script if the value ends in the caller's token.
const valueOwned = `
local value = redis.call('GET', KEYS[1])
if not value or string.match(value, ':(.*)$') ~= ARGV[1] then return 0 end
`

var (
	valueRelease      = releaseBy(valueOwned + `return redis.call('DEL', KEYS[1])`)
	valueExtendScript = redis.NewScript(valueOwned + `redis.call('SET', KEYS[1], ARGV[2]) return 1`)
)

func valueExtend(ctx context.Context, c *client, l *lockimpl.Lock, _ time.Duration) (bool, error) {
	return yes(valueExtendScript.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, deadline(l)).Int64())
}

// abandoned waits in a goroutine that does not end with the caller's context.
type abandoned struct{ *client }

func newAbandoned(env variant.Env) lockimpl.Locker { return abandoned{newClient(steps{}, env)} }

func (a abandoned) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	type answer struct {
		l   lockimpl.Lock
		err error
	}
	got := make(chan answer, 1)
	going := context.WithoutCancel(ctx)
	a.env.Go(func(context.Context) {
		l, err := a.client.Acquire(going, name, o)
		got <- answer{l, err}
		for err == nil && ctx.Err() != nil && a.env.Clock.Sleep(going, o.TTL/3) == nil {
			l, err = a.client.Extend(going, l, o.TTL) // its renewal does not know that no client holds it
		}
	})
	select {
	case g := <-got:
		return g.l, g.err
	case <-ctx.Done():
		return lockimpl.Lock{}, context.Cause(ctx)
	}
}

// nameMutants confuse names, or share the data of one.
func nameMutants() []Lock {
	progress, both := entry.Breaks(variant.Progress), entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease)
	return []Lock{
		{Entry: entry.New("names-by-hash", "names share 64 locks by their hash", progress, "https://github.com/spring-projects/spring-integration/issues/11146"),
			Variant: of(steps{key: func(name string) string {
				h := fnv.New32a()
				h.Write([]byte(name))
				return lockimpl.Key("bucket-" + strconv.Itoa(int(h.Sum32()%64)))
			}})},
		{Entry: entry.New("names-cut", "names are cut to 24 characters", progress, ""),
			Variant: of(steps{key: func(name string) string { return lockimpl.Key(name[:min(len(name), 24)]) }})},
		{Entry: entry.New("names-fold-case", "names that differ in case are one", progress, ""),
			Variant: of(steps{key: func(name string) string { return lockimpl.Key(strings.ToLower(name)) }})},
		{Entry: entry.New("names-cleaned", "what is neither letter nor digit is removed from names", progress, ""),
			Variant: of(steps{key: func(name string) string {
				return lockimpl.Key(strings.Map(func(r rune) rune {
					if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '{' || r == '}' {
						return r
					}
					return -1
				}, name))
			}})},
		{Entry: entry.New("names-by-tag", "the key is the hash tag of the name only", progress, ""),
			Variant: of(steps{key: func(name string) string {
				if _, rest, ok := strings.Cut(name, "{"); ok {
					if tag, _, ok := strings.Cut(rest, "}"); ok {
						return lockimpl.Key("{" + tag + "}")
					}
				}
				return lockimpl.Key(name)
			}})},
		{Entry: entry.New("sound-counter-beside", "the fencing counter of a name is kept under the lock key of the name with :fence: the suite says that these names would share a key", nil, ""),
			Variant: fencing(steps{attempt: fenceBy(`
				if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end
				return 0`, func(c *client, name string) string { return c.key(name + ":fence") })})},
		{Entry: entry.New("process-reenters", "a lock is identified by its process, and every client in the holder's process may enter", both, ""),
			Variant: of(steps{
				token: func(*client) string { return "host-1:4711" },
				attempt: takeBy(`
					if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end
					if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
					return 0`)})},
		{Entry: entry.New("registry-never-forgets", "a registry of the process remembers who holds what until it is released, and does not know that leases end", progress, "https://github.com/spring-projects/spring-integration/issues/1888"),
			Variant: of(registry())},
		{Entry: entry.New("pooled-token", "the token is kept in one place for all clients of the process, by name, and the last attempt's is there, refused or not", entry.Breaks(variant.OwnerOnlyRelease, variant.Progress), ""),
			Variant: of(pooled())},
	}
}

// registry shares a list of held locks between the clients of a process.
func registry() steps {
	var mu sync.Mutex
	held := map[string]bool{}
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			mu.Lock()
			busy := held[l.Key]
			held[l.Key] = true
			mu.Unlock()
			if busy {
				return false, nil
			}
			ok, err := setNX(ctx, c, l, o)
			if !ok || err != nil {
				mu.Lock()
				delete(held, l.Key)
				mu.Unlock()
			}
			return ok, err
		},
		release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
			ok, err := releaseBy(compareDelete)(ctx, c, l)
			if ok {
				mu.Lock()
				delete(held, l.Key)
				mu.Unlock()
			}
			return ok, err
		},
	}
}

// pooled shares the token of a name between the clients of a process.
func pooled() steps {
	var mu sync.Mutex
	tokens := map[string]string{}
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			mu.Lock()
			tokens[l.Key] = l.Token
			mu.Unlock()
			return setNX(ctx, c, l, o)
		},
		release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
			mu.Lock()
			l.Token = tokens[l.Key]
			mu.Unlock()
			return releaseBy(compareDelete)(ctx, c, l)
		},
	}
}

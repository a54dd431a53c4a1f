package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// handmade is a lock whose verdict was found by reasoning.
type handmade struct {
	env     variant.Env
	extend  func(context.Context, variant.Env, time.Duration) (until time.Time, err error)
	acquire func(context.Context, variant.Env, lockimpl.Options) (until time.Time, token string, err error)
	release func(context.Context, variant.Env, lockimpl.Lock) error
}

func (h *handmade) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	until, token, err := h.acquire(ctx, h.env, o)
	return lockimpl.Lock{Key: key, Token: token, Until: until}, err
}

func (h *handmade) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (_ lockimpl.Lock, err error) {
	if h.extend == nil {
		return lockimpl.Lock{}, lockimpl.ErrLost
	}
	l.Until, err = h.extend(ctx, h.env, ttl)
	return l, err
}

func (h *handmade) Release(ctx context.Context, l lockimpl.Lock) error {
	if h.release == nil {
		return nil
	}
	return h.release(ctx, h.env, l)
}

type (
	acquiring = func(context.Context, variant.Env, lockimpl.Options) (time.Time, string, error)
	releasing = func(context.Context, variant.Env, lockimpl.Lock) error
)

var (
	dropOwn = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)
	swap    = redis.NewScript(`if (redis.call('get', KEYS[1]) or '') == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end return 0`)
	// expiryInLua stores the end of the lease as the value of the key, in milliseconds of the server's clock.
	expiryInLua = redis.NewScript(`local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000)
		local v = redis.call('get', KEYS[1]) if v and tonumber(v) > now then return 0 end
		redis.call('set', KEYS[1], string.format('%.0f', now + ARGV[1])) return 1`)
)

// put sends SET NX PX, and returns ErrHeld if the key exists.
func put(ctx context.Context, env variant.Env, key, v string, ttl time.Duration) error {
	switch ok, err := env.Redis[0].SetNX(ctx, key, v, ttl).Result(); {
	case err != nil:
		return err
	case !ok:
		return lockimpl.ErrHeld
	}
	return nil
}

// granting returns an acquire function that sends SET NX PX. until computes the promised end of the lease.
func granting(key string, until func(variant.Env, time.Time, time.Duration) time.Time) acquiring {
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		if err := put(ctx, env, key, v, o.TTL); err != nil {
			return start, v, err
		}
		return until(env, start, o.TTL), v, nil
	}
}

func fromStart(_ variant.Env, start time.Time, ttl time.Duration) time.Time { return start.Add(ttl) }

func dropping(keys ...string) releasing {
	return func(ctx context.Context, env variant.Env, l lockimpl.Lock) (err error) {
		for _, key := range keys {
			err = errors.Join(err, dropOwn.Run(ctx, env.Redis[0], []string{key}, l.Token).Err())
		}
		return err
	}
}

func deleting(keys ...string) releasing {
	return func(ctx context.Context, env variant.Env, _ lockimpl.Lock) error {
		return env.Redis[0].Del(ctx, keys...).Err()
	}
}

// stamped returns an acquire function that stores the end of the lease, or the time of the grant, in milliseconds. The
// next client takes the lock over with a script that compares and sets, early before the lease ends.
func stamped(grant bool, early time.Duration) acquiring {
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		old, err := get(ctx, env.Redis[0], "stamp")
		if err != nil {
			return time.Time{}, "", err
		}
		now := env.Clock.Now()
		if n, _ := strconv.ParseInt(old, 10, 64); old != "" {
			end := time.UnixMilli(n)
			if grant {
				end = end.Add(o.TTL)
			}
			if now.Add(early).Before(end) {
				return now, "", lockimpl.ErrHeld
			}
		}
		mark := now.Add(o.TTL)
		if grant {
			mark = now
		}
		n, err := swap.Run(ctx, env.Redis[0], []string{"stamp"}, old, mark.UnixMilli()).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return now.Add(o.TTL), "", err
	}
}

// classic sends SETNX, GET and GETSET. The value is the end of the lease, by the clock as it was before the first
// command.
func classic(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
	now := env.Clock.Now()
	until := now.Add(o.TTL)
	mark := strconv.FormatInt(until.UnixMilli(), 10)
	r := env.Redis[0]
	if ok, err := r.SetNX(ctx, "stamp", mark, 0).Result(); ok || err != nil {
		return until, "", err
	}
	old, err := get(ctx, r, "stamp")
	if n, _ := strconv.ParseInt(old, 10, 64); err != nil || old == "" || now.Before(time.UnixMilli(n)) {
		return until, "", errors.Join(err, lockimpl.ErrHeld)
	}
	was, err := r.GetSet(ctx, "stamp", mark).Result()
	if err == nil && was != old {
		err = lockimpl.ErrHeld
	}
	return until, "", err
}

// watched returns an acquire function that sends WATCH and a transaction with SET: on the same connection, or on any.
func watched(same bool) acquiring {
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		err := env.Redis[0].Watch(ctx, func(tx *redis.Tx) error {
			old, err := get(ctx, env.Redis[0], lockKey)
			if err == nil && old != "" {
				return lockimpl.ErrHeld
			} else if err != nil {
				return err
			}
			within := env.Redis[0].TxPipelined
			if same {
				within = tx.TxPipelined
			}
			_, err = within(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, lockKey, v, o.TTL).Err() })
			return err
		}, lockKey)
		if errors.Is(err, redis.TxFailedErr) {
			err = lockimpl.ErrHeld
		}
		return start.Add(o.TTL), v, err
	}
}

// byHand lists searches whose verdicts were found by reasoning.
var byHand = []struct {
	name    string
	acquire acquiring
	release releasing
	extend  func(context.Context, variant.Env, time.Duration) (time.Time, error)
	bounds  reports.Bounds
	change  func(*scenarios.Config)
	look    variant.Property // empty: mutual-exclusion
	want    string
	says    string // part of the reason, or of what is not checked
	actions int    // of the shortest counterexample; 0: any number
}{
	{name: "what is left, by two looks", acquire: granting(lockKey, func(env variant.Env, start time.Time, ttl time.Duration) time.Time {
		left := ttl - env.Clock.Now().Sub(start)
		return env.Clock.Now().Add(left)
	}), release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 1, Stalls: 1}, want: reports.Violated},
	{name: "what is left, by one look", acquire: granting(lockKey, func(env variant.Env, start time.Time, ttl time.Duration) time.Time {
		now := env.Clock.Now()
		return now.Add(ttl - now.Sub(start))
	}), release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 1, Stalls: 2}, want: reports.Pass},
	{name: "a look too early", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		first := env.Clock.Now()
		lost := env.Clock.Now().Sub(first) // looks like a margin, but the time before it is not covered
		err := put(ctx, env, lockKey, "x", max(o.TTL-lost, time.Millisecond))
		return first.Add(o.TTL + lost), "", err
	}, bounds: reports.Bounds{Tries: 2, Advances: 2, Stalls: 1}, want: reports.Violated},

	{name: "an expiry as value", acquire: stamped(false, 0), bounds: reports.Bounds{Tries: 2, Advances: 2, Stalls: 1}, want: reports.Pass},
	{name: "an expiry as value, taken 300 ms too early", acquire: stamped(false, 300*time.Millisecond), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},
	{name: "an expiry as value, taken 1 ms too early", acquire: stamped(false, time.Millisecond), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},
	{name: "a grant as value", acquire: stamped(true, 0), bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Pass},
	{name: "a grant as value, taken too early", acquire: stamped(true, 900*time.Millisecond), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},
	{name: "an expiry as value, GETSET", acquire: classic, bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Violated},
	{name: "an expiry in Lua", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		start := env.Clock.Now()
		n, err := expiryInLua.Run(ctx, env.Redis[0], []string{"stamp"}, o.TTL.Milliseconds()).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return start.Add(o.TTL), "", err
	}, bounds: reports.Bounds{Tries: 2, Advances: 2, Stalls: 1}, want: reports.Pass},
	{name: "an expiry in Lua, counted from the answer", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		n, err := expiryInLua.Run(ctx, env.Redis[0], []string{"stamp"}, o.TTL.Milliseconds()).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return env.Clock.Now().Add(o.TTL), "", err
	}, bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Violated},

	// The lock stores the grant in whole seconds: a lease of 1.5 s then ends up to half a second too early.
	{name: "a grant in whole seconds of the server", acquire: seconds(grantInSeconds, 0), bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Violated},
	{name: "a grant in whole seconds of the server, and an extension", acquire: seconds(grantInSeconds, 0), extend: secondsAgain, change: extending, bounds: reports.Bounds{Tries: 1, Advances: 2}, want: reports.Violated, actions: 4},
	{name: "a grant in whole seconds of the server, with a second to spare", acquire: seconds(grantInSeconds, time.Second), bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Pass},
	{name: "an end in milliseconds, compared with seconds that are begun", acquire: seconds(endAndBegunSeconds, 0), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},
	{name: "an end in milliseconds, compared with seconds that are over", acquire: seconds(endAndSecondsOver, 0), bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Pass},

	// The same with the clock of the client, or with that of the server only where the lock is contended.
	{name: "an end in whole seconds of the client", acquire: endInSeconds(time.Time.Unix, ""), bounds: reports.Bounds{Tries: 1, Advances: 2}, want: reports.Violated},
	{name: "an end in milliseconds of the client, which Lua truncates", acquire: endInSeconds(time.Time.UnixMilli, "/ 1000"), bounds: reports.Bounds{Tries: 1, Advances: 2}, want: reports.Violated},
	{name: "whole seconds of the server when the lock is held", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		start := env.Clock.Now()
		n, err := expiryInSeconds.Run(ctx, env.Redis[0], []string{lockKey}, o.TTL.Milliseconds()).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return start.Add(o.TTL), "", err
	}, bounds: reports.Bounds{Tries: 1, Advances: 2}, want: reports.Violated},
	{name: "a promise rounded to whole seconds", acquire: granting(lockKey, func(_ variant.Env, start time.Time, ttl time.Duration) time.Time {
		return start.Add(ttl - 100*time.Millisecond).Round(time.Second)
	}), release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 2}, want: reports.Violated},

	{name: "another key", acquire: granting("mutex/order", fromStart), release: dropping("mutex/order"), bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, want: reports.Pass},
	{name: "another key, deleted", acquire: granting("mutex/order", fromStart), release: deleting("mutex/order"), bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, want: reports.Violated},
	{name: "two keys, one deleted", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		err := put(ctx, env, "first", v, o.TTL)
		if err == nil {
			err = put(ctx, env, "second", v, o.TTL)
		}
		return start.Add(o.TTL), v, err
	}, release: func(ctx context.Context, env variant.Env, l lockimpl.Lock) error {
		return errors.Join(dropping("first")(ctx, env, l), deleting("second")(ctx, env, l))
	}, bounds: reports.Bounds{Tries: 2, Advances: 2}, look: ownerP, want: reports.Violated},
	{name: "nothing is released", acquire: granting(lockKey, fromStart), bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, want: reports.Pass},
	{name: "no key", acquire: func(_ context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		return env.Clock.Now().Add(o.TTL), "", nil
	}, bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, want: reports.Inconclusive, says: "owner-only-release was not judged"},

	// A new client asks for the lease and a grace: ten of its pauses between two tries.
	{name: "a key for longer than the lease", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		return start.Add(o.TTL), v, put(ctx, env, lockKey, v, 3*time.Second)
	}, release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Crashes: 1}, change: hesitant, look: variant.Progress, want: reports.Pass},
	{name: "an error of its own for a lock that is held", acquire: refusing(func(o lockimpl.Options) time.Duration { return o.TTL }),
		release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Crashes: 1}, look: variant.Progress, want: reports.Pass},
	{name: "an error of its own for a lock that stays held", acquire: refusing(func(lockimpl.Options) time.Duration { return 0 }),
		release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Crashes: 1}, look: variant.Progress, want: reports.Violated, says: "it gets the error busy"},

	{name: "a key for a day", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		if err := env.Redis[0].Set(ctx, "seen", "1", 24*time.Hour).Err(); err != nil {
			return start, v, err
		}
		return start.Add(o.TTL), v, put(ctx, env, lockKey, v, o.TTL)
	}, release: dropping(lockKey), bounds: reports.Bounds{Tries: 2, Advances: 2}, want: reports.Pass, says: "lives for more than 1h"},
	{name: "the wait for the lease", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		return start.Add(o.TTL), v, put(ctx, env, lockKey, v, o.Wait)
	}, release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},
	{name: "whole seconds", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		return start.Add(o.TTL), v, put(ctx, env, lockKey, v, o.TTL.Truncate(time.Second))
	}, release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},

	// The lease ends in Redis before it ends for the client. Another client notices only if time passes, and time passes
	// here only if no live client can go on.
	{name: "nobody waits for the dead", acquire: waiting, bounds: reports.Bounds{Tries: 1, Crashes: 1}, change: patient, want: reports.Violated},
	{name: "somebody waits for the living", acquire: waiting, bounds: reports.Bounds{Tries: 1}, change: patient, want: reports.Pass},
	// The server executes the command, but its client believes that it was lost.
	{name: "the answer comes after the time limit", acquire: func(ctx context.Context, env variant.Env, _ lockimpl.Options) (time.Time, string, error) {
		ctx, cancel := env.Clock.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return time.Time{}, "", put(ctx, env, lockKey, "x", 0)
	}, release: deleting(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 1, Stalls: 1}, look: variant.Progress, want: reports.Violated},

	// The flaws of these locks show only when time passes to a moment at which nothing ends.
	{name: "the lease from a look between two commands", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v := env.Token()
		if err := put(ctx, env, lockKey, v, o.TTL); err != nil {
			return time.Time{}, "", err
		}
		start := env.Clock.Now()
		if got, err := env.Redis[0].Get(ctx, lockKey).Result(); got != v {
			return start, "", cmp.Or(err, lockimpl.ErrHeld)
		}
		return start.Add(o.TTL), v, nil
	}, release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 2}, want: reports.Violated},
	{name: "taken over shortly before the end", acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		n, err := takenOver.Run(ctx, env.Redis[0], []string{lockKey}, v, o.TTL.Milliseconds(), 200).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return start.Add(o.TTL), v, err
	}, release: dropping(lockKey), bounds: reports.Bounds{Tries: 1, Advances: 1}, want: reports.Violated},

	{name: "watched", acquire: watched(true), release: dropping(lockKey), bounds: reports.Bounds{Tries: 2, Late: 1, Advances: 1}, want: reports.Pass},
	{name: "watched on another connection", acquire: watched(false), release: dropping(lockKey), bounds: reports.Bounds{Tries: 1}, want: reports.Violated},
}

// takenOver takes a lock that has no more than ARGV[3] milliseconds left.
var takenOver = redis.NewScript(`if redis.call('pttl', KEYS[1]) > tonumber(ARGV[3]) then return 0 end
	redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1`)

// These scripts store a time and compare it with the server's in whole seconds. ARGV[2] is "1" for an extension.
var (
	grantInSeconds = redis.NewScript(`local now = tonumber(redis.call('time')[1])
		if ARGV[2] ~= '1' then
			redis.call('zremrangebyscore', KEYS[1], '-inf', now - ARGV[1] / 1000)
			if redis.call('zcard', KEYS[1]) > 0 then return 0 end
		end
		redis.call('zadd', KEYS[1], now, 'holder') return 1`)
	endAndBegunSeconds = endCompared("(t[1] + 1) * 1000")
	endAndSecondsOver  = endCompared("t[1] * 1000")
)

// expiryInSeconds takes a lock over whose expiry has passed, in whole seconds of the server.
var expiryInSeconds = redis.NewScript(`if redis.call('set', KEYS[1], 'x', 'nx', 'px', ARGV[1]) then return 1 end
	if redis.call('expiretime', KEYS[1]) > tonumber(redis.call('time')[1]) then return 0 end
	redis.call('set', KEYS[1], 'x', 'px', ARGV[1]) return 1`)

// endInSeconds returns an acquire function that stores the end of the lease in whole seconds, half a second more than
// promised. The time is sent in the unit of stamp, and per makes seconds of it.
func endInSeconds(stamp func(time.Time) int64, per string) acquiring {
	script := redis.NewScript(`local v = redis.call('get', KEYS[1])
		if v and tonumber(v) > math.floor(ARGV[1] ` + per + `) then return 0 end
		redis.call('set', KEYS[1], math.floor(ARGV[2] ` + per + `)) return 1`)
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		start := env.Clock.Now()
		n, err := script.Run(ctx, env.Redis[0], []string{"end"}, stamp(start), stamp(start.Add(o.TTL+500*time.Millisecond))).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return start.Add(o.TTL), "", err
	}
}

func endCompared(now string) *redis.Script {
	return redis.NewScript(`local t = redis.call('time')
		local v = redis.call('get', KEYS[1]) if v and tonumber(v) > ` + now + ` then return 0 end
		redis.call('set', KEYS[1], string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1])) return 1`)
}

// seconds returns an acquire function that takes a lock by such a script, for longer than the promised lease.
func seconds(script *redis.Script, longer time.Duration) acquiring {
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		start := env.Clock.Now()
		n, err := script.Run(ctx, env.Redis[0], []string{"times"}, (o.TTL + longer).Milliseconds(), 0).Int()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return start.Add(o.TTL), "", err
	}
}

// waiting sets a key with an expiry of half the lease, and sleeps when the lock is held.
func waiting(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
	for range 2 {
		start := env.Clock.Now()
		err := put(ctx, env, lockKey, "x", o.TTL/2)
		if !errors.Is(err, lockimpl.ErrHeld) {
			return start.Add(o.TTL), "", err
		}
		if err := env.Clock.Sleep(ctx, o.TTL*3/4); err != nil {
			return start, "", err
		}
	}
	return time.Time{}, "", lockimpl.ErrHeld
}

// refusing returns an acquire function with an error of its own for a lock that is held.
func refusing(expiry func(lockimpl.Options) time.Duration) acquiring {
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		v, start := env.Token(), env.Clock.Now()
		err := put(ctx, env, lockKey, v, expiry(o))
		if errors.Is(err, lockimpl.ErrHeld) {
			err = errors.New("busy")
		}
		return start.Add(o.TTL), v, err
	}
}

// hesitant makes the pauses between two tries so long that a grace is ten of them.
func hesitant(c *scenarios.Config) { c.Retry = 400 * time.Millisecond }

// secondsAgain extends a lock that was taken by grantInSeconds.
func secondsAgain(ctx context.Context, env variant.Env, ttl time.Duration) (time.Time, error) {
	start := env.Clock.Now()
	return start.Add(ttl), grantInSeconds.Run(ctx, env.Redis[0], []string{"times"}, ttl.Milliseconds(), 1).Err()
}

func patient(c *scenarios.Config) { c.MaxTries = 2 }

// extending makes a section so long that the lease is extended.
func extending(c *scenarios.Config) { c.Hold = time.Second }

// TestByHand checks the verdicts of the searches in byHand, with and without the reductions. Locks that hold are searched
// without the reductions only in the long tests.
func TestByHand(t *testing.T) {
	for _, c := range byHand {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mutex, _ := scenarios.Find("mutex")
			if c.bounds.Clients, c.bounds.TimeMS = 2, 60_000; c.look == "" {
				c.look = mutexP
			}
			config := Config{Bounds: c.bounds, Look: []history.Promise{{Of: variant.Lock, Property: c.look}}}
			config.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
				return &handmade{env, c.extend, c.acquire, c.release}
			}}}
			if c.change != nil {
				c.change(&config.Run)
			}
			var steps []int
			ways := []bool{false}
			if c.want == reports.Violated || long() {
				ways = append(ways, true)
			}
			for _, config.Plain = range ways {
				r, err := Run(t.Context(), config)
				if err != nil || r.Verdict != c.want {
					t.Fatalf("plain %t: %s: %s, %v; want %s", config.Plain, r.Verdict, r.Why, err, c.want)
				}
				if !strings.Contains(r.Why+strings.Join(r.NotChecked, "\n"), c.says) {
					t.Errorf("%s, %q do not say %q", r.Why, r.NotChecked, c.says)
				}
				if r.Verdict == reports.Pass && c.bounds.Advances > 0 && r.Stats.Lapses == 0 {
					t.Error("no lease ran out")
				}
				steps = append(steps, outcomeOf(r).actions)
				t.Logf("plain %t: %d states, %d executions, %.0f ms: %s", config.Plain, r.Stats.States, r.Stats.Executions, r.Stats.ElapsedMS, r.Why)
			}
			if last := steps[len(steps)-1]; steps[0] != last {
				t.Errorf("%d steps with reductions, %d without", steps[0], last)
			}
			if c.actions > 0 && steps[0] != c.actions {
				t.Errorf("%d steps; the shortest counterexample has %d", steps[0], c.actions)
			}
		})
	}
}

// TestLeasesThatNeverRunOut checks that a search is inconclusive if the leases are so long that none runs out in it.
func TestLeasesThatNeverRunOut(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	long := func(_ variant.Env, start time.Time, _ time.Duration) time.Time { return start.Add(48 * time.Hour) }
	acquire := func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		o.TTL = 48 * time.Hour
		return granting(lockKey, long)(ctx, env, o)
	}
	c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 1}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
	c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
		return &handmade{env, nil, acquire, dropping(lockKey)}
	}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Inconclusive || !strings.Contains(r.Why, "no promised lease ran out") {
		t.Errorf("%s: %s, %v", r.Verdict, r.Why, err)
	}
}

// TestHourInAKey checks that a search finds that a lock with the hour in its key becomes another lock when the hour ends.
func TestHourInAKey(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 2, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
	c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
		return &handmade{env: env, acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			start := env.Clock.Now()
			return start.Add(o.TTL), "", put(ctx, env, fmt.Sprint("lock:", start.Truncate(time.Hour).Unix()), "x", o.TTL)
		}}
	}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Violated {
		t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
	}
	t.Log(len(r.Counterexample.Steps), "steps,", r.Stats.States, "states")
}

// early draws its fencing token before it takes the lock, or, if mended, in the same script.
type early struct {
	*handmade
	mended bool
}

var takeNumbered = redis.NewScript(`if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end return redis.call('incr', KEYS[2])`)

func (l *early) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	r, until := l.env.Redis[0], l.env.Clock.Now().Add(o.TTL)
	token := l.env.Token()
	if l.mended {
		n, err := takeNumbered.Run(ctx, r, []string{lockKey, "fence"}, token, o.TTL.Milliseconds()).Int64()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		return lockimpl.Lock{Key: key, Token: token, Until: until, Fence: n}, err
	}
	n, err := r.Incr(ctx, "fence").Result()
	if err == nil {
		err = put(ctx, l.env, lockKey, token, o.TTL)
	}
	return lockimpl.Lock{Key: key, Token: token, Until: until, Fence: n}, err
}

// TestTokenDrawnFirst checks a lock that draws its fencing token first: a client that then waits may be granted the lock
// with a smaller token than the holder before.
func TestTokenDrawnFirst(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	for mended, want := range map[bool]string{false: reports.Violated, true: reports.Pass} {
		c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}, {Of: variant.Lock, Property: variant.Fencing}}}
		c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
			return &early{&handmade{env: env, release: dropping(lockKey)}, mended}
		}}}
		r, err := Run(t.Context(), c)
		if err != nil || r.Verdict != want {
			t.Errorf("mended %t: %s: %s, %v", mended, r.Verdict, r.Why, err)
		} else if !mended && !strings.Contains(r.Counterexample.Sentence, "was granted while it waited") {
			t.Error(r.Counterexample.Sentence)
		}
	}
}

// late draws its fencing token after it has taken the lock, when the lease may already be over.
type late struct{ *handmade }

func (l *late) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	r, until := l.env.Redis[0], l.env.Clock.Now().Add(o.TTL)
	token := l.env.Token()
	if err := put(ctx, l.env, lockKey, token, o.TTL); err != nil {
		return lockimpl.Lock{}, err
	}
	n, err := r.Incr(ctx, "fence").Result()
	return lockimpl.Lock{Key: key, Token: token, Until: until, Fence: n}, err
}

// TestTokenDrawnLast checks a lock that draws its fencing token last: a client whose lease has run out by then gets a
// larger token than the new holder.
func TestTokenDrawnLast(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	excludes, fences := history.Promise{Of: variant.Lock, Property: mutexP}, history.Promise{Of: variant.Lock, Property: variant.Fencing}
	for _, test := range []struct {
		promises []variant.Property
		look     []history.Promise
	}{
		{nil, []history.Promise{excludes, fences}},
		{[]variant.Property{mutexP, variant.Fencing}, []history.Promise{fences}},
	} {
		c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 1}, Look: test.look}
		c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", Promises: test.promises, New: func(env variant.Env) lockimpl.Locker {
			return &late{&handmade{env: env, release: dropping(lockKey)}}
		}}}
		r, err := Run(t.Context(), c)
		if err != nil || r.Verdict != reports.Violated || r.Counterexample.Property != variant.Fencing || !strings.Contains(r.Counterexample.Sentence, "when its lease had run out") {
			t.Errorf("%v: %s: %s, %v", test.look, r.Verdict, r.Why, err)
		}
	}
}

// numbered takes a lock and draws a fencing token from a counter that begins high, in one script or in three commands.
type numbered struct {
	*handmade
	scripted bool
	by       int64 // 1, or -1 for tokens that fall
}

var drawHigh = redis.NewScript(`if redis.call('exists', KEYS[1]) == 1 then return 0 end
	redis.call('set', KEYS[2], '9007190000000005', 'NX')
	redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
	return redis.call('incrby', KEYS[2], ARGV[3])`)

func (l *numbered) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	r, until, token := l.env.Redis[0], l.env.Clock.Now().Add(o.TTL), l.env.Token()
	granted := lockimpl.Lock{Key: key, Token: token, Until: until}
	if l.scripted {
		n, err := drawHigh.Run(ctx, r, []string{lockKey, "fence"}, token, o.TTL.Milliseconds(), l.by).Int64()
		if err == nil && n == 0 {
			err = lockimpl.ErrHeld
		}
		granted.Fence = n
		return granted, err
	}
	if err := put(ctx, l.env, lockKey, token, o.TTL); err != nil {
		return lockimpl.Lock{}, err
	}
	if err := r.SetNX(ctx, "fence", 9007190000000005, 0).Err(); err != nil {
		return lockimpl.Lock{}, err
	}
	n, err := r.IncrBy(ctx, "fence", l.by).Result()
	granted.Fence = n
	return granted, err
}

// TestNumbersLikeNames checks that a program may use numbers from the range that the search uses for its own names.
func TestNumbersLikeNames(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	for _, scripted := range []bool{true, false} {
		for by, want := range map[int64]string{1: reports.Pass, -1: reports.Violated} {
			c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1}, Look: []history.Promise{{Of: variant.Lock, Property: variant.Fencing}}}
			c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
				return &numbered{&handmade{env: env, release: dropping(lockKey)}, scripted, by}
			}}}
			if r, err := Run(t.Context(), c); err != nil || r.Verdict != want {
				t.Errorf("in a script: %v, by %d: %s, not %s: %s, %v", scripted, by, r.Verdict, want, r.Why, err)
			}
		}
	}
}

// TestWaitingThatIsUnknown checks that only progress is open if a client sends what the model of Redis does not know while
// it waits, and not otherwise.
func TestWaitingThatIsUnknown(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, Advances: 1}}
	c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", Promises: []variant.Property{mutexP, variant.Progress}, New: func(env variant.Env) lockimpl.Locker {
		return &handmade{env: env, release: dropping(lockKey), acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			until, token := env.Clock.Now().Add(o.TTL), env.Token()
			err := put(ctx, env, lockKey, token, o.TTL)
			if errors.Is(err, lockimpl.ErrHeld) && o.MaxTries != 1 {
				if err := env.Redis[0].BZPopMin(ctx, time.Second, "released", "freed").Err(); err != nil {
					return time.Time{}, "", err
				}
			}
			return until, token, err
		}}
	}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Inconclusive || !strings.HasPrefix(r.Why, unwaited) || !strings.Contains(r.Why, "bzpopmin") {
		t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
	}
	for _, p := range r.Properties {
		if want := map[variant.Property]string{mutexP: reports.Holds, variant.Progress: reports.Unknown}[p.Name]; p.Result != want {
			t.Errorf("%s: %s, not %s: %s", p.Name, p.Result, want, p.Why)
		}
	}
	if !slices.ContainsFunc(r.NotChecked, func(s string) bool { return strings.HasPrefix(s, "times inside a lease, other than its middle") }) {
		t.Errorf("the moments inside a lease were not searched: %q", r.NotChecked)
	}
	c.Bounds.Clients = 1 // which puts nothing to the test
	if r, err = Run(t.Context(), c); err != nil || r.Verdict != reports.Inconclusive {
		t.Fatalf("one client: %s: %s, %v", r.Verdict, r.Why, err)
	}
	for _, p := range r.Properties {
		if p.Result != reports.Unknown {
			t.Errorf("one client: %s: %s: %s", p.Name, p.Result, p.Why)
		}
	}
}

// tired is a queue that forgets to remove what it hands out in the last part of each second.
type tired struct{ rdb redis.UniversalClient }

var tiredPop = redis.NewScript(`if tonumber(redis.call('TIME')[2]) < 600000 then return redis.call('LPOP', KEYS[1]) end
return redis.call('LINDEX', KEYS[1], 0)`)

func (q tired) Enqueue(ctx context.Context, name string, ids ...string) (entered []queueimpl.Task, err error) {
	for _, id := range ids {
		entered = append(entered, queueimpl.Task{ID: id})
		err = errors.Join(err, q.rdb.RPush(ctx, name, id).Err())
	}
	return entered, err
}

func (q tired) Pop(ctx context.Context, name string, _ int) ([]queueimpl.Task, error) {
	id, err := tiredPop.Run(ctx, q.rdb, []string{name}).Text()
	if errors.Is(err, redis.Nil) {
		err = queueimpl.ErrEmpty
	}
	if err != nil {
		return nil, err
	}
	return []queueimpl.Task{{ID: id}}, nil
}

func (q tired) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	ids, err := q.rdb.LRange(ctx, name, 0, -1).Result()
	for _, id := range ids {
		s.Waiting = append(s.Waiting, queueimpl.Task{ID: id})
	}
	return s, err
}

// TestQueuesLateInASecond checks that queues are searched late in a second, too.
func TestQueuesLateInASecond(t *testing.T) {
	queue, _ := scenarios.Find("queue")
	c := Config{Bounds: reports.Bounds{Clients: 3, Tries: 1, Advances: 1}}
	c.Run = scenarios.Config{Scenario: queue, Queue: queueimpl.Variant{Name: "tired", Promises: []variant.Property{variant.NoDuplicateDelivery}, New: func(env variant.Env, _ queueimpl.Options) queueimpl.Queue {
		return tired{env.Redis[0]}
	}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Violated {
		t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
	}
	if !slices.ContainsFunc(r.Counterexample.Steps, func(s reports.Step) bool { return s.AtMS == 937 }) {
		t.Errorf("no step is late in a second: %+v", r.Counterexample.Steps)
	}
}

// TestShareOfTheTime checks that a search that has only a part of the time says so.
func TestShareOfTheTime(t *testing.T) {
	for _, c := range []struct {
		has, given float64
		want       string
	}{
		{29_990, 30_000, "was ended after 23.992s, its time limit (--time"},
		{2000, 30_000, "was ended after 1.6s, what earlier searches of this code had left of the time limit of 30s (--time"},
	} {
		x := &search{bounds: reports.Bounds{TimeMS: c.has}, given: c.given}
		if !x.stopped(t.Context()) || !strings.Contains(*x.cut.Load(), c.want) {
			t.Errorf("%v of %v ms: %q; want %q", c.has, c.given, *x.cut.Load(), c.want)
		}
	}
}

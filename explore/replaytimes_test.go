package explore

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// takeUntil stores the end of the lease by the server's clock, unless there is one already, and returns it; whether it was
// stored; and the microseconds of the server's clock.
var takeUntil = redis.NewScript(`local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000)
	local v = redis.call('get', KEYS[1])
	if v then return {v, 0, t[2]} end
	v = string.format('%.0f', now + ARGV[1])
	redis.call('set', KEYS[1], v) return {v, 1, t[2]}`)

// timedLocks break mutual-exclusion, and servers tell or are told times before that.
var timedLocks = []struct {
	name     string
	advances int
	acquire  acquiring
}{
	{"a waiter removes the first entry of a stream, and is the first then", 0, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		until := env.Clock.Now().Add(o.TTL)
		id, err := env.Redis[0].XAdd(ctx, &redis.XAddArgs{Stream: lockKey, Values: []string{"who", env.Token()}}).Result()
		for range 2 {
			var line []redis.XMessage
			if err == nil {
				line, err = env.Redis[0].XRangeN(ctx, lockKey, "-", "+", 1).Result()
			}
			if err != nil || len(line) == 1 && line[0].ID == id {
				return until, id, err
			}
			if len(line) == 1 {
				err = env.Redis[0].XDel(ctx, lockKey, line[0].ID).Err()
			}
		}
		return until, "", lockimpl.ErrHeld
	}},
	{"a script stores the end of the lease, which a waiter with a clock takes for over after a half", 1, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		now := env.Clock.Now()
		got, err := takeUntil.Run(ctx, env.Redis[0], []string{lockKey}, o.TTL.Milliseconds()).Slice()
		if err != nil {
			return now, "", err
		}
		end, err := strconv.ParseInt(got[0].(string), 10, 64)
		until := time.UnixMilli(end)
		if got[1] == int64(0) {
			if until.Sub(now) > o.TTL/2 {
				return now, "", lockimpl.ErrHeld
			}
			until = now.Add(o.TTL)
			err = env.Redis[0].Set(ctx, lockKey, until.UnixMilli(), 0).Err()
		}
		return until, got[0].(string), err
	}},
	{"a client names the second at which the key expires, and a waiter takes it just before", 1, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		until := env.Clock.Now().Add(o.TTL)
		err := env.Redis[0].SetArgs(ctx, lockKey, env.Token(), redis.SetArgs{Mode: "NX", ExpireAt: until}).Err()
		if errors.Is(err, redis.Nil) {
			var end time.Duration
			if end, err = env.Redis[0].PExpireTime(ctx, lockKey).Result(); err == nil && time.UnixMilli(end.Milliseconds()).Sub(env.Clock.Now()) <= 200*time.Millisecond {
				err = env.Redis[0].PExpireAt(ctx, lockKey, until).Err()
			} else if err == nil {
				err = lockimpl.ErrHeld
			}
		}
		return until, "", err
	}},
	{"a waiter takes a lock of which no whole second is left, as TTL rounds it", 1, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		until := env.Clock.Now().Add(o.TTL)
		err := put(ctx, env, lockKey, "x", o.TTL)
		if errors.Is(err, lockimpl.ErrHeld) {
			if left, rest := env.Redis[0].TTL(ctx, lockKey).Result(); rest == nil && left == 0 {
				err = env.Redis[0].Set(ctx, lockKey, "y", o.TTL).Err()
			}
		}
		return until, "", err
	}},
}

// TestReplayOfTimes checks that schedules in which servers tell or are told points in time break the same promise on a
// real server, whose clock is years ahead of the schedule's.
func TestReplayOfTimes(t *testing.T) {
	t.Parallel()
	mutex, _ := scenarios.Find("mutex")
	for _, l := range timedLocks {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: l.advances, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
			c.Run = scenarios.Config{Scenario: mutex, TTL: 2 * time.Second, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
				return &handmade{env: env, acquire: l.acquire}
			}}}
			r, err := Run(t.Context(), c)
			if err != nil || r.Verdict != reports.Violated {
				t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
			}
			if err := replays(t.Context(), c, r.Counterexample); err != nil {
				t.Error(err)
			}
		})
	}
}

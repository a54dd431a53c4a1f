package explore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// mutexOf searches a lock under the scenario mutex for mutual-exclusion.
func mutexOf(t *testing.T, make func(variant.Env) lockimpl.Locker, bounds reports.Bounds) reports.Exploration {
	t.Helper()
	mutex, _ := scenarios.Find("mutex")
	c := Config{Bounds: bounds, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
	c.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: make}}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// filling returns a script that acquires a lock and stores n instants in a list. The key of the first grant expires 150 ms
// before the promised end of the lease.
func filling(n int) *redis.Script {
	return redis.NewScript(fmt.Sprintf(`if redis.call('exists', KEYS[1]) == 1 then return 0 end
		local px = tonumber(ARGV[2])
		if redis.call('exists', 'ever') == 0 then px = px - 150 end
		redis.call('set', 'ever', 1)
		redis.call('set', KEYS[1], ARGV[1], 'px', px)
		redis.call('del', 'times')
		for i = 1, %d do redis.call('rpush', 'times', string.format('%%.0f', ARGV[3] + i * 19)) end
		return 1`, n))
}

// TestManyStoredTimes checks that an expiry is tried though many times come before it that the servers hold as data.
func TestManyStoredTimes(t *testing.T) {
	for _, n := range []int{2, 70} {
		script := filling(n)
		r := mutexOf(t, func(env variant.Env) lockimpl.Locker {
			return &handmade{env: env, release: dropping(lockKey), acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
				v, now := env.Token(), env.Clock.Now()
				got, err := script.Run(ctx, env.Redis[0], []string{lockKey}, v, o.TTL.Milliseconds(), now.UnixMilli()).Int()
				if err == nil && got == 0 {
					err = lockimpl.ErrHeld
				}
				return now.Add(o.TTL), v, err
			}}
		}, reports.Bounds{Clients: 2, Tries: 1, Advances: 1, TimeMS: 60_000})
		if r.Verdict != reports.Violated || len(r.Counterexample.Steps) != 3 {
			t.Errorf("%d times: %s: %s", n, r.Verdict, r.Why)
		}
		if many := n == 70; strings.Contains(strings.Join(r.NotChecked, "\n"), "all the times that the servers hold") != many {
			t.Errorf("%d times: not checked: %q", n, r.NotChecked)
		}
	}
}

// waiter is a lock without an expiry. A client that finds the same value for five seconds takes the lock over, without a
// check.
type waiter struct {
	handmade
	seen   string
	at     time.Time
	before bool // it reads the clock before GET
}

func (w *waiter) Acquire(ctx context.Context, key string, _ lockimpl.Options) (lockimpl.Lock, error) {
	r, v := w.env.Redis[0], w.env.Token()
	l := lockimpl.Lock{Key: key, Token: v}
	if ok, err := r.SetNX(ctx, lockKey, v, 0).Result(); ok || err != nil {
		return l, err
	}
	now := w.env.Clock.Now()
	is, err := get(ctx, r, lockKey)
	if err != nil {
		return l, err
	}
	if !w.before {
		now = w.env.Clock.Now()
	}
	if is == "" {
		return l, lockimpl.ErrHeld
	}
	if is != w.seen {
		w.seen, w.at = is, now
		return l, lockimpl.ErrHeld
	}
	if now.Sub(w.at) < 5*time.Second {
		return l, lockimpl.ErrHeld
	}
	return l, r.Set(ctx, lockKey, v, 0).Err()
}

// configured is a lock that reads its clock, then so many settings, and takes the lock over without a check five seconds
// after its first look.
type configured struct {
	handmade
	first time.Time
	reads int
}

func (c *configured) Acquire(ctx context.Context, key string, _ lockimpl.Options) (lockimpl.Lock, error) {
	now, v := c.env.Clock.Now(), c.env.Token()
	if c.first.IsZero() {
		c.first = now
	}
	for range c.reads {
		if _, err := get(ctx, c.env.Redis[0], "cfg"); err != nil {
			return lockimpl.Lock{}, err
		}
	}
	if now.Sub(c.first) >= 5*time.Second {
		return lockimpl.Lock{Key: key, Token: v}, c.env.Redis[0].Set(ctx, lockKey, v, 0).Err()
	}
	return lockimpl.Lock{Key: key, Token: v}, put(ctx, c.env, lockKey, v, 0)
}

// TestTimeUsedAfterCommands checks that a search finds locks that read the clock, and use the time only after commands
// whose answers depend on what the servers hold.
func TestTimeUsedAfterCommands(t *testing.T) {
	with := func(env variant.Env) handmade { return handmade{env: env, release: dropping(lockKey)} }
	for name, make := range map[string]func(env variant.Env) lockimpl.Locker{
		"read after GET":  func(env variant.Env) lockimpl.Locker { return &waiter{handmade: with(env)} },
		"read before GET": func(env variant.Env) lockimpl.Locker { return &waiter{handmade: with(env), before: true} },
		"3 settings":      func(env variant.Env) lockimpl.Locker { return &configured{handmade: with(env), reads: 3} },
		"4 settings":      func(env variant.Env) lockimpl.Locker { return &configured{handmade: with(env), reads: 4} },
		"9 settings":      func(env variant.Env) lockimpl.Locker { return &configured{handmade: with(env), reads: 9} },
	} {
		t.Run(name, func(t *testing.T) {
			r := mutexOf(t, make, reports.Bounds{Clients: 2, Tries: 2, Advances: 2, Stalls: 1, Crashes: 1, Lost: 1, Late: 1, TimeMS: 60_000})
			if r.Verdict != reports.Violated {
				t.Errorf("%s: %s; not checked: %q", r.Verdict, r.Why, r.NotChecked)
			}
			t.Logf("%s in %.0f ms, %d states, %d steps", r.Verdict, r.Stats.ElapsedMS, r.Stats.States, r.Stats.Depth)
		})
	}
}

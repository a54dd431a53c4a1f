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

// filling returns a script that acquires a lock and stores n times. The first grant of all expires after half the lease.
func filling(n int) *redis.Script {
	return redis.NewScript(fmt.Sprintf(`if redis.call('exists', KEYS[1]) == 1 then return 0 end
		local px = tonumber(ARGV[2])
		if redis.call('exists', 'ever') == 0 then px = px / 2 end
		redis.call('set', 'ever', 1)
		redis.call('set', KEYS[1], ARGV[1], 'px', px)
		redis.call('del', 'times')
		for i = 1, %d do redis.call('rpush', 'times', string.format('%%.0f', ARGV[3] + i * 10)) end
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

package explore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestTimeOfDay checks locks that depend on their client's clock in ways that show only at some instants.
func TestTimeOfDay(t *testing.T) {
	type acquire = func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error)
	// keyed returns the acquire function of a lock whose key depends on the time.
	keyed := func(name func(now time.Time) string) acquire {
		return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			now := env.Clock.Now()
			return now.Add(o.TTL), "", put(ctx, env, "lock"+name(now), "x", o.TTL)
		}
	}
	// valued returns the acquire function of a lock whose value depends on the time.
	valued := func(value func(now time.Time) string) acquire {
		return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			now := env.Clock.Now()
			return now.Add(o.TTL), "", put(ctx, env, lockKey, value(now), o.TTL)
		}
	}
	// careless returns an acquire function that takes the lock even from a holder if in reports true for the time.
	careless := func(in func(now time.Time) bool) acquire {
		return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			now := env.Clock.Now()
			if in(now) {
				return now.Add(o.TTL), "", env.Redis[0].Set(ctx, lockKey, "x", o.TTL).Err()
			}
			return now.Add(o.TTL), "", put(ctx, env, lockKey, "x", o.TTL)
		}
	}
	late := func(now time.Time) bool { return now.Sub(Epoch) >= 10*time.Second }
	// slow names the cases that take long and differ little from others. Only the long tests search them.
	slow := map[string]bool{"minutes in a key, after a letter": true, "odd and even ten seconds in a key": true}
	for name, c := range map[string]struct {
		want    string
		most    int64 // states
		acquire acquire
	}{
		"minutes in a key, after a letter":  {reports.Violated, 0, keyed(func(now time.Time) string { return fmt.Sprint("x", now.Unix()/60) })},
		"a version in a key":                {reports.Violated, 0, keyed(func(now time.Time) string { return map[bool]string{false: "v1", true: "v2"}[late(now)] })},
		"a date in a key":                   {reports.Violated, 0, keyed(func(now time.Time) string { return now.Format("20060102T1504") })},
		"odd and even minutes in a key":     {reports.Violated, 0, keyed(func(now time.Time) string { return fmt.Sprint(":", now.Unix()/60%2) })},
		"odd and even ten seconds in a key": {reports.Violated, 0, keyed(func(now time.Time) string { return fmt.Sprint(":", now.Unix()/10%2) })},
		"careless for ten seconds":          {reports.Violated, 0, careless(func(now time.Time) bool { return now.Second()/10 == 1 })},
		"careless in one minute":            {reports.Violated, 0, careless(func(now time.Time) bool { return now.Minute() == 30 })},
		"careless in one second":            {reports.Violated, 0, careless(func(now time.Time) bool { return now.Second() == 59 })},
		"careless in the last millisecond":  {reports.Violated, 0, careless(func(now time.Time) bool { return now.Sub(Epoch) == 9999*time.Millisecond })},
		"a script's mode": {reports.Violated, 0, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			mode, now := 1, env.Clock.Now()
			if late(now) {
				mode = 2
			}
			n, err := env.Redis[0].Eval(ctx, `if ARGV[1] == "1" and redis.call("EXISTS", KEYS[1]) == 1 then return 0 end redis.call("SET", KEYS[1], "x", "PX", ARGV[2]) return 1`, []string{lockKey}, mode, o.TTL.Milliseconds()).Int()
			if err == nil && n == 0 {
				err = lockimpl.ErrHeld
			}
			return now.Add(o.TTL), "", err
		}},
		"a shorter lease from some instant on": {reports.Violated, 0, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			now, lease := env.Clock.Now(), o.TTL
			if late(now) {
				lease /= 3
			}
			return now.Add(o.TTL), "", put(ctx, env, lockKey, "x", lease)
		}},
		"a longer promise from some instant on": {reports.Violated, 0, func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			now := env.Clock.Now()
			until := now.Add(o.TTL)
			if late(now) {
				until = until.Add(time.Second)
			}
			return until, "", put(ctx, env, lockKey, "x", o.TTL)
		}},
		"a constant":                 {reports.Pass, 60, valued(func(time.Time) string { return "x" })},
		"seconds as a value":         {reports.Pass, 340, valued(func(now time.Time) string { return fmt.Sprint(now.Unix() + 2) })},
		"milliseconds as a value":    {reports.Pass, 440, valued(func(now time.Time) string { return fmt.Sprint("until ", now.UnixMilli()+1500) })},
		"nanoseconds since a day":    {reports.Pass, 300, valued(func(now time.Time) string { return fmt.Sprint(now.Sub(Epoch.AddDate(0, -1, 0)).Nanoseconds()) })},
		"base 36":                    {reports.Pass, 300, valued(func(now time.Time) string { return strconv.FormatInt(now.UnixMilli(), 36) })},
		"a date":                     {reports.Pass, 300, valued(func(now time.Time) string { return now.Format(time.RFC3339Nano) })},
		"seconds with a fraction":    {reports.Pass, 300, valued(func(now time.Time) string { return strconv.FormatFloat(float64(now.UnixMicro())/1e6, 'f', -1, 64) })},
		"what is left of the minute": {reports.Pass, 400, valued(func(now time.Time) string { return fmt.Sprint(60_000 - now.UnixMilli()%60_000) })},
	} {
		if slow[name] && !long() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mutex, _ := scenarios.Find("mutex")
			config := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 2, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
			config.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
				return &handmade{env: env, acquire: c.acquire}
			}}}
			r, err := Run(t.Context(), config)
			if err != nil || r.Verdict != c.want {
				t.Fatalf("%s: %s, %v; want %s", r.Verdict, r.Why, err, c.want)
			}
			if strings.Contains(fmt.Sprint(r.NotChecked), "clients that use the time in other ways") {
				t.Error(r.NotChecked)
			}
			t.Log(r.Stats.States, "states,", r.Stats.Executions, "executions")
			if c.most > 0 && r.Stats.States > c.most {
				t.Errorf("%d states; %d at most", r.Stats.States, c.most)
			}
		})
	}
}

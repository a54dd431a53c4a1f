package explore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// byScript returns an acquire function that runs a script with the token and the lease in milliseconds. The script returns
// whether it has granted the lock.
func byScript(script string) acquiring {
	s := redis.NewScript(script)
	return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
		until := env.Clock.Now().Add(o.TTL)
		granted, err := s.Run(ctx, env.Redis[0], []string{lockKey}, env.Token(), o.TTL.Milliseconds()).Bool()
		if err == nil && !granted {
			err = lockimpl.ErrHeld
		}
		return until, "", err
	}
}

// keyPer returns a script that takes another key every so many seconds of the server's clock.
func keyPer(seconds int) string {
	return fmt.Sprintf(`local t = redis.call('time')
		return redis.call('set', KEYS[1] .. math.floor(t[1] / %d), ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`, seconds)
}

// cutTo returns a script that stores the end of the lease by the server's clock, in units of so many milliseconds.
func cutTo(ms int) string {
	return fmt.Sprintf(`local t = redis.call('time') local now = math.floor((t[1] * 1000 + math.floor(t[2] / 1000)) / %d)
		local v = redis.call('get', KEYS[1]) if v and tonumber(v) > now then return 0 end
		redis.call('set', KEYS[1], string.format('%%.0f', now + ARGV[2] / %d)) return 1`, ms, ms)
}

// TestScriptsThatCutTheServersClock checks locks and ids of scripts that treat seconds, minutes, hours or days of the
// server's clock differently.
func TestScriptsThatCutTheServersClock(t *testing.T) {
	t.Parallel()
	mutex, _ := scenarios.Find("mutex")
	for _, l := range []struct {
		name    string
		acquire acquiring
		want    string
	}{
		{"a key per minute", byScript(keyPer(60)), reports.Violated},
		{"a key per hour", byScript(keyPer(3600)), reports.Violated},
		{"a key per day", byScript(keyPer(86_400)), reports.Violated},
		{"a key per hour of the time that a client has asked the server for", func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			until := env.Clock.Now().Add(o.TTL)
			now, err := env.Redis[0].Time(ctx).Result()
			if err == nil {
				err = put(ctx, env, now.UTC().Format("lock:15"), "x", o.TTL)
			}
			return until, "", err
		}, reports.Violated},
		{"tenths of a second", byScript(cutTo(100)), reports.Violated},
		{"hundredths of a second", byScript(cutTo(10)), reports.Violated},
		{"whole milliseconds", byScript(cutTo(1)), reports.Pass},
		{"grants are counted by the minute", byScript(`local t = redis.call('time')
			redis.call('hincrby', 'grants', math.floor(t[1] / 60), 1)
			return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`), reports.Pass},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 2, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
			c.Run = scenarios.Config{Scenario: mutex, TTL: 1500 * time.Millisecond, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
				return &handmade{env: env, acquire: l.acquire}
			}}}
			r, err := Run(t.Context(), c)
			if err != nil || r.Verdict != l.want {
				t.Fatalf("%s: %s, %v; want %s", r.Verdict, r.Why, err, l.want)
			}
			if l.name == "a key per minute" { // it waits for the end of one
				if err := replaysOften(t.Context(), 1, c, r.Counterexample); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// restarting is a generator whose numbers begin with 1 again every so many seconds of the server's clock.
type restarting struct {
	env   variant.Env
	every int
}

var countAgain = redis.NewScript(`local t = redis.call('time') return redis.call('incr', 'seq:' .. math.floor(t[1] / ARGV[1]))`)

func (g *restarting) Next(ctx context.Context, _ string, _ lockimpl.Lock) (int64, error) {
	return countAgain.Run(ctx, g.env.Redis[0], nil, g.every).Int64()
}

func (g *restarting) Last(context.Context) (int64, error) { return 1 << 40, nil }

// TestIDsThatBeginAgain checks that numbers that begin again every minute, hour or day are found not to be unique.
func TestIDsThatBeginAgain(t *testing.T) {
	t.Parallel()
	ids, _ := scenarios.Find("ids")
	none, _ := lockimpl.Find("none")
	for _, seconds := range []int{60, 3600, 86_400} {
		c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 2, TimeMS: 60_000}}
		c.Run = scenarios.Config{Scenario: ids, Lock: none, IDs: idimpl.Variant{
			Name: "restarting", Promises: []variant.Property{variant.UniqueIDs},
			New: func(env variant.Env, _ string) idimpl.Generator { return &restarting{env, seconds} },
		}}
		r, err := Run(t.Context(), c)
		if err != nil || r.Verdict != reports.Violated {
			t.Errorf("numbers that begin again every %d seconds: %s: %s, %v; want violated", seconds, r.Verdict, r.Why, err)
		}
	}
}

package explore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// TestLastMillisecondOfALease checks that a search tries the last millisecond of a lease, though a time that the server holds comes before it.
// The lock can be taken over 99 ms after the stored time; one client is promised 100 ms.
func TestLastMillisecondOfALease(t *testing.T) {
	take := redis.NewScript(`local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000)
		local until_ms = redis.call('get', KEYS[1])
		if until_ms and now < tonumber(until_ms) + tonumber(ARGV[2]) then return 0 end
		redis.call('set', KEYS[1], string.format('%.0f', now + ARGV[1])) return 1`)
	for grace, want := range map[int64]string{99: reports.Violated, 100: reports.Pass} {
		r := mutexOf(t, func(env variant.Env) lockimpl.Locker {
			return &handmade{env: env, acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
				start, v := env.Clock.Now(), env.Token()
				got, err := take.Run(ctx, env.Redis[0], []string{lockKey}, o.TTL.Milliseconds(), grace).Int()
				if err == nil && got == 0 {
					err = lockimpl.ErrHeld
				}
				return start.Add(o.TTL + 100*time.Millisecond), v, err
			}}
		}, reports.Bounds{Clients: 2, Tries: 1, Advances: 1, TimeMS: 60_000})
		if r.Verdict != want {
			t.Errorf("taken over %d ms after the stored time: the search ended in %s (%s); want %s", grace, r.Verdict, r.Why, want)
		}
	}
}

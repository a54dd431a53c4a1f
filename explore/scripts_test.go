package explore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestScriptExists checks that a lock is searched that asks whether the server knows its script, and loads it otherwise.
func TestScriptExists(t *testing.T) {
	take := redis.NewScript(`if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`)
	free := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	run := func(ctx context.Context, rdb redis.UniversalClient, s *redis.Script, args ...any) (int, error) {
		known, err := s.Exists(ctx, rdb).Result()
		if err == nil && !known[0] {
			err = s.Load(ctx, rdb).Err()
		}
		if err != nil {
			return 0, err
		}
		return s.EvalSha(ctx, rdb, []string{"lock"}, args...).Int()
	}
	mutex, _ := scenarios.Find("mutex")
	c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, Run: scenarios.Config{Scenario: mutex, Hold: time.Millisecond, Lock: lockimpl.Variant{
		Name: "asks", Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease},
		New: func(env variant.Env) lockimpl.Locker {
			return &handmade{env: env,
				acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
					until, token := env.Clock.Now().Add(o.TTL), env.Token()
					n, err := run(ctx, env.Redis[0], take, token, o.TTL.Milliseconds())
					if err == nil && n == 0 {
						err = lockimpl.ErrHeld
					}
					return until, token, err
				},
				release: func(ctx context.Context, env variant.Env, l lockimpl.Lock) error {
					n, err := run(ctx, env.Redis[0], free, l.Token)
					if err == nil && n == 0 {
						err = lockimpl.ErrLost
					}
					return err
				}}
		},
	}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Pass || r.Stats.Entered == 0 {
		t.Errorf("%s: %s, %v; want that it holds", r.Verdict, r.Why, err)
	}
}

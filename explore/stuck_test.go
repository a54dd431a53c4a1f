package explore

import (
	"context"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestRenewedByThoseWhoAsk checks that a search says so if those who ask for a lock keep it from expiring.
func TestRenewedByThoseWhoAsk(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	for _, renews := range []bool{false, true} {
		lock := lockimpl.Variant{Name: "handmade", Promises: []variant.Property{variant.Progress}, New: func(env variant.Env) lockimpl.Locker {
			return &handmade{env: env, release: dropping(lockKey), acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
				v, until := env.Token(), env.Clock.Now().Add(o.TTL)
				ttl := o.TTL
				if !renews {
					ttl = 0
				}
				err := put(ctx, env, lockKey, v, ttl)
				if err == lockimpl.ErrHeld && renews {
					_ = env.Redis[0].PExpire(ctx, lockKey, o.TTL).Err()
				}
				return until, v, err
			}}
		}}
		r, err := Run(t.Context(), Config{
			Run: scenarios.Config{Scenario: mutex, Lock: lock}, Bounds: reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, TimeMS: 60_000},
			Look: []history.Promise{{Of: variant.Lock, Property: variant.Progress}},
		})
		if err != nil || r.Verdict != reports.Violated {
			t.Fatalf("the search ended in %s (%s), %v; want %s", r.Verdict, r.Why, err, reports.Violated)
		}
		if says := strings.Contains(r.Counterexample.Sentence, "its attempts moved the expiry"); says != renews {
			t.Errorf("the expiry is moved: %t; the search says %q", renews, r.Counterexample.Sentence)
		}
	}
}

package explore

import (
	"context"
	"testing"
	"time"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestBackgroundRelease checks that what a release does in the background counts as the release's, even if the client has ended by then.
func TestBackgroundRelease(t *testing.T) {
	for _, c := range []struct {
		name    string
		release releasing
		want    string
		leases  time.Duration // how many leases are promised
	}{
		{"by its name", deleting(lockKey), reports.Violated, 1},
		{"by its token", dropping(lockKey), reports.Pass, 1},
		{"by its token, of a lock that two may hold", dropping(lockKey), reports.Pass, 2},
		{"after a look", func(ctx context.Context, env variant.Env, l lockimpl.Lock) error {
			if v, err := get(ctx, env.Redis[0], lockKey); err != nil || v != l.Token {
				return err
			}
			return deleting(lockKey)(ctx, env, l)
		}, reports.Violated, 1},
	} {
		for tries := 1; tries <= 2; tries++ {
			t.Run(c.name, func(t *testing.T) {
				mutex, _ := scenarios.Find("mutex")
				s := Config{Bounds: reports.Bounds{Clients: 2, Tries: tries, Advances: 1, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: ownerP}}}
				s.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
					return &handmade{env: env, acquire: granting(lockKey, func(_ variant.Env, start time.Time, ttl time.Duration) time.Time { return start.Add(c.leases * ttl) }), release: func(_ context.Context, env variant.Env, l lockimpl.Lock) error {
						env.Go(func(context.Context) { _ = c.release(context.Background(), env, l) })
						return nil
					}}
				}}}
				r, err := Run(t.Context(), s)
				if err != nil || r.Verdict != c.want {
					t.Errorf("%d tries: the search ended in %s (%s), %v; want %s", tries, r.Verdict, r.Why, err, c.want)
				}
			})
		}
	}
}

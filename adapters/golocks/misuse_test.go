package golocks

import (
	"context"
	"os"
	"testing"
	"time"

	"oversell/explore"
	"oversell/lockimpl"
	"oversell/lockimpl/locktest"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// byDelete is a lock that is released with a plain DEL, as in code that ignores the token.
type byDelete struct {
	lockimpl.Locker
	env variant.Env
}

func (b byDelete) Release(ctx context.Context, l lockimpl.Lock) error {
	return b.env.Redis[0].Del(ctx, lockimpl.Key(l.Key)).Err()
}

// fromAnswer is a lock whose lease begins when the answer arrives, not when the command is sent.
type fromAnswer struct{ lockimpl.Locker }

func (f fromAnswer) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := f.Locker.Acquire(ctx, key, o)
	l.Until = time.Now().Add(o.TTL)
	return l, err
}

// TestMisuseIsFound shows that the searches of this package can fail: it searches each library when it is used wrongly,
// within bounds in which the long tests prove that the library, used correctly, holds.
func TestMisuseIsFound(t *testing.T) {
	for _, v := range []lockimpl.Variant{Redislock, Redsync} {
		use := v.New
		for _, how := range []struct {
			name   string
			breaks variant.Property
			use    func(variant.Env) lockimpl.Locker
		}{
			{"as it is meant", "", use},
			{"release by DEL", variant.OwnerOnlyRelease, func(env variant.Env) lockimpl.Locker { return byDelete{use(env), env} }},
			{"lease from the answer", variant.MutualExclusion, func(env variant.Env) lockimpl.Locker { return fromAnswer{use(env)} }},
		} {
			t.Run(v.Name+" "+how.name, func(t *testing.T) {
				b := reports.Bounds{Clients: 2, Tries: 2, Advances: 2, Stalls: 1}
				if how.breaks == "" && (slow || os.Getenv("OVERSELL_LONG") == "") {
					b.Tries, b.Advances = 1, 1 // with two tries there are fifty thousand states
				}
				v.New = how.use
				r := search(t, scenarios.Config{Lock: v}, b)
				broken := variant.Property("")
				if r.Counterexample != nil {
					broken = r.Counterexample.Property
				}
				if r.Verdict == reports.Inconclusive || broken != how.breaks {
					t.Errorf("it is %s (%s); want %q broken", r.Verdict, r.Why, how.breaks)
				}
			})
		}
	}
}

// TestRetries checks that both libraries can be searched when they wait for the lock in their own way, by their own
// timers.
func TestRetries(t *testing.T) {
	for _, v := range []lockimpl.Variant{Redislock, Redsync} {
		t.Run(v.Name, func(t *testing.T) {
			b := reports.Bounds{Clients: 2, Tries: 1, Advances: 1, Stalls: 1}
			if os.Getenv("OVERSELL_LONG") == "1" {
				b.Advances = 2 // takes a minute
			}
			r := search(t, scenarios.Config{Lock: v, MaxTries: 2}, b)
			if r.Verdict != reports.Pass {
				t.Errorf("it is %s: %s", r.Verdict, r.Why)
			}
			t.Logf("%d states, %d executions", r.Stats.States, r.Stats.Executions)
		})
	}
}

// search runs a search in bubbles with a configuration that ExploreBubble does not allow.
func search(t *testing.T, c scenarios.Config, b reports.Bounds) reports.Exploration {
	t.Helper()
	c.Scenario, _ = scenarios.Find("mutex")
	s := explore.Config{Run: c, Bounds: b}
	s.Start = locktest.Bubbles(t, s)
	r, err := explore.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

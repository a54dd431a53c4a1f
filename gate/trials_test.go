package gate

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// silent is a watcher that ignores everything.
type silent struct{ unwatched }

func (silent) Entry(int, int, string) {}
func (silent) Said(string)            {}

// slowed is a lock that makes every round of its client take longer by a share. It spends that time as the lock
// itself does, waiting for replies. Sleeping would be too coarse. Computing would keep the CPU busy, and a busy CPU
// answers sooner than an idle one: on an idle machine the lock would hardly be slower.
type slowed struct {
	lockimpl.Locker
	redis redis.UniversalClient
	part  float64
	since time.Time     // the round began
	owed  time.Duration // how much longer the rounds so far should have taken
}

// Acquire also spends the time that is owed.
func (s *slowed) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := s.Locker.Acquire(ctx, key, o)
	if !s.since.IsZero() {
		s.owed += time.Duration(float64(time.Since(s.since)) * s.part)
	}
	for s.owed > 0 {
		began := time.Now()
		s.redis.Exists(ctx, "nothing")
		s.owed -= time.Since(began)
	}
	s.since = time.Now()
	return l, err
}

// loaded writes a plan with this text to a temporary directory and loads it.
func loaded(t *testing.T, text string) (*Plan, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Load(t.Context(), path)
}

func mustLoad(t *testing.T, text string) *Plan {
	t.Helper()
	p, err := loaded(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// trialPlan compares lua-release with itself.
const trialPlan = `
performance:
  - name: a trial
    run: {target: process, scenario: mutex, lock: lua-release, clients: 1, hold: 1us, duration: 60ms}
    baseline: {lock: lua-release}
`

// trial compares lua-release, slowed by a share, with itself.
func trial(t *testing.T, seed uint64, part float64) reports.Gate {
	t.Helper()
	p := mustLoad(t, trialPlan)
	lock := &p.speed[0].candidate.Runs[0].Lock
	if open := lock.New; part > 0 {
		lock.New = func(env variant.Env) lockimpl.Locker {
			return &slowed{Locker: open(env), redis: env.Redis[0], part: part}
		}
	}
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	g, err := p.Run(t.Context(), Options{Dir: dir, Seed: seed}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTrials measures how often the gate detects a lock that is slower by 30 %, and how often it raises an alarm
// for one that is not. It takes about ten seconds per trial:
//
//	make trials
func TestTrials(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("OVERSELL_TRIALS"))
	if n < 1 {
		return // gate_test.go shows that a slower candidate is found
	}
	servertest.NeedServer(t)
	count := map[string]map[int]int{"slowed": {}, "equal": {}}
	rounds := 0
	for i := range n {
		for _, x := range []struct {
			kind string
			part float64
		}{{"slowed", 0.30}, {"equal", 0}} {
			g := trial(t, uint64(2*i+1), x.part)
			count[x.kind][g.ExitCode()]++
			rounds += g.Performance[0].Rounds
			t.Logf("%3d %s: exit code %d after %d rounds, %.1f s: %+v", i+1, x.kind, g.ExitCode(), g.Performance[0].Rounds, g.ElapsedMS/1000, brief(g))
		}
	}
	t.Logf("slowed by 30 %%: %v; equal: %v (exit codes and how often); %.1f rounds each", count["slowed"], count["equal"], float64(rounds)/float64(2*n))
	if found := count["slowed"][reports.ExitRegression]; found*100 < 95*n {
		t.Errorf("slower by 30 %%: %d alarms in %d trials; must be 95 of 100", found, n)
	}
	if wrong := count["equal"][reports.ExitRegression]; wrong*100 > max(n, 100) {
		t.Errorf("equal: %d alarms in %d trials; may be 1 in 100", wrong, n)
	}
}

// brief returns the verdicts and sentences of a trial's measures.
func brief(g reports.Gate) (said []string) {
	for _, m := range g.Performance[0].Measures {
		said = append(said, m.Verdict+": "+m.Sentence())
	}
	return said
}

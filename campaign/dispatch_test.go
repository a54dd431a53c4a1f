package campaign

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"oversell/campaign/judging"
	"oversell/database"
	"oversell/database/databasetest"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// databases are the real databases of these tests, started when first needed.
var databases databasetest.Servers

func TestMain(m *testing.M) {
	logging.Disable() // the driver reports failed dials on stderr, and here they are intended
	os.Exit(databases.Run(m))
}

func dispatchOptions(t *testing.T, kind, lock string) Options {
	t.Helper()
	o := onRealRedis(lock)
	o.Scenario, o.Clients, o.Ops, o.TTL = "dispatch", 16, 80, time.Second
	o.SQL = database.Spec{DSN: databases.DSN(t, kind)}
	return o
}

// TestDispatch checks, on every database, that a task has one holder at a time under a sound lock, and two under a
// flawed one.
func TestDispatch(t *testing.T) {
	for _, kind := range databasetest.Kinds {
		for _, c := range []struct{ lock, verdict string }{
			{"none", reports.Violated},
			{"php-lock-printed", reports.Violated},
			{"lua-release", reports.Pass},
			{"php-lock-atomic", reports.Pass},
			{"fair", reports.Pass}, // each task has its own wait line, in which nobody waits
		} {
			t.Run(kind+" "+c.lock, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(5) {
					o := dispatchOptions(t, kind, c.lock)
					o.Seed = seed
					if c.verdict == reports.Violated { // the run would wait for the lease of the printed lock
						o.Abandon = scenarios.None
					}
					r := ranOnce(t, o).Runs[0]
					b := broken(r)
					switch {
					case c.verdict == reports.Pass && r.Overruns > 0: // on a busy machine a task may outlive its lease
						continue
					case r.Expected != c.verdict:
						t.Fatalf("declared: %s", r.Expected)
					case c.verdict == reports.Violated && slices.Contains(b, variant.OneHolderPerTask) && r.Verdict == c.verdict:
						return
					case c.verdict == reports.Pass && r.Verdict == c.verdict:
						return
					case judging.Uncontended(r.Why): // each task has a lock of its own, which hardly any two clients want
						continue
					case c.verdict == reports.Pass:
						t.Errorf("%s, broke %v; %s %q", r.Verdict, b, r.Why, r.Notes)
						for _, p := range r.Properties {
							t.Logf("%s of %s: %s: %s", p.Name, p.Of, p.Result, p.Why)
						}
						return
					}
				}
				if c.verdict == reports.Violated {
					t.Error("no task had two holders in 5 runs")
				}
			})
		}
	}
}

// TestUsersWhoComeBackTooLate checks that tasks return to the pool when their users are late. Late commits succeed
// under a lock alone, and are refused with fencing tokens.
func TestUsersWhoComeBackTooLate(t *testing.T) {
	for _, c := range []struct {
		lock, verdict string
		breaks        variant.Property
	}{
		{"lua-release", reports.Violated, variant.HolderCommits},
		{"fenced", reports.Pass, ""},
	} {
		t.Run(c.lock, func(t *testing.T) {
			o := dispatchOptions(t, databasetest.Kinds[0], c.lock)
			o.TTL, o.Die, o.Ops = 200*time.Millisecond, 0.3, 150
			r := ranOnce(t, o).Runs[0]
			b := broken(r)
			// Each task has a lock of its own, which few clients want. On a busy machine leases end before their
			// grants arrive.
			open := c.verdict == reports.Pass && (judging.Uncontended(r.Why) || r.Why == judging.NotDecided)
			if r.Verdict != c.verdict && !open || r.Expected != c.verdict || (c.breaks != "" && !slices.Contains(b, c.breaks)) || slices.Contains(b, variant.TaskReturns) {
				t.Errorf("%s (declared %s), broke %v; want %s %s; %s %q", r.Verdict, r.Expected, b, c.verdict, c.breaks, r.Why, r.Notes)
				for _, p := range r.Properties {
					t.Logf("%s of %s: %s: %s", p.Name, p.Of, p.Result, p.Why)
				}
			}
		})
	}
}

// TestSubmittedByTheDead checks that a task counts as done even if its user died before the answer to the submit, so
// that the run ends when all tasks are done.
func TestSubmittedByTheDead(t *testing.T) {
	o := dispatchOptions(t, databasetest.Kinds[0], "lua-release")
	o.Faults = []string{"crash holder 5% times 5"}
	r := ranOnce(t, o).Runs[0]
	if strings.Contains(r.Why, "cut short") || r.Faults[0].Fired == 0 {
		t.Errorf("%s: %s; %v", r.Verdict, r.Why, r.Faults)
	}
}

// TestOneUserDoesEveryTask checks that a single user does all tasks, and that the run then ends.
func TestOneUserDoesEveryTask(t *testing.T) {
	o := dispatchOptions(t, databasetest.Kinds[0], "lua-release")
	o.Clients = 1
	r := ranOnce(t, o).Runs[0]
	if n := r.Latency["submit"].Count; n != o.Ops || strings.Contains(r.Why, "some clients had no answer") {
		t.Errorf("%d of %d tasks were submitted: %s", n, o.Ops, r.Why)
	}
}

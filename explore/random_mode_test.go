package explore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/reports"
	"oversell/server"
)

// TestGoesOnAtRandom checks that a search that cannot finish goes on with random schedules and says how many it has
// tried. The long tests also check that it finds a violation, in a schedule that replays.
func TestGoesOnAtRandom(t *testing.T) {
	t.Parallel()
	for _, s := range []sought{
		{name: "finds", scenario: "seckill", lock: "redlock", sale: "plain", stock: 1, bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 2, Lost: 1}},
		{name: "finds nothing", lock: "redlock", bounds: reports.Bounds{Clients: 3, Tries: 2, Advances: 2, Lost: 1}},
	} {
		if (raced || !long()) && s.name == "finds" {
			continue // it takes a minute, or several under the race detector
		}
		t.Run(s.name, func(t *testing.T) {
			c := s.config(t)
			c.Exhaustive = false
			c.Bounds.TimeMS, c.Bounds.MemoryMB = 600_000, 1 // the bound on memory ends the search of all schedules
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
			defer stop()
			told := 0
			c.Progress = func(e reports.Effort) {
				if told += int(flag(e.Random != nil && e.Random.Schedules > 0)); told > 1 && s.name != "finds" {
					stop()
				}
			}
			r, err := Run(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Verdict, r.Why, r.Stats.Random)
			if told == 0 {
				t.Error("the progress said nothing of schedules at random")
			}
			if r.Stats.Random == nil || r.Stats.Random.Schedules == 0 {
				t.Fatalf("%s, %s: nothing was tried at random", r.Verdict, r.Why)
			}
			if s.name != "finds" {
				if r.Verdict != reports.Inconclusive || !strings.Contains(r.Why, "schedules at random") {
					t.Errorf("%s: %s", r.Verdict, r.Why)
				}
				return
			}
			if r.Verdict != reports.Violated {
				t.Fatalf("%s: %s", r.Verdict, r.Why)
			}
			if n := len(r.Counterexample.Steps); n > 40 {
				t.Errorf("the schedule has %d steps", n)
			}
			var servers []*redis.Options
			for range 3 {
				target, err := server.Open(t.Context(), server.Spec{Target: "process"})
				if err != nil {
					t.Fatal(err)
				}
				defer target.Close()
				servers = append(servers, target.Options(0, server.ConnOptions{}))
			}
			got, err := Replay(t.Context(), c, r.Counterexample, servers)
			if err != nil || got == nil || got.Name != r.Counterexample.Property {
				t.Errorf("on real servers: %v, %v", got, err)
			}
		})
	}
}

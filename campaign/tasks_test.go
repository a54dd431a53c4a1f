package campaign

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/reports"
	"oversell/variant"
)

func queueOptions(queue string, locks ...string) Options {
	o := onRealRedis(locks...)
	o.Scenario, o.Queue = "queue", queue
	o.Clients, o.Ops = 32, 600
	o.Retry = 2 * time.Millisecond
	return o
}

// TestQueueUnderThePrintedLock checks that load alone breaks the queue that relies on the printed lock.
func TestQueueUnderThePrintedLock(t *testing.T) {
	for seed := range uint64(5) {
		o := queueOptions("zset-locked", "php-lock-printed")
		o.Seed = seed
		r := ranOnRedis(t, o).Runs[0]
		if r.Expected != reports.Violated {
			t.Fatalf("declared: %s", r.Expected)
		}
		if slices.Contains(broken(r), variant.MutualExclusion) && brokeOf(r, variant.Queue) != "" {
			return
		}
		t.Logf("seed %d: %s, broke %v", seed, r.Verdict, broken(r))
	}
	t.Error("the printed lock kept the queue's consumers apart in every run")
}

// brokeOf names the promised properties of an object that a run broke.
func brokeOf(r reports.Run, of variant.Object) string {
	var names []string
	for _, p := range r.Properties {
		if p.Of == of && p.Result == reports.Broken {
			names = append(names, string(p.Name))
		}
	}
	return strings.Join(names, " ")
}

func TestQueues(t *testing.T) {
	for _, c := range []struct {
		queue, lock string
		die         float64
		want        string // the promised properties of the queue that must break; no others may
	}{
		{queue: "zset-locked", lock: "lua-release"},
		{queue: "zset-locked", lock: "lua-release", die: 0.05, want: "no-lost-task"},
		{queue: "zset-atomic"},
		{queue: "zset-atomic", die: 0.05, want: "no-lost-task"},
		{queue: "reliable"},
		{queue: "reliable", die: 0.05},
		{queue: "streams"},
		{queue: "streams", die: 0.05},
	} {
		name := c.queue
		if c.die > 0 {
			name += " with dying consumers"
		}
		t.Run(name, func(t *testing.T) {
			var locks []string
			if c.lock != "" {
				locks = []string{c.lock}
			}
			o := queueOptions(c.queue, locks...)
			o.Die = c.die
			if c.queue == "reliable" || c.queue == "streams" {
				o.QueueOptions.Visibility = 200 * time.Millisecond
			}
			r := ranOnRedis(t, o).Runs[0]
			want := reports.Pass
			if c.want != "" {
				want = reports.Violated
			}
			if r.Verdict != want || r.Expected != want || brokeOf(r, variant.Queue) != c.want {
				t.Errorf("%s (declared %s), broke %v; want %s and %q; %s %q", r.Verdict, r.Expected, broken(r), want, c.want, r.Why, r.Notes)
				for _, p := range r.Properties {
					t.Logf("%s of %s: %s: %s", p.Name, p.Of, p.Result, p.Why)
				}
			}
		})
	}
}

// TestTheControlDeliversTwice checks that two consumers of range-run-remove get the same task.
func TestTheControlDeliversTwice(t *testing.T) {
	for seed := range uint64(5) {
		o := queueOptions("range-run-remove")
		o.Seed = seed
		r := ranOnRedis(t, o).Runs[0]
		b := broken(r)
		if slices.Contains(b, variant.NoDuplicateDelivery) && slices.Contains(b, variant.EffectOnce) {
			return
		}
		t.Logf("seed %d: %s, broke %v", seed, r.Verdict, b)
	}
	t.Error("no task was delivered twice")
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		scenario, ids, lock, verdict string
		breaks                       variant.Property
	}{
		{"ids", "get-set", "none", reports.Violated, variant.UniqueIDs},
		{"ids", "get-set", "php-lock-printed", reports.Violated, variant.UniqueIDs},
		{"floors", "get-set", "php-lock-printed", reports.Violated, variant.UniqueIDs},
		{"ids", "get-set", "lua-release", reports.Pass, ""},
		{"floors", "get-set", "php-lock-atomic", reports.Pass, ""},
		{"floors", "incr", "none", reports.Pass, ""},
		{"floors", "script", "none", reports.Pass, ""},
		{"ids", "block", "none", reports.Pass, ""},
		{"floors", "block", "none", reports.Violated, variant.NoGaps}, // block does not promise no-gaps, but the scenario does
	} {
		t.Run(strings.Join([]string{c.scenario, c.ids, c.lock}, " "), func(t *testing.T) {
			o := onRealRedis(c.lock)
			o.Scenario, o.IDs, o.Ops = c.scenario, c.ids, 1500
			r := ranOnRedis(t, o).Runs[0]
			b := broken(r)
			if r.Verdict != c.verdict || r.Expected != c.verdict || (c.breaks != "" && !slices.Contains(b, c.breaks)) {
				t.Errorf("%s (declared %s), broke %v; want %s; %s", r.Verdict, r.Expected, b, c.verdict, r.Why)
				for _, p := range r.Properties {
					t.Logf("%s of %s: %s: %s", p.Name, p.Of, p.Result, p.Why)
				}
			}
		})
	}
}

// TestQueuedSale checks that a sale behind a queue sells the stock exactly.
func TestQueuedSale(t *testing.T) {
	o := onRealRedis("lua-release")
	o.Scenario, o.Queue, o.Clients, o.Stock = "seckill-queued", "zset-locked", 16, 100
	o.Hold, o.Repeat = 2*time.Millisecond, 0.3 // so that workers meet, and some ids are enqueued again
	if r := ranOnRedis(t, o).Runs[0]; r.Verdict != reports.Pass || *r.Sold != 100 {
		t.Errorf("under lua-release: %s, sold %d, broke %v; %s\n%s", r.Verdict, *r.Sold, broken(r), r.Why, story(r))
	}
	o.Locks, o.Queue = nil, "reliable"
	if r := ranOnRedis(t, o).Runs[0]; r.Verdict != reports.Pass || *r.Sold != 100 {
		t.Errorf("reliable and lua: %s, sold %d, broke %v; %s", r.Verdict, *r.Sold, broken(r), r.Why)
	}
}

package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/dispatchimpl"
	"oversell/faults"
	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

func config(t testing.TB, scenario, lock, sale string) Config {
	t.Helper()
	s, ok := Find(scenario)
	l, ok2 := lockimpl.Find(lock)
	if !ok || !ok2 {
		t.Fatalf("no scenario %s or lock %s", scenario, lock)
	}
	c := Config{Scenario: s, Lock: l, Clients: 8, Stock: 20, TTL: 10 * time.Second, Wait: 10 * time.Second, Seed: 1}
	if sale != "" {
		if c.Sale, ok = stockimpl.Find(sale); !ok {
			t.Fatalf("no sale %s", sale)
		}
	}
	return c
}

// TestKnownToBreak checks that the conditions that are named are those that flaws declare and the run lacks: none
// that the run has, and none that concerns a property that is not promised.
func TestKnownToBreak(t *testing.T) {
	for _, c := range []struct {
		scenario, lock, sale string
		change               func(*Config)
		want, not            []string
	}{
		{scenario: "seckill", lock: "lua-release", sale: "plain", want: []string{"overrun", "failover", "evict"}, not: []string{"resend", "none", "crash"}},
		{scenario: "seckill", lock: "lua-release", sale: "plain", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: []string{"failover"}, not: []string{"overrun"}},
		{scenario: "seckill", lock: "none", sale: "decr", want: []string{"quantity", "refund"}},
		{scenario: "seckill", lock: "none", sale: "decr", change: func(c *Config) { c.Quantity = 3 }, want: []string{"refund"}, not: []string{"quantity"}},
		{scenario: "seckill", lock: "none", sale: "check-then-act", want: []string{"resend"}},
		{scenario: "mutex", lock: "none", not: []string{"overrun", "failover"}}, // the lock promises nothing
		{scenario: "mutex", lock: "setnx-expire", want: []string{"crash", "overrun"}},
	} {
		config := config(t, c.scenario, c.lock, c.sale)
		if c.change != nil {
			c.change(&config)
		}
		names := map[string]bool{}
		for _, u := range config.KnownToBreak() {
			names[u.Under] = len(u.Breaks) > 0 && u.Why != ""
		}
		for _, name := range c.want {
			if !names[name] {
				t.Errorf("%s, %s, %s: %v lacks %s", c.scenario, c.lock, c.sale, names, name)
			}
		}
		for _, name := range c.not {
			if _, told := names[name]; told {
				t.Errorf("%s, %s, %s: %v has %s", c.scenario, c.lock, c.sale, names, name)
			}
		}
	}
}

// TestExpect compares the declared outcomes with the table of failure modes.
func TestExpect(t *testing.T) {
	for _, c := range []struct {
		scenario, lock, sale string
		change               func(*Config)
		want                 string
	}{
		{scenario: "seckill", lock: "none", sale: "plain", want: ExpectViolated},
		{scenario: "seckill", lock: "php-lock-printed", sale: "plain", want: ExpectViolated},
		{scenario: "seckill", lock: "php-lock", sale: "plain", want: ExpectViolated},
		{scenario: "seckill", lock: "incr-max", sale: "plain", want: ExpectViolated},
		{scenario: "seckill", lock: "incr", sale: "plain", want: ExpectPass},
		{scenario: "seckill", lock: "set-nx-ex", sale: "plain", want: ExpectPass},
		{scenario: "seckill", lock: "lua-release", sale: "plain", want: ExpectPass},
		{scenario: "seckill", lock: "redlock", sale: "plain", want: ExpectPass},
		{scenario: "seckill", lock: "none", sale: "lua", want: ExpectPass},
		{scenario: "seckill", lock: "none", sale: "watch", want: ExpectPass},
		{scenario: "seckill", lock: "fenced", sale: "fenced", want: ExpectPass},
		// The lock keeps its promise, but the sale under it does not.
		{scenario: "seckill", lock: "lua-release", sale: "plain", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: ExpectViolated},
		{scenario: "seckill", lock: "watchdog", sale: "plain", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: ExpectPass},
		{scenario: "seckill", lock: "fenced", sale: "fenced", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: ExpectPass},
		{scenario: "seckill", lock: "fenced", sale: "fenced-write", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: ExpectViolated},
		// A late DEL breaks the lock itself.
		{scenario: "seckill", lock: "set-nx-ex", sale: "lua", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: ExpectViolated},
		// Orders that are sent again.
		{scenario: "seckill", lock: "none", sale: "check-then-act", change: func(c *Config) { c.Resend = 0.5 }, want: ExpectViolated},
		{scenario: "seckill", lock: "lua-release", sale: "check-then-act", change: func(c *Config) { c.Resend = 0.5 }, want: ExpectPass},
		{scenario: "seckill", lock: "none", sale: "lua", change: func(c *Config) { c.Resend = 0.5 }, want: ExpectPass},
		// Two conditions at once.
		{scenario: "seckill", lock: "none", sale: "decr", want: ExpectPass},
		{scenario: "seckill", lock: "none", sale: "decr", change: func(c *Config) { c.Quantity = 3 }, want: ExpectViolated},
		{scenario: "seckill", lock: "lua-release", sale: "decr", change: func(c *Config) { c.Quantity = 3 }, want: ExpectPass},
		// In mutex, a long section extends its lease.
		{scenario: "mutex", lock: "set-nx-ex", change: func(c *Config) { c.Hold = 2 * c.TTL }, want: ExpectPass},
		{scenario: "mutex", lock: "php-lock", want: ExpectViolated},
	} {
		cfg := config(t, c.scenario, c.lock, c.sale)
		if c.change != nil {
			c.change(&cfg)
		}
		got, why := cfg.Expect()
		if got != c.want {
			t.Errorf("%s under %s %s, hold %v, resend %v, quantity %d: declared %s (%v); want %s",
				c.scenario, c.lock, c.sale, cfg.Hold, cfg.Resend, cfg.Quantity, got, why, c.want)
		}
		if (got == ExpectViolated) != (len(why) > 0) {
			t.Errorf("%s under %s %s: declared %s for these reasons: %v", c.scenario, c.lock, c.sale, got, why)
		}
	}
}

func TestCompleteRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		lock, sale string
		change     func(*Config)
		masters    int
		want       string
	}{
		{change: func(c *Config) { c.Clients = 0 }, want: "--clients 0: must be 1 to"},
		{change: func(c *Config) { c.Clients = -3 }, want: "--clients -3: must be 1 to"},
		{change: func(c *Config) { c.Clients = 2_000_000 }, want: "must be 1 to 100000"},
		{change: func(c *Config) { c.Stock = -1 }, want: "--stock -1: must be 0 to"},
		{change: func(c *Config) { c.Quantity = -1 }, want: "--quantity -1: must be 1 to"},
		{change: func(c *Config) { c.TTL = 999 * time.Microsecond }, want: "Redis counts in whole milliseconds"},
		{change: func(c *Config) { c.TTL = 1500 * time.Microsecond }, want: "whole milliseconds"},
		{change: func(c *Config) { c.Resend = 1.5 }, want: "must be 0 to 1"},
		{change: func(c *Config) { c.Refund = -0.5 }, want: "must be 0 to 1"},
		{change: func(c *Config) { c.Wait = -1 }, want: "--wait -1ns: must be 0 to 24h"},
		{change: func(c *Config) { c.Pool = -1 }, want: "connection"},
		{change: func(c *Config) { c.Hold = -1 }, want: "section"},
		{change: func(c *Config) { c.MaxTries = -1 }, want: "-1 tries"},
		{lock: "php-lock", change: func(c *Config) { c.TTL = 200 * time.Millisecond }, want: "whole seconds"},
		{lock: "redlock", masters: 1, want: "independent masters"},
		{lock: "lua-release", sale: "fenced", want: "fencing tokens"},
	} {
		if c.lock == "" {
			c.lock = "lua-release"
		}
		if c.sale == "" {
			c.sale = "plain"
		}
		cfg := config(t, "seckill", c.lock, c.sale)
		if c.change != nil {
			c.change(&cfg)
		}
		err := cfg.Complete(max(c.masters, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v; want an error that says %q", c.lock, c.sale, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is not one line", err)
		}
	}
}

func TestPromisesFollowTheObjects(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	for _, p := range c.Promises() {
		if p.Of != variant.Lock {
			t.Errorf("the mutex scenario promises %s of a %s", p.Property, p.Of)
		}
	}
	if got, want := len(c.Promises()), len(c.Lock.Promises); got != want {
		t.Errorf("%d promises; the lock makes %d", got, want)
	}
}

// TestFloorsPromiseNoGaps checks that what a scenario requires of an object is promised with every variant, and that
// the declared outcome follows from that.
func TestFloorsPromiseNoGaps(t *testing.T) {
	for _, v := range idimpl.Variants {
		for _, scenario := range []string{"ids", "floors"} {
			c := config(t, scenario, "lua-release", "")
			c.IDs = v
			gapless := slices.Contains(c.Promises(), history.Promise{Of: variant.IDs, Property: variant.NoGaps})
			want := scenario == "floors" || slices.Contains(v.Promises, variant.NoGaps)
			if gapless != want {
				t.Errorf("%s with %s: no-gaps is promised: %v, want %v", scenario, v.Name, gapless, want)
			}
			outcome, why := c.Expect()
			if expected := map[bool]string{true: ExpectViolated, false: ExpectPass}[scenario == "floors" && v.Name == "block"]; outcome != expected {
				t.Errorf("%s with %s: declared %s (%v), want %s", scenario, v.Name, outcome, why, expected)
			}
		}
	}
	block, _ := idimpl.Find("block")
	if slices.Contains(block.Promises, variant.NoGaps) {
		t.Error("a scenario has changed what a variant promises")
	}
}

// TestStuckQueuesAreDeclared checks that a queue under a lock is declared to break progress after a crash if the lock does, and
// not otherwise.
func TestStuckQueuesAreDeclared(t *testing.T) {
	for lock, want := range map[string]bool{"php-lock-printed": true, "setnx-expire": true, "incr": true, "fair-no-reap": true, "lua-release": false, "fair": false} {
		c := config(t, "queue", lock, "")
		c.Queue, _ = queueimpl.Find("zset-locked")
		_, why := c.ExpectUnder([]variant.Fault{variant.Crash})
		stuck := slices.ContainsFunc(why, func(s string) bool { return strings.Contains(s, "zset-locked") && strings.Contains(s, "progress") })
		if stuck != want {
			t.Errorf("under %s: progress of the queue declared broken: %v, want %v: %q", lock, stuck, want, why)
		}
	}
}

// TestAbandonedTasksAreDeclared checks that, where holders abandon the lock, a lock with a practically endless lease
// is declared to break progress and task-returns, and elsewhere neither.
func TestAbandonedTasksAreDeclared(t *testing.T) {
	stuck := func(abandon int) (of []variant.Object) {
		c := config(t, "dispatch", "php-lock-printed", "")
		c.Dispatch, _ = dispatchimpl.Find("dispatch-locked")
		c.Abandon = abandon
		for _, p := range c.declared() {
			if p.Property == variant.Progress || p.Property == variant.TaskReturns {
				of = append(of, p.Of)
			}
		}
		return of
	}
	if with, without := stuck(5), stuck(0); len(with) != 2 || len(without) != 0 {
		t.Errorf("progress or task-returns is declared broken of %v with abandoned tasks, of %v without; want both, and neither", with, without)
	}
}

// TestAbandonedTasksAreSpread checks that as many tasks are abandoned as were asked for, spread over the run so that few
// users are out at a time.
func TestAbandonedTasksAreSpread(t *testing.T) {
	for _, c := range []Config{{Ops: 400, Abandon: 5}, {Ops: 20, Abandon: 5}, {Ops: 5, Abandon: 5}, {Ops: 7, Abandon: 0}} {
		var at []int64
		for n := int64(1); n <= c.Ops+10; n++ {
			if abandons(n, c) {
				at = append(at, n)
			}
		}
		if len(at) != c.Abandon || c.Abandon > 0 && at[0] != c.Ops/int64(c.Abandon) {
			t.Errorf("of %d tasks %d are to be abandoned, and these are: %v", c.Ops, c.Abandon, at)
		}
	}
}

// TestExpectOfForgottenData checks that a server that stays away for a lease and comes back empty breaks no lock, and
// what is kept there longer.
func TestExpectOfForgottenData(t *testing.T) {
	streams, _ := queueimpl.Find("streams")
	script, _ := idimpl.Find("script")
	for _, c := range []struct {
		name, scenario, lock, sale string
		change                     func(*Config)
		fault                      string
		want                       string
	}{
		{"a lock", "mutex", "lua-release", "", nil, "kill for 20s at 1s", ExpectPass},
		{"a lock, too soon", "mutex", "lua-release", "", nil, "kill for 1s at 1s", ExpectViolated},
		{"a queue", "queue", "none", "", func(c *Config) { c.Queue = streams }, "kill for 20s at 1s", ExpectViolated},
		{"a queue whose server stays away", "queue", "none", "", func(c *Config) { c.Queue = streams }, "kill for good at 1s", ExpectPass},
		{"numbers", "ids", "none", "", func(c *Config) { c.IDs = script }, "restart empty after 20s at 1s", ExpectViolated},
		{"a sale", "seckill", "none", "decr", nil, "kill for 20s at 1s", ExpectViolated},
		{"another master than that of the sale", "seckill", "redlock", "decr", nil, "kill node 2 for 20s at 1s", ExpectPass},
	} {
		cfg := config(t, c.scenario, c.lock, c.sale)
		if c.change != nil {
			c.change(&cfg)
		}
		f, err := faults.Parse(c.fault)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Faults = []faults.Fault{f}
		provoked := cfg.flawConditions()
		provoked.faults = slices.DeleteFunc(provoked.faults, func(f variant.Fault) bool { return f == variant.DropReply })
		if got, why := cfg.expect(provoked); got != c.want {
			t.Errorf("%s, %s: declared %s %q; want %s", c.name, c.fault, got, why, c.want)
		}
	}
}

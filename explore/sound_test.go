package explore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/explore/servers"
	"oversell/history"
	"oversell/internal/names"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// sounds are variants that keep their promises within these bounds.
var sounds = []sought{
	{name: "lua-release", lock: "lua-release", bounds: reports.Bounds{Clients: 3, Tries: 2, Crashes: 2, Advances: 1}},
	{name: "lua-release, mutex alone", lock: "lua-release", bounds: reports.Bounds{Clients: 3, Tries: 2, Advances: 1, Late: 1}, look: mutexP},
	{name: "php-lock-atomic", lock: "php-lock-atomic", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 1}},
	{name: "setnx-expire-atomic", lock: "setnx-expire-atomic", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 1, Lost: 1}},
	{name: "incr-atomic", lock: "incr-atomic", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 1, Lost: 1}},
	{name: "fenced", lock: "fenced", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 1, Lost: 1}},
	{name: "fair", lock: "fair", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 1}},
	{name: "watchdog", lock: "watchdog", bounds: reports.Bounds{Tries: 2, Advances: 1}},
	{name: "sale fenced", scenario: "seckill", lock: "fenced", sale: "fenced", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 2, Lost: 1}},
	{name: "sale lua", scenario: "seckill", lock: "none", sale: "lua", bounds: reports.Bounds{Tries: 2, Crashes: 1, Lost: 1}},
	{name: "sale lua under a lock", scenario: "seckill", lock: "lua-release", sale: "lua", bounds: reports.Bounds{Tries: 1, Crashes: 1, Lost: 1, Advances: 1, Resends: 1}},
	{name: "sale watch", scenario: "seckill", lock: "lua-release", sale: "watch", bounds: reports.Bounds{Tries: 2, Crashes: 1, Advances: 1}},
	{name: "queue reliable", scenario: "queue", lock: "none", queue: "reliable", bounds: reports.Bounds{Tries: 2, Crashes: 1, Lost: 1}},
	{name: "queue reliable, two consumers", scenario: "queue", lock: "none", queue: "reliable", bounds: reports.Bounds{Clients: 4, Tries: 1, Crashes: 1}},
	{name: "queue streams", scenario: "queue", lock: "none", queue: "streams", bounds: reports.Bounds{Tries: 1, Crashes: 1}},
	{name: "ids script", scenario: "ids", lock: "lua-release", ids: "script", bounds: reports.Bounds{Tries: 2, Advances: 1}},
	{name: "ids incr", scenario: "ids", lock: "none", ids: "incr", bounds: reports.Bounds{Tries: 2}},
	{name: "floors script", scenario: "floors", lock: "none", ids: "script", bounds: reports.Bounds{Tries: 2, Lost: 1, Crashes: 1}},
}

func TestSoundOnesHold(t *testing.T) {
	for _, s := range sounds {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			c := s.config(t)
			if s.lock == "none" { // nothing keeps its clients apart
				c.defaults()
				var look []history.Promise
				for _, p := range c.Look {
					if p.Of != variant.Lock {
						look = append(look, p)
					}
				}
				c.Look = look
			}
			start := time.Now()
			r, err := Run(t.Context(), c)
			switch {
			case err != nil:
				t.Fatal(err)
			case r.Verdict != reports.Pass:
				t.Fatalf("%s: %s", r.Verdict, r.Why)
			case r.Stats.Entered == 0:
				t.Error("nobody got in")
			case c.Bounds.Advances > 0 && r.Stats.Expiries == 0:
				t.Error("nothing expired")
			case c.Bounds.Lost > 0 && r.Stats.Lost == 0:
				t.Error("nothing was lost")
			case c.Bounds.Late > 0 && r.Stats.Late == 0:
				t.Error("nothing was late")
			}
			// These need delays, tasks that are due one after the other, and a second enqueue.
			untried := []variant.Property{variant.NotEarly}
			if c.Bounds.Advances == 0 {
				untried = append(untried, variant.InOrder)
			}
			if c.Bounds.Tries == 1 {
				untried = append(untried, variant.InOrder, variant.OneEntryPerID)
			}
			for _, p := range r.Properties {
				for _, l := range c.Look {
					if p.Of == l.Of && p.Name == l.Property && p.Result != reports.Holds && !slices.Contains(untried, p.Name) {
						t.Errorf("%s of %s: %s (%s)", p.Name, p.Of, p.Result, p.Why)
					}
				}
			}
			t.Logf("%d states, %d transitions, %d executions, %v", r.Stats.States, r.Stats.Transitions, r.Stats.Executions, time.Since(start).Round(time.Millisecond))
		})
	}
}

// plainly takes a lock with SET NX; freely is its release, which compares. The other locks are variations of the two.
func plainly(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
	err := r.SetArgs(ctx, lockKey, v, redis.SetArgs{Mode: "NX", TTL: time.Second}).Err()
	if err == redis.Nil {
		return false, nil
	}
	return err == nil, err
}

func freely(ctx context.Context, r redis.UniversalClient, v string) error {
	return scriptDrop.Run(ctx, r, []string{lockKey}, v).Err()
}

// TestWhatDiffersEachTimeIsTold checks that a search, with or without reductions, reports a client that depends on more
// than what it observes.
func TestWhatDiffersEachTimeIsTold(t *testing.T) {
	var calls atomic.Int64
	for name, f := range map[string]func() string{
		"chance":           func() string { return string(rune('a' + rand.IntN(26))) },
		"a global counter": func() string { return time.Duration(calls.Add(1)).String() },
		"the real time":    func() string { return time.Now().String() },
	} {
		t.Run(name, func(t *testing.T) {
			for _, plain := range []bool{false, true} {
				c := locked(reports.Bounds{Clients: 2, Tries: 4, Advances: 1, Lost: 1}, scripted{
					acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
						if err := r.Set(ctx, noteKey, f(), 0).Err(); err != nil {
							return false, err
						}
						if _, err := r.Get(ctx, noteKey).Result(); err != nil {
							return false, err
						}
						return plainly(ctx, s, r, v)
					},
					release: freely,
				})
				c.Plain = plain
				c.Bounds.TimeMS = 3000
				if r, err := Run(t.Context(), c); !errors.Is(err, ErrNondeterministic) {
					t.Errorf("plain %t: %v, %s: %s", plain, err, r.Verdict, r.Why)
				}
			}
		})
	}
}

func TestInconclusive(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	sound := scripted{acquire: plainly, release: freely}
	large := reports.Bounds{Clients: 3, Tries: 6, Advances: 6, Lost: 3, Late: 3, TimeMS: 60_000}
	limited := func(change func(*reports.Bounds)) reports.Bounds {
		b := large
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		bounds reports.Bounds
		lock   scripted
		why    string
	}{
		"an unknown command": {t.Context(), reports.Bounds{Clients: 2, Tries: 1}, scripted{acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			return true, r.Do(ctx, "georadius", "x", 1, 2, 3, "m").Err()
		}}, "georadius"},
		"an unknown Lua function": {t.Context(), reports.Bounds{Clients: 2, Tries: 1}, scripted{acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			return true, redis.NewScript(`return cmsgpack.pack(1)`).Run(ctx, r, nil).Err()
		}}, "cmsgpack"},
		"nobody gets in": {t.Context(), reports.Bounds{Clients: 2, Tries: 1}, scripted{acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			return false, r.Set(ctx, noteKey, v, 0).Err()
		}}, "no client ever entered its section"},
		"every call fails": {t.Context(), reports.Bounds{Clients: 2, Tries: 1, Lost: 1}, scripted{acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			r.Set(ctx, noteKey, v, 0)
			return false, r.LPop(ctx, noteKey).Err()
		}}, "since acquire failed: wrongtype"},
		"time":     {t.Context(), limited(func(b *reports.Bounds) { b.TimeMS = 20 }), sound, "--time"},
		"memory":   {t.Context(), limited(func(b *reports.Bounds) { b.MemoryMB, b.TimeMS = 7, 300_000 }), sound, "--memory"},
		"depth":    {t.Context(), limited(func(b *reports.Bounds) { b.Depth = 4 }), sound, "more than 4 steps"},
		"the user": {over, large, sound, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			config := locked(c.bounds, c.lock)
			config.Exhaustive = true
			r, err := Run(c.ctx, config)
			if err != nil || r.Verdict != reports.Inconclusive || !strings.Contains(strings.ToLower(r.Why), c.why) {
				t.Errorf("%s: %s, %v; want %q", r.Verdict, r.Why, err, c.why)
			}
			for _, p := range r.Properties {
				if p.Result != reports.Unknown {
					t.Errorf("%s: %s", p.Name, p.Result)
				}
			}
		})
	}
}

// TestDepthThatIsEnough checks that a bound on the depth that cuts nothing off changes nothing.
func TestDepthThatIsEnough(t *testing.T) {
	b := reports.Bounds{Clients: 2, Tries: 1}
	r, err := Run(t.Context(), locked(b, scripted{acquire: plainly, release: freely}))
	if err != nil || r.Verdict != reports.Pass {
		t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
	}
	b.Depth = r.Stats.Depth
	if r, err := Run(t.Context(), locked(b, scripted{acquire: plainly, release: freely})); err != nil || r.Verdict != reports.Pass {
		t.Errorf("%s: %s, %v", r.Verdict, r.Why, err)
	}
}

func TestUsage(t *testing.T) {
	good := sought{lock: "lua-release", bounds: reports.Bounds{Tries: 1}}
	for name, c := range map[string]struct {
		sought sought
		change func(*Config)
	}{
		"too many clients":  {good, func(c *Config) { c.Bounds.Clients = names.MaxSlots + 1 }},
		"no clients":        {good, func(c *Config) { c.Bounds.Clients = -1 }},
		"no tries":          {good, func(c *Config) { c.Bounds.Tries = 0 }},
		"too many tries":    {good, func(c *Config) { c.Bounds.Tries = 101 }},
		"negative crashes":  {good, func(c *Config) { c.Bounds.Crashes = -1 }},
		"negative lost":     {good, func(c *Config) { c.Bounds.Lost = -1 }},
		"negative late":     {good, func(c *Config) { c.Bounds.Late = -1 }},
		"negative advances": {good, func(c *Config) { c.Bounds.Advances = -1 }},
		"negative stalls":   {good, func(c *Config) { c.Bounds.Stalls = -1 }},
		"negative depth":    {good, func(c *Config) { c.Bounds.Depth = -1 }},
		"negative time":     {good, func(c *Config) { c.Bounds.TimeMS = -1 }},
		"negative memory":   {good, func(c *Config) { c.Bounds.MemoryMB = -1 }},
		"too many faults":   {good, func(c *Config) { c.Bounds.Lost = 300 }},
		"too many stalls":   {good, func(c *Config) { c.Bounds.Stalls = 300 }},
		"a short lease":     {good, func(c *Config) { c.Run.TTL = time.Microsecond }},
		"a long lease":      {good, func(c *Config) { c.Run.TTL = servers.Horizon }},
		"a sale in SQL":     {sought{scenario: "seckill", lock: "none", sale: "sql-plain", bounds: reports.Bounds{Tries: 1}}, nil},
		"half a second":     {sought{lock: "set-nx-ex", ttl: 500 * time.Millisecond, bounds: reports.Bounds{Tries: 1}}, nil},
		"no fences":         {sought{scenario: "seckill", lock: "lua-release", sale: "fenced", bounds: reports.Bounds{Tries: 1}}, nil},
		"nothing promised":  {sought{lock: "none", bounds: reports.Bounds{Tries: 1}}, nil},
		"one master":        {sought{lock: "redlock", bounds: reports.Bounds{Tries: 1}}, func(c *Config) { c.Masters = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.sought.config(t)
			if c.change != nil {
				c.change(&config)
			}
			if _, err := Run(t.Context(), config); !errors.Is(err, ErrUsage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

var _ lockimpl.Locker = (*actor)(nil)

// TestHorizon checks that a search that meets events beyond the horizon is inconclusive and says so.
func TestHorizon(t *testing.T) {
	c := sought{lock: "lua-release", ttl: servers.Horizon / 5, bounds: reports.Bounds{Clients: 1, Tries: 7, Advances: 7}}.config(t)
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Inconclusive || !strings.Contains(r.Why, servers.Horizon.String()) {
		t.Errorf("%s: %s, %v; want it inconclusive because of the horizon", r.Verdict, r.Why, err)
	}
}

// TestBoundsCount checks that a search makes as many faults as its bounds allow, and no more. Its lock is granted to a
// client after two commands without an answer.
func TestBoundsCount(t *testing.T) {
	twice := scripted{acquire: func(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
		silences := 0
		for range 2 {
			if err := r.Set(ctx, "a", v, 0).Err(); err != nil {
				silences++
			}
		}
		return silences == 2, nil
	}}
	for _, c := range []struct {
		name   string
		bounds reports.Bounds
		enters bool
	}{
		{"one lost", reports.Bounds{Lost: 1}, false},
		{"two lost", reports.Bounds{Lost: 2}, true},
		{"one late", reports.Bounds{Late: 1}, false},
		{"two late", reports.Bounds{Late: 2}, true},
		{"one of each", reports.Bounds{Lost: 1, Late: 1}, true},
	} {
		c.bounds.Clients, c.bounds.Tries = 1, 1
		r, err := Run(t.Context(), locked(c.bounds, twice))
		if err != nil || (r.Stats.Entered > 0) != c.enters {
			t.Errorf("%s: entered %d times, %v; want it entered: %t", c.name, r.Stats.Entered, err, c.enters)
		}
		if r.Verdict != reports.Inconclusive {
			t.Errorf("%s: %s: %s; one client has no contention", c.name, r.Verdict, r.Why)
		}
	}
}

// TestOneClientIsEnough checks which promises a search with one client decides: those about repeated orders, if messages may
// be lost.
func TestOneClientIsEnough(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds reports.Bounds
		look   variant.Property
		want   string
	}{
		{"once", reports.Bounds{Lost: 1, Resends: 1}, variant.OncePerOrder, reports.Pass},
		{"once, late", reports.Bounds{Late: 1, Resends: 1}, variant.OncePerOrder, reports.Pass},
		{"undersell", reports.Bounds{Lost: 1, Resends: 1}, variant.NoUndersell, reports.Pass},
		{"oversell", reports.Bounds{Lost: 1, Resends: 1}, variant.NoOversell, reports.Inconclusive},
		{"nothing lost", reports.Bounds{Resends: 1}, variant.OncePerOrder, reports.Inconclusive},
		{"nothing sent again", reports.Bounds{Lost: 1}, variant.NoUndersell, reports.Inconclusive},
	} {
		c.bounds.Clients, c.bounds.Tries = 1, 1
		r, err := Run(t.Context(), sought{scenario: "seckill", lock: "none", sale: "lua", stock: 2, bounds: c.bounds, look: c.look, of: variant.Sale}.config(t))
		if err != nil || r.Verdict != c.want {
			t.Errorf("%s: %s: %s, %v", c.name, r.Verdict, r.Why, err)
		}
	}
	s := sought{scenario: "seckill", lock: "none", sale: "lua", stock: 2, bounds: reports.Bounds{Clients: 1, Tries: 1, Lost: 1, Resends: 1}}
	c := s.config(t)
	c.Look = []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}, {Of: variant.Sale, Property: variant.OncePerOrder}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Pass {
		t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
	}
	for _, p := range r.Properties {
		if want := map[variant.Property]string{variant.OncePerOrder: reports.Holds}[p.Name]; p.Result != want && (want != "" || p.Result != reports.Unknown) {
			t.Errorf("%s: %s: %s", p.Name, p.Result, p.Why)
		}
	}
}

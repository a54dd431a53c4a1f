package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/stockimpl"
	"oversell/variant"
)

// sought is a search and its expected result.
type sought struct {
	name                   string
	scenario               string // empty: mutex
	lock, sale, queue, ids string
	bounds                 reports.Bounds   // 2 clients unless said otherwise
	look                   variant.Property // empty: all promises
	of                     variant.Object   // empty: lock
	ttl                    time.Duration
	hold                   time.Duration
	stock                  int64
	quantity               int
	options                func(*scenarios.Config)

	steps int  // of the counterexample
	naive bool // it is small enough for the naive search
}

// config returns the configuration of the search.
func (s sought) config(t testing.TB) Config {
	t.Helper()
	found := func(what, name string, ok bool) {
		if name != "" && !ok {
			t.Fatalf("no %s %q", what, name)
		}
	}
	if s.scenario == "" {
		s.scenario = "mutex"
	}
	c := Config{Bounds: s.bounds, Exhaustive: true}
	var ok bool
	c.Run.Scenario, ok = scenarios.Find(s.scenario)
	found("scenario", s.scenario, ok)
	c.Run.Lock, ok = lockimpl.Find(s.lock)
	found("lock", s.lock, ok)
	c.Run.Sale, ok = stockimpl.Find(s.sale)
	found("sale", s.sale, ok)
	c.Run.Queue, ok = queueimpl.Find(s.queue)
	found("queue", s.queue, ok)
	c.Run.IDs, ok = idimpl.Find(s.ids)
	found("ids", s.ids, ok)
	if c.Bounds.Clients == 0 {
		c.Bounds.Clients = 2
	}
	if c.Bounds.TimeMS == 0 {
		c.Bounds.TimeMS = 90_000 // on a busy machine, under the race detector
	}
	if s.look != "" {
		of := s.of
		if of == "" {
			of = variant.Lock
		}
		c.Look = []history.Promise{{Of: of, Property: s.look}}
	}
	c.Run.TTL, c.Run.Hold, c.Run.Stock, c.Run.Quantity = s.ttl, s.hold, s.stock, s.quantity
	if s.ttl == 0 && !c.Run.Lock.Needs.WholeSeconds {
		c.Run.TTL = 400 * time.Millisecond // a replay on a busy machine needs that much
	}
	if s.options != nil {
		s.options(&c.Run)
	}
	return c
}

const (
	mutexP = variant.MutualExclusion
	ownerP = variant.OwnerOnlyRelease
)

// counterexamples lists what a search must find, and in how many steps. The naive search also runs on the small ones, so
// that a second source confirms the numbers.
var counterexamples = []sought{
	{name: "printed", lock: "php-lock-printed", bounds: reports.Bounds{Tries: 2}, look: mutexP, steps: 5, naive: true},
	{name: "printed, all it promises", lock: "php-lock-printed", bounds: reports.Bounds{Tries: 2}, steps: 5},
	{name: "printed, wrong release", lock: "php-lock-printed", bounds: reports.Bounds{Tries: 2}, look: ownerP, steps: 8, naive: true},
	{name: "printed, a crash", lock: "php-lock-printed", bounds: reports.Bounds{Tries: 1, Crashes: 1}, look: variant.Progress, steps: 4},
	{name: "php-lock", lock: "php-lock", bounds: reports.Bounds{Tries: 2}, look: mutexP, steps: 5, naive: true},
	{name: "php-lock, wrong release", lock: "php-lock", bounds: reports.Bounds{Tries: 2}, look: ownerP, steps: 8, naive: true},
	{name: "setnx-expire", lock: "setnx-expire", bounds: reports.Bounds{Tries: 2, Crashes: 1}, look: variant.Progress, steps: 3, naive: true},
	{name: "incr", lock: "incr", bounds: reports.Bounds{Tries: 2, Crashes: 1}, look: variant.Progress, steps: 3, naive: true},
	// The owner makes the first count. Another client counts four times more, which forces the lock open, and gets it.
	{name: "incr-max", lock: "incr-max", bounds: reports.Bounds{Tries: 5}, look: mutexP, steps: 10, naive: true},
	{name: "incr-max, three clients", lock: "incr-max", bounds: reports.Bounds{Clients: 3, Tries: 3}, look: mutexP, steps: 10},
	{name: "incr-max, wrong release", lock: "incr-max", bounds: reports.Bounds{Tries: 5}, look: ownerP, steps: 12},
	{name: "set-nx-ex, wrong release", lock: "set-nx-ex", bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, steps: 5, naive: true},
	{name: "set-nx-ex", lock: "set-nx-ex", bounds: reports.Bounds{Tries: 2, Advances: 1}, look: mutexP, steps: 6, naive: true},
	{name: "token-del, wrong release", lock: "token-del", bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, steps: 5, naive: true},
	{name: "token-del", lock: "token-del", bounds: reports.Bounds{Tries: 2, Advances: 1}, look: mutexP, steps: 6, naive: true},
	{name: "token-get-del, wrong release", lock: "token-get-del", bounds: reports.Bounds{Tries: 2, Advances: 1}, look: ownerP, steps: 6, naive: true},
	{name: "token-get-del", lock: "token-get-del", bounds: reports.Bounds{Tries: 2, Advances: 1}, look: mutexP, steps: 7, naive: true},
	{name: "token-get-del, three clients", lock: "token-get-del", bounds: reports.Bounds{Clients: 3, Tries: 1, Advances: 1}, look: mutexP, steps: 7},
	{name: "none", lock: "none", bounds: reports.Bounds{Tries: 1}, look: mutexP, steps: 2, naive: true},
	// A late release can delete the next lock only after the first lock has expired.
	{name: "token-per-client", lock: "token-per-client", bounds: reports.Bounds{Tries: 2, Late: 1, Advances: 1}, look: mutexP, steps: 7, naive: true},
	{name: "watchdog-naive", lock: "watchdog-naive", bounds: reports.Bounds{Tries: 2, Advances: 2}, look: ownerP, steps: 7},
	{name: "fair-no-reap", lock: "fair-no-reap", bounds: reports.Bounds{Tries: 1, Crashes: 1, Advances: 1}, look: variant.Progress, steps: 6},
	{name: "sale fenced-write", scenario: "seckill", lock: "fenced", sale: "fenced-write", bounds: reports.Bounds{Tries: 1, Advances: 1}, look: variant.NoOversell, of: variant.Sale, steps: 7},
	{name: "sale plain", scenario: "seckill", lock: "lua-release", sale: "plain", bounds: reports.Bounds{Tries: 1, Advances: 1}, look: variant.NoOversell, of: variant.Sale, steps: 7},
	{name: "sale plain, no lock", scenario: "seckill", lock: "none", sale: "plain", bounds: reports.Bounds{Tries: 1}, look: variant.NoOversell, of: variant.Sale, steps: 6},
	{name: "sale ticket", scenario: "seckill", lock: "none", sale: "ticket", bounds: reports.Bounds{Tries: 1}, look: variant.NoOversell, of: variant.Sale, steps: 8},
	{name: "sale decr", scenario: "seckill", lock: "none", sale: "decr", stock: 2, bounds: reports.Bounds{Tries: 1, Lost: 1, Resends: 1}, look: variant.OncePerOrder, of: variant.Sale, steps: 5},
	{name: "sale decr, a crash", scenario: "seckill", lock: "none", sale: "decr", bounds: reports.Bounds{Tries: 1, Crashes: 1}, look: variant.NoUndersell, of: variant.Sale, steps: 6},
	{name: "sale check-then-act", scenario: "seckill", lock: "none", sale: "check-then-act", stock: 2, bounds: reports.Bounds{Tries: 1, Lost: 1, Resends: 1}, look: variant.OncePerOrder, of: variant.Sale, steps: 8},
	// The older holder is held up between its grant and its purchase. It sends nothing in between, so its call is judged
	// when it goes on.
	{name: "sale lua, an older token", scenario: "seckill", lock: "fenced", sale: "lua", stock: 2, bounds: reports.Bounds{Tries: 1, Advances: 1}, look: variant.Fencing, of: variant.Sale, steps: 5},
	{name: "token-del, a late release", lock: "token-del", bounds: reports.Bounds{Tries: 1, Late: 1, Advances: 1}, look: ownerP, steps: 5},
	{name: "ids get-set, no lock", scenario: "ids", lock: "none", ids: "get-set", bounds: reports.Bounds{Tries: 1}, look: variant.UniqueIDs, of: variant.IDs, steps: 6},
	{name: "ids get-set", scenario: "ids", lock: "lua-release", ids: "get-set", bounds: reports.Bounds{Tries: 1, Advances: 1}, look: variant.UniqueIDs, of: variant.IDs, steps: 7},
	{name: "floors get-set", scenario: "floors", lock: "none", ids: "get-set", bounds: reports.Bounds{Tries: 1}, look: variant.UniqueIDs, of: variant.IDs, steps: 6},
	{name: "floors block", scenario: "floors", lock: "none", ids: "block", bounds: reports.Bounds{Tries: 1}, look: variant.NoGaps, of: variant.IDs, steps: 3},
	{name: "ids block", scenario: "ids", lock: "none", ids: "block", bounds: reports.Bounds{Tries: 2}, look: variant.RealTimeOrder, of: variant.IDs, steps: 5},
	{name: "queue zset-locked", scenario: "queue", lock: "php-lock-printed", queue: "zset-locked", bounds: reports.Bounds{Clients: 4, Tries: 1}, look: variant.NoDuplicateDelivery, of: variant.Queue, steps: 20},
	{name: "queue zset-locked, no lock", scenario: "queue", lock: "none", queue: "zset-locked", bounds: reports.Bounds{Clients: 4, Tries: 1}, look: variant.NoDuplicateDelivery, of: variant.Queue, steps: 9},
	{name: "queue zset-atomic", scenario: "queue", lock: "none", queue: "zset-atomic", bounds: reports.Bounds{Tries: 1, Crashes: 1}, look: variant.NoLostTask, of: variant.Queue, steps: 5},
	// A task is delivered again by design when its visibility timeout is over. A pop reads the clock first.
	{name: "queue reliable", scenario: "queue", lock: "none", queue: "reliable", bounds: reports.Bounds{Clients: 3, Tries: 1, Advances: 1}, look: variant.NoDuplicateDelivery, of: variant.Queue, steps: 6},
	{name: "queue range-run-remove", scenario: "queue", lock: "none", queue: "range-run-remove", bounds: reports.Bounds{Clients: 4, Tries: 1}, look: variant.NoDuplicateDelivery, of: variant.Queue, steps: 5},
}

// find runs a search, checks its result and returns the counterexample.
func (s sought) find(t *testing.T, c Config) *reports.Counterexample {
	t.Helper()
	start := time.Now()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Errorf("plain %t: %v", c.Plain, err)
		return nil
	}
	cx := r.Counterexample
	if cx == nil || r.Verdict != reports.Violated {
		t.Errorf("plain %t: %s: %s", c.Plain, r.Verdict, r.Why)
		return nil
	}
	want := s.look
	if want == "" {
		want = mutexP
	}
	if cx.Property != want || len(cx.Steps) != s.steps {
		t.Errorf("plain %t: %s broken in %d steps; want %s in %d: %s", c.Plain, cx.Property, len(cx.Steps), want, s.steps, cx.Sentence)
	}
	t.Logf("plain %t: %d steps, %d states, %v: %s", c.Plain, len(cx.Steps), r.Stats.States, time.Since(start).Round(time.Millisecond), cx.Sentence)
	return cx
}

func TestCounterexamplesAreShortest(t *testing.T) {
	for _, s := range counterexamples {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			c := s.config(t)
			cx := s.find(t, c)
			if cx == nil {
				return
			}
			if of := c.Look; len(of) == 1 && of[0].Of == variant.Lock && cx.Property != variant.Progress && strings.Count(cx.Sentence, "client ") < 2 {
				t.Errorf("%q does not name both clients", cx.Sentence)
			}
			c.Plain = true
			s.find(t, c)
			if !s.naive {
				return
			}
			n, finished := naive(t, c, 40*naiveLimit)
			if o := outcomeOf(reports.Exploration{Verdict: reports.Violated, Counterexample: cx}); !finished || !n.fits(o) {
				t.Errorf("naively %+v (finished: %t), by the search %+v", n, finished, o)
			}
		})
	}
}

// TestFewerTriesForceNothingOpen checks that four tries do not force incr-max open: its counterexample needs five.
func TestFewerTriesForceNothingOpen(t *testing.T) {
	s := sought{lock: "incr-max", bounds: reports.Bounds{Tries: 4}, look: mutexP}
	if r, err := Run(t.Context(), s.config(t)); err != nil || r.Verdict != reports.Pass {
		t.Errorf("%s: %s, %v", r.Verdict, r.Why, err)
	}
}

// again returns how often each schedule is replayed on a real server.
func again() int {
	if long() {
		return 20
	}
	return 3
}

// TestCounterexamplesReplay checks that the schedules break the same promises on a real server. Real time passes there,
// so each schedule has its own server, and the schedules run at the same time.
func TestCounterexamplesReplay(t *testing.T) {
	slots := make(chan bool, 12)
	var all sync.WaitGroup
	for i, s := range counterexamples {
		if raced && i%4 != 0 {
			continue // all are replayed without the race detector
		}
		all.Go(func() {
			slots <- true
			defer func() { <-slots }()
			c := s.config(t)
			r, err := Run(t.Context(), c)
			if err != nil || r.Counterexample == nil {
				t.Errorf("%s: %s, %v", s.name, r.Why, err)
				return
			}
			if err := replays(t.Context(), c, r.Counterexample); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		})
	}
	all.Wait()
}

// TestReplayOfWhatIsLeft checks that a counterexample in which a client asks for what is left of an expiry can be replayed:
// on a real server some of it has passed.
func TestReplayOfWhatIsLeft(t *testing.T) {
	rest := redis.NewScript(`return redis.call('pttl', KEYS[1])`)
	mutex, _ := scenarios.Find("mutex")
	c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: mutexP}}}
	c.Run = scenarios.Config{Scenario: mutex, TTL: 5 * time.Second, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
		return &handmade{env: env, acquire: func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			start := env.Clock.Now()
			err := put(ctx, env, lockKey, "x", o.TTL)
			if errors.Is(err, lockimpl.ErrHeld) { // it takes the lock from its holder
				left, _ := env.Redis[0].PTTL(ctx, lockKey).Result()
				more, _ := rest.Run(ctx, env.Redis[0], []string{lockKey}).Int64()
				err = env.Redis[0].SetXX(ctx, lockKey, more-left.Milliseconds(), o.TTL).Err()
			}
			return start.Add(o.TTL), "", err
		}}
	}}}
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Violated {
		t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
	}
	if err := replays(t.Context(), c, r.Counterexample); err != nil {
		t.Error(err)
	}
}

func replays(ctx context.Context, c Config, cx *reports.Counterexample) error {
	return replaysOften(ctx, again(), c, cx)
}

// replaysOften checks that a counterexample breaks its promise on a real server, so many times.
func replaysOften(ctx context.Context, times int, c Config, cx *reports.Counterexample) error {
	target, err := server.Open(ctx, server.Spec{Target: "process"})
	if err != nil {
		return err
	}
	defer target.Close()
	admin := target.Client(0, server.ConnOptions{})
	defer admin.Close()
	var all error
	for n := range times {
		var got *reports.Property
		// Leases end in real time, so on a busy machine one may end too early.
		for try := 0; try == 0 || errors.Is(err, ErrDiverged) && c.Bounds.Advances > 0 && try < 3; try++ {
			if err := admin.FlushAll(ctx).Err(); err != nil {
				return err
			}
			got, err = Replay(ctx, c, cx, []*redis.Options{{Addr: target.Addresses()[0]}})
		}
		switch {
		case err != nil:
			err = fmt.Errorf("run %d: %w", n+1, err)
		case got == nil:
			err = fmt.Errorf("run %d: nothing was broken", n+1)
		case got.Of != cx.Of || got.Name != cx.Property:
			err = fmt.Errorf("run %d: %s of %s was broken, not %s of %s", n+1, got.Name, got.Of, cx.Property, cx.Of)
		}
		all = errors.Join(all, err)
	}
	return all
}

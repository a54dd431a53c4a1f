package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// timed is a client of a sale or a counter whose code reads the clock.
type timed struct {
	ctx context.Context
	env variant.Env
}

// at returns the time since the search began.
func (c *timed) at() time.Duration { return c.env.Clock.Now().Sub(Epoch) }

func (c *timed) do(args ...any) any {
	v, err := c.env.Redis[0].Do(c.ctx, args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return v
}

// next increments the counter of all sales.
func (c *timed) next() int64 { return c.do("incr", "sold").(int64) }

// timedSale is a sale whose purchase is buy, which returns nil if it sold a piece.
type timedSale struct {
	env variant.Env
	buy func(*timed) error
}

func (*timedSale) Open(context.Context, int64) error { return nil }

func (s *timedSale) Buy(ctx context.Context, _ stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	return stockimpl.Unsaid, s.buy(&timed{ctx, s.env})
}

func (*timedSale) Refund(context.Context, stockimpl.Order, lockimpl.Lock) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (s *timedSale) State(context.Context) (stockimpl.State, error) {
	return stockimpl.State{Left: 0, Sold: stockimpl.Unsaid}, nil
}

// timedIDs is a counter whose request is next.
type timedIDs struct {
	env  variant.Env
	next func(*timed) int64
}

func (g *timedIDs) Next(ctx context.Context, _ string, _ lockimpl.Lock) (int64, error) {
	return g.next(&timed{ctx, g.env}), nil
}

func (*timedIDs) Last(context.Context) (int64, error) { return 0, nil }

const (
	halfSecond = 500 * time.Millisecond
	sec        = time.Second
)

// soldIf returns the result of the purchase with a number: the first sells a piece, and so does a later one if wrong is true.
func soldIf(n int64, wrong bool) error {
	if n > 1 && !wrong {
		return stockimpl.ErrSoldOut
	}
	return nil
}

// after returns a purchase that reads the clock after its command. It sells a piece too many if wrong says so.
func after(wrong func(at time.Duration) bool) func(*timed) error {
	return func(c *timed) error {
		n := c.next()
		return soldIf(n, wrong(c.at()))
	}
}

// twice returns a purchase that reads the clock before and after its command. It sells a piece too many if wrong says so.
func twice(wrong func(a, b time.Duration) bool) func(*timed) error {
	return func(c *timed) error {
		a := c.at()
		n := c.next()
		return soldIf(n, wrong(a, c.at()))
	}
}

func between(from, to time.Duration) func(time.Duration) bool {
	return func(at time.Duration) bool { return from <= at && at < to }
}

func from(start time.Duration) func(time.Duration) bool {
	return func(at time.Duration) bool { return at >= start }
}

// result is the result of a purchase from some time on.
type result struct {
	from time.Duration
	err  error
}

// inTurn returns a purchase that is refused as sold out, and later has other results; the first of all sells a piece.
func inTurn(results ...result) func(*timed) error {
	return func(c *timed) error {
		n, at, err := c.next(), c.at(), stockimpl.ErrSoldOut
		for _, r := range results {
			if at >= r.from {
				err = r.err
			}
		}
		if n == 1 {
			return nil
		}
		return err
	}
}

// stored returns a purchase that stores the time of the first purchase, and sells a piece too many so long after it.
func stored(long time.Duration) func(*timed) error {
	return func(c *timed) error {
		now := c.at()
		if c.do("set", "first", now.Milliseconds()+1, "nx") != nil {
			return nil
		}
		var first int64
		fmt.Sscan(c.do("get", "first").(string), &first)
		return soldIf(2, c.at() >= time.Duration(first-1)*time.Millisecond+long)
	}
}

// expiring returns a purchase that reads the clock, looks whether a key with this time to live is there, and reads the clock
// again. It sells a piece too many if wrong says so.
func expiring(lives time.Duration, wrong func(a, b time.Duration, there bool) bool) func(*timed) error {
	return func(c *timed) error {
		a := c.at()
		n := c.next()
		if n == 1 {
			c.do("set", "key", "x", "px", lives.Milliseconds())
			return nil
		}
		there := c.do("exists", "key").(int64) == 1
		return soldIf(n, wrong(a, c.at(), there))
	}
}

// timedSales are purchases, and whether they can oversell, as decided by hand.
var timedSales = []struct {
	name   string
	bounds reports.Bounds
	breaks bool
	buy    func(*timed) error
}{
	{"after the lease", reports.Bounds{Advances: 1}, true, after(from(2 * sec))},
	{"after the lease, without an advance", reports.Bounds{}, false, after(from(2 * sec))},
	{"before the end of the lease", reports.Bounds{Advances: 1}, true, after(from(sec))},
	{"at the end of the lease", reports.Bounds{Advances: 1}, true, after(from(1500 * time.Millisecond))},
	{"just before the end of the lease", reports.Bounds{Advances: 1}, true, after(from(1499 * time.Millisecond))},
	{"just after the end of the lease", reports.Bounds{Advances: 1}, true, after(from(1501 * time.Millisecond))},
	{"long after the lease", reports.Bounds{Advances: 1}, true, after(from(15 * sec))},
	{"until the end of the lease", reports.Bounds{Advances: 1}, true, after(between(halfSecond, 1500*time.Millisecond))},
	{"around the end of the lease", reports.Bounds{Advances: 1}, true, after(between(sec, 2*sec))},
	{"for a second after the lease", reports.Bounds{Advances: 1}, true, after(between(2*sec, 3*sec))},
	{"for half a second after the lease", reports.Bounds{Advances: 1}, true, after(between(3*sec, 3500*time.Millisecond))},
	{"never after the lease", reports.Bounds{Advances: 2}, false, after(func(time.Duration) bool { return false })},
	{"in odd seconds from the fifth on", reports.Bounds{Advances: 1}, true, after(func(at time.Duration) bool { return at >= 5*sec && at/sec%2 == 1 })},
	{"other errors first", reports.Bounds{Advances: 1}, true, inTurn(result{2 * sec, stockimpl.ErrStale}, result{10 * sec, nil})},
	{"three errors first", reports.Bounds{Advances: 1}, true,
		inTurn(result{3 * sec, stockimpl.ErrStale}, result{7 * sec, stockimpl.ErrRepeated}, result{12 * sec, nil})},
	{"other errors only", reports.Bounds{Advances: 2}, false, inTurn(result{2 * sec, stockimpl.ErrStale})},
	{"an unknown result", reports.Bounds{Advances: 1}, false, inTurn(result{2 * sec, errors.New("who knows")})},
	{"the first is refused later", reports.Bounds{Advances: 2}, false, func(c *timed) error {
		n := c.next()
		if at := c.at(); n > 1 || at >= 2*sec {
			return stockimpl.ErrStale
		}
		return nil
	}},
	{"commands first", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		n := c.next()
		switch at := c.at(); {
		case n == 1:
			return nil
		case at >= 10*sec:
			c.do("echo", "late")
			return nil
		case at >= 2*sec:
			c.do("echo", "middle")
		default:
			c.do("echo", "early")
		}
		return stockimpl.ErrSoldOut
	}},
	{"the counter is reset", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		if c.at() >= 3*sec {
			c.do("del", "sold")
		}
		return soldIf(c.next(), false)
	}},
	{"a look before the command", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		late := c.at() >= 2*sec
		return soldIf(c.next(), late)
	}},
	{"a difference", reports.Bounds{Advances: 1}, true, twice(func(a, b time.Duration) bool { return b-a >= 2*sec })},
	{"a difference without an advance", reports.Bounds{Stalls: 1}, false, twice(func(a, b time.Duration) bool { return b-a >= 2*sec })},
	{"a difference of just a lease", reports.Bounds{Advances: 1}, true, twice(func(a, b time.Duration) bool { return b-a >= 1500*time.Millisecond })},
	{"a difference within bounds", reports.Bounds{Advances: 1}, true, twice(func(a, b time.Duration) bool { return b-a >= 4*sec && b-a < 5*sec })},
	{"a look before the command, after many other errors", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		at := c.at()
		n := c.next()
		if n > 1 && at < 10*sec && at/sec%2 == 1 {
			return stockimpl.ErrStale
		}
		return soldIf(n, at >= 10*sec)
	}},
	{"late, then a difference", reports.Bounds{Advances: 2}, true, twice(func(a, b time.Duration) bool { return a >= 2*sec && b-a >= 3*sec })},
	{"late, then a difference, with one advance", reports.Bounds{Advances: 1, Stalls: 1}, false, twice(func(a, b time.Duration) bool { return a >= 2*sec && b-a >= 3*sec })},
	{"late, but not too late", reports.Bounds{Advances: 1}, true, twice(func(a, b time.Duration) bool { return a >= 2*sec && b < 4*sec })},
	{"early, and then late", reports.Bounds{Advances: 1}, true, twice(func(a, b time.Duration) bool { return a < 2*sec && b >= 4*sec })},
	{"at two times", reports.Bounds{Advances: 2}, true, twice(func(a, b time.Duration) bool { return a >= 2*sec && a < 3*sec && b >= 6*sec && b < 7*sec })},
	{"at two times, with one advance", reports.Bounds{Advances: 1}, false, twice(func(a, b time.Duration) bool { return a >= 2*sec && a < 3*sec && b >= 6*sec && b < 7*sec })},
	{"two differences", reports.Bounds{Advances: 2, Stalls: 1}, true, twoWaits},
	{"two differences, with one advance", reports.Bounds{Advances: 1, Stalls: 1}, false, twoWaits},
	{"in a loop with commands", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		n := c.next()
		for range 3 {
			if at := c.at(); n == 1 || at >= 3*sec {
				return nil
			}
			c.do("ping")
		}
		return stockimpl.ErrSoldOut
	}},
	{"in a loop of looks", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		n := c.next()
		for range 3 {
			if at := c.at(); at < 3*sec {
				return soldIf(n, false)
			}
		}
		return nil
	}},
	{"in a loop, each look later", reports.Bounds{Advances: 2}, true, func(c *timed) error {
		n := c.next()
		for i := range time.Duration(2) {
			if at := c.at(); at < (i+1)*4*sec {
				return soldIf(n, false)
			}
			c.do("ping")
		}
		return nil
	}},
	{"in a helper", reports.Bounds{Advances: 1}, true, func(c *timed) error {
		late := func() bool { return c.at() >= 4*sec }
		n := c.next()
		return soldIf(n, n > 1 && late())
	}},
	{"a stored time", reports.Bounds{Advances: 1}, true, stored(3 * sec)},
	{"a stored time, a lease later", reports.Bounds{Advances: 1}, true, stored(1500 * time.Millisecond)},
	{"a stored time, less than a lease later", reports.Bounds{Advances: 1}, true, stored(sec)},
	{"a stored time, without an advance", reports.Bounds{}, false, stored(sec)},
	{"a key is gone, and it is late", reports.Bounds{Advances: 1}, true, expiring(sec, func(_, b time.Duration, there bool) bool { return !there && b >= 4*sec })},
	{"a key is there, and it is late", reports.Bounds{Advances: 1}, true, expiring(5*sec, func(_, b time.Duration, there bool) bool { return there && b >= 4*sec })},
	{"a key is there, and it became late", reports.Bounds{Advances: 1}, true, expiring(3*sec, func(a, b time.Duration, there bool) bool { return there && a < sec && b >= 4*sec })},
	{"a key is not there yet", reports.Bounds{}, true, expiring(3*sec, func(_, b time.Duration, there bool) bool { return !there && b < 3*sec })},
	{"each at its time", reports.Bounds{Advances: 2}, true, eachAtItsTime},
	{"each at its time, with one advance", reports.Bounds{Advances: 1}, false, eachAtItsTime},
}

// twoWaits is a purchase that sells a piece too many if ten seconds pass between two pairs of looks at the clock.
func twoWaits(c *timed) error {
	a := c.at()
	n := c.next()
	if n == 1 {
		return nil
	}
	if c.at()-a < 10*sec {
		return stockimpl.ErrSoldOut
	}
	b := c.at()
	c.do("ping")
	return soldIf(n, c.at()-b >= 10*sec)
}

// eachAtItsTime sells the first piece between 2 s and 3 s, and another one between 4 s and 5 s.
func eachAtItsTime(c *timed) error {
	n := c.next()
	if at := c.at(); n == 1 && between(2*sec, 3*sec)(at) || n == 2 && between(4*sec, 5*sec)(at) {
		return nil
	}
	return stockimpl.ErrSoldOut
}

// stepsOf returns the steps in which the enumeration lets time pass. There are few if it may pass twice.
func stepsOf(b reports.Bounds) (all []time.Duration) {
	if b.Advances > 1 {
		return []time.Duration{sec, 1500 * time.Millisecond, 2 * sec, 3 * sec, 4 * sec, 6 * sec, 10 * sec}
	}
	for d := halfSecond; d <= 15*sec; d += halfSecond {
		all = append(all, d)
	}
	return all
}

// timedConfig returns the configuration of a search by two clients, without a lock.
func timedConfig(scenario string, bounds reports.Bounds, of variant.Object, p variant.Property) Config {
	is, _ := scenarios.Find(scenario)
	none, _ := lockimpl.Find("none")
	bounds.Clients, bounds.Tries, bounds.TimeMS = 2, max(bounds.Tries, 1), 60_000
	return Config{Bounds: bounds, Look: []history.Promise{{Of: of, Property: p}}, Run: scenarios.Config{Scenario: is, Lock: none}}
}

// compareBySteps compares the verdict of a search with the expected one, and with that of an enumeration whose steps of time
// do not depend on the code. Without the reductions it searches only in the long tests.
func compareBySteps(t *testing.T, c Config, breaks bool) {
	t.Helper()
	t.Parallel()
	want := reports.Pass
	if breaks {
		want = reports.Violated
	}
	steps := stepsOf(c.Bounds)
	if plain, whole := naiveAhead(t, c, 100_000, func(situation) []time.Duration { return slices.Clone(steps) }); !whole || plain.verdict != want {
		t.Errorf("the enumeration found %s (complete: %t), want %s", plain.verdict, whole, want)
	}
	for _, c.Plain = range []bool{false, true} {
		if c.Plain && !long() { // it executes the clients as often
			continue
		}
		r, err := Run(t.Context(), c)
		if err != nil || r.Verdict != want {
			t.Errorf("plain %t: %s: %s, %v; want %s", c.Plain, r.Verdict, r.Why, err, want)
		}
		t.Logf("plain %t: %d states, %d executions, %.0f ms: %s", c.Plain, r.Stats.States, r.Stats.Executions, r.Stats.ElapsedMS, r.Why)
	}
}

// TestResultsThatDependOnTheClock checks searches of sales whose results depend on the time.
func TestResultsThatDependOnTheClock(t *testing.T) {
	for _, s := range timedSales {
		t.Run(s.name, func(t *testing.T) {
			c := timedConfig("seckill", s.bounds, variant.Sale, variant.NoOversell)
			c.Run.Sale = stockimpl.Variant{Name: "timed", New: func(env variant.Env, _ string) stockimpl.Sale { return &timedSale{env, s.buy} }}
			compareBySteps(t, c, s.breaks)
		})
	}
}

// TestNumbersThatDependOnTheClock checks searches of counters whose numbers depend on the time.
func TestNumbersThatDependOnTheClock(t *testing.T) {
	for _, s := range []struct {
		name   string
		breaks bool
		next   func(*timed) int64
	}{
		{"one from some time on", true, func(c *timed) int64 {
			n := c.next()
			if c.at() >= 3*sec {
				return 1
			}
			return n
		}},
		{"another one from some time on", false, func(c *timed) int64 {
			n := c.next()
			if c.at() >= 3*sec {
				return n + 10
			}
			return n
		}},
		{"one for a while", true, func(c *timed) int64 {
			n := c.next()
			if between(2*sec, 4*sec)(c.at()) {
				return 7
			}
			return n
		}},
		{"one more, and later one less", true, func(c *timed) int64 {
			n := c.next()
			switch at := c.at(); {
			case at >= 8*sec:
				return n - 1
			case at >= 4*sec:
				return n + 5
			}
			return n
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			c := timedConfig("ids", reports.Bounds{Advances: 1}, variant.IDs, variant.UniqueIDs)
			c.Run.IDs = idimpl.Variant{Name: "timed", New: func(env variant.Env, _ string) idimpl.Generator { return &timedIDs{env, s.next} }}
			compareBySteps(t, c, s.breaks)
		})
	}
}

// TestLocksThatDependOnTheClock checks searches of locks whose acquire, extend or release depends on the time.
func TestLocksThatDependOnTheClock(t *testing.T) {
	soundly := granting(lockKey, fromStart)
	since := func(env variant.Env) time.Duration { return env.Clock.Now().Sub(Epoch) }
	longer := func(by func(env variant.Env, now time.Time, ttl time.Duration) time.Duration) acquiring {
		return func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			v, start := env.Token(), env.Clock.Now()
			err := put(ctx, env, lockKey, v, o.TTL)
			return start.Add(by(env, start, o.TTL)), v, err
		}
	}
	for _, l := range []struct {
		name    string
		bounds  reports.Bounds
		breaks  bool
		acquire acquiring
		release releasing
		extend  func(context.Context, variant.Env, time.Duration) (time.Time, error)
	}{
		{name: "deletes any lock from some time on", bounds: reports.Bounds{Tries: 2, Advances: 1}, breaks: true, acquire: soundly, release: func(ctx context.Context, env variant.Env, l lockimpl.Lock) error {
			if since(env) >= 4*sec {
				return deleting(lockKey)(ctx, env, l)
			}
			return dropping(lockKey)(ctx, env, l)
		}},
		{name: "tells other errors of a release", bounds: reports.Bounds{Tries: 1, Advances: 1}, acquire: soundly, release: func(ctx context.Context, env variant.Env, l lockimpl.Lock) error {
			err := dropping(lockKey)(ctx, env, l)
			if since(env) >= 4*sec {
				return lockimpl.ErrLost
			}
			return err
		}},
		{name: "promises more from some time on", bounds: reports.Bounds{Advances: 2, Stalls: 1}, breaks: true, release: dropping(lockKey), acquire: longer(func(env variant.Env, start time.Time, ttl time.Duration) time.Duration {
			if start.Sub(Epoch) >= 3*sec {
				return 2 * ttl
			}
			return ttl
		})},
		{name: "promises less from some time on", bounds: reports.Bounds{Advances: 2, Stalls: 1}, release: dropping(lockKey), acquire: longer(func(env variant.Env, start time.Time, ttl time.Duration) time.Duration {
			if start.Sub(Epoch) >= 3*sec {
				return ttl / 2
			}
			return ttl
		})},
		{name: "promises more after a while", bounds: reports.Bounds{Advances: 1}, breaks: true, release: dropping(lockKey), acquire: longer(func(env variant.Env, start time.Time, ttl time.Duration) time.Duration {
			if env.Clock.Now().Sub(start) >= 5*sec {
				return 10 * ttl
			}
			return ttl
		})},
		{name: "extends what is over, from some time on", bounds: reports.Bounds{Advances: 1, Stalls: 1}, breaks: true, acquire: soundly, release: dropping(lockKey), extend: func(_ context.Context, env variant.Env, ttl time.Duration) (time.Time, error) {
			if now := env.Clock.Now(); now.Sub(Epoch) >= 4*sec {
				return now.Add(ttl), nil
			}
			return time.Time{}, lockimpl.ErrLost
		}},
		{name: "extends nothing", bounds: reports.Bounds{Advances: 1, Stalls: 1}, acquire: soundly, release: dropping(lockKey), extend: func(_ context.Context, env variant.Env, ttl time.Duration) (time.Time, error) {
			if since(env) >= 4*sec {
				return time.Time{}, errors.New("late")
			}
			return time.Time{}, lockimpl.ErrLost
		}},
	} {
		t.Run(l.name, func(t *testing.T) {
			c := timedConfig("mutex", l.bounds, variant.Lock, mutexP)
			c.Run.Lock = lockimpl.Variant{Name: "timed", New: func(env variant.Env) lockimpl.Locker { return &handmade{env, l.extend, l.acquire, l.release} }}
			if l.extend != nil {
				extending(&c.Run)
			}
			compareBySteps(t, c, l.breaks)
		})
	}
}

// TestManyTurnsAreTold checks that a search says so if a client acts differently at more times than are tried.
func TestManyTurnsAreTold(t *testing.T) {
	for seconds, told := range map[time.Duration]bool{4: false, 40: true} {
		c := timedConfig("seckill", reports.Bounds{Advances: 1}, variant.Sale, variant.NoOversell)
		c.Run.Sale = stockimpl.Variant{Name: "timed", New: func(env variant.Env, _ string) stockimpl.Sale {
			return &timedSale{env, func(c *timed) error {
				n := c.next()
				if at := c.at(); n > 1 && at < seconds*sec && at/sec%2 == 1 {
					return stockimpl.ErrStale
				}
				return soldIf(n, false)
			}}
		}}
		e, err := Run(t.Context(), c)
		if err != nil || e.Verdict != reports.Pass {
			t.Fatalf("%d seconds: %s: %s, %v", seconds, e.Verdict, e.Why, err)
		}
		if says := strings.Contains(strings.Join(e.NotChecked, "\n"), "there are too many"); says != told {
			t.Errorf("%d seconds: it says that there are too many times: %t; %q", seconds, says, e.NotChecked)
		}
	}
}

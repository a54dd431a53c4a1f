package lockrules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// careless is a lock with scripts that ignore the errors of what they write.
type careless struct{ env variant.Env }

var (
	carelessAcquire = redis.NewScript(`if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`)
	carelessExtend  = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) return 1`)
	carelessRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.pcall('DEL', KEYS[1]) return 1`)
)

func (c careless) run(ctx context.Context, s *redis.Script, refusal error, key string, args ...any) error {
	done, err := s.Run(ctx, c.env.Redis[0], []string{key}, args...).Bool()
	if err == nil && !done {
		err = refusal
	}
	return err
}

func (c careless) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: c.env.Token(), Until: c.env.Clock.Now().Add(o.TTL)}
	return l, c.run(ctx, carelessAcquire, lockimpl.ErrHeld, key, l.Token, o.TTL.Milliseconds())
}

func (c careless) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	l.Until = c.env.Clock.Now().Add(ttl)
	return l, c.run(ctx, carelessExtend, lockimpl.ErrLost, l.Key, l.Token, ttl.Milliseconds())
}

func (c careless) Release(ctx context.Context, l lockimpl.Lock) error {
	return c.run(ctx, carelessRelease, lockimpl.ErrLost, l.Key, l.Token)
}

// hasty is a sound lock but for calls with a context that is over, which it answers with success.
type hasty struct{ lockimpl.Locker }

func (h hasty) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	if ctx.Err() != nil {
		return lockimpl.Lock{Key: key, Token: "none", Until: time.Now().Add(o.TTL)}, nil
	}
	return h.Locker.Acquire(ctx, key, o)
}

func (h hasty) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	if ctx.Err() != nil {
		l.Until = time.Now().Add(ttl)
		return l, nil
	}
	return h.Locker.Extend(ctx, l, ttl)
}

func (h hasty) Release(ctx context.Context, l lockimpl.Lock) error {
	if ctx.Err() != nil {
		return nil
	}
	return h.Locker.Release(ctx, l)
}

// loser is a sound lock but for a release with a context that is over, which it answers with ErrLost.
type loser struct{ lockimpl.Locker }

func (h loser) Release(ctx context.Context, l lockimpl.Lock) error {
	if ctx.Err() != nil {
		return lockimpl.ErrLost
	}
	return h.Locker.Release(ctx, l)
}

// heir is a lock that hands itself to the first in its line. A client that stops waiting leaves the line. If it is checks, it
// looks whether the lock was handed to it.
type heir struct {
	careless
	checks bool
}

var (
	heirAcquire = redis.NewScript(`
		if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
		if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 end
		if not redis.call('LPOS', KEYS[1] .. ':line', ARGV[1]) then redis.call('RPUSH', KEYS[1] .. ':line', ARGV[1]) end
		return 0`)
	heirRelease = redis.NewScript(`
		if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
		local next = redis.call('LPOP', KEYS[1] .. ':line')
		if next then redis.call('SET', KEYS[1], next, 'PX', 60000) else redis.call('DEL', KEYS[1]) end
		return 1`)
	heirLeave = redis.NewScript(`
		redis.call('LREM', KEYS[1] .. ':line', 0, ARGV[1])
		if ARGV[2] == 'true' and redis.call('GET', KEYS[1]) == ARGV[1] then return 0 end
		return 1`)
)

func (h heir) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: h.env.Token(), Until: h.env.Clock.Now().Add(o.TTL)}
	end := h.env.Clock.Now().Add(o.Wait)
	for {
		err := h.run(ctx, heirAcquire, lockimpl.ErrHeld, key, l.Token, o.TTL.Milliseconds())
		if !errors.Is(err, lockimpl.ErrHeld) {
			return l, err
		}
		if !h.env.Clock.Now().Before(end) {
			if err := h.run(ctx, heirLeave, errHandedOver, key, l.Token, fmt.Sprint(h.checks)); errors.Is(err, errHandedOver) {
				return l, nil
			} else if err != nil {
				return l, err
			}
			return l, lockimpl.ErrHeld
		}
		if err := h.env.Wait(ctx, key, o.RetryEvery); err != nil {
			return l, err
		}
	}
}

var errHandedOver = errors.New("the lock was handed to the client")

func (h heir) Release(ctx context.Context, l lockimpl.Lock) error {
	return h.run(ctx, heirRelease, lockimpl.ErrLost, l.Key, l.Token)
}

// TestCases checks that each case catches a lock with a flaw of its kind, and passes sound ones.
func TestCases(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	locks := map[string]func(variant.Env) lockimpl.Locker{
		"sound":    sound.New,
		"careless": func(e variant.Env) lockimpl.Locker { return careless{e} },
		"hasty":    func(e variant.Env) lockimpl.Locker { return hasty{sound.New(e)} },
		"loser":    func(e variant.Env) lockimpl.Locker { return loser{sound.New(e)} },
		"heir":     func(e variant.Env) lockimpl.Locker { return heir{careless{e}, false} },
		"wary":     func(e variant.Env) lockimpl.Locker { return heir{careless{e}, true} },
	}
	s := opentest.Open(t, server.Spec{Target: "process"})
	for _, tt := range []struct {
		name  string
		cases []Case
		lock  string
		says  []string // in the order of the cases; nil: nothing
	}{
		{"may not write", WritesFail, "sound", nil},
		{"may not write", WritesFail, "careless", []string{"a free lock was granted while the client had no right to write", "an extend was answered with success", "a release while the client had no right to write (ACL) was answered with success"}},
		{"context over", ContextOver, "sound", nil},
		{"context over", ContextOver, "hasty", []string{
			"a free lock was granted with a context that was cancelled", "an extend was answered with success", "a release with a context that was cancelled was answered with success",
			"a free lock was granted with a context whose deadline had passed", "an extend was answered with success", "a release with a context whose deadline had passed was answered with success"}},
		{"context over", ContextOver, "loser", []string{"", "", `was answered with "lock is lost", and others are still refused`, "", "", "with a context whose deadline had passed was answered with"}},
		{"gives up", GivesUp, "sound", nil},
		{"gives up", GivesUp, "wary", nil},
	} {
		for i, c := range tt.cases {
			t.Run(fmt.Sprintf("%s/%s/%d %s", tt.name, tt.lock, i, c.Name), func(t *testing.T) {
				t.Parallel()
				says := ""
				if tt.says != nil {
					says = tt.says[i]
				}
				err := c.Try(bench(t, s, fmt.Sprintf("%s-%s-%d", tt.name, tt.lock, i), locks[tt.lock]))
				if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
					t.Errorf("the case says %v; want %q", err, says)
				}
			})
		}
	}
}

// TestGivesUp checks that a lock is caught that was handed to a client which has stopped waiting. If the client waits, the
// command by which it leaves the line is new, and how many others come before it depends on the time.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	s := opentest.Open(t, server.Spec{Target: "process"})
	var all sync.WaitGroup
	defer all.Wait()
	try := func(i int, c Case) {
		err := c.Try(bench(t, s, fmt.Sprintf("heir-%d", i), func(e variant.Env) lockimpl.Locker { return heir{careless{e}, false} }))
		if caught := c.Name == "command 2 of a client that has waited 0s" || strings.HasPrefix(c.Name, "new command 1 "); caught && (err == nil || !strings.Contains(err.Error(), `a client that gave up waiting was answered "lock is held"`)) {
			t.Errorf("%s: %v; want that the lock is caught", c.Name, err)
		}
	}
	for i, c := range GivesUp {
		all.Go(func() { try(i, c) }) // they mostly wait
	}
}

// dog renews its leases in the background. It has one of several flaws, or none.
type dog struct {
	careless
	flaw     string
	renewals map[string]*renewal
}

type renewal struct {
	mu   sync.Mutex
	last lockimpl.Lock
	stop context.CancelFunc
	join func(context.Context) error
}

// slot is what renewals are kept by.
func (d *dog) slot(l lockimpl.Lock) string {
	switch d.flaw {
	case "by name":
		return l.Key
	case "one slot":
		return ""
	}
	return l.Token
}

func (d *dog) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := d.careless.Acquire(ctx, key, o)
	if err != nil {
		return l, err
	}
	r := &renewal{last: l}
	beside, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.join = d.env.Go(func(ctx context.Context) {
		for n := 0; beside.Err() == nil && d.env.Clock.Sleep(ctx, o.TTL/3) == nil && beside.Err() == nil; n++ {
			if d.flaw == "twelve times" && n == 12 {
				return
			}
			r.mu.Lock()
			ttl := o.TTL
			if left := time.Until(r.last.Until); d.flaw != "shortens" {
				ttl = max(ttl, left)
			}
			renewed, err := d.careless.Extend(ctx, r.last, ttl)
			if err == nil {
				r.last = renewed
			}
			r.mu.Unlock()
			if err != nil && d.flaw == "gives up" {
				return
			}
		}
	})
	d.renewals[d.slot(l)] = r
	return l, nil
}

func (d *dog) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	r := d.renewals[d.slot(l)]
	r.mu.Lock()
	defer r.mu.Unlock()
	extended, err := d.careless.Extend(ctx, l, ttl)
	if err == nil {
		r.last = extended
	}
	if d.flaw == "ends by an extend" {
		r.stop()
	}
	return extended, err
}

func (d *dog) Release(ctx context.Context, l lockimpl.Lock) error {
	if r := d.renewals[d.slot(l)]; r != nil {
		r.stop()
	}
	return d.careless.Release(ctx, l)
}

// TestRenewals checks that each case catches a lock whose renewals end too early, or shorten a lease, and passes one whose
// renewals go on.
func TestRenewals(t *testing.T) {
	t.Parallel()
	s := opentest.Open(t, server.Spec{Target: "process"})
	all := append(slices.Clone(Renewals), LostRenewal...)
	// The case "for many leases" gets longer leases: other tests keep the machine too busy for leases of a quarter of a second.
	all[2].try = func(b Bench) (err error) {
		for range 5 {
			b.Name += "-again"
			if err = b.renewedOften(time.Second, 6*time.Second); !lockfinding.IsUnjudged(err) {
				break
			}
		}
		return err
	}
	for flaw, cases := range map[string][]int{"": {0, 1, 2, 3, 4, 5}, "by name": {0}, "one slot": {0, 1}, "twelve times": {2}, "ends by an extend": {3}, "shortens": {4}, "gives up": {5}} {
		for _, i := range cases {
			c := all[i]
			t.Run(fmt.Sprintf("%s/%s", flaw, c.Name), func(t *testing.T) {
				t.Parallel()
				b := bench(t, s, fmt.Sprintf("dog-%s-%d", flaw, i), func(e variant.Env) lockimpl.Locker { return &dog{careless{e}, flaw, map[string]*renewal{}} })
				b.Renews = true
				if err := c.Try(b); (err != nil) != (flaw != "") {
					t.Errorf("the case says %v; want that it catches it: %t", err, flaw != "")
				}
			})
		}
	}
}

// TestNoRenewal checks that a lock which renews nothing is not said to have lost the answer to a renewal.
func TestNoRenewal(t *testing.T) {
	t.Parallel()
	s := opentest.Open(t, server.Spec{Target: "process"})
	b := bench(t, s, "no-renewal", func(e variant.Env) lockimpl.Locker { return careless{e} })
	b.Renews = true
	for _, try := range []func() error{
		func() error { return LostRenewal[0].Try(b) },
		func() error { return b.renewedOften(250*time.Millisecond, 2*time.Second) }, // however busy the machine is
	} {
		if err := try(); err == nil || lockfinding.IsUnjudged(err) || !strings.Contains(err.Error(), "sent nothing") {
			t.Errorf("the case says %v; want that the client sent nothing", err)
		}
	}
}

// TestOutOfMemory checks that a lock is caught that is granted to two clients while the server refuses to write, and that the
// server then has the limit that it had before.
func TestOutOfMemory(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	s := opentest.Open(t, server.Spec{Target: "process"})
	b := bench(t, s, "sound", sound.New)
	c, err := b.client()
	if err != nil {
		t.Fatal(err)
	}
	const limit = "1000000000"
	if err := c.Env.Redis[0].ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
	if err := OutOfMemory(b); err != nil {
		t.Error(err)
	}
	if after, err := c.Env.Redis[0].ConfigGet(t.Context(), "maxmemory").Result(); err != nil || after["maxmemory"] != limit {
		t.Errorf("afterwards maxmemory is %q, %v; want %s", after["maxmemory"], err, limit)
	}
	if err := OutOfMemory(bench(t, s, "careless", func(e variant.Env) lockimpl.Locker { return careless{e} })); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("a careless lock: %v; want that two clients were granted it", err)
	}
}

// TestForgottenLeavesOtherLibraries checks that Forgotten deletes the functions of the lock, and no others.
func TestForgottenLeavesOtherLibraries(t *testing.T) {
	t.Parallel()
	s := opentest.Open(t, server.Spec{Target: "process"})
	admin := s.Client(0, server.ConnOptions{})
	defer admin.Close()
	load := func(name string) error {
		return admin.FunctionLoadReplace(t.Context(), "#!lua name="+name+"\nredis.register_function('"+name+"', function() return 1 end)").Err()
	}
	b := bench(t, s, "functions", func(e variant.Env) lockimpl.Locker { return careless{e} })
	if load("of_another") != nil {
		return // before Redis 7
	}
	before := b.Libraries()
	if err := errors.Join(load("of_the_lock"), Forgotten(b, before)); err != nil {
		t.Errorf("a sound lock: %v", err)
	}
	if after := b.Libraries(); !maps.Equal(after, map[string]bool{"of_another": true}) {
		t.Errorf("the libraries %v are left; want of_another", after)
	}
}

func bench(t *testing.T, s *server.Target, name string, lock func(variant.Env) lockimpl.Locker) Bench {
	start, numbers := time.Now(), &atomic.Int64{}
	return Bench{
		Ctx: t.Context(), Name: name, TTL: 300 * time.Millisecond, Extends: true, Brief: true, Patience: time.Second, Log: t.Logf,
		Lasted: func() time.Duration { return time.Since(start) },
		Client: func(change func(*variant.Env)) (*lockclient.Client, error) {
			c := lockclient.New(lockclient.Config{
				Ctx: t.Context(), Lock: lockimpl.Variant{New: lock}, Server: s, Seed: 1,
				Lasted: func() time.Duration { return time.Since(start) }, Doubted: func(time.Time, time.Duration) {},
			}, int(numbers.Add(1)))
			t.Cleanup(c.Close)
			if err := c.Connect(); err != nil {
				return nil, err
			}
			change(&c.Env)
			c.Again()
			return c, nil
		},
	}
}

// moody is a sound lock that refuses for a while all the same.
type moody struct {
	careless
	until time.Time
}

func (m moody) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	if time.Now().Before(m.until) {
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	return m.careless.Acquire(ctx, key, o)
}

// TestFreeAfterAWhile checks that a client that is refused a free lock at first, as after attempts of its own that had no answer,
// asks for longer.
func TestFreeAfterAWhile(t *testing.T) {
	t.Parallel()
	s := opentest.Open(t, server.Spec{Target: "embedded", Topology: "single"})
	end := time.Now().Add(soon + time.Second/2)
	b := bench(t, s, "order", func(e variant.Env) lockimpl.Locker { return moody{careless{e}, end} })
	if err := b.free("a release was answered with success"); err != nil {
		t.Error(err)
	}
}

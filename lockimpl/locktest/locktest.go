// Package locktest is the conformance suite for locks: the locks of this
// repository pass through it, and so can any other that implements
// lockimpl.Locker.
//
//	func TestMyLock(t *testing.T) {
//		locktest.Run(t, lockimpl.Variant{
//			Name:     "mine",
//			Promises: []variant.Property{variant.MutualExclusion, variant.Progress},
//			New:      func(env variant.Env) lockimpl.Locker { return mylock.New(env) },
//		}, locktest.Process("single"))
//	}
//
// There is one subtest per promise and rule. A rule is checked if its property
// is promised and no flaw takes it back. The last subtest puts the lock under
// load and judges the recorded history.
//
// # Every interleaving
//
// Run samples; [Explore] proves: it tries every interleaving of a few clients within
// bounds, and ends in a proof or in the shortest schedule that breaks a promise. A lock
// that does everything by its variant.Env is stepped by that, and [ExploreSale] puts a
// sale under it. Code that starts goroutines and reads the time by itself, like a
// library's, is stepped in bubbles of testing/synctest by [ExploreBubble]. This is a
// whole test of one, github.com/bsm/redislock, to be run with go test like any other:
//
//	package mylock_test
//
//	import (
//		"context"
//		"errors"
//		"testing"
//		"time"
//
//		"github.com/bsm/redislock"
//
//		"oversell/lockimpl"
//		"oversell/lockimpl/locktest"
//		"oversell/reports"
//		"oversell/variant"
//	)
//
//	// locker is one client's view of the lock.
//	type locker struct {
//		env    variant.Env
//		client *redislock.Client
//		held   map[string]*redislock.Lock
//	}
//
//	func (l locker) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
//		start := time.Now()
//		got, err := l.client.Obtain(ctx, lockimpl.Key(key), o.TTL, &redislock.Options{Token: l.env.Token()})
//		if errors.Is(err, redislock.ErrNotObtained) {
//			return lockimpl.Lock{}, lockimpl.ErrHeld
//		}
//		if err != nil {
//			return lockimpl.Lock{}, err
//		}
//		l.held[got.Token()] = got
//		return lockimpl.Lock{Key: key, Token: got.Token(), Until: start.Add(o.TTL)}, nil
//	}
//
//	func (l locker) Extend(ctx context.Context, k lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
//		k.Until = time.Now().Add(ttl)
//		err := l.held[k.Token].Refresh(ctx, ttl, nil)
//		if errors.Is(err, redislock.ErrNotObtained) {
//			err = lockimpl.ErrLost
//		}
//		return k, err
//	}
//
//	func (l locker) Release(ctx context.Context, k lockimpl.Lock) error {
//		err := l.held[k.Token].Release(ctx)
//		if errors.Is(err, redislock.ErrLockNotHeld) {
//			err = lockimpl.ErrLost
//		}
//		return err
//	}
//
//	func TestLock(t *testing.T) {
//		locktest.ExploreBubble(t, lockimpl.Variant{
//			Name:     "redislock",
//			Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease},
//			New: func(env variant.Env) lockimpl.Locker {
//				return locker{env, redislock.New(env.Redis[0]), map[string]*redislock.Lock{}}
//			},
//		}, reports.Bounds{Clients: 2, Tries: 2, Advances: 1})
//	}
//
// # Bubbles
//
// In a bubble, a client is ordinary code: what it starts are goroutines, time.Now and
// timers are the schedule's, and connections end in the search. It is stepped when all
// of its goroutines wait, for an answer or for time. This must hold:
//
//   - It does the same when it is shown the same. Random values come from Env.Token,
//     pauses between tries have a fixed length. Every run goes the way of an earlier one
//     again and is compared with it, so a difference is most likely noticed, and ends the
//     search with an error.
//   - It waits for nothing but commands, time, channels and what else counts as durably
//     blocked in testing/synctest. That is not so for a sync.Mutex that one goroutine
//     holds during a command and another waits for.
//   - Its connections are those in Env.Redis. They send each command once, keep to the
//     deadlines of contexts, and have no time limit of their own.
//
// After each answer a client stands before a look at the clock, whether it looks or not:
// it may be held up before it, and between that and the next command as often as
// Bounds.Stalls says. This is not covered:
//
//   - Of a client that is held up, all goroutines are, with what they have under way.
//   - A goroutine that a timer wakes runs at that moment; it is held up only before its
//     command arrives. If an answer comes at the same moment, the timer is first; when
//     several timers end at one moment, or two goroutines send the same command to the
//     same server at once, one order of them is tried.
//   - A client that has ended, with goroutines left that sleep: they are not waited for.
//   - Whether the lock can still be obtained after a crash (progress). For the other
//     promises a crash is a client that is never let go on, which all searches try.
package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/checker"
	"oversell/history"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/scenarios"
	"oversell/target"
	"oversell/variant"
)

// Open opens the server, or the servers, of one test.
type Open func(t *testing.T) *target.Target

// Process opens redis-server children of this topology ("single", "masters:5").
// The test is skipped where none is installed, and fails if OVERSELL_REQUIRE_ALL=1.
func Process(topology string) Open { return opener("process", topology) }

// Embedded opens the emulation that needs nothing installed.
func Embedded(topology string) Open { return opener("embedded", topology) }

func opener(kind, topology string) Open {
	return func(t *testing.T) *target.Target {
		t.Helper()
		s, err := target.Open(t.Context(), target.Spec{Target: kind, Topology: topology})
		if err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" && errors.Is(err, target.ErrEnvironment) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// The lease in all rules is the shortest that a lock of whole seconds can express,
// and longer for a lock on several masters, whose time limit for each of them is
// a small part of it. No rule sleeps for it: they wait until somebody else gets
// the lock.
const (
	shortLease = time.Second
	longLease  = 5 * time.Second
)

// Run checks the lock's promises, one subtest each. The rules run side by side,
// each on a lock name of its own, since most of them wait for a lease to end.
func Run(t *testing.T, v lockimpl.Variant, open Open) {
	server := open(t)
	var checks []check
	for i, r := range rules {
		if r.appliesTo(v) {
			checks = append(checks, start(t, r, v, server, fmt.Sprintf("{locktest-%d}order", i)))
		}
	}
	for _, c := range checks {
		t.Run(fmt.Sprintf("%s/%s", c.property, c.name), func(t *testing.T) {
			if err := <-c.result; err != nil {
				t.Errorf("lock %s promises %s, but: %v", v.Name, c.property, err)
			}
		})
	}
	if len(v.Promises) > 0 {
		t.Run("under-load", func(t *testing.T) { underLoad(t, v, server) })
	}
}

// check is a rule being checked.
type check struct {
	rule
	result chan error
}

func start(t *testing.T, r rule, v lockimpl.Variant, server *target.Target, name string) check {
	t.Helper()
	b := newBench(t, v, server, name)
	c := check{r, make(chan error, 1)}
	go func() { c.result <- r.check(b) }()
	return c
}

// rule is one thing that a promise means.
type rule struct {
	property variant.Property
	fault    variant.Fault // what the rule does to the lock
	name     string
	check    func(*bench) error
}

func (r rule) appliesTo(v lockimpl.Variant) bool {
	return slices.Contains(v.Promises, r.property) && !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Property == r.property && (f.Fault == r.fault || f.Fault == variant.NoFault)
	})
}

var rules = []rule{
	{variant.MutualExclusion, variant.NoFault, "a held lock is refused to others", heldIsRefused},
	{variant.MutualExclusion, variant.Overrun, "the lease keeps others out until its end", leaseKeepsOut},
	{variant.MutualExclusion, variant.Overrun, "an extended lease keeps others out until its new end", extendKeepsOut},
	{variant.OwnerOnlyRelease, variant.Overrun, "a late release leaves the next holder alone", lateRelease},
	{variant.OwnerOnlyRelease, variant.Overrun, "a late extend leaves the next holder alone", lateExtend},
	{variant.Progress, variant.NoFault, "a released lock can be taken", releasedCanBeTaken},
	{variant.Progress, variant.NoFault, "a waiter gets the lock when it is released", waiterGetsIt},
	{variant.Progress, variant.Crash, "a dead holder's lease can be taken when it has run out", leaseKeepsOut},
	{variant.Progress, variant.NoFault, "names are independent", namesAreIndependent},
	{variant.Progress, variant.Crash, "a cancelled wait holds nothing", cancelledWait}, // the request under way is as that of one who dies
	{variant.Fencing, variant.NoFault, "tokens rise", tokensRise},
	{variant.FIFO, variant.NoFault, "served in the order of arrival", servedInOrder},
}

// bench is one rule's workplace: any number of clients of one lock.
type bench struct {
	ctx    context.Context
	lock   lockimpl.Variant
	name   string
	ttl    time.Duration
	engine *load.Engine
	made   []*load.Client
}

func newBench(t *testing.T, v lockimpl.Variant, server *target.Target, name string) *bench {
	t.Helper()
	e, err := load.New(t.Context(), load.Config{
		Pool: 8, Waiting: load.Poll, Seed: 1,
		Dial: func(_ int32, n int) []redis.UniversalClient { return server.Clients(target.ConnOptions{PoolSize: n}) },
		Warm: target.Warm,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{ctx: t.Context(), lock: v, name: name, ttl: shortLease, engine: e}
	if v.Needs.Masters > 1 {
		b.ttl = longLease
	}
	t.Cleanup(func() {
		for _, c := range b.made {
			c.End()
		}
		e.Close()
	})
	return b
}

// world is a new client's, on the engine's shared connections.
func (b *bench) world() *load.Client {
	c, err := b.engine.Client(b.ctx)
	if err != nil {
		panic(err) // only dialling can fail, and a shared pool has dialled
	}
	b.made = append(b.made, c)
	return c
}

// client is a new client's Locker.
func (b *bench) client() lockimpl.Locker { return b.lock.New(b.world().Env) }

// take obtains a lock that is free: on a busy machine that may need a second try
// of a lock that limits its time for each node.
func (b *bench) take(l lockimpl.Locker) (lockimpl.Lock, error) {
	m, err := b.wait(l)
	if err != nil {
		err = fmt.Errorf("a free lock was not granted: %w", err)
	}
	return m, err
}

// try makes one attempt.
func (b *bench) try(l lockimpl.Locker) (lockimpl.Lock, error) {
	return l.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl})
}

// wait keeps trying for much longer than a lease.
func (b *bench) wait(l lockimpl.Locker) (lockimpl.Lock, error) {
	return l.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: 30 * time.Second, RetryEvery: 5 * time.Millisecond})
}

// abandoned is a lock whose holder let the lease run out without a release. A
// lock that renews by itself is taken by a client that has died.
func (b *bench) abandoned() (lockimpl.Locker, lockimpl.Lock, error) {
	c := b.world()
	owner := b.lock.New(c.Env)
	l, err := b.take(owner)
	c.End() // its background work ends with it
	return owner, l, err
}

func heldIsRefused(b *bench) error {
	if _, err := b.take(b.client()); err != nil {
		return err
	}
	if _, err := b.try(b.client()); !errors.Is(err, lockimpl.ErrHeld) {
		return fmt.Errorf("a second client was answered %v while the first held the lock; want ErrHeld", err)
	}
	return nil
}

// leaseKeepsOut lets a holder die and measures when the next one gets in. There is
// no allowance: the grant is measured after it happened.
func leaseKeepsOut(b *bench) error {
	_, l, err := b.abandoned()
	if err != nil {
		return err
	}
	if _, err := b.wait(b.client()); err != nil {
		return fmt.Errorf("nobody could take the lock after its lease had run out: %w", err)
	}
	if now := time.Now(); now.Before(l.Until) {
		return fmt.Errorf("a second client got the lock %v before the first one's lease was over", l.Until.Sub(now))
	}
	return nil
}

func extendKeepsOut(b *bench) error {
	owner, l, err := b.abandoned()
	if err != nil {
		return err
	}
	l, err = owner.Extend(b.ctx, l, 2*b.ttl)
	if err != nil {
		return fmt.Errorf("the holder could not extend its lease: %w", err)
	}
	if _, err := b.wait(b.client()); err != nil {
		return fmt.Errorf("nobody could take the lock after its extended lease had run out: %w", err)
	}
	if now := time.Now(); now.Before(l.Until) {
		return fmt.Errorf("a second client got the lock %v before the extended lease was over", l.Until.Sub(now))
	}
	return nil
}

func lateRelease(b *bench) error {
	return late(b, "release", func(owner lockimpl.Locker, l lockimpl.Lock) error {
		return owner.Release(b.ctx, l)
	})
}

func lateExtend(b *bench) error {
	return late(b, "extend", func(owner lockimpl.Locker, l lockimpl.Lock) error {
		_, err := owner.Extend(b.ctx, l, b.ttl)
		return err
	})
}

// late lets a lease run out and somebody else take the lock before the first
// owner acts on it.
func late(b *bench, what string, act func(lockimpl.Locker, lockimpl.Lock) error) error {
	owner, l, err := b.abandoned()
	if err != nil {
		return err
	}
	next := b.client()
	m, err := b.wait(next)
	if err != nil {
		return fmt.Errorf("the lease never ran out: %w", err)
	}
	if err := act(owner, l); !errors.Is(err, lockimpl.ErrLost) {
		return fmt.Errorf("the first holder's late %s was answered %v after another had the lock; want ErrLost", what, err)
	}
	if err := next.Release(b.ctx, m); err != nil {
		return fmt.Errorf("the next holder's own lock was gone after the late %s: %w", what, err)
	}
	return nil
}

func releasedCanBeTaken(b *bench) error {
	one, two := b.client(), b.client()
	for i, c := range []lockimpl.Locker{one, two, one} {
		l, err := b.take(c)
		if err != nil {
			return fmt.Errorf("grant %d: %w", i+1, err)
		}
		if err := c.Release(b.ctx, l); err != nil {
			return fmt.Errorf("release %d: %w", i+1, err)
		}
		if err := c.Release(b.ctx, l); !errors.Is(err, lockimpl.ErrLost) {
			return fmt.Errorf("releasing the same lock twice was answered %v; want ErrLost", err)
		}
	}
	return nil
}

func waiterGetsIt(b *bench) error {
	holder, waiter := b.client(), b.client()
	// Long enough that only the release can let the waiter in.
	long := lockimpl.Options{TTL: time.Minute}
	l, err := holder.Acquire(b.ctx, b.name, long)
	if err != nil {
		return err
	}
	got := make(chan error)
	go func() {
		_, err := b.wait(waiter)
		got <- err
	}()
	if err := holder.Release(b.ctx, l); err != nil {
		return err
	}
	return <-got
}

func namesAreIndependent(b *bench) error {
	c := b.client()
	if _, err := b.take(c); err != nil {
		return err
	}
	other := b.name + "-other"
	l, err := c.Acquire(b.ctx, other, lockimpl.Options{TTL: b.ttl})
	if err != nil {
		return fmt.Errorf("a client that holds %q could not take %q: %w", b.name, other, err)
	}
	if err := c.Release(b.ctx, l); err != nil {
		return err
	}
	if _, err := b.try(b.client()); !errors.Is(err, lockimpl.ErrHeld) && slices.Contains(b.lock.Promises, variant.MutualExclusion) {
		return fmt.Errorf("releasing %q opened %q: %v", other, b.name, err)
	}
	return nil
}

func cancelledWait(b *bench) error {
	holder, waiter := b.client(), b.client()
	l, err := holder.Acquire(b.ctx, b.name, lockimpl.Options{TTL: time.Minute})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := waiter.Acquire(ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: time.Minute, RetryEvery: time.Millisecond}); err == nil {
		return errors.New("a wait under a cancelled context was granted a lock that is held")
	}
	if err := holder.Release(b.ctx, l); err != nil {
		return err
	}
	if _, err := b.wait(b.client()); err != nil {
		return fmt.Errorf("after a cancelled wait nobody could take the lock: %w", err)
	}
	return nil
}

func tokensRise(b *bench) error {
	var last int64
	for range 5 {
		c := b.client()
		l, err := b.take(c)
		if err != nil {
			return err
		}
		if l.Fence <= last {
			return fmt.Errorf("token %d was granted after token %d", l.Fence, last)
		}
		last = l.Fence
		if err := c.Release(b.ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// servedInOrder lets three clients join the line one after the other, each only
// when the one before is known to stand in it, and then frees the lock.
func servedInOrder(b *bench) error {
	holder := b.client()
	l, err := holder.Acquire(b.ctx, b.name, lockimpl.Options{TTL: time.Minute})
	if err != nil {
		return err
	}
	served := make(chan int, 3)
	failed := make(chan error, 3)
	for i := range 3 {
		w := &watched{joined: make(chan struct{})}
		c := b.world()
		wait := c.Env.Wait
		c.Env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
			w.once() // it waits: the first attempt has put it in line
			return wait(ctx, key, atMost)
		}
		waiter := b.lock.New(c.Env)
		go func() {
			m, err := b.wait(waiter)
			served <- i
			if err == nil {
				err = waiter.Release(context.WithoutCancel(b.ctx), m)
			}
			failed <- err
		}()
		<-w.joined
	}
	if err := holder.Release(b.ctx, l); err != nil {
		return err
	}
	for want := range 3 {
		if got := <-served; got != want {
			return fmt.Errorf("client %d of the line was served as number %d", got+1, want+1)
		}
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// watched tells once that something happened.
type watched struct {
	joined chan struct{}
	done   bool
}

func (w *watched) once() {
	if !w.done {
		w.done = true
		close(w.joined)
	}
}

// underLoad runs the mutex scenario and judges its history.
func underLoad(t *testing.T, v lockimpl.Variant, server *target.Target) {
	mutex, _ := scenarios.Find("mutex")
	c := scenarios.Config{
		Scenario: mutex, Lock: v, Clients: 8, Pool: 8, Seed: 1, Ops: 300,
		TTL: 10 * time.Second, Wait: 10 * time.Second, Retry: 2 * time.Millisecond, Hold: 50 * time.Microsecond,
	}
	if err := c.Complete(server.Nodes()); err != nil {
		t.Fatal(err)
	}
	if expected, why := c.Expect(); expected != scenarios.ExpectPass {
		t.Logf("not judged: its flaws declare that load alone breaks it: %s", why)
		return
	}
	path := filepath.Join(t.TempDir(), "history.bin")
	if err := scenarios.Run(t.Context(), c, scenarios.Servers{Redis: server}, path, new(scenarios.Live)); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, verdict := range checker.Judge(h).Verdicts {
		if h.Header.Promised(verdict.Of, verdict.Property) && verdict.Result != checker.Holds {
			t.Errorf("lock %s promises %s, but it is %s under load: %s\n%v", v.Name, verdict.Property, verdict.Result, verdict.Why, verdict.Witness)
		}
	}
}

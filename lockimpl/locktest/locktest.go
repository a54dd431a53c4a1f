// Package locktest is the conformance suite for locks: it tests any lock that implements [lockimpl.Locker].
//
//	func TestMyLock(t *testing.T) {
//		locktest.Run(t, lockimpl.Variant{
//			Name:     "mine",
//			Promises: []variant.Property{variant.MutualExclusion, variant.Progress},
//			New:      func(env variant.Env) lockimpl.Locker { return mylock.New(env) },
//		}, locktest.Auto)
//	}
//
// There is one subtest per rule. A rule is checked if the lock promises its property, and declares no flaw of that
// property that needs no fault, or one of the faults that the rule injects.
// Two more subtests put the lock under load and judge the recorded histories: one has many grants, the other clients
// that overrun their lease, freeze, lose answers and die. A lease may end a millisecond early, since servers may count in
// whole milliseconds. A lock that is free, or whose lease is over, must be granted within 8 seconds, also if a client has died that
// waited for it. All of it takes 10 to 20 seconds.
//
// The suite first finds out the optional abilities of a lock: waiting, extending, reporting a lost lock, re-entrance,
// leases below a second. It does not test missing abilities, and says so in the log of the test. An error that is
// neither ErrHeld nor ErrLost is not an answer: the suite tries again. A rule that could not be judged, since the
// machine was too busy or calls had no answer, is tried again when all others have ended. If it still cannot be judged,
// the test fails as inconclusive if there is evidence against the lock, if fewer than half of the rules of that promise
// were judged, or if the environment variable OVERSELL_REQUIRE_ALL is 1; otherwise the rule is skipped. If the clients of
// a load make no progress on a busy machine, the load is tried once more; if they fail again, the log of the test says
// that it was not judged.
//
// Each client reaches the server through proxies, with which the suite loses answers, holds clients up between two
// commands, and cuts them off. The clients in Env.Redis lead there; a lock with a Redis client of its own finds the
// proxy in Env.Addr.
//
// The suite changes the servers, so nothing else may use them: for one rule it creates users (ACL SETUSER) and deletes
// them; before the rules it makes the servers forget all scripts (SCRIPT FLUSH), deletes the libraries of functions that the
// lock has loaded (FUNCTION DELETE), and sets maxmemory to 1 for a moment.
//
// Some rules run on the emulation, with a clock that the rule moves, even if [Auto] has found a server. They are about
// long leases; a long lease beside a short one; waits of hours; names of a few letters; time that passes within a call; a late release or extend after a quiet
// time; a server that answers with an error, or forgets its scripts; the fencing tokens of an old lock, and of later
// months; and the end of a lease by a clock that is behind. If a lock cannot be judged there, for example because it
// sends times of the real clock, the log of the test says so.
//
// In some rules a client's clock is up to an hour ahead or behind. A lock that goes by the clocks of its clients declares, for
// each promise that it then breaks, a flaw with variant.ClockSkew.
//
// A lock may be re-entrant: a holder that asks again is granted the lock once more. Then both grants count: others are kept
// out until the longer lease ends, and until both have been released.
//
// # Every interleaving
//
// Run samples; [Explore] proves: it tries every interleaving of a few clients within bounds, and ends with a proof or
// with a schedule that breaks a promise. It steps a lock that does everything through its variant.Env;
// [ExploreSale] searches a sale under such a lock. [ExploreBubble] steps code that starts goroutines and reads the time
// by itself, like a library's, in bubbles of testing/synctest; package [oversell/explore/bubbletest] lists the
// requirements and the limits. This is a complete test of such a lock, github.com/bsm/redislock:
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
//		}, reports.Bounds{})
//	}
package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"oversell/internal/mark"
	"oversell/internal/testlog"
	"oversell/lockimpl"
	"oversell/lockimpl/lockfinding"
	"oversell/lockimpl/lockload"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// Open opens the server, or the servers, of one test.
type Open func(t *testing.T) *server.Target

// Process opens redis-server children of this topology ("single", "masters:5").
// The test is skipped where none is installed, and fails if OVERSELL_REQUIRE_ALL=1.
func Process(topology string) Open { return opener("process", topology) }

// Embedded opens the emulation that needs nothing installed.
func Embedded(topology string) Open { return opener("embedded", topology) }

// Auto opens a redis-server child if there is one on PATH, and otherwise the emulation.
// Then the test's log says so, or the test fails if OVERSELL_REQUIRE_SERVER=1.
func Auto(t *testing.T) *server.Target { t.Helper(); return AutoOf("single")(t) }

// AutoOf is Auto for a topology.
func AutoOf(topology string) Open {
	return func(t *testing.T) *server.Target { t.Helper(); return opentest.Auto(t, topology) }
}

func opener(kind, topology string) Open {
	return func(t *testing.T) *server.Target {
		t.Helper()
		return opentest.Open(t, server.Spec{Target: kind, Topology: topology})
	}
}

// Options change how Run tests a lock. The zero value is the default.
type Options struct {
	// Seed fixes the random choices: tokens, pauses, and which commands are delayed or lost. 0 means the value of
	// OVERSELL_SEED, or else 1. The interleaving of clients still differs from run to run.
	Seed uint64
	// Load is the longest time of each of the two loads; 0 means 5 seconds. The first one ends earlier after enough
	// grants.
	Load time.Duration
}

// seed returns the seed of a run.
func (o Options) seed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("OVERSELL_SEED"), 10, 64)
	if err != nil {
		n = 1
	}
	return cmp.Or(o.Seed, n)
}

// Run checks the lock's promises, one subtest for each rule. The rules run side by side,
// each on a lock name of its own, since most of them wait for a lease to end. The test fails for a lock without
// promises, since nothing can be judged.
func Run(t *testing.T, v lockimpl.Variant, open Open) {
	t.Helper()
	RunWith(t, v, open, Options{})
}

// RunWith is Run with options.
func RunWith(t *testing.T, v lockimpl.Variant, open Open, o Options) {
	t.Helper()
	if len(v.Promises) == 0 {
		t.Fatalf("lock %s promises nothing, so nothing can be judged: set Variant.Promises", v.Name)
	}
	target := open(t)
	say := testlog.New(t)
	r := &run{lock: v, server: target, seed: o.seed(), began: time.Now(), logf: say.Logf}
	defer say.Stop()
	defer func() {
		if t.Failed() {
			t.Logf("the seed was %d; %s", r.seed, testlog.Seed(t, r.seed))
		}
	}()
	prefix := mark.New()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	r.enough = enough
	beating, stop := context.WithCancel(ctx)
	defer stop()
	go r.beat(beating)
	if err := r.probe(ctx, prefix+"probe"); err != nil {
		t.Fatal(r.told(err, ""))
	}
	checks := r.checks(ctx, t, prefix)
	lasts := cmp.Or(o.Load, 5*time.Second)
	crowded, troubled := make(chan []error, 1), make(chan []error, 1)
	load := func(p lockload.Plan, name string) []error {
		all := r.load(ctx, p, name)
		for _, err := range all {
			r.found(err)
		}
		return all
	}
	go func() {
		crowded <- load(lockload.Crowd(lasts), prefix+"many-order")
		if !r.able.reached {
			troubled <- nil
			return
		}
		troubled <- load(r.troubled(lasts), prefix+"trouble-order")
	}()
	unsure, judged := r.await(t, checks)
	for _, l := range []struct {
		name   string
		result chan []error
	}{{"many grants", crowded}, {"clients in trouble", troubled}} {
		t.Run("under-load/"+l.name, func(t *testing.T) {
			for _, err := range <-l.result {
				t.Error(r.told(err, " under load"))
			}
		})
	}
	r.again(ctx, t, prefix, unsure, judged)
}

// apart, times the number of masters, is the pause between the starts of two rules. Without it, hundreds of clients
// would connect to a master at the same time, and locks with short time limits would time out and begin again.
const apart = 25 * time.Millisecond

// checks starts the rules that apply to the lock, each on a name of its own.
func (r *run) checks(ctx context.Context, t *testing.T, prefix string) (all []check) {
	for i, u := range rules {
		if !r.promises(u.property, u.faults...) {
			continue
		}
		if u.needs != nil {
			if why := u.needs(r); why != "" {
				t.Logf("%s/%s was not tried: %s", u.property, u.name, why)
				continue
			}
		}
		all = append(all, r.start(ctx, u, fmt.Sprintf("%s-%d-order", prefix, i), time.Duration(len(all)*r.server.Nodes())*apart))
	}
	return all
}

// await reports the results of the rules. It returns the rules that could not be judged while all others ran, and by how many
// there are more judged than others, for each promise.
func (r *run) await(t *testing.T, checks []check) (unsure []check, judged map[variant.Property]int) {
	judged = map[variant.Property]int{}
	for _, c := range checks {
		judged[c.property]--
		t.Run(fmt.Sprintf("%s/%s", c.property, c.name), func(t *testing.T) {
			switch err := <-c.result; {
			case isUnjudged(err):
				unsure = append(unsure, c)
				t.Skipf("%v; it is tried again when the other rules have ended", err)
			case err != nil:
				t.Error(r.told(err, aside(c.rule, err)))
			}
			judged[c.property] += 2
		})
	}
	return unsure, judged
}

// again tries rules once more, fewer at a time. If a rule still cannot be judged, again skips it if at least half of the rules
// of its promise were judged.
func (r *run) again(ctx context.Context, t *testing.T, prefix string, unsure []check, judged map[variant.Property]int) {
	r.repeats.Store(true)
	slots := make(chan struct{}, 4)
	for i := range unsure {
		c := &unsure[i]
		c.result = make(chan error, 1)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if time.Since(r.began) > againUntil {
				c.result <- unjudged("the machine is too busy", nil)
				return
			}
			c.result <- <-r.start(ctx, c.rule, fmt.Sprintf("%s-%d-again-order", prefix, i), 0).result
		}()
	}
	errs := make([]error, len(unsure))
	for i, c := range unsure {
		if errs[i] = <-c.result; !isUnjudged(errs[i]) {
			judged[c.property] += 2
		}
	}
	for i, c := range unsure {
		t.Run(fmt.Sprintf("%s/%s, again", c.property, c.name), func(t *testing.T) {
			switch err := errs[i]; {
			case err == nil:
			case lockfinding.OnlyBusy(err) && judged[c.property] >= 0 && os.Getenv("OVERSELL_REQUIRE_ALL") != "1":
				t.Skip(r.told(err, ""))
			default:
				t.Error(r.told(err, aside(c.rule, err)))
			}
		})
	}
}

func (r *run) told(err error, when string) string { return lockfinding.Told(r.lock.Name, err, when) }

// aside names the promise of a rule that found another one broken.
func aside(u rule, err error) string {
	var b *breach
	if !errors.As(err, &b) || b.Property == u.property {
		return ""
	}
	return fmt.Sprintf(" in a rule about %s", u.property)
}

// againUntil is how long after the start of a run rules that could not be judged are tried again.
const againUntil = time.Minute

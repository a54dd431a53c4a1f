package explore

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// threadPlan describes a lock on several masters, each of which is asked by its own thread. Some plans are correct, and
// some have typical mistakes.
type threadPlan struct {
	masters  int
	grants   int  // which answers make a grant: see threaded.Acquire
	until    int  // when the lease begins
	limited  bool // each request has a time limit
	looks    bool // each thread reads the clock before it asks
	cancels  bool // the first thread that is refused cancels the others
	polls    bool // a thread that was cancelled does not ask
	undoes   bool // a client that is not granted the lock releases it on all masters
	releases int  // which masters are asked to release, and how
}

const (
	byMajority = iota
	byFirstAnswer
	byLastAnswer
	byFirstMaster
	grantRules
)

const (
	fromCall = iota
	fromFirstThread
	fromLastThread
	fromAnswer
	untilRules
)

const (
	comparedEverywhere = iota
	comparedWhereFirst // on the master that answered first
	deletedEverywhere
	releaseRules
)

func drawThreads(seed uint64) (threadPlan, Config) {
	r := rand.New(rand.NewPCG(seed, 0x74687265616473))
	yes := func() bool { return r.IntN(2) == 0 }
	p := threadPlan{
		masters: 1 + r.IntN(2), grants: r.IntN(grantRules), until: r.IntN(untilRules),
		limited: yes(), looks: yes(), cancels: r.IntN(4) == 0, polls: yes(), undoes: yes(), releases: r.IntN(releaseRules),
	}
	b := reports.Bounds{Clients: 2, Tries: 1, TimeMS: 4_000, MemoryMB: 8, Advances: r.IntN(2)}
	switch r.IntN(5) {
	case 0:
		b.Lost = 1
	case 1:
		b.Crashes = 1
	case 2:
		b.Stalls = 1
	case 3:
		b.Tries, b.Advances = 2, 0
	}
	return p, p.config(b, []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress}[r.IntN(3)])
}

func (p threadPlan) config(b reports.Bounds, look variant.Property) Config {
	mutex, _ := scenarios.Find("mutex")
	lock := lockimpl.Variant{Name: "threaded", New: func(env variant.Env) lockimpl.Locker { return &threaded{env: env, plan: p} }}
	return Config{
		Masters: p.masters, Bounds: b, Exhaustive: true, Look: []history.Promise{{Of: variant.Lock, Property: look}},
		Run: scenarios.Config{Scenario: mutex, Lock: lock, Hold: time.Millisecond},
	}
}

// threaded is a client's view of a lock that follows a threadPlan.
type threaded struct {
	env   variant.Env
	plan  threadPlan
	first int // the master that answered first
}

// heard is the answer that a thread received.
type heard struct {
	began, ended time.Time
	yes          bool
	err          error
}

// ask calls f for all masters at once. order lists the masters in the order of their answers.
func (l *threaded) ask(ctx context.Context, f func(context.Context, redis.UniversalClient) (bool, error)) (all []heard, order []int) {
	all = make([]heard, l.plan.masters)
	var joins []func(context.Context) error
	back, callBack := context.WithCancel(ctx)
	defer callBack()
	for i := range all {
		h := &all[i]
		joins = append(joins, l.env.Go(func(context.Context) {
			ctx := ctx
			if l.plan.cancels {
				ctx = back
			}
			if l.plan.looks {
				h.began = l.env.Clock.Now()
			}
			if l.plan.limited {
				var done context.CancelFunc
				ctx, done = l.env.Clock.WithTimeout(ctx, 50*time.Millisecond)
				defer done()
			}
			if l.plan.polls && ctx.Err() != nil {
				h.err = ctx.Err()
				return
			}
			h.yes, h.err = f(ctx, l.env.Redis[i])
			if order = append(order, i); l.plan.until == fromAnswer {
				h.ended = l.env.Clock.Now()
			}
			if !h.yes && l.plan.cancels {
				callBack()
			}
		}))
	}
	for _, join := range joins {
		_ = join(context.WithoutCancel(ctx))
	}
	return all, order
}

func (l *threaded) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	start, v := l.env.Clock.Now(), l.env.Token()
	all, order := l.ask(ctx, func(ctx context.Context, r redis.UniversalClient) (bool, error) {
		err := r.SetArgs(ctx, lockimpl.Key(name), v, redis.SetArgs{Mode: "NX", TTL: o.TTL}).Err()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil, err
	})
	n := 0
	for i, h := range all {
		n += int(flag(h.yes))
		switch {
		case l.plan.until == fromFirstThread && (i == 0 || h.began.Before(start)), l.plan.until == fromLastThread && h.began.After(start):
			start = h.began
		case l.plan.until == fromAnswer && h.ended.After(start):
			start = h.ended
		}
	}
	granted := n > l.plan.masters/2
	switch {
	case len(order) == 0:
		granted = false
	case l.plan.grants == byFirstAnswer:
		granted = all[order[0]].yes
	case l.plan.grants == byLastAnswer:
		granted = all[order[len(order)-1]].yes
	case l.plan.grants == byFirstMaster:
		granted = all[0].yes
	}
	if granted {
		l.first = order[0]
		return lockimpl.Lock{Key: name, Token: v, Until: start.Add(o.TTL)}, nil
	}
	if l.plan.undoes {
		l.release(ctx, name, v)
	}
	return lockimpl.Lock{}, lockimpl.ErrHeld
}

func (l *threaded) release(ctx context.Context, name, v string) {
	l.ask(ctx, func(ctx context.Context, r redis.UniversalClient) (bool, error) {
		switch {
		case l.plan.releases == deletedEverywhere:
			return true, r.Del(ctx, lockimpl.Key(name)).Err()
		case l.plan.releases == comparedWhereFirst && r != l.env.Redis[l.first]:
			return true, nil
		}
		return true, scriptDrop.Run(ctx, r, []string{lockimpl.Key(name)}, v).Err()
	})
}

func (l *threaded) Extend(_ context.Context, held lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	return held, lockimpl.ErrLost
}

func (l *threaded) Release(ctx context.Context, held lockimpl.Lock) error {
	l.release(ctx, held.Key, held.Token)
	return nil
}

// asGoodAs reports whether a search with reductions found the same as one without them, which found plain. It may need
// fewer actions: one action in which a thread reads the clock early stands for several.
func (o outcome) asGoodAs(plain outcome) bool {
	return o.verdict == plain.verdict && o.property == plain.property && o.actions <= plain.actions
}

// TestThreadCancelled checks a lock on two masters, in which the answer of the first cancels the request to the second.
// The lock breaks only in schedules in which the cancelled thread has already started its time limit.
func TestThreadCancelled(t *testing.T) {
	t.Parallel()
	p := threadPlan{masters: 2, grants: byLastAnswer, until: fromLastThread, limited: true, cancels: true, polls: true, undoes: true, releases: comparedEverywhere}
	c := p.config(reports.Bounds{Clients: 2, Tries: 1, TimeMS: 60_000, MemoryMB: 100, Lost: 1}, variant.MutualExclusion)
	r, err := Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Violated {
		t.Errorf("%s: %s (%v)", r.Verdict, r.Why, err)
	}
}

// smallSeeds are seeds of programs whose schedules can all be searched within the bounds.
var smallSeeds = []uint64{32, 37, 22, 48, 14, 31, 49, 13, 23, 34, 30, 59, 57, 19, 12, 38, 51, 46, 18, 5}

// TestThreads checks that a search that treats all orders in which a client's threads get their answers as one ends
// like a search that does not, whether or not the client depends on the order.
func TestThreads(t *testing.T) {
	t.Parallel()
	tried := smallSeeds
	switch {
	case long():
		tried = nil
		for seed := range uint64(4000) {
			tried = append(tried, seed)
		}
	case raced:
		tried = smallSeeds[:6]
	}
	var mu sync.Mutex
	ended, orders := map[string]int{}, 0
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for seed := range seeds {
				p, c := drawThreads(seed)
				var out [2]outcome
				small := true
				for i, plain := range []bool{false, true} {
					c.Plain = plain
					r, err := Run(t.Context(), c)
					if err != nil {
						t.Errorf("seed %d (plain %t): %v: %+v %+v", seed, plain, err, p, c.Bounds)
					}
					small = small && r.Verdict != reports.Inconclusive
					out[i] = outcomeOf(r)
				}
				mu.Lock()
				if small {
					ended[out[0].verdict]++
					if p.grants == byFirstAnswer || p.grants == byLastAnswer || p.releases == comparedWhereFirst {
						orders++
					}
				}
				mu.Unlock()
				if small && !out[0].asGoodAs(out[1]) {
					t.Errorf("seed %d: %+v, with every order for itself %+v: %+v %+v %v", seed, out[0], out[1], p, c.Bounds, c.Look)
				}
			}
		})
	}
	for _, seed := range tried {
		seeds <- seed
	}
	close(seeds)
	all.Wait()
	t.Logf("%v; %d look for the order", ended, orders)
	if ended[reports.Violated] < len(tried)/10 || ended[reports.Pass] < len(tried)/10 {
		t.Error("too few programs hold, or too few are violated")
	}
}

package explore

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"oversell/reports"
)

// A search that has run out of time or memory goes on at random, in the manner of
// probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A
// randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010): every
// client has a priority, the client of the highest one that can go on does, and at a few steps
// drawn in advance the order is broken. Here that is: that client falls behind all others, or
// something happens that is no client's own step (a message is lost, a request is late, time
// passes although somebody could go on). With n clients and k steps a mistake that needs d
// things in one order is met by one schedule with a probability of at least 1/(n·k^(d-1)).

// exhaustively is the part of a search's time after which it goes on at random.
const exhaustively = 0.8

// mostOrders is the most orders of things that a random schedule brings about on purpose.
const mostOrders = 6

// longest is how many steps a random schedule may have.
const longest = 2000

// wander searches at random from start until the time is up, and returns the shortest schedule
// it has made of the first that broke a promise; nil: none did.
func (x *search) wander(ctx context.Context, start state, until time.Time, progress func(reports.Effort)) *wandered {
	w := &wandered{length: max(x.reached, 1)}
	var number, left atomic.Int64
	left.Store(1)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range hands() {
		all.Go(func() {
			walk := walker{w: x.worker(), start: start}
			for left.Load() > 0 && ctx.Err() == nil && time.Now().Before(until) && !x.full(1.2) {
				mu.Lock()
				length := w.length
				mu.Unlock()
				f := walk.schedule(uint64(number.Add(1)), length)
				x.effort.add(&walk.w.tally)
				x.tell(progress, 0)
				mu.Lock()
				w.schedules++
				w.length = max(w.length, len(walk.actions))
				mu.Unlock()
				if walk.err != nil {
					x.fail(walk.err)
					left.Store(0)
				}
				if f != nil && left.Swap(0) > 0 {
					w.found, w.actions = walk.shorter(ctx, f, until)
				}
			}
		})
	}
	all.Wait()
	return w
}

// wandered is what a random search came to.
type wandered struct {
	schedules int
	length    int // of the longest
	found     *finding
	actions   []action // that lead to it
}

// chance is the least probability with which so many schedules meet a mistake that needs d
// things in one order.
func (w *wandered) chance(clients, d int) float64 {
	// The number of such things is drawn as well.
	one := 1 / (float64(clients) * math.Pow(float64(w.length), float64(d-1))) / mostOrders
	return -math.Expm1(float64(w.schedules) * math.Log1p(-one))
}

func (w *wandered) report(clients int) *reports.RandomEffort {
	r := &reports.RandomEffort{Schedules: int64(w.schedules), Steps: w.length}
	for d := 1; d <= 3; d++ {
		r.Chances = append(r.Chances, w.chance(clients, d))
	}
	return r
}

// walker makes one schedule after the other.
type walker struct {
	w       *worker
	start   state
	actions []action
	err     error
}

// schedule makes one schedule, by its number, of about so many steps, and returns what it broke.
func (k *walker) schedule(number uint64, length int) *finding {
	x := k.w.search
	r := rand.New(rand.NewPCG(number, 0x77616e646572))
	priority := r.Perm(x.clients)
	breaks := map[int]bool{}
	for range r.IntN(mostOrders) {
		breaks[r.IntN(length)] = true
	}
	k.actions, k.err = k.actions[:0], nil
	s := k.start
	var all []action
	for step := 0; step < longest; step++ {
		all = k.w.actions(s, all[:0])
		if len(all) == 0 {
			break
		}
		a := k.choose(s, all, priority, breaks[step], r)
		next, f := k.take(s, a, r)
		if f != nil || k.err != nil {
			return f
		}
		s = next
	}
	return nil
}

// choose is the next action: a client's own step by priority or, where the order is broken,
// anything.
func (k *walker) choose(s state, all []action, priority []int, broken bool, r *rand.Rand) action {
	if broken {
		var others []action
		for _, a := range all {
			if a.kind() != goes {
				others = append(others, a)
			}
		}
		if len(others) > 0 && r.IntN(2) == 0 {
			return others[r.IntN(len(others))]
		}
	}
	var best []action
	first := len(priority)
	for _, a := range all {
		if a.kind() != goes {
			continue
		}
		switch p := priority[a.client()]; {
		case p < first:
			first, best = p, append(best[:0], a)
		case p == first:
			best = append(best, a)
		}
	}
	if len(best) == 0 {
		return all[r.IntN(len(all))]
	}
	a := best[r.IntN(len(best))]
	if broken {
		for c := range priority {
			if priority[c] > priority[a.client()] {
				priority[c]--
			}
		}
		priority[a.client()] = len(priority) - 1
	}
	return a
}

// take lets an action happen; r, unless it is nil, draws the order of an answer that may have
// several. It returns what that broke.
func (k *walker) take(s state, a action, r *rand.Rand) (state, *finding) {
	st := k.w.act(s, a)
	if n := len(k.w.search.servers.orders.get(st.effect.orders)); r != nil && st.effect.orders != 0 && a.kind() == goes {
		a = a.inOrder(r.IntN(n))
		st = k.w.act(s, a)
	}
	k.actions = append(k.actions, a)
	k.w.count(s, a, st)
	switch {
	case st.err != nil:
		k.err = st.err
		return s, nil
	case st.breach != nil:
		return s, &finding{by: a, breach: st.breach}
	}
	return st.next, k.w.ending(st.next)
}

// again goes a way once more, leaving out what cannot happen, and returns what it broke first.
func (k *walker) again(actions []action) *finding {
	k.actions, k.err = nil, nil
	s := k.start
	var all []action
	for _, a := range actions {
		all = k.w.actions(s, all[:0])
		possible := false
		for _, b := range all {
			possible = possible || b == a.inOrder(0) || b == a
		}
		if !possible {
			continue
		}
		next, f := k.take(s, a, nil)
		if f != nil || k.err != nil {
			return f
		}
		s = next
	}
	return nil
}

// shorter leaves out of a schedule all that the breach does not need, one thing at a time.
func (k *walker) shorter(ctx context.Context, f *finding, until time.Time) (*finding, []action) {
	best := append([]action(nil), k.actions...)
	for changed := true; changed; {
		changed = false
		for i := len(best) - 1; i >= 0 && ctx.Err() == nil && time.Now().Before(until.Add(shrinking)); i-- {
			less := append(append([]action(nil), best[:i]...), best[i+1:]...)
			g := k.again(less)
			if g != nil && k.err == nil && g.breach.property == f.breach.property && g.breach.of == f.breach.of && len(k.actions) < len(best) {
				f, best, changed = g, append([]action(nil), k.actions...), true
				i = min(i, len(best))
			}
		}
	}
	return f, best
}

// shrinking is for how long after its time a schedule is still made shorter.
const shrinking = 2 * time.Second

// ending is what is broken if everybody stops in s: see end.
func (w *worker) ending(s state) *finding {
	x := w.search
	if !x.ends.lock && !x.ends.books {
		return nil
	}
	dead := w.dead(s)
	if bits.OnesCount16(dead) > x.bounds.Crashes {
		return nil
	}
	if b := w.ended.get(ending{s.servers, s.facts, s.now}); b != nil {
		return &finding{end: true, dead: dead, breach: b}
	}
	return nil
}

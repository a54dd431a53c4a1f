package explore

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oversell/reports"
)

// A search that has run out of time or memory goes on at random. Half of its schedules are
// drawn as in probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and
// Nagarakatte, "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS
// 2010): every thread has a priority, the thread with the highest one that can go on takes the
// next step, and at d-1 steps drawn in advance the thread that took it gets a priority below
// all others. They have no faults, and time passes only when no thread can go on. With n threads
// and at most k steps, a bug that needs d steps in one order shows in such a schedule with a
// probability of at least 1/(n·k^(d-1)).
//
// In the other half the order is also disturbed in other ways at those steps: a message is lost, a request is late, or
// time passes although a thread could go on. For those there is no such bound.

// exhaustively is the part of a search's time after which it goes on at random.
const exhaustively = 0.8

// maxDepth is the greatest d that is drawn.
const maxDepth = 6

// longest is the most steps of a random schedule.
const longest = 2000

// wander searches at random from start until the time is up. It returns nil if there was no
// time for a schedule.
func (x *search) wander(ctx context.Context, start state, until time.Time, progress func(reports.Effort)) *wandered {
	w := &wandered{length: max(x.reached, 1), disturbed: max(x.reached, 1)}
	var number, left atomic.Int64
	left.Store(1)
	var tell func(reports.Effort)
	if progress != nil {
		tell = func(e reports.Effort) {
			e.Random = &reports.RandomEffort{Schedules: number.Load()}
			progress(e)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range workerCount() {
		all.Go(func() {
			walk := walker{w: x.worker(), start: start}
			for left.Load() > 0 && ctx.Err() == nil && time.Now().Before(until) && !x.full(1.2) {
				n := uint64(number.Add(1))
				walk.disturbed = n%2 == 0
				mu.Lock()
				length := w.length
				if walk.disturbed {
					length = w.disturbed
				}
				mu.Unlock()
				f := walk.schedule(n, length, func() bool { return ctx.Err() != nil || !time.Now().Before(until) })
				x.effort.add(&walk.w.tally)
				x.tell(tell, 0)
				mu.Lock()
				w.add(&walk, length)
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
	if w.schedules == 0 {
		return nil
	}
	return w
}

// wandered is the result of a random search.
type wandered struct {
	schedules int
	// faultless counts the schedules without faults drawn for the final length and number of threads.
	faultless int
	length    int // steps of the longest of them
	threads   int // the most in one of them
	disturbed int // steps of the longest of the others
	found     *finding
	actions   []action // that lead to it
}

// add counts a schedule that was drawn for a length.
func (w *wandered) add(k *walker, drawnFor int) {
	w.schedules++
	if k.disturbed {
		w.disturbed = max(w.disturbed, len(k.actions))
		return
	}
	if len(k.actions) > w.length || len(k.priority) > w.threads {
		w.length, w.threads = max(w.length, len(k.actions)), max(w.threads, len(k.priority))
		w.faultless = 0 // its steps were drawn from too few
	}
	w.faultless += int(flag(drawnFor == w.length))
}

// chance returns the least probability with which so many schedules without faults show a bug that
// needs d steps in one order.
func (w *wandered) chance(d int) float64 {
	one := 1 / (float64(w.threads) * math.Pow(float64(w.length), float64(d-1))) / maxDepth // d is drawn as well
	return -math.Expm1(float64(w.faultless) * math.Log1p(-one))
}

func (w *wandered) report() *reports.RandomEffort {
	r := &reports.RandomEffort{Schedules: int64(w.schedules), Faultless: int64(w.faultless), Steps: max(w.length, w.disturbed)}
	for d := 1; d <= 3; d++ {
		r.Chances = append(r.Chances, w.chance(d))
	}
	return r
}

// walker makes one schedule after the other.
type walker struct {
	w         *worker
	start     state
	disturbed bool // the schedule may have faults
	priority  map[thread]float64
	actions   []action
	err       error
}

// thread is a thread of a client.
type thread struct{ client, number int }

// schedule makes the schedule with this number and returns what it broke. The steps at which
// priorities change are drawn among the first length steps. The schedule ends when nothing can
// happen, after longest steps, or when over says so.
func (k *walker) schedule(number uint64, length int, over func() bool) *finding {
	r := rand.New(rand.NewPCG(number, 0x77616e646572))
	k.priority = map[thread]float64{}
	changes := map[int]float64{} // the priority that a thread gets at a step
	for i := range r.IntN(maxDepth) {
		changes[r.IntN(length)] = -float64(i + 1)
	}
	k.actions, k.err = k.actions[:0], nil
	s := k.start
	var all []action
	for step := 0; step < longest && !over(); step++ {
		all = k.w.actions(s, all[:0])
		if len(all) == 0 {
			break
		}
		low, change := changes[step]
		a := k.first(s, all, r)
		if change && k.disturbed && r.IntN(2) == 0 {
			a = k.disturbance(s, all, a, r)
		} else if change && a.kind() == goes {
			k.priority[k.thread(s, a)] = low
		}
		next, f := k.take(s, a, r)
		if f != nil || k.err != nil {
			return f
		}
		s = next
	}
	return nil
}

// thread returns the one whose step a is.
func (k *walker) thread(s state, a action) thread {
	return thread{a.client(), k.w.node(a.client(), s.nodes[a.client()]).Pending[a.thread()].Thread}
}

// first returns the step of the thread with the highest priority. A thread that is new draws one.
// If none can go on, it is what happens by itself.
func (k *walker) first(s state, all []action, r *rand.Rand) action {
	best, highest := all[0], math.Inf(-1)
	for _, a := range all {
		if a.kind() != goes {
			continue
		}
		t := k.thread(s, a)
		p, known := k.priority[t]
		if !known {
			p = r.Float64()
			k.priority[t] = p
		}
		if p > highest {
			best, highest = a, p
		}
	}
	if math.IsInf(highest, -1) && k.disturbed {
		return all[r.IntN(len(all))]
	}
	return best
}

// disturbance returns another action in place of the step a of a client: a fault, a look at the clock before a, or time
// passing. If no other action changes anything, it returns a.
func (k *walker) disturbance(s state, all []action, a action, r *rand.Rand) action {
	st := k.w.act(s, a)
	var others []action
	for _, b := range k.w.lookAheads(s, a, &st, append([]action(nil), all...)) {
		if b.kind() != goes {
			others = append(others, b)
		}
	}
	for _, i := range r.Perm(len(others)) {
		if st := k.w.act(s, others[i]); st.next != s || st.breach != nil {
			return others[i]
		}
	}
	return a
}

// take executes an action and returns what that broke. If the schedule is disturbed, r draws the order of an answer
// that may have several; r may be nil.
func (k *walker) take(s state, a action, r *rand.Rand) (state, *finding) {
	st := k.w.act(s, a)
	if n := len(k.w.search.servers.Orders(st.effect.Orders)); r != nil && k.disturbed && st.effect.Orders != 0 && a.kind() == goes {
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

// again repeats a schedule, leaving out actions that cannot happen, and returns what it broke first.
func (k *walker) again(actions []action) *finding {
	k.actions, k.err = nil, nil
	s := k.start
	var all []action
	for _, a := range actions {
		if all = k.w.actions(s, all[:0]); a.kind() == looksAhead {
			for _, b := range all {
				st := k.w.act(s, b)
				all = k.w.lookAheads(s, b, &st, all)
			}
		}
		if !slices.Contains(all, a) && (a.kind() != goes || !slices.Contains(all, a.inOrder(0))) {
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

// shorter removes from a schedule the actions that the breach does not need, one at a time.
func (k *walker) shorter(ctx context.Context, f *finding, until time.Time) (*finding, []action) {
	best := append([]action(nil), k.actions...)
	for changed := true; changed; {
		changed = false
		for i := len(best) - 1; i >= 0 && ctx.Err() == nil && time.Now().Before(until.Add(shrinking)); i-- {
			less := append(append([]action(nil), best[:i]...), best[i+1:]...)
			g := k.again(less)
			if g != nil && k.err == nil && g.breach.Property == f.breach.Property && g.breach.Of == f.breach.Of && len(k.actions) < len(best) {
				f, best, changed = g, append([]action(nil), k.actions...), true
				i = min(i, len(best))
			}
		}
	}
	return f, best
}

// shrinking is how long after the time limit a schedule is still made shorter.
const shrinking = 2 * time.Second

// ending returns what is broken if all clients stop in s: see end.
func (w *worker) ending(s state) *finding {
	x := w.search
	if !x.ends.lock && !x.ends.books || s.inFlight != 0 {
		return nil
	}
	if bits.OnesCount16(w.dead(s)) > x.bounds.Crashes {
		return nil
	}
	if b := w.judgedEnd(s); b != nil {
		return &finding{end: true, breach: b}
	}
	return nil
}

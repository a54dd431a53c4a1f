package explore

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"oversell/internal/coro"
)

// A client's state is what it has seen. But not all of that can make a difference:
//
//   - in what order different threads got to see something, unless the program looks for it,
//     like one that counts the first answer;
//   - when a time-out or a sleep began, if it is over: only the end of it is left.
//
// So places at which each thread has seen the same, but for that, are taken to be one if the
// client has come to the same there and stands before the same. It was executed in both ways
// to find that out. Whether something else comes of it later is checked as well: of the runs
// that are compared with one another some come to their places in another order. When they
// differ the search is made again without this.

// stepOf is something that a thread sees after all that it has seen before.
type stepOf struct {
	before, answer uint32
	now            time.Duration // if it sees the time
	over           string        // the time-outs that are over then
	memory         string        // all that is remembered, instead of what was seen before
}

// remember notes in a new node what its client's threads have seen on the way.
func (t *trie) remember(n, parent *node) {
	if !t.merge || parent == nil {
		return
	}
	s := stepOf{answer: n.by.answer}
	thread := parent.pending[n.by.which].Thread
	if parent.roundEnds() {
		s.memory = fmt.Sprint(parent.values, " ", parent.pending[0].Label)
		n.past, n.told = []uint32{t.step(s)}, 0
		return
	}
	r := parent.pending[n.by.which]
	if r.Kind == coro.Clock && r.Label == "" {
		s.now = n.by.now
	}
	if parent.limits != nil {
		s.over = overAt(parent.limits, thread, n.by.now)
	}
	n.past = slices.Clone(parent.past)
	for len(n.past) <= thread {
		n.past = append(n.past, 0)
	}
	s.before = n.past[thread]
	n.past[thread] = t.step(s)
	n.told = t.segment(slices.Concat(t.segments.get(parent.told), t.segments.get(parent.held), t.segments.get(n.events)))
}

// step numbers what a thread has seen.
func (t *trie) step(s stepOf) uint32 {
	id, known := t.steps[s]
	if !known {
		id = uint32(len(t.steps) + 1)
		t.steps[s] = id
	}
	return id
}

// pastOf is all of a node that can make a difference to what comes after it; "": that is not
// known.
func (t *trie) pastOf(n *node) string {
	if !t.merge || n.limits == nil || n.limits.Seen || len(n.drawn) > 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprint(&b, n.past, n.told, n.held, n.under, n.foreign, n.alive, n.aliveDrawn, n.values, n.limits.Live, n.limits.Over)
	for _, r := range n.pending {
		fmt.Fprintf(&b, " %d %d %q %d %q %t %d %d %d", r.Thread, r.Kind, r.Label, r.Node, r.Commands, r.Tx, r.Conn, r.Until, r.Deadline)
	}
	return b.String()
}

// overAt are the time-outs that are over at a time, of those that a thread has made or the
// client's own thread. Those of others it knows only if they have told it.
func overAt(l *coro.Limits, thread int, now time.Duration) string {
	var all []int
	add := func(n int) {
		if of := coro.ThreadOf(n); of == 0 || of == thread {
			all = append(all, n)
		}
	}
	for _, n := range l.Over {
		add(n)
	}
	for _, l := range l.Live {
		if l.At <= now {
			add(l.Number)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// timeless tells that it makes no difference to a client at which of two times it observes
// something here: they are the same, or one of them does not matter and no limit is over at the
// other.
func timeless(n *node, a, b time.Duration) bool {
	return a == b || min(a, b) == 0 && !n.limited(max(a, b))
}

// standing is the place of a thread that stands before this request.
func standing(n *node, r coro.Request) (which uint8, known bool) {
	if r.Kind == coro.Boundary {
		return 0, false
	}
	i := threadAt(n.pending, r.Thread)
	if i < 0 || !reflect.DeepEqual(n.pending[i], r) {
		return 0, false
	}
	return uint8(i), true
}

// exchange has one of the runs that wait at a node take the place of one that came there in
// another way.
func (t *trie) exchange(at uint32, rs runs) {
	if waiting := t.live[at]; len(waiting) == len(rs) && len(rs) > 1 {
		last := len(rs) - 1
		waiting[last], rs[last] = rs[last], waiting[last]
	}
	rs.close()
}

// together is how many of the nodes at the beginning of a path could be passed in any order:
// different threads come to them by requests before which all stand from the start.
func (t *trie) together(path []uint32) int {
	start := t.nodes.get(t.nodes.get(path[0]).parent)
	var threads []int
	now := time.Duration(0)
	for i, id := range path {
		n := t.nodes.get(id)
		r := t.nodes.get(n.parent).pending[n.by.which]
		_, stands := standing(start, r)
		if !stands || slices.Contains(threads, r.Thread) || len(n.drawn) > 0 || i > 0 && !(timeless(start, now, n.by.now) && timeless(n, now, n.by.now)) {
			return i
		}
		now = max(now, n.by.now)
		threads = append(threads, r.Thread)
	}
	return len(path)
}

// shuffled brings a run to the last of these nodes in another order.
func (t *trie) shuffled(r *run, path []uint32, seed uint64) error {
	var events, all []Event
	for _, id := range path {
		n := t.nodes.get(id)
		events = append(append(events, t.segments.get(n.events)...), t.segments.get(n.held)...)
	}
	order := rand.New(rand.NewPCG(seed, uint64(path[0]))).Perm(len(path))
	for _, i := range order {
		n := t.nodes.get(path[i])
		from := t.nodes.get(n.parent)
		thread := from.pending[n.by.which].Thread
		which := threadAt(r.x.Pending(), thread)
		if which < 0 {
			break // what comes of it is no longer the same
		}
		r.resume(which, t.observation(from, n.by))
		all = append(all, r.events...)
	}
	r.events = all
	if err := r.failed(); err != nil {
		return err
	}
	return t.sameAfter(r, t.nodes.get(path[len(path)-1]), events)
}

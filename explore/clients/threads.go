package clients

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"oversell/explore/rules"
	"oversell/internal/coro"
)

// A client's state is the list of its observations. Two things in that list usually do not
// matter:
//
//   - the order in which different threads made their observations, unless the program depends
//     on it, as one does that takes the first answer;
//   - when a timeout or a sleep that is over had begun.
//
// So two nodes are merged if each thread has observed the same, but for these two things, and
// if the client has emitted the same events and has the same requests pending. The code has
// been executed in both orders by then. Later executions are compared as well: some of them
// reach the node in another order. If they ever differ, the search is repeated without merging.

// stepOf is one observation of a thread, after all the earlier ones.
type stepOf struct {
	before, answer uint32
	now            time.Duration // if it reads the clock
	over           string        // the timeouts that have fired by then
	memory         string        // the contents of all objects, instead of the earlier observations
}

// recordPast stores in a new node what each thread has observed on the way to it.
func (t *Trie) recordPast(n, parent *Node) {
	if !t.merge || parent == nil {
		return
	}
	s := stepOf{answer: n.by.Answer}
	thread := parent.Pending[n.by.Which].Thread
	if parent.roundEnds() {
		s.memory = fmt.Sprint(parent.Values, " ", parent.Pending[0].Label)
		n.past, n.told = []uint32{t.step(s)}, 0
		return
	}
	r := parent.Pending[n.by.Which]
	if r.Kind == coro.Clock && r.Label == "" {
		s.now = n.by.Now
	}
	if parent.limits != nil {
		s.over = overAt(parent.limits, thread, n.by.Now)
	}
	n.past = slices.Clone(parent.past)
	for len(n.past) <= thread {
		n.past = append(n.past, 0)
	}
	s.before = n.past[thread]
	n.past[thread] = t.step(s)
	n.told = t.segment(slices.Concat(t.segments.Get(parent.told), t.segments.Get(parent.Held), t.segments.Get(n.events)))
}

// step returns the number of an observation.
func (t *Trie) step(s stepOf) uint32 {
	id, known := t.steps[s]
	if !known {
		id = uint32(len(t.steps) + 1)
		t.steps[s] = id
	}
	return id
}

// pastOf describes all of a node's history that the client's behaviour can depend on. It is "" if that is not known.
func (t *Trie) pastOf(n *Node) string {
	if !t.merge || n.limits == nil || n.limits.Seen || len(n.drawn) > 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprint(&b, n.past, n.told, n.Held, n.under, n.origins, n.Foreign, n.Alive, n.AliveDrawn, n.Values, n.limits.Live, n.limits.Over)
	for _, r := range n.Pending {
		fmt.Fprintf(&b, " %d %d %q %d %q %t %d %d %d", r.Thread, r.Kind, r.Label, r.Node, r.Commands, r.Tx, r.Conn, r.Until, r.Deadline)
	}
	return b.String()
}

// overAt lists the fired timeouts, by a time, among those started by the thread or by the client's main thread. A
// thread learns of others only from another thread.
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

// timeIrrelevant reports whether a client at this node cannot distinguish two times of an
// observation: they are equal, or one of them is 0, which means any time, and no timeout has
// fired by the other.
func timeIrrelevant(n *Node, a, b time.Duration) bool {
	return a == b || min(a, b) == 0 && !n.limited(max(a, b))
}

// threadBefore returns the index of the thread whose pending request is r.
func threadBefore(n *Node, r coro.Request) (which uint8, known bool) {
	if r.Kind == coro.Boundary {
		return 0, false
	}
	i := ThreadAt(n.Pending, r.Thread)
	if i < 0 || !reflect.DeepEqual(n.Pending[i], r) {
		return 0, false
	}
	return uint8(i), true
}

// swapRuns keeps one of the new runs at a node, which reached it in another order, in place of
// one of those that are kept there, and closes the others.
func (t *Trie) swapRuns(at uint32, rs runs) {
	if waiting := t.live[at]; len(waiting) == len(rs) && len(rs) > 1 {
		last := len(rs) - 1
		waiting[last], rs[last] = rs[last], waiting[last]
	}
	rs.close()
}

// reorderable returns how many nodes at the beginning of a path can be reached in any order:
// each by a different thread, whose request was pending from the start.
func (t *Trie) reorderable(path []uint32) int {
	start := t.nodes.get(t.nodes.get(path[0]).parent)
	var threads []int
	now := time.Duration(0)
	for i, id := range path {
		n := t.nodes.get(id)
		r := t.nodes.get(n.parent).Pending[n.by.Which]
		_, stands := threadBefore(start, r)
		if !stands || slices.Contains(threads, r.Thread) || len(n.drawn) > 0 || i > 0 && !(timeIrrelevant(start, now, n.by.Now) && timeIrrelevant(n, now, n.by.Now)) {
			return i
		}
		now = max(now, n.by.Now)
		threads = append(threads, r.Thread)
	}
	return len(path)
}

// replayReordered brings a run to the last of these nodes in a random order.
func (t *Trie) replayReordered(r *Run, path []uint32, seed uint64) error {
	var events, all []rules.Event
	for _, id := range path {
		n := t.nodes.get(id)
		events = append(append(events, t.segments.Get(n.events)...), t.segments.Get(n.Held)...)
	}
	order := rand.New(rand.NewPCG(seed, uint64(path[0]))).Perm(len(path))
	for _, i := range order {
		n := t.nodes.get(path[i])
		from := t.nodes.get(n.parent)
		thread := from.Pending[n.by.Which].Thread
		which := ThreadAt(r.Code.Pending(), thread)
		if which < 0 {
			break // sameAfter reports the difference
		}
		r.Resume(which, t.observation(from, n.by))
		all = append(all, r.Came...)
	}
	r.Came = all
	if err := r.failed(); err != nil {
		return err
	}
	return t.sameAfter(r, t.nodes.get(path[len(path)-1]), events)
}

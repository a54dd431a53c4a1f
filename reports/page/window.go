package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/variant"
)

// window is the part of a run that the timeline shows.
type window struct {
	from, to time.Duration
	// about is the time that matters most, and first the client that does; -1: none.
	about time.Duration
	first int32
	// why describes the part.
	why string
}

// Maximum contents of a timeline, to keep it readable. With fewer lanes than few, some clients that only wait are
// shown, too.
const (
	mostLanes = 12
	fewLanes  = 4
	mostMarks = 1500
)

// windowOf chooses the window: around the story if there is one, else around the first fault, else where most
// hand-overs are.
func windowOf(h *history.History, s story) window {
	w := momentOf(h, s)
	if s.atEnd() {
		w.why += "; what broke is known only from the end"
	}
	if end := endOf(h); end > w.from {
		w.to = min(w.to, end) // there is nothing after it
	}
	return w
}

func momentOf(h *history.History, s story) window {
	switch fault := firstFault(h); {
	case len(s.ops) > 0 && !s.atEnd():
		w := spanned(s.deeds())
		w.about, w.why = min(max(s.about, w.from), w.to), s.why
		return w
	case fault != nil:
		w := spanned([]history.Op{*fault})
		w.about, w.first, w.why = fault.Call, fault.Client, "the time around the first fault"
		if faultEnd(*fault)-fault.Call < time.Millisecond { // an instant, which shows nothing by itself
			w.widen(h)
		}
		return w
	}
	return busiest(h)
}

// widen extends a window to half as many hand-overs as the busiest has, before the time that matters and after it.
func (w *window) widen(h *history.History) {
	kind := mainHandOver(h)
	var before []time.Duration
	after, last := 0, w.about
	for op := range h.Each() {
		switch {
		case op.Kind != kind || op.Outcome != history.OK:
		case op.Return <= w.about:
			if len(before) == mostKept {
				before = append(before[:0], before[len(before)-changes:]...)
			}
			before = append(before, op.Return)
		case after < changes/2:
			after, last = after+1, op.Return
		}
	}
	first := w.about
	if n := len(before); n > 0 {
		first = before[max(0, n-changes/2)]
	}
	margin := (last - first) / 8
	w.from, w.to = min(w.from, max(0, first-margin)), max(w.to, last+margin)
}

func firstFault(h *history.History) *history.Op {
	var first *history.Op
	for op := range h.Each() {
		if op.Kind == history.Fault && (first == nil || op.Call < first.Call) {
			kept := *op
			first = &kept
		}
	}
	return first
}

// spanned returns a window around these operations with as much again on both sides.
func spanned(ops []history.Op) window {
	w := window{from: history.Forever, first: -1}
	for _, op := range ops {
		start := op.Call
		if op.Outcome == history.OK && (op.Kind == history.Acquire || op.Kind == history.Take) { // the wait may be long
			start = op.Return
		}
		w.from, w.to = min(w.from, start), max(w.to, op.Return)
	}
	margin := max((w.to-w.from)/2, 100*time.Microsecond)
	w.from, w.to = max(0, w.from-margin), w.to+margin
	return w
}

// changes is the number of hand-overs in the busiest window.
const changes = 24

// mostKept bounds the hand-overs kept during the search for the busiest window.
const mostKept = 4096

// busiest returns the shortest window with this many hand-overs, weighted by the number of clients in them.
// Hand-overs after the last purchase do not count: then every client comes once more, and is told that nothing is
// left.
func busiest(h *history.History) window {
	kind := mainHandOver(h)
	w := window{why: "a busy moment", first: -1}
	var at []time.Duration
	var by []int32
	over := lastPurchase(h)
	taking, best, bestLong := map[int32]int{}, 0, history.Forever
	for op := range h.Each() {
		if op.Kind != kind || op.Outcome != history.OK || op.Return > over {
			continue
		}
		if len(at) == mostKept {
			at, by = append(at[:0], at[len(at)-changes-1:]...), append(by[:0], by[len(by)-changes-1:]...)
		}
		at, by = append(at, op.Return), append(by, op.Client)
		taking[op.Client]++
		if len(at) > changes {
			first := by[len(by)-changes-1]
			if taking[first]--; taking[first] == 0 {
				delete(taking, first)
			}
		}
		first := at[max(0, len(at)-changes)]
		if long := op.Return - first; len(taking) > best || len(taking) == best && len(at) > changes && long < bestLong {
			best, bestLong = len(taking), long
			w.from, w.to = first, op.Return
		}
	}
	margin := max((w.to-w.from)/8, 100*time.Microsecond)
	w.from, w.to = max(0, w.from-margin), w.to+margin
	w.about = (w.from + w.to) / 2
	return w
}

// lastPurchase returns when the last successful purchase was answered; Forever without purchases.
func lastPurchase(h *history.History) time.Duration {
	last := history.Forever
	for op := range h.Each() {
		if op.Kind == history.Buy && op.Outcome == history.OK && op.Reason == history.NoReason {
			last = op.Return
		}
	}
	return last
}

// handOvers are the kinds of operations by which a client obtains something, in order of relevance.
var handOvers = []history.Kind{history.Take, history.Pop, history.Acquire, history.NextID, history.Buy}

// mainHandOver returns the main kind of hand-over of this run.
func mainHandOver(h *history.History) history.Kind {
	has := map[history.Kind]bool{}
	for op := range h.Each() {
		if op.Outcome == history.OK && (op.Kind != history.Acquire || h.Header.PromisedOf(variant.Lock)) {
			has[op.Kind] = true
		}
	}
	for _, kind := range handOvers {
		if has[kind] {
			return kind
		}
	}
	return history.Acquire
}

// scene is what happened in a window.
type scene struct {
	window
	// clients are the lanes, those of the story first.
	clients []int32
	// others is the number of further active clients, waiting of those that only waited, and left of operations of
	// the shown clients that are left out.
	others, waiting, left int
	// highest is the highest client number in the window, and again reports whether a client sends orders again.
	highest int32
	again   bool
	// unmarked is the number of clashes that are not marked.
	unmarked int
	ops      []history.Op
	// every holds the stays of all clients; stays those that are drawn.
	every, stays []stay
	faults       []history.Op
}

// sceneOf collects a window, in two passes over the history.
func sceneOf(h *history.History, s story, w window) scene {
	stays := staysIn(h, w)
	sc := scene{window: w}
	idle := idleLock(&h.Header, s)
	part := cast{}
	for op := range h.Each() {
		if w.shows(op) && op.Client >= 0 && op.Kind != history.Fault && !idle(op) {
			part.add(op.Client, sc.roleOf(op))
		}
	}
	for i := range stays {
		part.add(stays[i].client, role{holds, sc.far(stays[i].core()), stays[i].from})
	}
	sc.number(&h.Header, part)
	sc.choose(s, part)
	lane := map[int32]bool{}
	for _, c := range sc.clients {
		lane[c] = true
	}
	count := enqueuing(stays)
	for op := range h.Each() {
		count(op)
		switch {
		case !w.shows(op) || idle(op):
		case op.Kind == history.Fault:
			if op.Client < 0 || lane[op.Client] {
				sc.faults = append(sc.faults, *op)
			}
		case lane[op.Client]:
			sc.ops = append(sc.ops, *op)
		}
	}
	sc.every = stays
	for _, st := range stays {
		if lane[st.client] {
			sc.stays = append(sc.stays, st)
		}
	}
	sc.thin(s)
	return sc
}

// enqueuing returns a function that, called with all operations, counts how often the tasks of these stays may have
// been enqueued.
func enqueuing(stays []stay) func(*history.Op) {
	of := map[history.Value][]*stay{}
	for i := range stays {
		if s := &stays[i]; s.by.Kind == history.Pop {
			of[s.key] = append(of[s.key], s)
		}
	}
	return func(op *history.Op) {
		if op.Kind != history.Enqueue || op.Outcome == history.Refused || op.Reason == history.Repeated {
			return
		}
		for _, s := range of[op.Arg] {
			if op.Call <= s.by.Return {
				s.enqueued++
			}
		}
	}
}

// idleLock matches operations on a lock without promises: they get no mark, unless they are part of the story.
func idleLock(h *history.Header, s story) func(*history.Op) bool {
	if h.PromisedOf(variant.Lock) {
		return func(*history.Op) bool { return false }
	}
	told := map[opKey]bool{}
	for _, op := range s.ops {
		told[keyOf(op)] = true
	}
	return func(op *history.Op) bool {
		switch op.Kind {
		case history.Acquire, history.Extend, history.Release:
			return !told[keyOf(*op)]
		}
		return false
	}
}

// shows reports whether an operation overlaps the window. Records after the load do not count.
func (w window) shows(op *history.Op) bool {
	end := op.Return
	if op.Kind == history.Fault {
		end = faultEnd(*op)
	}
	return op.Kind != history.ReadState && op.Kind != history.Join && op.Call <= w.to && end >= w.from
}

// role is what a client does in a window, how far from the time that matters, and since when.
type role struct {
	doing      doing
	far, since time.Duration
}

// doing ranks activities, the most relevant first.
type doing int

const (
	holds doing = iota // it holds something
	works              // it does something
	waits              // it only waits
)

// roleOf returns the role of an operation's client.
func (sc *scene) roleOf(op *history.Op) role {
	if op.Kind == history.Acquire || op.Kind == history.Take || op.Outcome != history.OK {
		return role{waits, 0, op.Call}
	}
	return role{works, sc.far(op.Call, op.Return), op.Call}
}

// before compares two roles by relevance.
func (r role) before(other role) int {
	return cmp.Or(cmp.Compare(r.doing, other.doing), cmp.Compare(r.far, other.far))
}

// cast maps the clients in a window to their most relevant roles.
type cast map[int32]role

// add adds a client's role.
func (c cast) add(client int32, r role) {
	known, met := c[client]
	switch {
	case !met || r.doing < known.doing:
		c[client] = r
	case r.doing == known.doing:
		c[client] = role{r.doing, min(known.far, r.far), min(known.since, r.since)}
	}
}

// number records which client numbers are not those that the run began with.
func (sc *scene) number(h *history.Header, part cast) {
	clients := int32(h.Clients)
	for c := range part {
		sc.highest = max(sc.highest, c)
		sc.again = sc.again || sentAgain(h) && c >= clients && c < 2*clients
	}
}

// sentAgain reports whether each client of a run has a twin, which sends some of its orders a second time
// concurrently.
func sentAgain(h *history.Header) bool {
	return h.Resend > 0 && h.Refund == 0 && h.Has(variant.Sale) && !h.Has(variant.Queue)
}

// numbers explains client numbers that the run did not begin with. Histories of other programs have numbers of
// their own.
func (sc *scene) numbers(h *history.Header) (s string) {
	if h.Engine == "" || h.Clients == 0 {
		return ""
	}
	next := h.Clients
	if sentAgain(h) {
		next *= 2
	}
	if sc.again {
		s = fmt.Sprintf("Clients %d to %d send orders of clients 0 to %d a second time. ", h.Clients, next-1, h.Clients-1)
	}
	if int(sc.highest) >= next {
		s += fmt.Sprintf("A client that dies or gets no answer continues under a new number, above %d.", next-1)
	}
	return strings.TrimSpace(s)
}

// choose selects the lanes: the clients of the story, then the clients that held something nearest to the time that
// matters, in order of appearance. Clients that only wait are counted.
func (sc *scene) choose(s story, part cast) {
	for _, op := range s.ops {
		if op.Client >= 0 && op.Kind != history.Fault && op.Kind != history.ReadState && !slices.Contains(sc.clients, op.Client) && len(sc.clients) < mostLanes {
			sc.clients = append(sc.clients, op.Client)
		}
	}
	if len(sc.clients) == 0 && sc.first >= 0 {
		sc.clients = append(sc.clients, sc.first)
	}
	var rest []int32
	active := 0
	for c, r := range part {
		if !slices.Contains(sc.clients, c) {
			rest = append(rest, c)
			if r.doing != waits {
				active++
			}
		}
	}
	slices.SortFunc(rest, func(a, b int32) int { return cmp.Or(part[a].before(part[b]), cmp.Compare(a, b)) })
	n := min(max(active, fewLanes-len(sc.clients)), len(rest), mostLanes-len(sc.clients))
	chosen := rest[:n]
	sc.others = max(0, active-n)
	sc.waiting = len(rest) - n - sc.others
	slices.SortFunc(chosen, func(a, b int32) int { return cmp.Or(cmp.Compare(part[a].since, part[b].since), cmp.Compare(a, b)) })
	sc.clients = append(sc.clients, chosen...)
}

// thin leaves out what is farthest from the time that matters, waits first.
func (sc *scene) thin(s story) {
	room := mostMarks - len(sc.stays)
	if len(sc.stays) > mostMarks/2 {
		slices.SortFunc(sc.stays, func(a, b stay) int { return cmp.Compare(sc.far(a.from, a.to), sc.far(b.from, b.to)) })
		sc.left += len(sc.stays) - mostMarks/2
		sc.stays = sc.stays[:mostMarks/2]
		room = mostMarks / 2
	}
	if len(sc.ops) <= room {
		return
	}
	wanted := map[opKey]bool{}
	for _, op := range s.ops {
		wanted[keyOf(op)] = true
	}
	rank := func(op history.Op) int {
		switch {
		case wanted[keyOf(op)]:
			return 0
		case op.Outcome == history.Refused:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(sc.ops, func(a, b history.Op) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(sc.far(a.Call, a.Return), sc.far(b.Call, b.Return)))
	})
	sc.left += len(sc.ops) - room
	sc.ops = sc.ops[:room]
	slices.SortStableFunc(sc.ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
}

// far returns the distance from the time that matters.
func (sc *scene) far(from, to time.Duration) time.Duration {
	return max(0, from-sc.about, sc.about-to)
}

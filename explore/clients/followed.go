package clients

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/explore/rules"
	"oversell/internal/coro"
)

// A client may use a time only after commands, and compare it with their answers. A glimpse shows that only if the first
// few commands are answered as empty servers would. So when a search has found nothing, each look at the clock in it is
// repeated at other times, with each list of answers that followed it in the search, to the end of the operation. The
// search must be repeated if instants are found to which it did not let time pass.

// follower follows the looks at the clock of a trie.
type follower struct {
	t            *Trie
	onward, into map[uint32][]edgeKey // edges by their nodes
	found        bool
}

// Follow looks for instants from which on a client behaves differently after commands. found reports whether there are
// new ones, which Later returns from then on, and all whether no look was left out: when the time was over, and for code of
// a system or in a bubble, whose timers would have to be followed, too. No search may run meanwhile.
func (t *Trie) Follow(end time.Time) (found, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &follower{t: t, onward: map[uint32][]edgeKey{}, into: map[uint32][]edgeKey{}}
	var looks []edgeKey
	for key, to := range t.children {
		f.onward[key.From] = append(f.onward[key.From], key)
		f.into[to.node] = append(f.into[to.node], key)
		if t.nodes.get(key.From).Pending[key.Which].Kind == coro.Clock {
			looks = append(looks, key)
		}
	}
	for _, keys := range f.onward {
		slices.SortFunc(keys, byEdge)
	}
	slices.SortFunc(looks, byEdge)
	for _, look := range looks {
		for _, way := range f.ways(look) {
			if id := (wayID{look, way[len(way)-1]}); !t.followed[id] {
				if t.sparse || !t.checked || time.Now().After(end) {
					return f.found, false
				}
				t.followed[id] = true
				f.follow(way)
			}
		}
	}
	return f.found, true
}

// wayID identifies a way in this trie.
type wayID struct{ look, last edgeKey }

// ways returns the ways that a client went after a look at the clock, up to the end of its operation, if it sent
// commands on them: to each node one.
func (f *follower) ways(look edgeKey) (all [][]edgeKey) {
	seen := map[uint32]bool{}
	var on func(way []edgeKey, asked bool)
	on = func(way []edgeKey, asked bool) {
		to := f.t.children[way[len(way)-1]]
		ended := slices.ContainsFunc(f.t.segments.Get(to.events), func(e rules.Event) bool { return e.End })
		last := true
		if !ended && !seen[to.node] {
			seen[to.node] = true
			n := f.t.nodes.get(to.node)
			for _, key := range f.onward[to.node] {
				if n.roundEnds() {
					break
				}
				last = false
				on(append(way[:len(way):len(way)], key), asked || n.Pending[key.Which].Kind == coro.Command)
			}
		}
		if last && asked {
			all = append(all, way)
		}
	}
	on([]edgeKey{look}, false)
	return all
}

// follow finds the instants at which the behaviour of the client on a way changes.
func (f *follower) follow(way []edgeKey) {
	look := way[0]
	for now, n := look.Now, 0; ; n++ {
		now = f.t.turnOf(now, "followed ", 1, func(at time.Duration) *glimpse { return f.t.along(way, at) })
		switch {
		case now == 0:
			return
		case n == mostTurns:
			f.t.blind.Store(true)
			return
		}
		f.note(look, now, map[lookFrom]bool{})
	}
}

// note notes an instant for a look at the clock, and for the private steps that precede it.
func (f *follower) note(look edgeKey, at time.Duration, seen map[lookFrom]bool) {
	k := lookFrom{look.From, look.Which}
	if seen[k] {
		return
	}
	seen[k] = true
	missed := slices.ContainsFunc(f.t.level[k], func(s stretchOf) bool { return s.from <= look.Now && look.Now < at && !f.t.knows(k, s, at) })
	if missed && !slices.Contains(f.t.later[k], at) {
		f.t.later[k] = append(f.t.later[k], at)
		f.found = true
	}
	for _, key := range f.into[look.From] {
		if n := f.t.nodes.get(key.From); Private(n.Pending[key.Which]) {
			key.Now = look.Now
			f.note(key, at, seen)
		}
	}
}

// Later returns instants found by Follow, for a thread that is about to read the clock at a node.
func (t *Trie) Later(node uint32, which uint8) []time.Duration {
	if len(t.later) == 0 {
		return nil
	}
	return t.later[lookFrom{node, which}]
}

// along returns what a client does that reads the clock at a time, and then gets the answers on a way. If it reads the clock
// again, that includes what it does if each span of t.spans passes in between.
func (t *Trie) along(way []edgeKey, at time.Duration) *glimpse {
	g := &glimpse{at: at}
	spans := []time.Duration{0}
	if slices.ContainsFunc(way[1:], func(key edgeKey) bool { return t.nodes.get(key.From).Pending[key.Which].Kind == coro.Clock }) {
		spans = append(spans, t.spans...)
	}
	for _, span := range spans {
		if !t.alongAfter(g, way, span) {
			return &glimpse{at: at, frame: "error"}
		}
	}
	return g
}

// alongAfter adds to g what the client does if the span passes before it reads the clock again. It returns false if the
// code could not be run.
func (t *Trie) alongAfter(g *glimpse, way []edgeKey, span time.Duration) bool {
	x, err := t.again(way[0].From, 0)
	if err != nil {
		return false
	}
	defer x.Code.Close()
	var frame strings.Builder
	var moved []string // texts in requests, and what they are at this time
	by := g.at - way[0].Now
	for i, key := range way {
		from, ps := t.nodes.get(key.From), x.Code.Pending()
		if int(key.Which) >= len(ps) || ps[key.Which].Kind != from.Pending[key.Which].Kind {
			break // requests have shown that
		}
		moved = changed(moved, from.Pending[key.Which].Commands, ps[key.Which].Commands, x.book.Canonical)
		if i > 0 && ps[key.Which].Kind == coro.Clock {
			by, span = by+span, 0
		}
		x.Resume(int(key.Which), t.shifted(key, by, ps[key.Which], moved))
		if x.Code.Err() != nil {
			return false
		}
		for _, e := range x.Came {
			g.event(&frame, x, e)
		}
		g.requests(&frame, x)
	}
	g.frame += frame.String()
	return true
}

// shifted returns the observation of an edge, made so much later. r is the request that it answers.
func (t *Trie) shifted(key edgeKey, by time.Duration, r coro.Request, moved []string) coro.Observation {
	o := t.observation(t.nodes.get(key.From), key)
	if r.Kind == coro.Clock || key.Now > 0 {
		o.Now = key.Now + by
	}
	o.Now = max(o.Now, r.Until)
	if len(r.Commands) == 1 && strings.EqualFold(r.Commands[0][0], "time") {
		o.Reply = timeAfter(o.Reply, by)
	} else if len(moved) > 0 {
		o.Reply = strings.NewReplacer(moved...).Replace(o.Reply)
	}
	return o
}

// leastMoved is the least length of a text that an answer may repeat.
const leastMoved = 6

// changed appends the texts in which commands differ, in pairs. Answers may repeat them.
func changed(pairs []string, was, is [][]string, canonical func(string) string) []string {
	for i := range min(len(was), len(is)) {
		for j := range min(len(was[i]), len(is[i])) {
			if a, b := was[i][j], canonical(is[i][j]); a != b && len(a) == len(b) && len(a) >= leastMoved {
				pairs = append(pairs, a, b)
			}
		}
	}
	return pairs
}

// timeAfter returns the reply to TIME after so long.
func timeAfter(reply string, by time.Duration) string {
	lines := strings.Split(reply, "\r\n")
	if len(lines) < 5 {
		return reply
	}
	sec, _ := strconv.ParseInt(lines[2], 10, 64)
	micro, _ := strconv.ParseInt(lines[4], 10, 64)
	at := time.Unix(sec, micro*1000).Add(by)
	second, rest := strconv.FormatInt(at.Unix(), 10), strconv.Itoa(at.Nanosecond()/1000)
	return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(second), second, len(rest), rest)
}

package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/rediscmd"
)

// Time moves from one moment to the next. A moment is an instant from which on something may
// happen differently:
//
//   - a key expires, a sleep or a time limit ends;
//   - a lease ends, as it was promised to a client;
//   - the servers hold a number that is an instant, like the end of a lease that a client
//     wrote there, or that instant and a lease later, or the whole second before or after;
//   - a client that is about to read the clock behaves differently from then on than it would
//     now. The search finds these instants by running the client, so it does not matter how the
//     client stores them.

// oddStarts are moments late in a second: late for code that cuts the clock of a server to whole
// seconds, or that rounds it. Searches begin with a whole second.
var oddStarts = []time.Duration{400 * time.Millisecond, 900 * time.Millisecond}

// horizon is how far the search's clock goes: past the end of the hour with which it begins. Keys that live longer
// never expire in a search.
const horizon = 70 * time.Minute

// passing is the facts after some time, and what happened meanwhile.
type passing struct {
	facts  uint32
	lapsed uint8 // leases that ended
}

// moments returns the instants to which time may pass from s, in order. The slice is valid until
// the next call.
func (w *worker) moments(s state) []time.Duration {
	x, now := w.search, s.time()
	all := w.ahead[:0]
	add := func(at time.Duration) {
		if at = roundUp(at); at > now && at <= horizon {
			all = append(all, at)
		}
	}
	due := w.due(s.servers)
	for _, in := range due.in {
		if in > horizon {
			x.distant.Store(true)
			break
		}
		if now+in > horizon {
			x.beyond.Store(true)
		}
		add(now + in)
	}
	for _, at := range due.at {
		add(at)
	}
	if x.span > 0 {
		add(now + x.span)
	}
	if now == 0 {
		for _, at := range x.starts {
			add(at)
		}
	}
	for _, at := range *w.untils.get(factsID(s.facts), factsID(s.facts).hash()) {
		add(at)
	}
	for c := range x.clients {
		n := w.node(c, s.nodes[c])
		if !n.timed {
			continue
		}
		for i := range n.pending {
			r := &n.pending[i]
			switch {
			case r.Kind == coro.Sleep:
				add(r.Until)
			case private(*r):
				at := lookAt{lookFrom{s.nodes[c], uint8(i)}, now}
				add(*w.turning[x.roles[c]].get(at, at.hash()))
			}
			if r.Deadline > 0 {
				add(r.Deadline)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > 0 && x.inside {
		all = within(now, all)
	}
	w.ahead = all
	return all
}

// within adds to the instants two in the time up to the first of them: half of it, and the last
// millisecond. They are whole milliseconds, as Redis counts in these.
func within(now time.Duration, all []time.Duration) []time.Duration {
	first := all[0]
	half, last := (now + (first-now)/2).Truncate(time.Millisecond), (first - 1).Truncate(time.Millisecond)
	var more []time.Duration
	for _, at := range []time.Duration{half, last} {
		if at > now && at < first && !slices.Contains(more, at) {
			more = append(more, at)
		}
	}
	return append(more, all...)
}

// passings appends an action for each moment to which time may pass. While some client can run, it
// is delayed until that moment, whichever it is; otherwise time passes to the next moment.
func (w *worker) passings(s state, to []action) []action {
	runnable := w.runnable(s)
	if runnable {
		to = w.lasting(s, to)
	}
	if runnable && int(s.moved) >= w.search.bounds.Advances || w.over(s) {
		return to
	}
	n := len(w.moments(s))
	if !runnable {
		n = min(n, 1)
	}
	for i := range min(n, momentLimit) {
		to = append(to, newPassing(i))
	}
	return to
}

// lasting appends the action by which all clients that can run have crashed, if the bounds allow so
// many crashes, and time passes for those that wait: nobody waits for a crashed client.
func (w *worker) lasting(s state, to []action) []action {
	then, dead, wait := w.bereft(s)
	if !wait || dead > w.search.bounds.Crashes || len(w.moments(then)) == 0 {
		return to
	}
	return append(to, newPassing(momentLimit))
}

// bereft returns s after a crash of all clients that can run, how many have crashed by then, and
// whether some other client waits.
func (w *worker) bereft(s state) (then state, dead int, wait bool) {
	then = s
	for c := range w.search.clients {
		switch n := w.node(c, s.nodes[c]); {
		case n.dead:
			dead++
		case len(n.pending) == 0:
		case n.ready(s.time()):
			dead++
			then.nodes[c] = w.search.tries[w.search.roles[c]].dead()
		default:
			wait = true
		}
	}
	return then, dead, wait
}

// ready reports whether a thread of the client can run now.
func (n *node) ready(now time.Duration) bool {
	return slices.ContainsFunc(n.pending, func(r coro.Request) bool { return ready(&r, now) })
}

// momentLimit is how many moments are considered in one state.
const momentLimit = 64

// instant is a point in time that is stored as a number of units.
type instant struct{ is, unit time.Duration }

// instants returns the numbers in a text that can be points in time within the search: seconds,
// milliseconds, microseconds or nanoseconds since 1970. The search begins at epoch.
func instants(text string, epoch time.Duration) (all []instant) {
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) {
			continue
		}
		end := i
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		for digits, unit := range map[int]time.Duration{10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond} {
			if end-i != digits {
				continue
			}
			n, err := strconv.ParseInt(text[i:end], 10, 64)
			if is := time.Duration(n)*unit - epoch; err == nil && is >= 0 && is <= horizon {
				all = append(all, instant{is, max(unit, tickUnit)})
			}
		}
		i = end
	}
	return all
}

// lookFrom is a thread of a client that is about to read the clock.
type lookFrom struct {
	from  uint32
	which uint8
}

// lookAt is such a thread, and when it reads the clock.
type lookAt struct {
	lookFrom
	now time.Duration
}

// stretchOf is a span of time in which a client behaves in one way when it reads the clock, until
// it turns; 0: it never does.
type stretchOf struct{ from, turns time.Duration }

// probeLimit bounds the number of executions that look for turns.
const probeLimit = 50_000

// turnsAt returns the next instant from which on a client that is about to read the clock behaves
// differently; 0: there is none, or it was not found.
func (t *trie) turnsAt(k lookAt) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.level[k.lookFrom] {
		if s.from <= k.now && (s.turns == 0 || k.now < s.turns) {
			return s.turns
		}
	}
	s := stretchOf{k.now, t.turn(k)}
	t.level[k.lookFrom] = append(t.level[k.lookFrom], s)
	return s.turns
}

// turn runs the client at several times, and then bisects between two at which it behaves
// differently. The caller holds t.mu.
func (t *trie) turn(k lookAt) time.Duration {
	// A number in a key's name that stays the same for a while is one of a stretch of time, such as an hour; one that
	// does not is the time itself.
	keys := t.shape(k, k.now, true)
	next := t.shape(k, k.now+tickUnit, true)
	exact := keys == next || next == t.shape(k, k.now+2*tickUnit, true)
	shape := func(at time.Duration) string { return t.shape(k, at, exact) }
	here := shape(k.now)
	last := k.now
	for _, span := range t.spans {
		at := min(k.now+span, horizon)
		if at <= last || shape(at) == here {
			last = max(at, last)
			continue
		}
		for _, known := range t.likely(k.now) {
			if last < known && known < at && shape(known) != here && shape(known-tickUnit) == here {
				return known
			}
		}
		for at-last > tickUnit {
			if middle := roundUp(last + (at-last)/2); middle >= at || shape(middle) != here {
				at = min(middle, at-tickUnit)
			} else {
				last = middle
			}
		}
		t.turns, t.delays = latest(at, t.turns), latest(at-k.now, t.delays)
		return at
	}
	return 0
}

// likely are instants at which a client often behaves differently that reads the clock now: those at which
// others did, and those that are as far away.
func (t *trie) likely(now time.Duration) []time.Duration {
	all := slices.Clone(t.turns)
	for _, d := range t.delays {
		all = append(all, now+d)
	}
	return all
}

// latest puts d before the others, of which it keeps the latest few.
func latest(d time.Duration, others []time.Duration) []time.Duration {
	all := append([]time.Duration{d}, slices.DeleteFunc(slices.Clone(others), func(o time.Duration) bool { return o == d })...)
	return all[:min(len(all), 4)]
}

// shape describes what a client does after reading the clock at a time, until others can notice. Of
// numbers it has only the sign, and of those in the names of keys all if exact.
func (t *trie) shape(k lookAt, now time.Duration, exact bool) string {
	if t.probes++; t.probes > probeLimit {
		t.blind.Store(true)
		return ""
	}
	x, err := t.again(k.from, 0)
	if err != nil {
		return "error"
	}
	defer x.x.Close()
	var b strings.Builder
	x.resume(int(k.which), coro.Observation{Now: now})
	for {
		for _, e := range x.events {
			shapeOfEvent(&b, e, now)
		}
		ps := x.x.Pending()
		if len(ps) != 1 || x.x.Err() != nil || !private(ps[0]) && ps[0].Kind != coro.Boundary {
			break
		}
		x.resume(0, coro.Observation{Now: now})
	}
	if x.x.Err() != nil {
		return "error"
	}
	for _, r := range x.x.Pending() {
		fmt.Fprintf(&b, "%d %d %s %t %t %t", r.Kind, r.Node, shapeOfText(r.Label), r.Tx, r.Until > now, r.Deadline > now)
		for _, cmd := range r.Commands {
			keys := keysOf(cmd)
			for i, arg := range cmd {
				if exact && slices.Contains(keys, i) {
					b.WriteString(" " + drawnText.ReplaceAllString(arg, "*"))
					continue
				}
				b.WriteString(" " + shapeOfText(arg))
			}
			b.WriteByte(';')
		}
	}
	return b.String()
}

// keysOf returns the places of the keys in a command.
func keysOf(cmd []string) []int {
	c, _ := rediscmd.Find(cmd[0])
	return c.Keys(len(cmd), func(i int) string { return cmd[i] })
}

func shapeOfEvent(b *strings.Builder, e Event, now time.Duration) {
	if e.Op.Kind == history.Join {
		return
	}
	fmt.Fprintf(b, "%t %d %d %d %t;", e.End, e.Op.Kind, e.Op.Outcome, e.Op.Reason, e.Op.Until > now)
}

// shapeOfText is what two executions must have in common: the sign of a number, or a text in
// which digits, and what may be random, are masked.
func shapeOfText(text string) string {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case n < 0:
			return "-"
		case n > 0:
			return "+"
		}
		return "0"
	}
	return digitsIn.ReplaceAllString(drawnText.ReplaceAllString(text, "*"), "#")
}

// drawnText is what a value that was drawn at random may look like: each execution has another. Two of them are no
// different behaviours.
var drawnText = regexp.MustCompile(`(?s:.*[^ -~\s].*)|[0-9A-Za-z+/=_-]{16,}|[0-9A-Za-z]*(?:[0-9][A-Za-z]|[A-Za-z][0-9])[0-9A-Za-z]*`)

var digitsIn = regexp.MustCompile(`[0-9]+`)

// probeSpans are how far ahead of the present turn tries. Where each try takes a process, it is one.
func (c *Config) probeSpans() []time.Duration {
	ttl := c.Run.TTL
	if c.System != nil {
		return []time.Duration{horizon}
	}
	return []time.Duration{ttl, 4 * ttl, horizon}
}

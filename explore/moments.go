package explore

import (
	"slices"
	"strconv"
	"time"

	"oversell/internal/coro"
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
	for _, at := range *w.search.untils.get(factsID(s.facts), factsID(s.facts).hash()) {
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
				add(*x.tries[x.roles[c]].turning.get(at, at.hash()))
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
	seen := map[time.Duration]*glimpse{}
	look := func(at time.Duration) *glimpse {
		if seen[at] == nil {
			seen[at] = t.glimpse(k, at)
		}
		return seen[at]
	}
	here := look(k.now)
	again, milli := t.glimpse(k, k.now), []*glimpse{look(k.now + time.Millisecond), look(k.now + 2*time.Millisecond)}
	micro := milli
	if !t.sparse {
		micro = []*glimpse{look(k.now + tickUnit), look(k.now + 2*tickUnit)}
	}
	how := learn(here, again, micro, milli, func() { t.vague.Store(true) })
	same := func(at time.Duration) bool { return here.same(look(at), how) }
	kind := here.kind()
	probes, full := t.probesFrom(k.now, kind)
	last := k.now
	for _, at := range probes {
		if same(at) {
			last = at
			continue
		}
		at = t.between(last, at, k.now, same)
		t.found(kind, k.now, at)
		return at
	}
	if full {
		t.steady[kind]++
	}
	return 0
}

// between returns the instant after last, at which the client behaves as it does now, and not after at, at which it does not, from which
// on it does not.
func (t *trie) between(last, at, now time.Duration, same func(time.Duration) bool) time.Duration {
	for _, known := range append(t.likely(now), at) {
		if last < known && known <= at && (last == known-tickUnit || same(known-tickUnit)) && !same(known) {
			return known
		}
	}
	for at-last > tickUnit {
		if middle := roundUp(last + (at-last)/2); middle >= at || !same(middle) {
			at = min(middle, at-tickUnit)
		} else {
			last = middle
		}
	}
	return at
}

// found notes an instant from which on clients behave differently that read the clock now.
func (t *trie) found(kind string, now, at time.Duration) {
	t.turns, t.delays = latest(at, t.turns), latest(at-now, t.delays)
	if all := t.turnsOf[kind]; !slices.Contains(all, at) && len(all) < turnLimit {
		t.turnsOf[kind] = append(all, at)
	}
}

// turnLimit is how many instants are remembered at which clients of one kind behave differently.
const turnLimit = 64

// steadyEnough is how many clients of one kind are looked at closely that never behave differently. Others
// are most likely at the same place in the program.
const steadyEnough = 2

// probesFrom returns at which times a client is run that reads the clock now and does what others of its kind do. full tells
// whether they are all.
func (t *trie) probesFrom(now time.Duration, kind string) (all []time.Duration, full bool) {
	for _, span := range t.spans {
		all = append(all, min(now+span, horizon))
	}
	all = append(all, t.likely(now)...)
	all = append(all, t.turnsOf[kind]...)
	if full = !t.sparse && t.steady[kind] < steadyEnough; full {
		all = append(all, now+tickUnit, now+time.Millisecond)
		each := func(step time.Duration, n int) {
			for i, at := 0, now.Truncate(step)+step; i < n; i, at = i+1, at+step {
				all = append(all, at)
			}
		}
		each(100*time.Millisecond, 10)
		each(time.Second, 60)
		each(time.Minute, int(horizon/time.Minute))
		for _, step := range []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour} {
			end := now.Truncate(step) + step // and shortly before
			all = append(all, end-time.Millisecond, end-tickUnit)
		}
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(at time.Duration) bool { return at <= now || at > horizon })
	return all, full
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

// probeSpans are how far ahead of the present turn tries. Where each try takes a process, it is one.
func (c *Config) probeSpans() []time.Duration {
	ttl := c.Run.TTL
	if c.System != nil {
		return []time.Duration{horizon}
	}
	return []time.Duration{ttl, 4 * ttl, horizon}
}

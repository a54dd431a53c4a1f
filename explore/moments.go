package explore

import (
	"slices"
	"time"

	"oversell/explore/clients"
	"oversell/explore/servers"
	"oversell/internal/coro"
	"oversell/internal/names"
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

// oddStarts are moments late in a second, for code that truncates a clock to whole seconds, or to tenths or hundredths of
// one, or rounds it. Searches begin with a whole second. A search tries these moments once a command has used the clock (see
// servers.Servers.Clocked). The search cannot know that a client rounds times that it does not send, so a search inside
// leases always tries them.
var oddStarts = []time.Duration{437 * time.Millisecond, 937 * time.Millisecond}

// turn is when the first hour of the search's clock ends, and with it a minute, a day, a month and a year. Scripts may count
// by these on the server's clock. Once a command has used the clock, clients may also begin shortly before turn.
const turn = time.Hour

// startBefore returns the moment at which a client may begin shortly before turn: half a lease before it, or a second if there
// are no leases.
func startBefore(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		ttl = 2 * time.Second
	}
	return servers.RoundUp(max(turn-ttl/2, time.Minute))
}

// passing is the facts after some time, and how many leases ended meanwhile.
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
		if at = servers.RoundUp(at); at > now && at <= servers.Horizon {
			all = append(all, at)
		}
	}
	due := w.search.servers.Due(s.servers)
	for _, in := range due.In {
		if in > servers.Horizon {
			x.distant.Store(true)
			break
		}
		if now+in > servers.Horizon {
			x.beyond.Store(true)
		}
		add(now + in)
	}
	if x.span > 0 {
		add(now + x.span)
	}
	if x.beforeTurn > 0 && now >= x.beforeTurn && now < turn {
		add(turn)
	}
	ends := *w.search.untils.Get(factsID(s.facts), factsID(s.facts).Hash())
	for _, at := range ends {
		add(at)
	}
	for c := range x.clients {
		n := w.node(c, s.nodes[c])
		if !n.Timed {
			continue
		}
		for i := range n.Pending {
			r := &n.Pending[i]
			switch {
			case r.Kind == coro.Sleep:
				add(r.Until)
			case clients.Private(*r):
				t := x.tries[x.roles[c]]
				for _, at := range t.SwitchPoints(s.nodes[c], uint8(i), now) {
					add(at)
				}
				for _, at := range t.Later(s.nodes[c], uint8(i)) {
					add(at)
				}
			}
			if r.Deadline > 0 {
				add(r.Deadline)
			}
		}
	}
	sure := len(all)
	for _, at := range due.At {
		add(at)
	}
	if len(all) > storedLimit {
		all = w.earliest(all, sure)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > 0 && x.inside {
		all = within(now, all, ends)
	}
	if now == 0 && len(x.starts) > 0 {
		all = append(all, x.starts...)
		if x.beforeTurn > 0 && s.servers == x.untouched {
			all = append(all, x.beforeTurn)
		}
		slices.Sort(all)
		all = slices.Compact(all)
	}
	w.ahead = all
	return all
}

// earliest returns at most storedLimit moments: the first sure ones, and the earliest of the others, which the servers
// hold as data. It notes if any was left out.
func (w *worker) earliest(all []time.Duration, sure int) []time.Duration {
	few, stored := all[:sure:sure], all[sure:]
	slices.Sort(few)
	few = slices.Compact(few)
	slices.Sort(stored)
	for _, at := range stored {
		if slices.Contains(few, at) {
			continue
		}
		if len(few) >= storedLimit {
			w.search.crowded.Store(true)
			break
		}
		few = append(few, at)
	}
	if len(few) > storedLimit {
		w.search.crowded.Store(true)
		few = few[:storedLimit]
	}
	return few
}

// shortBefore is how long before the end of a lease a search also tries something: long enough for
// a replay to execute some commands.
const shortBefore = 100 * time.Millisecond

// within adds instants before the first one: half the time to it, shortBefore it, and its last millisecond; and the last millisecond
// before each of the ends of leases, which may come later. They are whole milliseconds, as in Redis.
func within(now time.Duration, all, ends []time.Duration) []time.Duration {
	first := all[0]
	more := []time.Duration{now + (first-now)/2, first - shortBefore, first - 1}
	for _, end := range ends {
		more = append(more, servers.RoundUp(end)-1)
	}
	for _, at := range more {
		if at = at.Truncate(time.Millisecond); at > now && at <= servers.Horizon {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// passings appends an action for each moment to which time may pass. A client that can run is held up until that
// moment, whichever it is; if none can, time passes to the next moment.
func (w *worker) passings(s state, to []action) []action {
	runnable := w.runnable(s)
	if runnable {
		to = w.appendCrashAll(s, to)
	}
	if runnable && int(s.moved) >= w.search.bounds.Advances || w.allDone(s) {
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

// appendCrashAll appends the action that crashes all clients that can run, if the bounds allow so many crashes. Then
// only waiting clients are left, and time passes for them.
func (w *worker) appendCrashAll(s state, to []action) []action {
	then, dead, wait := w.crashRunnable(s)
	if !wait || dead > w.search.bounds.Crashes || len(w.moments(then)) == 0 {
		return to
	}
	return append(to, newPassing(momentLimit))
}

// crashRunnable returns s after a crash of all clients that can run, how many have crashed by then, and
// whether some other client waits.
func (w *worker) crashRunnable(s state) (then state, dead int, wait bool) {
	then = s
	for c := range w.search.clients {
		switch n := w.node(c, s.nodes[c]); {
		case n.Dead:
			dead++
		case len(n.Pending) == 0:
		case n.Ready(s.time()):
			dead++
			then.nodes[c] = w.search.tries[w.search.roles[c]].Dead()
		default:
			wait = true
		}
	}
	return then, dead, wait
}

// momentLimit is how many moments are considered in one state.
const momentLimit = 64

// storedLimit is momentLimit without those that [within], [oddStarts] and [startBefore] add.
const storedLimit = momentLimit - 6 - names.MaxClients

// probeSpans returns how far ahead of the present a client's reading of the clock is tried
// (clients.Options.Spans): only one span if each try takes a process.
func (c *Config) probeSpans() []time.Duration {
	ttl := c.Run.TTL
	if c.System != nil {
		return []time.Duration{servers.Horizon}
	}
	return []time.Duration{ttl, 4 * ttl, servers.Horizon}
}

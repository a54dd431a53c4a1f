package clients

import (
	"slices"
	"time"

	"oversell/explore/servers"
	"oversell/explore/table"
)

// lookFrom is a thread of a client that is about to read the clock.
type lookFrom struct {
	from  uint32
	which uint8
}

// lookAt is such a thread, and the time at which it reads the clock.
type lookAt struct {
	lookFrom
	now time.Duration
}

// stretchOf is a span of time in which a client behaves in one way when it reads the clock, until
// it turns; 0: it never does.
type stretchOf struct{ from, turns time.Duration }

// probeLimit bounds the number of executions that look for turns.
const probeLimit = 50_000

// mostTurns bounds the turns of one look at the clock that are tried. Code that acts on fractions of a second has no last
// one.
const mostTurns = 12

// SwitchPoints returns turnsAt for a thread that is about to read the clock at a node, and remembers it.
func (t *Trie) SwitchPoints(node uint32, which uint8, now time.Duration) []time.Duration {
	at := lookAt{lookFrom{node, which}, now}
	return *t.turning.Get(at, at.Hash())
}

// turnsAt returns the turns of a client that is about to read the clock, in order: the instants at which its behaviour
// changes. All of them are tried, since the first, such as the end of its own lease, may change nothing that a promise is
// about. If there are more than mostTurns, the search says so.
func (t *Trie) turnsAt(k lookAt) (all []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		s := t.stretch(k)
		switch {
		case s.turns == 0:
			return all
		case len(all) == mostTurns:
			t.blind.Store(true)
			return all
		}
		all = append(all, s.turns)
		k.now = s.turns
	}
}

// stretch returns the stretch of time in which a look at the clock lies. The caller holds t.mu.
func (t *Trie) stretch(k lookAt) stretchOf {
	for _, s := range t.level[k.lookFrom] {
		if s.has(k.now) {
			return s
		}
	}
	s := stretchOf{k.now, t.turn(k)}
	t.level[k.lookFrom] = append(t.level[k.lookFrom], s)
	return s
}

func (s stretchOf) has(at time.Duration) bool { return s.from <= at && (s.turns == 0 || at < s.turns) }

// knows reports whether an instant is one of the turns that follow a stretch, as far as they are known. The caller holds
// t.mu.
func (t *Trie) knows(from lookFrom, s stretchOf, at time.Duration) bool {
	for n := 0; s.turns > 0 && s.turns < at && n < mostTurns; n++ {
		i := slices.IndexFunc(t.level[from], func(o stretchOf) bool { return o.has(s.turns) })
		if i < 0 {
			return false
		}
		s = t.level[from][i]
	}
	return s.turns == at
}

// turn returns the next instant from which on the client behaves differently. The caller holds t.mu.
func (t *Trie) turn(k lookAt) time.Duration {
	return t.turnOf(k.now, "", steadyEnough, func(at time.Duration) *glimpse { return t.glimpse(k, at) })
}

// turnOf runs a client that reads the clock now at several times, and then bisects between two at which it behaves
// differently. It is tried at few times if enough clients of its kind, which the prefix begins, never behave differently.
func (t *Trie) turnOf(now time.Duration, prefix string, enough int, glimpseAt func(time.Duration) *glimpse) time.Duration {
	seen := map[time.Duration]*glimpse{}
	look := func(at time.Duration) *glimpse {
		if seen[at] == nil {
			seen[at] = glimpseAt(at)
		}
		return seen[at]
	}
	here := look(now)
	again, milli := glimpseAt(now), []*glimpse{look(now + time.Millisecond), look(now + 2*time.Millisecond)}
	micro := milli
	if !t.sparse {
		micro = []*glimpse{look(now + servers.TickUnit), look(now + 2*servers.TickUnit)}
	}
	how := learn(here, again, micro, milli, func() { t.vague.Store(true) })
	same := func(at time.Duration) bool { return here.same(look(at), how) }
	kind := prefix + here.kind()
	probes, full := t.probesFrom(now, kind, enough)
	last := now
	for _, at := range probes {
		if same(at) {
			last = at
			continue
		}
		at = t.between(last, at, now, same)
		t.found(kind, now, at)
		return at
	}
	if full {
		t.steady[kind]++
	}
	return 0
}

// between returns the first instant from which the client no longer behaves as now: it does at last, and does not at
// at.
func (t *Trie) between(last, at, now time.Duration, same func(time.Duration) bool) time.Duration {
	for _, known := range append(t.likely(now), at) {
		if last < known && known <= at && (last == known-servers.TickUnit || same(known-servers.TickUnit)) && !same(known) {
			return known
		}
	}
	for at-last > servers.TickUnit {
		if middle := servers.RoundUp(last + (at-last)/2); middle >= at || !same(middle) {
			at = min(middle, at-servers.TickUnit)
		} else {
			last = middle
		}
	}
	return at
}

// found notes an instant from which clients that read the clock now behave differently.
func (t *Trie) found(kind string, now, at time.Duration) {
	t.turns, t.delays = latest(at, t.turns), latest(at-now, t.delays)
	if all := t.turnsOf[kind]; !slices.Contains(all, at) {
		t.turnsOf[kind] = append(all, at)
	}
}

// turnLimit is how many of the instants are tried at which others of one kind behave differently: the latest found.
const turnLimit = 64

// steadyEnough is how many clients of one kind that never behave differently are looked at closely. Others are most
// likely at the same place in the program.
const steadyEnough = 2

// probesFrom returns the times at which to run a client that reads the clock now and behaves like others of its kind.
// full reports whether they are all.
func (t *Trie) probesFrom(now time.Duration, kind string, enough int) (all []time.Duration, full bool) {
	for _, span := range t.spans {
		all = append(all, min(now+span, servers.Horizon))
	}
	all = append(all, t.likely(now)...)
	known := t.turnsOf[kind]
	if len(known) > turnLimit {
		t.blind.Store(true)
		known = known[len(known)-turnLimit:]
	}
	all = append(all, known...)
	if full = !t.sparse && t.steady[kind] < enough; full {
		all = append(all, now+servers.TickUnit, now+time.Millisecond)
		each := func(step time.Duration, n int) {
			for i, at := 0, now.Truncate(step)+step; i < n; i, at = i+1, at+step {
				all = append(all, at)
			}
		}
		each(100*time.Millisecond, 10)
		each(time.Second, 60)
		each(time.Minute, int(servers.Horizon/time.Minute))
		for _, step := range []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour} {
			end := now.Truncate(step) + step // and shortly before
			all = append(all, end-time.Millisecond, end-servers.TickUnit)
		}
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(at time.Duration) bool { return at <= now || at > servers.Horizon })
	return all, full
}

// likely returns instants at which a client that reads the clock now often behaves differently: those of others, and
// those as far away.
func (t *Trie) likely(now time.Duration) []time.Duration {
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

func (k lookAt) Hash() uint64 { return table.Spread(uint64(k.from)<<8|uint64(k.which), uint64(k.now)) }

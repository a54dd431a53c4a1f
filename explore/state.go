package explore

import (
	"time"

	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/internal/names"
)

// state is the state of the whole system: what the servers hold, what each client has observed, what must be remembered
// to judge it, the time, and what is left of the bounds. All but the time are numbers of values that are stored once.
type state struct {
	servers  uint32
	facts    uint32
	inFlight uint32 // requests under way whose clients have given up
	now      uint32 // in units of the search's clock
	nodes    [names.MaxSlots]uint32
	lost     uint8 // used up
	late     uint8
	moved    uint8 // advances used up
	stalled  uint8 // how often a client was held up after a look at the clock
	// looker is set after such a look: timeMustPass, or the client's number and 1; 0: there is none. The client may as
	// well have looked just before the next event that does not commute with the look: time passes or, seldom, another
	// thread of the client goes on. So nothing else may happen first.
	looker uint8
}

// timeMustPass is the looker if time must pass next.
const timeMustPass = names.MaxSlots + 1

func (s state) time() time.Duration { return time.Duration(s.now) * servers.TickUnit }

func (s state) fingerprint() table.Fingerprint {
	m := table.NewMixer()
	m.Add(uint64(s.servers)<<32 | uint64(s.facts))
	m.Add(uint64(s.inFlight)<<32 | uint64(s.now))
	for i := 0; i < names.MaxSlots; i += 2 {
		m.Add(uint64(s.nodes[i])<<32 | uint64(s.nodes[i+1]))
	}
	m.Add(uint64(s.looker)<<32 | uint64(s.lost)<<24 | uint64(s.late)<<16 | uint64(s.moved)<<8 | uint64(s.stalled))
	return m.Sum()
}

// lateRequest is a request in flight whose client has given up: the number of its call.
type lateRequest uint32

// action is an event that can happen next: its kind, the client or the request, the client's thread, and the order of
// an answer that may have several.
type action uint16

type actionKind uint8

const (
	goes       actionKind = iota // a client's command is executed and answered, or its pause ends
	losesCall                    // a request is lost
	losesReply                   // a request is executed, and its reply lost
	givesUp                      // a client gives up on a request that is under way
	looks                        // a client looks at the clock, and is held up before it does anything else
	looksAhead                   // as looks, but before another thread of the client goes on
	arrives                      // a request whose client gave up arrives
	timePasses                   // time passes to a moment; see moments
)

func newAction(kind actionKind, client, which int) action {
	return action(kind) | action(client)<<3 | action(which)<<6
}

func (a action) kind() actionKind { return actionKind(a & 7) }
func (a action) client() int      { return int(a >> 3 & 7) }
func (a action) which() int       { return int(a >> 6 & 15) }
func (a action) order() int       { return int(a >> 10) }

// inOrder returns the same action with an answer in another order.
func (a action) inOrder(n int) action { return a&(1<<10-1) | action(n)<<10 }

// as returns the same action with another kind.
func (a action) as(k actionKind) action { return a&^7 | action(k) }

// threadLimit is how many threads of a client an action can distinguish.
const threadLimit = 1 << 4

// newLooks returns a look at the clock. The field of the order holds how often the client looks until it is held up.
func newLooks(client, thread, times int) action {
	return newAction(looks, client, thread).inOrder(times)
}

// thread returns which thread of its client goes on.
func (a action) thread() int { return a.which() }

// times returns how often the client looks at the clock.
func (a action) times() int { return a.order() }

// newPassing returns the passing of time to a moment, given by its index among those ahead.
func newPassing(place int) action { return newAction(timePasses, place&7, place>>3) }

func (a action) moment() int { return a.client() | a.which()<<3 }

// cost orders ways of one length: fewer faults, then fewer changes from one client
// to another.
type cost uint16

func (c cost) plus(fault, change bool) cost {
	if fault {
		c += 1 << 10
	}
	if change && c&(1<<10-1) < 1<<10-1 {
		c++
	}
	return c
}

func (k actionKind) fault() bool { return k == losesCall || k == losesReply || k == givesUp }

// canonical returns the state with its clients in a fixed order, and how they were renamed for it: states that differ
// only in a permutation of clients are one. Clients of different roles are not exchanged, and none are once one has
// seen another's name. Clients at the same node are put in the order that gives the lowest numbers.
func (w *worker) canonical(s state) (state, names.Perm) {
	n := w.search.clients
	if !w.search.reduce {
		return s, names.Same
	}
	var stand [names.MaxSlots]uint64 // roles and nodes, in order
	base := names.Same               // clients in that order
	b := servers.Burying{Servers: s.servers}
	foreign := false
	for i := range n {
		at := w.stand(i, s.nodes[i])
		b.Alive[i], b.Drawn[i] = at.alive, at.aliveDrawn
		foreign = foreign || at.foreign
		key := uint64(w.search.roles[i])<<32 | uint64(s.nodes[i])
		j := i
		for ; j > 0 && stand[j-1] > key; j-- {
			stand[j] = stand[j-1]
		}
		stand[j] = key
		base[i] = uint8(j)
		for k := range i {
			if int(base[k]) >= j {
				base[k]++
			}
		}
	}
	if s.inFlight == 0 && !foreign && (b.Alive != [names.MaxSlots]uint8{} || b.Drawn != [names.MaxSlots]uint8{}) {
		s.servers = w.search.servers.Forget(b, b.Hash())
	}
	if foreign {
		return s, names.Same
	}
	ties := uint8(0)
	for i := 1; i < n; i++ {
		if stand[i-1] == stand[i] {
			ties |= 1 << (i - 1)
		}
	}
	best, by := s, base
	for i, p := range w.search.orders[ties] {
		q := p.After(base)
		if next := w.exchanged(s, q); i == 0 || next.less(&best) {
			best, by = next, q
		}
	}
	for i := range n {
		best.nodes[by[i]] = s.nodes[i]
	}
	if s.looker > 0 && s.looker < timeMustPass {
		best.looker = by[s.looker-1] + 1
	}
	return best, by
}

// exchanged returns s with the shared parts renamed.
func (w *worker) exchanged(s state, p names.Perm) state {
	if p != names.Same {
		f := factsRenaming{s.facts, p}
		s.servers, s.facts = w.search.servers.Exchanged(s.servers, p), *w.search.permuted.Get(f, f.Hash())
		if s.inFlight != 0 {
			l := inFlightRenaming{s.inFlight, p}
			s.inFlight = *w.search.inFlightRenamed.Get(l, l.Hash())
		}
	}
	return s
}

// less orders states by the parts that clients share.
func (s *state) less(t *state) bool {
	if s.servers != t.servers {
		return s.servers < t.servers
	}
	if s.facts != t.facts {
		return s.facts < t.facts
	}
	return s.inFlight < t.inFlight
}

// ordersOf returns the permutations of n clients that exchange only clients at the same node: bit i of ties says that
// clients i and i+1 are at the same one.
func ordersOf(ties uint8, n int) (all []names.Perm) {
	p := names.Same
	var place func(i int)
	place = func(i int) {
		if i >= n {
			all = append(all, p)
			return
		}
		for j := i; j < n; j++ {
			p[i], p[j] = p[j], p[i]
			place(i + 1)
			p[i], p[j] = p[j], p[i]
			if ties>>j&1 == 0 {
				return
			}
		}
	}
	place(0)
	return all
}

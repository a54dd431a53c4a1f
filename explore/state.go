package explore

import (
	"time"
)

// state is one situation of the whole system: what the servers hold, what each
// client has seen, what must be remembered to judge it, the time, and what is left
// of the bounds. All but the time are numbers of things that are stored once.
type state struct {
	servers uint32
	facts   uint32
	floats  uint32 // requests under way whose clients have given up
	now     uint32 // in units of the search's clock
	nodes   [maxSlots]uint32
	lost    uint8 // used up
	late    uint8
	moved   uint8 // advances used up
	stalled uint8
}

// tickUnit is the resolution of the search's clock.
const tickUnit = time.Microsecond

func (s state) time() time.Duration { return time.Duration(s.now) * tickUnit }

func (s state) fingerprint() fingerprint {
	m := newMixer()
	m.add(uint64(s.servers)<<32 | uint64(s.facts))
	m.add(uint64(s.floats)<<32 | uint64(s.now))
	for i := 0; i < maxSlots; i += 2 {
		m.add(uint64(s.nodes[i])<<32 | uint64(s.nodes[i+1]))
	}
	m.add(uint64(s.lost)<<24 | uint64(s.late)<<16 | uint64(s.moved)<<8 | uint64(s.stalled))
	return m.sum()
}

// float is a request under way whose client has given up.
type float uint32 // the number of its call

// action is one thing that can happen next: its kind, the client or the float, which of its
// threads, and what else there is to choose.
type action uint16

type actionKind uint8

const (
	goes       actionKind = iota // a client's command is executed and answered, or its pause ends
	losesCall                    // a request is lost
	losesReply                   // a request is executed, and its reply lost
	givesUp                      // a client gives up on a request that is under way
	looks                        // a client looks at the clock, and is held up before it sends its next command
	arrives                      // such a request arrives
	timePasses                   // until something expires or somebody wakes up
)

func newAction(kind actionKind, client, which int) action {
	return action(kind) | action(client)<<3 | action(which)<<6
}

func (a action) kind() actionKind { return actionKind(a & 7) }
func (a action) client() int      { return int(a >> 3 & 7) }
func (a action) which() int       { return int(a >> 6) }

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

// canonical is the state with its clients in a fixed order, and how they were
// renamed for it: states that differ only in who is who are one. Clients of
// different roles are not exchanged, and none are once one has seen another's
// name.
func (w *worker) canonical(s state) (state, perm) {
	n := w.search.clients
	if !w.search.reduce {
		return s, same
	}
	var stand [maxSlots]uint64 // roles and nodes, in order
	b := burying{servers: s.servers}
	k := exchange{base: same}
	ties, moved, foreign := false, false, false
	for i := range n {
		at := w.node(i, s.nodes[i])
		b.alive[i] = at.alive
		foreign = foreign || at.foreign
		key := uint64(w.search.roles[i])<<32 | uint64(s.nodes[i])
		j := i
		for ; j > 0 && stand[j-1] > key; j-- {
			stand[j] = stand[j-1]
			moved = true
		}
		ties = ties || j > 0 && stand[j-1] == key
		stand[j] = key
	}
	if s.floats == 0 && !foreign && b.alive != [maxSlots]uint8{} {
		s.servers = w.buried.get(b)
	}
	if foreign || !ties && !moved {
		return s, same
	}
	k.servers, k.facts, k.floats = s.servers, s.facts, s.floats
	var taken uint8 // places
	for i := range n {
		key := uint64(w.search.roles[i])<<32 | uint64(s.nodes[i])
		for j := range n {
			if stand[j] == key && taken>>j&1 == 0 {
				taken |= 1 << j
				k.base[i] = uint8(j)
				break
			}
		}
	}
	for i := 1; i < n; i++ {
		k.group[i] = k.group[i-1]
		if stand[i-1] != stand[i] {
			k.group[i]++
		}
	}
	best := w.exchanged.get(k)
	next := s
	next.servers, next.facts, next.floats = best.servers, best.facts, best.floats
	for i := range n {
		next.nodes[best.perm[i]] = s.nodes[i]
	}
	return next, best.perm
}

// exchange asks for the canonical form of what clients have in common.
type exchange struct {
	servers, facts, floats uint32
	base                   perm            // clients in the order of where they stand
	group                  [maxSlots]uint8 // which places in that order stand at the same
}

type exchanged struct {
	servers, facts, floats uint32
	perm                   perm
}

// exchange tries all orders of those who stand at the same place, and takes the one
// that gives the lowest numbers.
func (x *search) exchange(k exchange) (best exchanged) {
	first := true
	x.orders(k.group, func(p perm) {
		q := p.after(k.base)
		e := exchanged{perm: q, servers: k.servers, facts: k.facts, floats: k.floats}
		if q != same {
			e.servers = x.servers.renamed.get(renaming{k.servers, q})
			e.facts = x.permuted.get(factsRenaming{k.facts, q})
			e.floats = x.floatsRenamed(k.floats, q)
		}
		if first || e.less(best) {
			best, first = e, false
		}
	})
	return best
}

func (e exchanged) less(f exchanged) bool {
	if e.servers != f.servers {
		return e.servers < f.servers
	}
	if e.facts != f.facts {
		return e.facts < f.facts
	}
	return e.floats < f.floats
}

// orders calls f with every perm that moves places only within their groups.
func (x *search) orders(group [maxSlots]uint8, f func(perm)) {
	p := same
	var place func(i int)
	place = func(i int) {
		if i == x.clients {
			f(p)
			return
		}
		for j := i; j < x.clients && group[j] == group[i]; j++ {
			p[i], p[j] = p[j], p[i]
			place(i + 1)
			p[i], p[j] = p[j], p[i]
		}
	}
	place(0)
}

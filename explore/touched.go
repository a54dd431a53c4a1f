package explore

import (
	"slices"
	"sync"
	"time"

	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/redismodel"
)

// A release or an extension by a client that does not hold the lock breaks owner-only-release if it makes a difference
// to the lock of the holder. A key's value does not show that: a lock may be freed by a field or by a flag elsewhere,
// and a counter that every release increments is not a lock. So two worlds are compared, with the command and without
// it, now and at later moments until the lease of the holder ends:
//
//   - the holder goes on alone, to the end of its release. Its extensions and its release must have the same outcome,
//     and a new client must obtain the lock afterwards if it does in the other world;
//   - a new client asks for the lock, alone. It must not obtain it if it does not in the other world.
//
// A longer lease shows later, when the lock's key would have expired. By then a client may also be kept out by
// something other than the holder's lock, such as the other client's place in the wait line. So this counts only if
// servers.touches says that the command changed more than that; then any difference counts, even one that shows only
// without the lock's other keys.

// loneLimit bounds how many of the moments are compared that the servers hold as data.
const loneLimit = 16

// never is later than all moments of a search.
const never = time.Duration(1<<63 - 1)

// differences compares how clients fare alone.
type differences struct {
	config  Config
	x       *search
	matters *table.Memo[comparison, bool]
	asked   *table.Memo[asking, time.Duration]
	one     sync.Mutex // one execution at a time
}

// comparison compares two worlds, for one holder.
type comparison struct {
	servers, with uint32 // without the command and with it
	now           time.Duration
	holder        rules.Holder
	node          uint32 // where the holder stands
	keyed         bool   // servers.touches says that the command changed what is another's
}

// holding is the state of the servers at a time.
type holding struct {
	nodes []*redismodel.State
	now   time.Duration
	id    uint32 // number of the servers' state, plus 1; 0: it has none
}

// asking is a new client that asks for the lock alone.
type asking struct {
	servers uint32
	now     time.Duration
	role    uint8
}

// returning is the result of running the holder of the lock alone.
type returning struct {
	outcomes string // of its extensions and its release
	fine     bool   // each was successful
	done     bool   // the release ended
	after    holding
}

func newDifferences(c Config, x *search) *differences {
	d := &differences{config: c, x: x}
	d.matters = table.NewMemo(d.compare)
	d.asked = table.NewMemo(func(k asking) time.Duration {
		return d.ask(holding{nodes: x.servers.Nodes(k.servers), now: k.now}, k.role)
	})
	return d
}

// touched judges a command that a client sent during an operation: see Rules.Touched. s is the state before, and e
// what the command does.
func (w *worker) touched(s state, e *servers.Effect, call uint32, client int, during history.Kind) *rules.Breach {
	x := w.search
	if !x.rules.JudgesOwners(during) || e.Servers == s.servers && !e.Touched {
		return nil
	}
	if busy := *w.search.busy.Get(factsID(s.facts), factsID(s.facts).Hash()); busy&^(1<<client) == 0 {
		return nil
	}
	k := endangering{s.facts, s.now, uint8(client), during}
	for _, h := range *x.endangered.Get(k, k.Hash()) {
		if x.differ.affectsHolder(s, e, call, h) {
			return x.rules.Touched(h, client, during)
		}
	}
	return nil
}

// affectsHolder reports whether a command makes a difference to the lock of a holder.
func (d *differences) affectsHolder(s state, e *servers.Effect, call uint32, h rules.Holder) bool {
	k := comparison{servers: s.servers, with: e.Servers, now: s.time(), holder: h, node: s.nodes[h.Client], keyed: e.Touched}
	if k.servers != k.with && d.matters.Of(k) {
		return true
	}
	// Setting the same expiry again makes a difference at any other time.
	if k.now += time.Millisecond; !e.Touched || k.now >= h.Until {
		return false
	}
	k.servers = d.x.servers.Later(s.servers, time.Millisecond)
	later := d.x.servers.Effect(k.servers, call, k.now)
	k.with = later.Servers
	return later.Touched && k.servers != k.with && d.matters.Of(k)
}

// compare reports whether there is a difference now, or at a moment that follows.
func (d *differences) compare(k comparison) bool {
	without := holding{d.x.servers.Nodes(k.servers), k.now, k.servers + 1}
	with := holding{d.x.servers.Nodes(k.with), k.now, k.with + 1}
	for _, after := range d.moments(k, without, with) {
		if d.differ(k, without.later(after), with.later(after)) {
			return true
		}
	}
	return false
}

// later returns the world after some time.
func (w holding) later(by time.Duration) holding {
	if by <= 0 {
		return w
	}
	l := holding{now: w.now + by}
	for _, n := range w.nodes {
		l.nodes = append(l.nodes, n.Tick(by))
	}
	return l
}

// moments returns the times until something happens by itself in one of the worlds, where they differ.
func (d *differences) moments(k comparison, without, with holding) []time.Duration {
	all, stored := []time.Duration{0}, []time.Duration(nil)
	for node := range without.nodes {
		a, b := without.nodes[node], with.nodes[node]
		if a == b {
			continue
		}
		for _, key := range slices.Concat(a.Keys(), b.Keys()) {
			if servers.Differ(a, b, key) {
				for _, on := range []*redismodel.State{a, b} {
					v, left, exists := on.Value(key)
					if exists && left >= 0 {
						all = append(all, left)
					}
					stored = d.passed(v, k.now, stored)
				}
			}
		}
	}
	tidy := func(all []time.Duration) []time.Duration {
		for i := range all {
			all[i] = servers.RoundUp(all[i])
		}
		slices.Sort(all)
		return slices.DeleteFunc(slices.Compact(all), func(after time.Duration) bool {
			return after < 0 || k.now+after > servers.Horizon || k.now+after >= k.holder.Until && !k.keyed
		})
	}
	all, stored = tidy(all), tidy(stored)
	if len(stored) > loneLimit {
		d.x.crowded.Store(true)
		stored = stored[:loneLimit]
	}
	return tidy(append(all, stored...))
}

// passed appends the times until the instants in a value have passed.
func (d *differences) passed(v string, now time.Duration, to []time.Duration) []time.Duration {
	for _, at := range d.x.servers.InstantsIn(v) {
		for _, later := range d.x.servers.After {
			to = append(to, at.At+later+at.Unit-now)
		}
	}
	return to
}

// differ reports whether there is a difference between two worlds at one time.
func (d *differences) differ(k comparison, without, with holding) bool {
	role := d.x.roles[k.holder.Client]
	takes, takesWith := d.takes(without, role), d.takes(with, role)
	if without.now >= k.holder.Until {
		return k.keyed && takes != takesWith
	}
	if k.keyed && takes != takesWith {
		return true
	}
	if k.keyed && without.now == k.now {
		if takes < k.holder.Until {
			return true // a lock that excludes no client is known only by its keys
		}
		if one, other := d.bare(without, with); d.takes(one, role) != d.takes(other, role) {
			return true // one key of several is enough
		}
	}
	a, b := d.giveBack(without, k), d.giveBack(with, k)
	frees := func(r returning) bool { return r.done && d.takes(r.after, role) != never }
	if k.keyed && (a.outcomes != b.outcomes || frees(a) != frees(b)) {
		return true
	}
	if k.holder.Doubtful || !a.fine || a.outcomes == "" {
		return false
	}
	return !b.fine || takesWith < k.holder.Until && takes >= k.holder.Until || frees(a) && !frees(b)
}

// bare returns the worlds without the lock's keys that are the same in both.
func (d *differences) bare(a, b holding) (one, other holding) {
	s := d.x.servers
	one, other = a, b
	for node := range a.nodes {
		for _, key := range s.LockKeys {
			if _, _, exists := a.nodes[node].Value(key); exists && !servers.Differ(a.nodes[node], b.nodes[node], key) {
				drop := servers.Call{Client: names.Nobody, Node: node, Commands: [][]string{{"DEL", key}}}
				one.execute(s, drop)
				other.execute(s, drop)
			}
		}
	}
	return one, other
}

// giveBack runs the holder, alone, until it has released the lock.
func (d *differences) giveBack(w holding, k comparison) (r returning) {
	r.fine = true
	known := d.alone(&w, k.holder.Client, k.node, func(op *history.Op) (done bool) {
		if op.Kind != history.Extend && op.Kind != history.Release {
			return false
		}
		r.outcomes += string([]byte{byte(op.Kind), byte(op.Outcome), byte(op.Reason)})
		r.fine = r.fine && op.Outcome == history.OK
		r.done = op.Kind == history.Release
		return r.done
	})
	if !known {
		return returning{}
	}
	r.after = w
	return r
}

// excludes reports whether a client that obtains the lock on fresh servers keeps a new client out.
func (d *differences) excludes() bool {
	for client, role := range d.x.roles[:d.x.clients] {
		w, got := holding{nodes: d.x.servers.Nodes(d.x.ends.opened)}, false
		d.alone(&w, client, 0, func(op *history.Op) bool {
			got = got || op.Kind == history.Acquire && op.Outcome == history.OK
			return op.Kind == history.Acquire
		})
		if got {
			return d.takes(w, role) == never
		}
	}
	return false
}

// alone runs a client from a node, without any other, until last reports true for the end of an operation. It returns
// false if the result is not known.
func (d *differences) alone(w *holding, client int, id uint32, last func(ended *history.Op) bool) (known bool) {
	x := d.x
	t := x.tries[x.roles[client]]
	for range aloneLimit {
		n := t.Node(id)
		if len(n.Pending) == 0 {
			break
		}
		i := first(n.Pending)
		p := &n.Pending[i]
		answer := clients.GoOn
		switch {
		case p.Kind == coro.Command && deadlinePassed(p, w.now):
			answer = x.timedOut
		case p.Kind == coro.Command:
			reply, known := w.execute(x.servers, x.servers.Call(t.Call(n, i, client)))
			if !known {
				return false
			}
			answer = x.servers.AnswerID(coro.Observation{Reply: reply})
		case p.Kind == coro.Sleep:
			*w = w.later(servers.RoundUp(p.Until) - w.now)
		}
		e := clients.Edge{From: id, Which: uint8(i), Answer: answer, Now: w.now}
		to := t.Settled(e, e.Hash())
		if to.Failed {
			return false
		}
		id = to.Node
		for _, e := range t.Events(to.Events) {
			if e.End && last(&e.Op) {
				return true
			}
		}
	}
	return true
}

// execute has the servers of a world execute a call, and returns the answer in the names of the client.
func (w *holding) execute(s *servers.Servers, c servers.Call) (reply string, known bool) {
	after, answer, info := s.Do(w.nodes[c.Node], w.now, c)
	if info.Unknown != "" {
		return "", false
	}
	if after != w.nodes[c.Node] {
		w.nodes, w.id = slices.Clone(w.nodes), 0
		w.nodes[c.Node] = after
	}
	return s.Names.Local(string(answer), c.Client), true
}

// takes returns when a new client, alone, obtains the lock with its first attempt, or never.
func (d *differences) takes(w holding, role uint8) time.Duration {
	if w.id > 0 {
		return d.asked.Of(asking{w.id - 1, w.now, role})
	}
	return d.ask(w, role)
}

// ask computes takes by running the client.
func (d *differences) ask(w holding, role uint8) time.Duration {
	x, index := d.x, int(role)
	if x.servers.Names.Naming >= names.Concrete {
		index = int(clients.RoleOf(d.config.Run, index))
	}
	d.one.Lock()
	defer d.one.Unlock()
	who := Who{Index: index, Names: x.servers.Names.Scheme(names.Nobody)}
	book := who.Names.Dictionary(0)
	r := clients.NewRun(d.config.begin(who, book, x.scripts), book)
	defer r.Code.Close()
	end := w.now + d.config.Run.TTL
	for range aloneLimit {
		for _, e := range r.Came {
			switch {
			case !e.End || e.Op.Kind != history.Acquire:
			case e.Op.Outcome == history.OK:
				return w.now
			default:
				return never
			}
		}
		pending := r.Code.Pending()
		if len(pending) == 0 || r.Code.Err() != nil || w.now > end {
			break
		}
		i := first(pending)
		p := &pending[i]
		o := coro.Observation{}
		switch {
		case p.Kind == coro.Command && deadlinePassed(p, w.now):
			o.Failure = coro.TimedOut
		case p.Kind == coro.Command:
			c := servers.Call{Client: names.Nobody, Node: p.Node, Commands: servers.Globally(p.Commands, names.Nobody), Tx: p.Tx, Conn: p.Conn}
			var known bool
			if o.Reply, known = w.execute(x.servers, x.servers.Call(x.servers.CallID(c))); !known {
				return never
			}
		case p.Kind == coro.Sleep:
			w = w.later(servers.RoundUp(p.Until) - w.now)
		}
		o.Now = w.now
		r.Resume(i, o)
	}
	return never
}

func (k asking) Hash() uint64 {
	return table.Spread(table.Pair(k.servers, uint32(k.role)), uint64(k.now))
}

func (k comparison) Hash() uint64 {
	return table.Spread(table.Spread(table.Pair(k.servers, k.with), uint64(k.now)), table.Pair(k.node, uint32(k.holder.Client))^uint64(k.holder.Until)<<3)
}

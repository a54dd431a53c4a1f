package explore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net"
	"runtime"
	"runtime/metrics"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/reports"
)

// search is a search under way.
type search struct {
	bounds  reports.Bounds
	given   float64 // see Config.given
	clients int
	roles   [names.MaxSlots]uint8
	tries   []*clients.Trie // by role
	servers *servers.Servers
	rules   *rules.Rules
	ends    *ends
	differ  *differences
	reduce  bool
	inside  bool // see Config.inLeases
	merge   bool
	// exhaustive: it does not go on at random.
	exhaustive bool
	masters    int
	entry      history.Kind // an operation that counts as a test
	beyond     atomic.Bool  // something would have happened beyond the horizon
	distant    atomic.Bool  // a key lives longer than the whole search
	unfollowed bool         // not all looks at the clock were followed to the ends of their operations
	crowded    atomic.Bool  // too many moments were ahead in some state, or of some comparison of two worlds
	leased     atomic.Bool  // a lease was promised that ends
	overdue    atomic.Bool  // the processes of a system are ended, since the time is up
	// odd: a command that uses the clock calls for odd starts. A queue, which has more clients, is searched from a whole
	// second first, and from odd starts only inside leases and claims.
	odd bool
	// starts are moments at which the first client may begin, besides 0: see oddStarts.
	starts []time.Duration
	// beforeTurn is one more moment at which a client may begin, see startBefore; 0: none. It is tried only while the servers
	// hold untouched, what they hold at the start: a replay cannot wait for an hour after a command.
	beforeTurn time.Duration
	untouched  uint32
	// span is how long after a deadline that the servers keep as data something may be due; 0: there is none.
	span    time.Duration
	scripts *coro.Scripts

	facts           *table.Interner[rules.Facts]
	inFlight        *table.Interner[[]lateRequest]
	judged          *table.Memo[judging, judgement]
	passed          *table.Memo[factsAt, passing]
	untils          *table.Memo[factsID, []time.Duration]
	busy            *table.Memo[factsID, uint16]
	permuted        *table.Memo[factsRenaming, uint32]
	endangered      *table.Memo[endangering, []rules.Holder]
	inFlightChanged *table.Memo[inFlightChange, uint32]
	inFlightRenamed *table.Memo[inFlightRenaming, uint32]
	breaches        *table.Interner[*rules.Breach]
	orders          [1 << (names.MaxSlots - 1)][]names.Perm // see ordersOf
	silent          uint32                                  // the answer for a client without one
	timedOut        uint32                                  // the answer once a time limit is over

	visited table.Visited
	effort  effort

	mu    sync.Mutex
	found []finding
	err   error
	cut   atomic.Pointer[string] // why the search was ended before its end
	began time.Time
	told  atomic.Int64 // when progress was last reported, since the search began
	peak  int          // the most states that waited to be expanded
	// reached is the number of steps of the longest schedules.
	reached  int
	wandered *wandered        // the result of the random search
	compared clients.Compared // merged histories that were executed
}

// finding is a broken promise: the state before, and the action that broke it.
type finding struct {
	from   table.StateID
	by     action
	end    bool // it shows if all clients end in this state; by is unused
	cost   cost
	breach *rules.Breach
}

// effort counts the work of a search.
type effort struct {
	transitions, entered, sold, advances, expiries, lapses, crashes, lost, late, ends atomic.Int64
}

type judging struct {
	facts  uint32
	role   uint8
	client uint8
	events uint32
	now    uint32
}

type judgement struct {
	facts         uint32
	breach        uint32 // its number; 0: none
	entered, sold uint8
}

// factsID is the number of facts.
type factsID uint32

type factsAt struct {
	facts uint32
	now   uint32
}

type factsRenaming struct {
	facts uint32
	perm  names.Perm
}

// endangering is an operation whose commands may not touch the locks of others.
type endangering struct {
	facts  uint32
	now    uint32
	client uint8
	during history.Kind
}

type inFlightRenaming struct {
	inFlight uint32
	perm     names.Perm
}

// inFlightChange adds a request to a list, or takes the one at a place out of it, or renames all.
type inFlightChange struct {
	list   uint32
	add    lateRequest
	remove int8 // -1: add
}

func (x *search) prepare() {
	x.facts = table.NewInterner[rules.Facts]()
	x.inFlight = table.NewInterner[[]lateRequest]()
	x.inFlight.ID("", func() []lateRequest { return nil })
	x.judged = table.NewMemo(x.judge)
	x.passed = table.NewMemo(func(k factsAt) passing {
		before, now := x.facts.Get(k.facts), time.Duration(k.now)*servers.TickUnit
		return passing{x.numbered(x.rules.TimePasses(before, now)), x.rules.Lapses(before, now)}
	})
	x.untils = table.NewMemo(func(k factsID) []time.Duration { return x.rules.Ends(x.facts.Get(uint32(k))) })
	x.busy = table.NewMemo(func(k factsID) uint16 { return x.rules.Busy(x.facts.Get(uint32(k))) })
	x.permuted = table.NewMemo(func(k factsRenaming) uint32 {
		p := make([]int, x.clients)
		for i := range p {
			p[i] = k.perm.Of(i)
		}
		return x.numbered(x.rules.Permute(x.facts.Get(k.facts), p))
	})
	x.endangered = table.NewMemo(func(k endangering) []rules.Holder {
		return x.rules.Endangered(x.facts.Get(k.facts), int(k.client), k.during, time.Duration(k.now)*servers.TickUnit)
	})
	x.inFlightChanged = table.NewMemo(x.changeInFlight)
	x.inFlightRenamed = table.NewMemo(x.renameInFlight)
	x.breaches = table.NewInterner[*rules.Breach]()
	x.breaches.ID("", func() *rules.Breach { return nil })
	for ties := range x.orders {
		x.orders[ties] = ordersOf(uint8(ties), x.clients)
	}
	x.silent = x.servers.AnswerID(coro.Observation{Failure: coro.NoAnswer})
	x.timedOut = x.servers.AnswerID(coro.Observation{Failure: coro.TimedOut})
}

func (x *search) numbered(f rules.Facts) uint32 {
	return x.facts.ID(string(f), func() rules.Facts { return f })
}

func (x *search) judge(k judging) (j judgement) {
	events, now := x.tries[k.role].Events(k.events), time.Duration(k.now)*servers.TickUnit
	f, b := x.rules.Observe(x.facts.Get(k.facts), int(k.client), now, events...)
	if b != nil {
		j.breach = x.breaches.ID(fmt.Sprint(k), func() *rules.Breach { return b })
	}
	for _, e := range events {
		if e.End && e.Op.Kind == history.Acquire && e.Op.Outcome == history.OK && e.Op.Until > now {
			x.leased.Store(true)
		}
		entered, sold := x.tally(e)
		j.entered, j.sold = j.entered+entered, j.sold+sold
	}
	j.facts = x.numbered(f)
	return j
}

func (x *search) changeInFlight(k inFlightChange) uint32 {
	list := append([]lateRequest(nil), x.inFlight.Get(k.list)...)
	if k.remove >= 0 {
		list = append(list[:k.remove], list[k.remove+1:]...)
	} else {
		list = append(list, k.add)
	}
	return x.inFlightID(list)
}

func (x *search) inFlightID(list []lateRequest) uint32 {
	if len(list) == 0 {
		return 0
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return x.inFlight.ID(fmt.Sprint(list)[1:], func() []lateRequest { return list })
}

func (x *search) renameInFlight(k inFlightRenaming) uint32 {
	var list []lateRequest
	for _, f := range x.inFlight.Get(k.inFlight) {
		list = append(list, lateRequest(x.servers.RenamedCall(uint32(f), k.perm)))
	}
	return x.inFlightID(list)
}

// worker expands states in a goroutine of its own.
type worker struct {
	search *search
	nodes  [][]*clients.Node // by role: a copy of the trie's list
	brief  [][]brief         // the same, with the fields needed of all nodes of a state
	ahead  []time.Duration   // the moments of the last state
	begun  struct {          // the last operation that a client was about to begin
		key judging
		v   judgement
	}
	coming []coming       // states that may be new
	near   uint64         // read from the table in advance, only to fetch the memory
	found  [piles][]block // states for the next layer, the last block of each pile being filled
	sort   bool           // sorted into piles: the layer is large
	free   []block        // to be filled again
	tally  tallies
}

// tallies are a worker's part of the effort.
type tallies struct{ transitions, entered, sold, advances, expiries, lapses, crashes, lost, late, ends int64 }

// frontier is a state that is to be expanded.
type frontier struct {
	state state
	id    table.StateID
}

func (x *search) worker() *worker {
	return &worker{search: x, nodes: make([][]*clients.Node, len(x.tries)), brief: make([][]brief, len(x.tries)), coming: make([]coming, 0, together)}
}

// brief holds the fields of a node that are needed most often, in little memory.
type brief struct {
	alive, aliveDrawn uint8
	foreign           bool
}

// node returns where a client stands.
func (w *worker) node(client int, id uint32) *clients.Node {
	role := w.search.roles[client]
	if int(id) >= len(w.nodes[role]) {
		w.learn(role)
	}
	return w.nodes[role][id]
}

// stand returns the brief of node.
func (w *worker) stand(client int, id uint32) brief {
	role := w.search.roles[client]
	if int(id) >= len(w.brief[role]) {
		w.learn(role)
	}
	return w.brief[role][id]
}

// learn takes over the nodes added since.
func (w *worker) learn(role uint8) {
	w.nodes[role] = w.search.tries[role].Nodes()
	for _, n := range w.nodes[role][len(w.brief[role]):] {
		w.brief[role] = append(w.brief[role], brief{n.Alive, n.AliveDrawn, n.Foreign})
	}
}

// passes returns the facts at a later time, and the events until then.
func (w *worker) passes(facts, now uint32) *passing {
	k := factsAt{facts, now}
	return w.search.passed.Get(k, k.Hash())
}

// changedInFlight returns the requests in flight after a change.
func (w *worker) changedInFlight(k inFlightChange) uint32 {
	return *w.search.inFlightChanged.Get(k, k.Hash())
}

// judgedEnd returns the promise that is broken if all clients stop in s; nil: none.
func (w *worker) judgedEnd(s state) *rules.Breach {
	k := ending{s.servers, s.facts, s.now}
	return *w.search.ends.judged.Get(k, k.Hash())
}

// step is the result of an action.
type step struct {
	next   state
	effect servers.Effect // of the command that was executed, if one was
	did    bool           // a command was executed
	events [4]uint32      // numbers of the client's events, in its trie; 0: none
	came   uint8          // how many of events are set
	edge   clients.Edge   // the last edge that the client took
	breach *rules.Breach
	err    error
}

// act executes an action in s.
func (w *worker) act(s state, a action) step {
	switch a.kind() {
	case timePasses:
		return w.pass(s, a)
	case arrives:
		return w.arrive(s, a)
	}
	x, c := w.search, a.client()
	n := w.node(c, s.nodes[c])
	r := &n.Pending[a.thread()]
	st := step{next: s}
	w.begin(&st, c, n.Held)
	if a.kind() == looks || a.kind() == looksAhead {
		if !w.sends(c, s.nodes[c], a.thread(), a.times(), s.time()) {
			st.next.stalled++
		}
		switch {
		case a.kind() == looksAhead:
			st.next.looker = uint8(c) + 1
		case x.merge:
			st.next.looker = timeMustPass
		}
		w.goOn(&st, c, clients.Edge{From: s.nodes[c], Which: uint8(a.thread()), Answer: clients.GoOn, Now: s.time(), Looks: uint8(a.times())})
		return st
	}
	if clients.Private(*r) {
		if to := w.look(c, s.nodes[c], a.which(), s.time()); to.Fused {
			st.next.nodes[c] = to.Node
			w.came(&st, c, to.Events)
			n = w.node(c, to.Node)
			r = &n.Pending[to.Which]
			w.came(&st, c, n.Held)
		}
	}
	s = st.next
	answer := clients.GoOn
	if r.Kind == coro.Command {
		call := x.tries[x.roles[c]].Call(n, which(n, r), c)
		switch a.kind() {
		case goes, losesReply:
			st.effect, st.did = x.servers.Effect(s.servers, call, s.time()), true
			if st.effect.Unknown {
				st.err = x.servers.Unknown()
				return st
			}
			if a.kind() == losesReply && st.effect.Servers == s.servers {
				return st // as good as a lost request
			}
			if n := a.order(); n > 0 {
				st.effect.Answer = x.servers.Orders(st.effect.Orders)[n]
			}
			st.next.servers, answer = st.effect.Servers, st.effect.Answer
			if st.breach == nil {
				st.breach = w.touched(s, &st.effect, call, c, n.During(which(n, r)))
			}
			if a.kind() == losesReply {
				st.next.servers = x.hangsUp(st.next.servers, r, call)
			}
		case losesCall:
			st.next.servers = x.hangsUp(s.servers, r, call)
		case givesUp:
			st.next.servers, call = x.leaves(s, r, call)
			st.next.inFlight = w.changedInFlight(inFlightChange{s.inFlight, lateRequest(call), -1})
		}
		if a.kind() != goes {
			answer = x.silence(r, s.time())
			w.charge(&st.next, a.kind(), r)
		}
	}
	st.next.looker = 0
	w.goOn(&st, c, clients.Edge{From: s.nodes[c], Which: uint8(which(n, r)), Answer: answer, Now: s.time()})
	return st
}

// hangsUp returns what the servers hold after a client has closed the connection of a request without an answer, as its
// library does. It matters only if keys are watched there.
func (x *search) hangsUp(servers uint32, r *coro.Request, id uint32) uint32 {
	if r.Conn == 0 {
		return servers
	}
	return x.servers.Closed(servers, x.servers.Call(id))
}

// leaves is hangsUp for a request in flight: it keeps the connection, with the keys that are watched there. It returns
// what the servers hold, and the request.
func (x *search) leaves(s state, r *coro.Request, id uint32) (holds, under uint32) {
	if r.Conn == 0 {
		return s.servers, id
	}
	c := x.servers.Call(id)
	old := c.Connection()
	taken := func(conn int) bool {
		return slices.ContainsFunc(x.inFlight.Get(s.inFlight), func(f lateRequest) bool {
			d := x.servers.Call(uint32(f))
			return d.Client == c.Client && d.Conn == conn
		})
	}
	for c.Conn = servers.LateConn; taken(c.Conn); c.Conn++ {
	}
	return x.servers.Reconnected(s.servers, c.Node, old, c.Connection()), x.servers.CallID(c)
}

// which returns the place of r among the node's requests.
func which(n *clients.Node, r *coro.Request) int {
	for i := range n.Pending {
		if r == &n.Pending[i] {
			return i
		}
	}
	return 0
}

// charge counts a fault against the bounds. The loss of a request whose client's own time limit is
// over does not count.
func (w *worker) charge(s *state, k actionKind, r *coro.Request) {
	switch {
	case k == givesUp:
		s.late++
	case !deadlinePassed(r, s.time()):
		s.lost++
	}
}

// deadlinePassed reports whether the request's own time limit has been reached.
func deadlinePassed(r *coro.Request, now time.Duration) bool {
	return r.Deadline > 0 && r.Deadline <= now
}

// silence returns the observation of a client that gets no answer.
func (x *search) silence(r *coro.Request, now time.Duration) uint32 {
	if deadlinePassed(r, now) {
		return x.timedOut
	}
	return x.silent
}

// goOn gives a client an observation, and judges the events that follow.
func (w *worker) goOn(st *step, client int, e clients.Edge) {
	st.edge = e
	role := w.search.roles[client]
	to := w.search.tries[role].Settled(e, e.Hash())
	if to.Failed {
		st.err = w.search.tries[role].Failure()
		return
	}
	st.next.nodes[client] = to.Node
	w.came(st, client, to.Events)
}

// begin judges what a client is about to do. All its next steps, and all that can happen to it then, have that in
// common.
func (w *worker) begin(st *step, client int, events uint32) {
	if events == 0 {
		return
	}
	k := judging{st.next.facts, w.search.roles[client], uint8(client), events, st.next.now}
	if w.begun.key != k {
		w.begun.key, w.begun.v = k, *w.search.judged.Get(k, k.Hash())
	}
	w.took(st, events, &w.begun.v)
}

// came judges the events of a client.
func (w *worker) came(st *step, client int, events uint32) {
	if events == 0 {
		return
	}
	k := judging{st.next.facts, w.search.roles[client], uint8(client), events, st.next.now}
	w.took(st, events, w.search.judged.Get(k, k.Hash()))
}

// took records a judgement.
func (w *worker) took(st *step, events uint32, j *judgement) {
	st.events[st.came] = events // before the clock is looked at, after, before the command, and after
	st.came++
	st.next.facts = j.facts
	if st.breach == nil && j.breach != 0 {
		st.breach = w.search.breaches.Get(j.breach)
	}
	w.tally.entered += int64(j.entered)
	w.tally.sold += int64(j.sold)
}

// arrive executes a request whose client has given up.
func (w *worker) arrive(s state, a action) step {
	x := w.search
	place := a.client() | a.which()<<3
	call := x.inFlight.Get(s.inFlight)[place]
	st := step{next: s, did: true}
	st.effect = x.servers.Effect(s.servers, uint32(call), s.time())
	if st.effect.Unknown {
		st.err = x.servers.Unknown()
		return st
	}
	c := x.servers.Call(uint32(call))
	st.next.servers = x.servers.Closed(st.effect.Servers, c)
	st.next.inFlight = w.changedInFlight(inFlightChange{list: s.inFlight, remove: int8(place)})
	st.breach = w.touched(s, &st.effect, uint32(call), c.Client, c.During)
	return st
}

// pass moves the clock to the moment that the action chooses among those ahead.
func (w *worker) pass(s state, a action) step {
	place := a.moment()
	if place == momentLimit {
		s, _, _ = w.crashRunnable(s)
		place = 0
	}
	by := w.moments(s)[place] - s.time()
	st := step{next: s}
	st.next.now += uint32(by / servers.TickUnit)
	st.next.looker = 0
	st.next.servers = w.search.servers.Later(s.servers, by)
	st.next.facts = w.passes(s.facts, st.next.now).facts
	if w.runnable(s) {
		st.next.moved++
	}
	return st
}

// look returns the node that a client reaches by looking at the clock.
func (w *worker) look(client int, at uint32, which int, now time.Duration) clients.Settled {
	e := clients.Edge{From: at, Which: uint8(which), Answer: clients.GoOn, Now: now}
	return *w.search.tries[w.search.roles[client]].Settled(e, e.Hash())
}

// sends reports whether a client that looks at the clock so often has then sent a command with a
// time limit that is not over. While that is under way the client waits, and is not held up.
func (w *worker) sends(client int, at uint32, which, times int, now time.Duration) bool {
	to := w.look(client, at, which, now)
	if !to.Fused || times != int(to.Looked) {
		return false
	}
	r := &w.node(client, to.Node).Pending[to.Which]
	return r.Deadline > 0 && !deadlinePassed(r, now)
}

// runnable reports whether any client could go on now.
func (w *worker) runnable(s state) bool {
	for c := range w.search.clients {
		n := w.node(c, s.nodes[c])
		for i := range n.Pending {
			if clients.Ready(&n.Pending[i], s.time()) {
				return true
			}
		}
	}
	return false
}

// actions returns all that can happen in s, except for early looks at the clock: see lookAheads.
func (w *worker) actions(s state, to []action) []action {
	x, now := w.search, s.time()
	looker := s.looker
	for c := range x.clients {
		if looker > 0 && looker != timeMustPass && int(looker) != c+1 {
			continue
		}
		n := w.node(c, s.nodes[c])
		for i := range n.Pending {
			r := &n.Pending[i]
			if clients.Private(*r) {
				land := w.look(c, s.nodes[c], i, now)
				most := int(land.Looked) - 1 // after the last it may be held up in any case
				if land.Fused {
					r = &w.node(c, land.Node).Pending[land.Which]
					most++
				}
				useful := !x.merge || int(s.moved) < x.bounds.Advances && int(looker) != c+1
				for times := 1; useful && times <= most && i < threadLimit; times++ {
					if int(s.stalled) < x.bounds.Stalls || w.sends(c, s.nodes[c], i, times, now) {
						to = append(to, newLooks(c, i, times))
					}
				}
			}
			if looker != timeMustPass {
				to = x.steps(s, c, i, r, now, to)
			}
		}
	}
	if looker > 0 && looker != timeMustPass {
		return to
	}
	for i := 0; looker == 0 && s.inFlight != 0 && i < len(x.inFlight.Get(s.inFlight)); i++ {
		to = append(to, newAction(arrives, i&7, i>>3))
	}
	return w.passings(s, to)
}

// lookAheads appends the looks at the clock that make a difference only if they come before a: a, which led to st, is
// the step of another thread of the same client.
func (w *worker) lookAheads(s state, a action, st *step, to []action) []action {
	c := a.client()
	if !w.search.merge || a.kind() > givesUp || st.err != nil || len(w.node(c, s.nodes[c]).Pending) < 2 {
		return to
	}
	n := w.node(c, s.nodes[c])
	for i := range min(len(n.Pending), threadLimit) {
		b := newLooks(c, i, 1).as(looksAhead)
		if i != a.thread() && clients.Private(n.Pending[i]) && !slices.Contains(to, b) && !w.commute(s, c, i, a, st) {
			to = append(to, b)
		}
	}
	return to
}

// commute reports whether it makes no difference whether a thread looks at the clock before or after
// another one takes the step a.
func (w *worker) commute(s state, c, looks int, a action, st *step) bool {
	now, n := s.time(), w.node(c, s.nodes[c])
	own, other := n.Pending[looks].Thread, n.Pending[a.thread()].Thread
	first := w.look(c, s.nodes[c], looks, now)
	if !first.Fused || w.node(c, first.Node).Pending[first.Which].Thread != own {
		return true // in no case does it do anything that others can see
	}
	from, i := first.Node, clients.ThreadAt(w.node(c, first.Node).Pending, other)
	if i >= 0 && clients.Private(n.Pending[a.thread()]) && st.edge.From != s.nodes[c] {
		to := w.look(c, from, i, now)
		if from, i = to.Node, int(to.Which); !to.Fused {
			return false
		}
	}
	after := w.node(c, st.next.nodes[c])
	j := clients.ThreadAt(after.Pending, own)
	if i < 0 || j < 0 || !clients.Private(after.Pending[j]) {
		return false
	}
	e := st.edge
	e.From, e.Which = from, uint8(i)
	role := w.search.roles[c]
	one, two := *w.search.tries[role].Settled(e, e.Hash()), w.look(c, st.next.nodes[c], j, now)
	return two.Fused && !one.Failed && one.Node == two.Node
}

// steps returns what a thread of a client can do.
func (x *search) steps(s state, c, i int, r *coro.Request, now time.Duration, to []action) []action {
	if !clients.Ready(r, now) {
		return to
	}
	late := deadlinePassed(r, now)
	if r.Kind != coro.Command || !late {
		to = append(to, newAction(goes, c, i))
	}
	if r.Kind != coro.Command {
		return to
	}
	if late || int(s.lost) < x.bounds.Lost {
		to = append(to, newAction(losesCall, c, i), newAction(losesReply, c, i))
	}
	if int(s.late) < x.bounds.Late {
		to = append(to, newAction(givesUp, c, i))
	}
	return to
}

// allDone reports whether no client has anything left to do.
func (w *worker) allDone(s state) bool {
	for c := range w.search.clients {
		if len(w.node(c, s.nodes[c]).Pending) > 0 {
			return false
		}
	}
	return s.inFlight == 0
}

// expand takes every action that can happen in a state.
func (w *worker) expand(f frontier, actions []action) []action {
	x := w.search
	from := x.visited.Way(f.id)
	last := action(from.By)
	actions = w.actions(f.state, actions[:0])
	for i := 0; i < len(actions); i++ {
		a := actions[i]
		st := w.act(f.state, a)
		if st.effect.Orders != 0 && a.kind() == goes && a.order() == 0 {
			for n := range x.servers.Orders(st.effect.Orders)[1:] {
				actions = append(actions, a.inOrder(n+1))
			}
		}
		w.count(f.state, a, st)
		if st.err != nil {
			x.fail(st.err)
			return actions
		}
		if a.kind() == losesReply && st.next.servers == f.state.servers {
			continue // as good as a lost request
		}
		actions = w.lookAheads(f.state, a, &st, actions)
		c := cost(from.Cost).plus(a.kind().fault(), last.kind() >= arrives || a.kind() >= arrives || last.client() != a.client())
		if st.breach != nil {
			x.report(finding{from: f.id, by: a, cost: c, breach: st.breach})
			continue
		}
		next, _ := w.canonical(st.next)
		if w.coming = append(w.coming, coming{next, next.fingerprint(), table.Way{From: f.id, By: uint16(a), Cost: uint16(c)}}); len(w.coming) == cap(w.coming) {
			w.arrived()
		}
	}
	return actions
}

// coming is a state that was reached and may be new.
type coming struct {
	state state
	print table.Fingerprint
	way   table.Way
}

// block is a part of a layer, which one worker expands.
type block []frontier

// blockSize is how many states a block has room for.
const blockSize = 256

// piles is the number of parts into which a large layer is sorted, by the facts of its states: entries looked up for
// one state are then in the cache for the next. A search of millions of states takes a fifth less time.
const piles = 64

// leave adds a state to the next layer.
func (w *worker) leave(f frontier) {
	pile := &w.found[0]
	if w.sort {
		pile = &w.found[f.state.facts%piles]
	}
	last := len(*pile) - 1
	if last < 0 || len((*pile)[last]) == blockSize {
		*pile = append(*pile, w.empty())
		last++
	}
	(*pile)[last] = append((*pile)[last], f)
}

// empty returns a block with nothing in it.
func (w *worker) empty() block {
	if n := len(w.free); n > 0 {
		b := w.free[n-1]
		w.free = w.free[:n-1]
		return b[:0]
	}
	return make(block, 0, blockSize)
}

// together is how many states are looked up at a time, so that their memory accesses overlap.
const together = 64

// arrived notes the states reached since the last time.
func (w *worker) arrived() {
	x := w.search
	for _, twice := range []bool{false, true} {
		for i := range w.coming {
			w.near += x.visited.Near(w.coming[i].print, twice)
		}
	}
	for i := range w.coming {
		c := &w.coming[i]
		if x.visited.Knows(c.print, c.way) {
			continue
		}
		if id, fresh := x.visited.Add(c.print, c.way); fresh {
			w.end(c.state, id, cost(c.way.Cost))
			w.leave(frontier{c.state, id})
		}
	}
	w.coming = w.coming[:0]
}

func (w *worker) count(s state, a action, st step) {
	w.tally.transitions++
	switch a.kind() {
	case losesCall, losesReply:
		w.tally.lost++
	case givesUp:
		w.tally.late++
	case timePasses:
		w.tally.advances++
		w.tally.expiries += flagged(w.search.servers.Due(s.servers).Expires(st.next.time() - s.time()))
		w.tally.lapses += int64(w.passes(s.facts, st.next.now).lapsed)
	}
}

// end judges a state as the last one: clients in the middle of something have died, if so many may. A request under way
// is late, not lost: it still arrives.
func (w *worker) end(s state, id table.StateID, c cost) {
	x := w.search
	if !x.ends.lock && !x.ends.books || s.inFlight != 0 {
		return
	}
	dead := w.dead(s)
	if bits.OnesCount16(dead) > x.bounds.Crashes {
		return
	}
	w.tally.ends++
	if dead > 0 {
		w.tally.crashes++
	}
	if b := w.judgedEnd(s); b != nil {
		x.report(finding{from: id, end: true, cost: c, breach: b})
	}
}

// dead returns the clients that are in the middle of something if all stop in s.
func (w *worker) dead(s state) uint16 {
	dead := *w.search.busy.Get(factsID(s.facts), factsID(s.facts).Hash())
	for c := range w.search.clients {
		if w.node(c, s.nodes[c]).Dead {
			dead |= 1 << c
		}
	}
	return dead
}

func (x *search) fail(err error) {
	if x.overdue.Load() && errors.Is(err, net.ErrClosed) {
		return // guard has noted why the search ends
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
	}
}

func (x *search) report(f finding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.found = append(x.found, f)
}

// workerCount returns how many workers a search has.
func workerCount() int { return max(1, min(runtime.GOMAXPROCS(0), 8)) }

// run searches from start, layer by layer, so the first violation is one in the fewest steps.
func (x *search) run(ctx context.Context, start state, progress func(reports.Effort)) {
	if x.began.IsZero() {
		x.began = time.Now()
	}
	workers := make([]*worker, workerCount())
	for i := range workers {
		workers[i] = x.worker()
	}
	id, _ := x.visited.Add(start.fingerprint(), table.Way{From: table.NoState})
	workers[0].end(start, id, 0)
	layer := []block{{{start, id}}}
	depth := 0
	for ; len(layer) > 0 && x.goesOn(ctx, depth); depth++ {
		x.visited.Next()
		x.peak = max(x.peak, len(layer)*blockSize)
		x.reached = depth
		layer = x.layer(ctx, workers, layer, progress)
	}
	if len(layer) > 0 && len(x.found) == 0 && x.err == nil && x.cut.Load() == nil {
		why := fmt.Sprintf("schedules of more than %d steps were not looked at", x.bounds.Depth)
		x.cut.Store(&why)
	}
	x.reached = depth
}

// layer expands all states of one layer, and returns those of the next.
func (x *search) layer(ctx context.Context, workers []*worker, layer []block, progress func(reports.Effort)) (next []block) {
	if len(layer) < 2 {
		workers = workers[:1] // too little for two
	}
	var taken atomic.Int64
	var all sync.WaitGroup
	for _, w := range workers {
		w.sort = len(layer) > piles
		all.Go(func() {
			var actions []action
			for {
				i := int(taken.Add(1)) - 1
				if i >= len(layer) || x.stopped(ctx) {
					return
				}
				for _, f := range layer[i] {
					actions = w.expand(f, actions)
				}
				w.arrived()
				x.effort.add(&w.tally)
				x.tell(progress, int64(len(layer)-i)*blockSize)
				w.free = append(w.free, layer[i])
			}
		})
	}
	all.Wait()
	for i := range piles {
		for _, w := range workers {
			next = append(next, w.found[i]...)
			w.found[i] = w.found[i][:0]
		}
	}
	return next
}

// tellEvery is how often progress is reported.
const tellEvery = time.Second

// tell reports progress from time to time. About so many states of the layer are still to be expanded.
func (x *search) tell(progress func(reports.Effort), waiting int64) {
	last, now := x.told.Load(), int64(time.Since(x.began))
	if progress == nil || now-last < int64(tellEvery) || !x.told.CompareAndSwap(last, now) {
		return
	}
	e := x.counted(x.reached + 1)
	e.Waiting = waiting
	progress(e)
}

// goesOn reports whether the next layer is to be expanded.
func (x *search) goesOn(ctx context.Context, depth int) bool {
	x.mu.Lock()
	over := len(x.found) > 0 || x.err != nil
	x.mu.Unlock()
	if x.again() != nil {
		return false
	}
	return !over && !x.stopped(ctx) && (x.bounds.Depth == 0 || depth < x.bounds.Depth)
}

// stopped reports whether a limit of the search has been reached, and notes it.
func (x *search) stopped(ctx context.Context) bool {
	if x.cut.Load() != nil {
		return true
	}
	why := ""
	switch limit := x.bounds; {
	case ctx.Err() != nil:
		why = "the search was interrupted"
	case limit.TimeMS > 0 && (x.overdue.Load() || time.Since(x.began) > x.most()):
		whose := "its time limit"
		if limit.TimeMS < x.given*exhaustively {
			whose = fmt.Sprintf("what earlier searches of this code had left of the time limit of %v", reports.FromMS(x.given))
		}
		why = fmt.Sprintf("the search of all schedules was ended after %v, %s (--time; in Go tests Bounds.TimeMS)%s", x.most().Round(time.Millisecond), whose, x.rest())
	case x.full(1):
		why = fmt.Sprintf("the search of all schedules was ended when it took %d MB, its memory limit (--memory; in Go tests Bounds.MemoryMB)", limit.MemoryMB)
	}
	if why == "" {
		return false
	}
	x.cut.Store(&why)
	return true
}

// rest says how the search uses the time that remains after the search of all schedules.
func (x *search) rest() string {
	if x.exhaustive {
		return ""
	}
	return fmt.Sprintf(", and the rest of %v is for random schedules", reports.FromMS(x.bounds.TimeMS).Round(time.Millisecond))
}

// most returns the time that the search of all schedules may take.
func (x *search) most() time.Duration {
	if x.exhaustive {
		return reports.FromMS(x.bounds.TimeMS)
	}
	return reports.FromMS(x.bounds.TimeMS * exhaustively)
}

// countedMemory is the least limit that applies to the memory of the whole process: smaller limits apply to the states
// alone.
const countedMemory = 128 << 20

// full reports whether the search takes more than this multiple of its memory limit.
func (x *search) full(times float64) bool {
	most := int64(float64(int64(x.bounds.MemoryMB)<<20) * times)
	switch {
	case most == 0:
		return false
	case x.visited.Bytes() > most:
		return true
	}
	return most >= countedMemory && processMemory() > most
}

// processMemory returns the memory that the process has from the system.
func processMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// best returns the finding to report: the one in the fewest steps with the fewest faults.
func (x *search) best() *finding {
	var best *finding
	for i := range x.found {
		f := &x.found[i]
		if best == nil || f.before(best) {
			best = f
		}
	}
	return best
}

func (f *finding) before(g *finding) bool {
	switch {
	case f.end != g.end:
		return !f.end // an end is one step more
	case f.cost != g.cost:
		return f.cost < g.cost
	}
	return strings.Compare(f.breach.Why, g.breach.Why) < 0
}

func (e *effort) add(t *tallies) {
	e.transitions.Add(t.transitions)
	e.entered.Add(t.entered)
	e.sold.Add(t.sold)
	e.advances.Add(t.advances)
	e.expiries.Add(t.expiries)
	e.lapses.Add(t.lapses)
	e.crashes.Add(t.crashes)
	e.lost.Add(t.lost)
	e.late.Add(t.late)
	e.ends.Add(t.ends)
	*t = tallies{}
}

// counted returns the effort so far.
func (x *search) counted(depth int) reports.Effort {
	e := &x.effort
	n := x.visited.Len()
	r := reports.Effort{
		States: n, Transitions: e.transitions.Load(), Depth: depth,
		Entered: e.entered.Load(), Sold: e.sold.Load(), Advances: e.advances.Load(), Expiries: e.expiries.Load(), Lapses: e.lapses.Load(),
		Crashes: e.crashes.Load(), Lost: e.lost.Load(), Late: e.late.Load(), Ends: e.ends.Load(),
		// A pair of states collides with probability 2^-128.
		Collision:     float64(n) * float64(n) / 2 * math.Pow(2, -128),
		BytesPerState: float64(x.visited.Bytes()+int64(x.peak)*int64(unsafe.Sizeof(frontier{}))*2) / float64(max(n, 1)),
		ElapsedMS:     reports.InMS(time.Since(x.began)),
	}
	if n < 10_000 {
		r.BytesPerState = 0 // it would include memory allocated in advance
	}
	for _, t := range x.tries {
		r.Executions += t.Executions()
		r.Observed += int64(len(t.Nodes()))
	}
	return r
}

func (k factsID) Hash() uint64 { return table.Spread(uint64(k), 2) }

func (k judging) Hash() uint64 {
	return table.Spread(table.Pair(k.facts, k.events), table.Pair(k.now, uint32(k.role)<<8|uint32(k.client)))
}

func (k factsAt) Hash() uint64 { return table.Spread(table.Pair(k.facts, k.now), 0) }

func (k inFlightChange) Hash() uint64 {
	return table.Spread(table.Pair(k.list, uint32(k.add)), uint64(k.remove))
}

func (k factsRenaming) Hash() uint64 { return table.Spread(uint64(k.facts), k.perm.Word()) }

func (k inFlightRenaming) Hash() uint64 { return table.Spread(uint64(k.inFlight), k.perm.Word()) }

func (k endangering) Hash() uint64 {
	return table.Spread(table.Pair(k.facts, k.now), uint64(k.client)<<8|uint64(k.during))
}

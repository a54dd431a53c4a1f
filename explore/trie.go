package explore

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
)

// Execution is one run of a client's code, stepped from outside: a coro.Client, or
// whatever else can be brought to the same place twice.
type Execution interface {
	// Pending returns the request of each thread of the client, in a fixed order. It is empty when
	// the client has ended.
	Pending() []coro.Request
	// Resume answers request i, and returns when all threads wait for an answer again.
	Resume(i int, o coro.Observation)
	// Events returns the events since the last call.
	Events() []any
	// Err returns why the code cannot be stepped, or nil.
	Err() error
	// Close stops the client where it is, as a crash does.
	Close()
}

// trie holds every list of observations that a client of one role can make. The next command of
// a client depends on nothing else, so its code is executed once for each list, and the search
// works with the numbers of the lists.
//
// A node is such a list. It is made by running the code from the start, with the observations of
// its parent and then one more. Observations that are repeated must lead to the same requests;
// otherwise the client is not deterministic, and the search ends with an error.
type trie struct {
	start    func(*names.Book) Execution
	names    names.Scheme
	checked  bool
	seed     uint64 // of the last spelling
	servers  *servers.Servers
	settled  *table.Memo[edge, settled]
	turning  *table.Memo[lookAt, time.Duration]
	nodes    *nodes
	segments *table.Interner[[]rules.Event] // the events between two observations

	mu         sync.Mutex // guards what follows: one execution at a time
	children   map[edgeKey]child
	end        uint32            // the node of those that have ended; 0: nobody has
	died       uint32            // see dead
	rounds     map[string]uint32 // nodes at the start of a round, by the contents of the client's objects
	live       map[uint32]runs
	executions atomic.Int64
	failure    atomic.Pointer[error] // the first
	merge      bool
	places     map[string]uint32 // nodes, by their history: see pastOf
	steps      map[stepOf]uint32

	// How a client depends on the time: see turnsAt.
	spans   []time.Duration
	level   map[lookFrom][]stretchOf
	turns   []time.Duration // found for other nodes, the latest first
	delays  []time.Duration // how far they were ahead
	probes  int
	blind   atomic.Bool // not all were looked for
	vague   atomic.Bool // in a way that is not understood
	sparse  bool
	steady  map[string]int             // how many of a kind were looked at closely that do not
	turnsOf map[string][]time.Duration // found for those of a kind
}

// node is a list of observations of a client, and what the client does after it.
type node struct {
	pending []coro.Request
	parent  uint32
	by      edgeKey // from the parent
	events  uint32  // since the parent, without held
	// held are the calls of operations that the client makes without waiting for anything. It may be
	// delayed before them, so they count when the client is resumed, which is early enough to judge
	// them.
	held uint32
	// under are the kinds of the operations that have not returned, the outermost first.
	under []history.Kind
	// foreign: the client has received a name of another client.
	foreign bool
	// alive is the number of the oldest token of the client that its code may still hold, and
	// aliveDrawn that of the oldest random value.
	alive, aliveDrawn uint8
	// drawn are the random values that first appear here. values counts all up to here.
	drawn  []names.Value
	values int
	// past is the history of each thread, and told the events of the client, both since the last
	// boundary at which the contents of its objects were known: see pastOf.
	past []uint32
	told uint32
	// limits describes the client's time-outs; nil if they are not known.
	limits *coro.Limits
	// timed: a thread sleeps, has a time-out, or is about to read the clock, or to begin.
	timed bool
	// dead: the client has crashed.
	dead bool
	// calls are 1 + the numbers of the pending commands as each client sends them; 0 if not yet
	// numbered.
	calls [][names.MaxSlots]atomic.Uint32
}

// during returns the kind of the innermost operation that has not returned.
func (n *node) during() history.Kind {
	if len(n.under) == 0 {
		return history.NoKind
	}
	return n.under[len(n.under)-1]
}

// nodes are the nodes of a trie by number. The root is 0. It is safe for concurrent use.
type nodes struct {
	mu  sync.RWMutex
	all []*node
}

func (n *nodes) get(id uint32) *node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.all[id]
}

func (n *nodes) add(x *node) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
	return uint32(len(n.all) - 1)
}

// snapshot returns the nodes as they are now. They do not change.
func (n *nodes) snapshot() []*node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.all[:len(n.all):len(n.all)]
}

func (n *nodes) len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.all)
}

// edge is an observation that one of a node's threads makes at a time.
type edge struct {
	from   uint32
	which  uint8  // of the pending requests
	answer uint32 // to a command; goOn otherwise
	now    time.Duration
	// looks is after how many readings of the clock the client is delayed; 0: it is not.
	looks uint8
}

// edgeKey is an edge whose time is 0 unless the client can notice it.
type edgeKey edge

// child is the node that an edge leads to, and the events on the way.
type child struct{ node, events uint32 }

// settled is the node at which a client next does something that others can notice.
type settled struct {
	node   uint32
	events uint32 // on the way
	// fused: nothing on the way could be noticed, and the client sends a command next. It takes one
	// step together with the command.
	fused  bool
	which  uint8 // if fused, the request of the thread that was resumed
	looked uint8 // how often it has read the clock
	// failed: the code cannot be stepped, or did something else than before: see
	// trie.failure.
	failed bool
}

// looksLimit is how many looks at the clock are counted in one step.
const looksLimit = 1<<6 - 1

// goOn is the answer to requests that have none.
const goOn = ^uint32(0)

// options say whose code a trie is of.
type options struct {
	// start starts an execution whose names are in a book.
	start func(*names.Book) Execution
	names names.Scheme
	// checked: each node is reached by several runs that spell names differently, to see whether
	// that makes a difference. If false, the Execution checks that itself.
	checked bool
	servers *servers.Servers
	// merge merges nodes after which the client does the same.
	merge bool
	// spans are how far ahead of the present the client is tried that reads the clock.
	spans []time.Duration
	// sparse: each try is costly.
	sparse bool
}

// newTrie makes a trie with its root: what the client does first.
func newTrie(o options) (*trie, error) {
	t := &trie{start: o.start, names: o.names, checked: o.checked, servers: o.servers, merge: o.merge, spans: o.spans, sparse: o.sparse}
	t.nodes, t.segments = &nodes{}, table.NewInterner[[]rules.Event]()
	t.segments.ID("", func() []rules.Event { return nil }) // number 0
	t.settled, t.turning = table.NewMemo(t.settle), table.NewMemo(t.turnsAt)
	t.children, t.rounds, t.places, t.steps = map[edgeKey]child{}, map[string]uint32{}, map[string]uint32{}, map[stepOf]uint32{}
	t.live, t.level = map[uint32]runs{}, map[lookFrom][]stretchOf{}
	t.steady, t.turnsOf = map[string]int{}, map[string][]time.Duration{}
	rs := t.runs()
	n, err := t.place(rs, nil, edgeKey{}, func() (*run, error) { return t.run(0), nil })
	if err != nil {
		return nil, err
	}
	t.nodes.add(n)
	t.keep(0, rs)
	return t, nil
}

// settledAt returns where a client comes to by an observation, and remembers it.
func (t *trie) settledAt(e edge) *settled { return t.settled.Get(e, e.Hash()) }

// node returns the node with a number.
func (t *trie) node(id uint32) *node { return t.nodes.get(id) }

// eventsOf returns the events with a number.
func (t *trie) eventsOf(id uint32) []rules.Event { return t.segments.Get(id) }

// allNodes returns the nodes as they are now, by number. They do not change.
func (t *trie) allNodes() []*node { return t.nodes.snapshot() }

// executed returns how many executions were started.
func (t *trie) executed() int64 { return t.executions.Load() }

// firstFailure returns why the code cannot be stepped, after a settled that failed.
func (t *trie) firstFailure() error { return *t.failure.Load() }

// isBlind reports whether some of the instants were not looked for with which the client compares its clock: there are too many.
func (t *trie) isBlind() bool { return t.blind.Load() }

// isVague reports whether the client depends on the time in a way that is not understood.
func (t *trie) isVague() bool { return t.vague.Load() }

// run starts an execution whose names are spelled as the seed says.
func (t *trie) run(seed uint64) *run {
	t.executions.Add(1)
	book := t.names.Book(seed)
	return newRun(t.start(book), book)
}

// runs starts the executions for one node: several, with different spellings, if t.checked.
func (t *trie) runs() (rs runs) {
	for _, seed := range t.seeds() {
		rs = append(rs, t.run(seed))
	}
	return rs
}

// seeds returns the seeds for the runs of one node.
func (t *trie) seeds() []uint64 {
	all := []uint64{0}
	for i := 0; t.checked && i < names.Others; i++ {
		t.seed++
		all = append(all, t.seed)
	}
	return all
}

// place makes the node at which runs are. more returns another run that has come there.
func (t *trie) place(rs runs, parent *node, by edgeKey, more func() (*run, error)) (*node, error) {
	n := &node{parent: by.from, by: by}
	if parent != nil {
		n.under, n.values = parent.under, parent.values
		n.foreign = parent.foreign || names.Foreign(t.observation(parent, by).Reply)
		n.alive, n.aliveDrawn = parent.alive, parent.aliveDrawn
		if parent.roundEnds() {
			n.foreign = names.Foreign(parent.pending[0].Label)
			n.alive, n.aliveDrawn = parent.knows(parent.pending[0].Label)
		}
	}
	var events []rules.Event
	var err error
	if n.pending, events, n.drawn, err = rs.settled(n.values, more); err != nil {
		return nil, err
	}
	n.values += len(n.drawn)
	if d, tells := rs[0].x.(interface{ Drawn() int }); tells {
		n.values = d.Drawn()
	}
	for _, e := range events {
		if e.Op.Kind == history.Join {
			continue // it is part of an acquisition
		}
		if e.End {
			n.under = n.under[:max(len(n.under)-1, 0)]
		} else {
			n.under = append(n.under[:len(n.under):len(n.under)], e.Op.Kind)
		}
	}
	last := len(events)
	for last > 0 && !events[last-1].End {
		last--
	}
	n.events, n.held = t.segment(events[:last]), t.segment(events[last:])
	n.calls = make([][names.MaxSlots]atomic.Uint32, len(n.pending))
	if x, tells := rs[0].x.(interface{ Limits() coro.Limits }); tells && t.checked {
		l := x.Limits()
		n.limits = &l
	}
	t.recordPast(n, parent)
	n.timed = slices.ContainsFunc(n.pending, func(r coro.Request) bool { return r.Kind == coro.Sleep || private(r) || r.Deadline > 0 })
	return n, nil
}

// knows returns the oldest token and the oldest random value that a client may still hold whose
// objects have these contents at node n.
func (n *node) knows(memory string) (first, drawn uint8) {
	texts := false
	if k, _ := fmt.Sscanf(memory, "%d %t ", &first, &texts); k < 2 || texts || len(names.SecretsIn(memory)) > 0 {
		return n.alive, n.aliveDrawn
	}
	return max(n.alive, first), max(n.aliveDrawn, uint8(min(n.values, math.MaxUint8)))
}

// segment returns the number of a list of events.
func (t *trie) segment(list []rules.Event) uint32 {
	if len(list) == 0 {
		return 0
	}
	var key strings.Builder
	for _, e := range list {
		o := e.Op
		fmt.Fprintf(&key, "%t %d %d %d %d %d %v %d %v %v %v;", e.End, o.Kind, o.Outcome, o.Reason, o.Amount, o.Fence, o.Session, o.Until, o.Key, o.Arg, o.Result)
	}
	return t.segments.ID(key.String(), func() []rules.Event { return list })
}

// settle follows an observation and then everything that the client does without others
// noticing: it passes boundaries between rounds and, if it began with a step of that kind, takes
// more of them until its next command.
func (t *trie) settle(e edge) settled {
	t.mu.Lock()
	defer t.mu.Unlock()
	var events []rules.Event
	looked, most := uint8(0), e.looks
	start, thread := t.nodes.get(e.from).pending, t.nodes.get(e.from).pending[e.which].Thread
	quiet := private(start[e.which])
	for first := true; ; first = false {
		held := t.segments.Get(t.nodes.get(e.from).held)
		quiet = quiet && !slices.ContainsFunc(held, noticed)
		if !first { // it has been resumed, so these have happened
			events = append(events, held...)
		}
		if t.nodes.get(e.from).pending[e.which].Kind == coro.Clock && looked < looksLimit {
			looked++
		}
		at, err := t.child(e.key(t.nodes.get(e.from)))
		if err != nil {
			t.failure.CompareAndSwap(nil, &err)
			return settled{failed: true}
		}
		n := t.nodes.get(at.node)
		events = append(events, t.segments.Get(at.events)...)
		quiet = quiet && !slices.ContainsFunc(t.segments.Get(at.events), noticed) && t.alone(start, n.pending, thread) && (most == 0 || looked < most)
		which := slices.IndexFunc(n.pending, func(r coro.Request) bool { return r.Kind == coro.Boundary })
		own := 0
		if quiet {
			if own = max(threadAt(n.pending, thread), 0); private(n.pending[own]) {
				which = own
			}
		}
		if which < 0 {
			fused := quiet && n.pending[own].Kind == coro.Command
			return settled{node: t.ended(at.node, n), events: t.segment(events), fused: fused, which: uint8(own), looked: looked}
		}
		e = edge{from: at.node, which: uint8(which), answer: goOn, now: e.now}
	}
}

// alone reports whether a thread may take its next step together with this one: it is the only
// thread or, if nodes are merged, the only one that has changed its request.
func (t *trie) alone(before, after []coro.Request, thread int) bool {
	return len(after) == 1 || t.merge && onlyMoved(before, after, thread)
}

// onlyMoved reports whether only this thread has changed its request, or is the only one left.
func onlyMoved(before, after []coro.Request, thread int) bool {
	if len(after) == 1 {
		return true
	}
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if before[i].Thread != after[i].Thread || before[i].Thread != thread && !reflect.DeepEqual(before[i], after[i]) {
			return false
		}
	}
	return true
}

// threadAt returns the index of a thread's request, or -1.
func threadAt(rs []coro.Request, thread int) int {
	return slices.IndexFunc(rs, func(r coro.Request) bool { return r.Thread == thread })
}

// ended returns the one node for all clients that have ended, or at if n has not ended. The caller
// holds t.mu.
func (t *trie) ended(at uint32, n *node) uint32 {
	if len(n.pending) > 0 || !t.merge {
		return at
	}
	if t.end == 0 {
		t.end = t.nodes.add(&node{alive: math.MaxUint8, aliveDrawn: math.MaxUint8})
	}
	return t.end
}

// dead returns the one node for all clients that have crashed.
func (t *trie) dead() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.died == 0 {
		t.died = t.nodes.add(&node{alive: math.MaxUint8, aliveDrawn: math.MaxUint8, dead: true})
	}
	return t.died
}

// private reports whether others cannot notice that this request is answered.
func private(r coro.Request) bool {
	return r.Kind == coro.Clock || r.Kind == coro.Pause && r.Label == "start"
}

// noticed reports whether the order of an event among those of others matters. The beginning of an
// acquisition, or its end without a grant, counts as well when its client takes its next step.
func noticed(e rules.Event) bool {
	return e.Op.Kind != history.Acquire || e.End && e.Op.Outcome == history.OK
}

// key is the edge with the time only if the client can notice it: it reads the clock, or one of its
// time-outs has fired.
func (e edge) key(from *node) edgeKey {
	k := edgeKey{from: e.from, which: e.which, answer: e.answer}
	switch {
	case from.pending[e.which].Kind == coro.Clock:
		k.now = e.now
	case from.limited(e.now):
		k.now = from.lastLimit(e.now)
	}
	return k
}

// lastLimit returns the earliest time at which the same time-outs have fired as now.
func (n *node) lastLimit(now time.Duration) (last time.Duration) {
	if n.limits == nil {
		return now
	}
	for _, l := range n.limits.Live {
		if l.At <= now {
			last = max(last, l.At)
		}
	}
	return last
}

func (n *node) limited(now time.Duration) bool {
	return slices.ContainsFunc(n.pending, func(r coro.Request) bool { return r.Deadline > 0 && r.Deadline <= now })
}

// roundEnds reports whether the node is a boundary at which the contents of the client's objects
// are known.
func (n *node) roundEnds() bool {
	return len(n.pending) == 1 && n.pending[0].Kind == coro.Boundary && n.pending[0].Label != ""
}

// child returns the node that an observation leads to, and makes it if it is new. The caller holds
// t.mu.
func (t *trie) child(key edgeKey) (child, error) {
	if to, known := t.children[key]; known {
		return to, nil
	}
	parent := t.nodes.get(key.from)
	rs, err := t.bring(key.from)
	if err != nil {
		return child{}, err
	}
	for _, r := range rs {
		r.resume(int(key.which), t.observation(parent, key))
	}
	n, err := t.place(rs, parent, key, func() (*run, error) {
		r, err := t.again(key.from, 0)
		if err == nil {
			r.resume(int(key.which), t.observation(parent, key))
			err = r.x.Err()
		}
		return r, err
	})
	if err != nil {
		rs.close()
		return child{}, t.blame(err, key)
	}
	memory := ""
	if t.merge && parent.roundEnds() {
		// Earlier observations matter only as far as they are in the objects.
		memory = fmt.Sprint(parent.values, n.alive, n.aliveDrawn, " ", parent.pending[0].Label)
		if id, known := t.rounds[memory]; known {
			defer t.swapRuns(id, rs)
			if err := alike(t.nodes.get(id), n); err != nil {
				return child{}, t.merging(id, fmt.Errorf("%w, or remembers more than can be seen: %w", ErrNondeterministic, err))
			}
			t.children[key] = child{id, n.events}
			return t.children[key], nil
		}
	}
	past := t.pastOf(n)
	if other, known := t.places[past]; known && past != "" {
		t.swapRuns(other, rs)
		t.children[key] = child{other, n.events}
		return t.children[key], nil
	}
	id := t.nodes.add(n)
	if memory != "" {
		t.rounds[memory] = id
	}
	if past != "" {
		t.places[past] = id
	}
	t.children[key] = child{id, n.events}
	t.keep(id, rs)
	return t.children[key], nil
}

// observation returns what the client observes.
func (t *trie) observation(from *node, key edgeKey) coro.Observation {
	var o coro.Observation
	if key.answer != goOn {
		o = t.servers.Answer(key.answer)
	}
	o.Now = max(key.now, from.pending[key.which].Until)
	return o
}

// bring returns runs at a node: those that were kept there, or new ones that repeat all
// observations on the way.
func (t *trie) bring(to uint32) (runs, error) {
	if rs := t.live[to]; rs != nil {
		delete(t.live, to)
		return rs, nil
	}
	var rs runs
	for _, seed := range t.seeds() {
		r, err := t.again(to, seed)
		if err != nil {
			rs.close()
			return nil, err
		}
		rs = append(rs, r)
	}
	return rs, nil
}

// again brings a new run to a node. Runs with other spellings go there in another order.
func (t *trie) again(to uint32, seed uint64) (*run, error) {
	r, err := t.replay(to, seed, t.merge && seed != 0)
	if err != nil && t.merge && seed != 0 {
		if straight, is := t.replay(to, seed, false); is == nil {
			straight.x.Close()
			err = t.merging(to, err)
		}
	}
	return r, err
}

// repetitions is how often the code is executed again to see whether it does the same: one that tosses a coin in each
// execution does so once in 256 times.
const repetitions = 8

// merging is errMerged for a difference between the ways to a node, unless the code does not even do the same on one of
// them.
func (t *trie) merging(at uint32, err error) error {
	for range repetitions {
		r, is := t.replay(at, 0, false)
		if is != nil {
			return is
		}
		r.x.Close()
	}
	return fmt.Errorf("%w: %w", errMerged, err)
}

// blame turns err into errMerged if the runs differ only because they reached the node in different
// orders.
func (t *trie) blame(err error, key edgeKey) error {
	if !t.merge || !errors.Is(err, names.ErrNotOpaque) && !errors.Is(err, ErrNondeterministic) || errors.Is(err, errMerged) {
		return err
	}
	var rs runs
	defer func() { rs.close() }()
	parent := t.nodes.get(key.from)
	one := func(seed uint64) (*run, error) {
		r, err := t.replay(key.from, seed, false)
		if err == nil {
			r.resume(int(key.which), t.observation(parent, key))
			err = r.x.Err()
		}
		return r, err
	}
	for _, seed := range t.seeds() {
		r, other := one(seed)
		if r != nil {
			rs = append(rs, r)
		}
		if other != nil {
			return err
		}
	}
	if _, other := t.place(rs, parent, key, func() (*run, error) { return one(0) }); other != nil {
		return err
	}
	return t.merging(key.from, err)
}

// replay brings a new run to a node by repeating all observations on the way, in another order if
// shuffled, where that should make no difference.
func (t *trie) replay(to uint32, seed uint64, shuffled bool) (*run, error) {
	var path []uint32
	for id := to; id != 0; id = t.nodes.get(id).parent {
		path = append(path, id)
	}
	slices.Reverse(path)
	r := t.run(seed)
	err := t.same(r, t.nodes.get(0))
	for i := 0; i < len(path) && err == nil; {
		if together := t.reorderable(path[i:]); shuffled && together > 1 {
			err = t.replayReordered(r, path[i:i+together], seed)
			i += together
			continue
		}
		n := t.nodes.get(path[i])
		r.resume(int(n.by.which), t.observation(t.nodes.get(n.parent), n.by))
		err = t.same(r, n)
		i++
	}
	if err != nil {
		r.x.Close()
		return nil, err
	}
	return r, nil
}

// ErrNondeterministic reports that a client behaved differently after the same observations.
var ErrNondeterministic = errors.New("this client is not deterministic")

// same checks that a run is where the node says.
func (t *trie) same(r *run, n *node) error {
	if err := r.failed(); err != nil {
		return err
	}
	return t.sameAfter(r, n, slices.Concat(t.segments.Get(n.events), t.segments.Get(n.held)))
}

// sameAfter is same for a run with these events on the way to the node.
func (t *trie) sameAfter(r *run, n *node, events []rules.Event) error {
	is := Said(t.names.Book(0), n.pending, events)
	if err := names.Follow(r.stand(), is, n.drawn); err != nil {
		return chance(err)
	}
	return nil
}

func alike(known, now *node) error {
	if known.events == now.events && known.held == now.held && reflect.DeepEqual(known.pending, now.pending) {
		return nil
	}
	return fmt.Errorf("after the same observations its next step was %s, and is now %s", requests(known.pending), requests(now.pending))
}

func requests(rs []coro.Request) string {
	if len(rs) == 0 {
		return "its end"
	}
	text := ""
	for i, r := range rs {
		if i > 0 {
			text += " and "
		}
		text += request(r)
	}
	return text
}

func request(r coro.Request) string {
	switch r.Kind {
	case coro.Command:
		return fmt.Sprintf("%q", r.Commands)
	case coro.Clock:
		return "a look at the clock"
	case coro.Sleep:
		return fmt.Sprintf("a sleep until %v", r.Until)
	case coro.Boundary:
		return fmt.Sprintf("the end of a round, remembering %q", r.Label)
	}
	return "a pause: " + r.Label
}

// keptAlive is how many nodes may have runs kept at them.
const keptAlive = 256

// keptHolding is keptAlive for runs that hold processes.
const keptHolding = 32

// keep stores runs at their node: a child of it is likely to be wanted soon.
func (t *trie) keep(id uint32, rs runs) {
	if len(rs[0].x.Pending()) == 0 {
		rs.close()
		return
	}
	most := keptAlive
	if h, tells := rs[0].x.(interface{ Holds() bool }); tells && h.Holds() {
		most = keptHolding
	}
	if len(t.live) >= most {
		for old, others := range t.live { // any
			others.close()
			delete(t.live, old)
			break
		}
	}
	t.live[id] = rs
}

func (t *trie) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, rs := range t.live {
		rs.close()
		delete(t.live, id)
	}
}

// call returns the number of a pending command as the servers see it from a client.
func (t *trie) call(n *node, which, client int) uint32 {
	known := &n.calls[which][client]
	if id := known.Load(); id != 0 {
		return id - 1
	}
	r := n.pending[which]
	c := servers.Call{Client: client, Node: r.Node, Tx: r.Tx, Conn: r.Conn, During: n.during()}
	for _, cmd := range r.Commands {
		args := make([]string, len(cmd))
		for i, arg := range cmd {
			args[i] = names.Global(arg, client)
		}
		c.Commands = append(c.Commands, args)
	}
	id := t.servers.CallID(c)
	known.Store(id + 1)
	return id
}

// ready reports whether a thread of the client can run now.
func (n *node) ready(now time.Duration) bool {
	return slices.ContainsFunc(n.pending, func(r coro.Request) bool { return ready(&r, now) })
}

func ready(r *coro.Request, now time.Duration) bool {
	return r.Kind != coro.Sleep || servers.RoundUp(r.Until) <= now
}

func (k edge) Hash() uint64 {
	return table.Spread(table.Pair(k.from, k.answer), uint64(k.now)<<16|uint64(k.looks)<<8|uint64(k.which))
}

// errMerged reports that two histories of a client were merged after which it behaves
// differently.
var errMerged = errors.New("a client may remember more than can be seen")

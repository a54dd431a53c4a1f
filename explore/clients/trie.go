package clients

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

// Execution is one run of a client's code, stepped from outside: a coro.Client, or anything else that can be brought to
// the same place twice.
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

// Trie holds every list of observations that a client of one role can make. The next command of
// a client depends on nothing else, so its code is executed once for each list, and the search
// works with the numbers of the lists.
//
// A node is such a list. It is made by running the code from the start, with the observations of
// its parent and then one more. Observations that are repeated must lead to the same requests;
// otherwise the client is not deterministic, and the search ends with an error.
type Trie struct {
	start    func(*names.Dictionary) Execution
	names    names.Scheme
	checked  bool
	seed     uint64 // of the last spelling
	servers  *servers.Servers
	settled  *table.Memo[Edge, Settled]
	turning  *table.Memo[lookAt, []time.Duration]
	nodes    *nodes
	segments *table.Interner[[]rules.Event] // the events between two observations

	mu         sync.Mutex // guards what follows: one execution at a time
	children   map[edgeKey]child
	end        uint32            // the node of those that have ended; 0: none has
	died       uint32            // see Dead
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
	delays  []time.Duration // how far ahead they were
	probes  int
	blind   atomic.Bool // not all were looked for
	vague   atomic.Bool // in a way that is not understood
	sparse  bool
	steady  map[string]int             // how many of a kind were looked at closely that do not
	turnsOf map[string][]time.Duration // found for those of a kind
	// later are instants found by Follow, and followed the ways that it has tried.
	later    map[lookFrom][]time.Duration
	followed map[wayID]bool
}

// Node is a list of observations of a client, and what the client does after it.
type Node struct {
	// Pending is the request of each thread of the client.
	Pending []coro.Request
	parent  uint32
	by      edgeKey // from the parent
	events  uint32  // since the parent, without held
	// Held are the calls of operations that the client makes without waiting for anything. It may be
	// delayed before them, so they count when the client is resumed, which is early enough to judge
	// them.
	Held uint32
	// under are the kinds of the operations that have not returned, the outermost first.
	under []history.Kind
	// origins are the kinds of the operations to which the pending requests belong; nil: see During.
	origins []history.Kind
	// Foreign: the client has received a name of another client.
	Foreign bool
	// Alive is the number of the oldest token of the client that its code may still hold, and
	// AliveDrawn that of the oldest random value.
	Alive, AliveDrawn uint8
	// drawn are the random values that first appear here. Values counts all up to here.
	drawn  []names.Value
	Values int
	// past is the history of each thread, and told the events of the client, both since the last
	// boundary at which the contents of its objects were known: see pastOf.
	past []uint32
	told uint32
	// limits describes the client's timeouts; nil if they are not known.
	limits *coro.Limits
	// Timed: a thread sleeps, has a timeout, or is about to read the clock or to begin.
	Timed bool
	// Dead: the client has crashed.
	Dead bool
	// calls are 1 + the numbers of the pending commands as each client sends them; 0 if not yet
	// numbered.
	calls [][names.MaxSlots]atomic.Uint32
}

// nodes are the nodes of a trie by number. The root is 0. It is safe for concurrent use.
type nodes struct {
	mu  sync.RWMutex
	all []*Node
}

func (n *nodes) get(id uint32) *Node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.all[id]
}

func (n *nodes) add(x *Node) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
	return uint32(len(n.all) - 1)
}

// snapshot returns the nodes as they are now. They do not change.
func (n *nodes) snapshot() []*Node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.all[:len(n.all):len(n.all)]
}

func (n *nodes) len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.all)
}

// Edge is an observation that one of a node's threads makes at a time.
type Edge struct {
	From   uint32
	Which  uint8  // of the pending requests
	Answer uint32 // to a command; GoOn otherwise
	Now    time.Duration
	// Looks is after how many readings of the clock the client is delayed; 0: it is not.
	Looks uint8
}

// edgeKey is an edge whose time is 0 unless the client can notice it.
type edgeKey Edge

// child is the node that an edge leads to, and the events on the way.
type child struct{ node, events uint32 }

// Settled is the node of a client's next step that others can notice.
type Settled struct {
	Node   uint32
	Events uint32 // on the way
	// Fused: nothing on the way could be noticed, and the client sends a command next. It takes one
	// step together with the command.
	Fused  bool
	Which  uint8 // if fused, the request of the thread that was resumed
	Looked uint8 // how often it has read the clock
	// Failed: the code cannot be stepped, or behaved differently than before: see Trie.Failure.
	Failed bool
}

// looksLimit is how many looks at the clock are counted in one step: an action of a search has room for so many.
const looksLimit = 1<<6 - 1

// GoOn is the answer to requests that have none.
const GoOn = ^uint32(0)

// Options describe the code of a trie.
type Options struct {
	// Start starts an execution whose names are in a book.
	Start func(*names.Dictionary) Execution
	// Names gives the client's names.
	Names names.Scheme
	// Checked: several runs that spell names differently reach each node, to check that names mean nothing. If false,
	// the Execution checks that itself.
	Checked bool
	// Servers number the client's calls and the answers.
	Servers *servers.Servers
	// Merge makes one node of several that differ in the client's history, but not in what it remembers.
	Merge bool
	// Spans say how far ahead of the present a client that reads the clock is tried.
	Spans []time.Duration
	// Sparse: each try is costly.
	Sparse bool
}

// New makes a trie with its root: what the client does first.
func New(o Options) (*Trie, error) {
	t := &Trie{start: o.Start, names: o.Names, checked: o.Checked, servers: o.Servers, merge: o.Merge, spans: o.Spans, sparse: o.Sparse}
	t.nodes, t.segments = &nodes{}, table.NewInterner[[]rules.Event]()
	t.segments.ID("", func() []rules.Event { return nil }) // number 0
	t.settled, t.turning = table.NewMemo(t.settle), table.NewMemo(t.turnsAt)
	t.children, t.rounds, t.places, t.steps = map[edgeKey]child{}, map[string]uint32{}, map[string]uint32{}, map[stepOf]uint32{}
	t.live, t.level = map[uint32]runs{}, map[lookFrom][]stretchOf{}
	t.steady, t.turnsOf = map[string]int{}, map[string][]time.Duration{}
	t.later, t.followed = map[lookFrom][]time.Duration{}, map[wayID]bool{}
	rs := t.runs()
	n, err := t.place(rs, nil, edgeKey{}, func() (*Run, error) { return t.run(0), nil })
	if err != nil {
		return nil, err
	}
	t.nodes.add(n)
	t.keep(0, rs)
	return t, nil
}

// Settled returns where an observation leads a client, and remembers it. The caller passes the edge's hash, so that
// Settled is inlined: see [table.Memo].
func (t *Trie) Settled(e Edge, hash uint64) *Settled { return t.settled.Get(e, hash) }

// Node returns the node with a number.
func (t *Trie) Node(id uint32) *Node { return t.nodes.get(id) }

// Events returns the events with a number.
func (t *Trie) Events(id uint32) []rules.Event { return t.segments.Get(id) }

// Nodes returns the nodes as they are now, by number. They do not change.
func (t *Trie) Nodes() []*Node { return t.nodes.snapshot() }

// Executions returns how many executions were started.
func (t *Trie) Executions() int64 { return t.executions.Load() }

// Failure returns why the code cannot be stepped, if a Settled failed.
func (t *Trie) Failure() error { return *t.failure.Load() }

// Blind reports whether the client compares its clock with too many instants, so that some were not looked for.
func (t *Trie) Blind() bool { return t.blind.Load() }

// Vague reports whether the client depends on the time in a way that is not understood.
func (t *Trie) Vague() bool { return t.vague.Load() }

// run starts an execution whose names are spelled as the seed says.
func (t *Trie) run(seed uint64) *Run {
	t.executions.Add(1)
	book := t.names.Dictionary(seed)
	return NewRun(t.start(book), book)
}

// runs starts the executions for one node: several, with different spellings, if t.checked.
func (t *Trie) runs() (rs runs) {
	for _, seed := range t.seeds() {
		rs = append(rs, t.run(seed))
	}
	return rs
}

// seeds returns the seeds for the runs of one node.
func (t *Trie) seeds() []uint64 {
	all := []uint64{0}
	for i, others := 0, names.OthersAfter(t.seed); t.checked && i < others; i++ {
		t.seed++
		all = append(all, t.seed)
	}
	return all
}

// place makes the node at which runs are. more returns another run that has reached it.
func (t *Trie) place(rs runs, parent *Node, by edgeKey, more func() (*Run, error)) (*Node, error) {
	n := &Node{parent: by.From, by: by}
	if parent != nil {
		n.under, n.Values = parent.under, parent.Values
		n.Foreign = parent.Foreign || names.Foreign(t.observation(parent, by).Reply)
		n.Alive, n.AliveDrawn = parent.Alive, parent.AliveDrawn
		if parent.roundEnds() {
			n.Foreign = names.Foreign(parent.Pending[0].Label)
			n.Alive, n.AliveDrawn = parent.knows(parent.Pending[0].Label)
		}
	}
	var events []rules.Event
	var err error
	if n.Pending, events, n.drawn, err = rs.settled(n.Values, more); err != nil {
		return nil, err
	}
	n.Values += len(n.drawn)
	if d, tells := rs[0].Code.(interface{ Drawn() int }); tells {
		n.Values = d.Drawn()
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
	n.origins = t.origins(n, parent, int(by.Which), events)
	last := len(events)
	for last > 0 && !events[last-1].End {
		last--
	}
	n.events, n.Held = t.segment(events[:last]), t.segment(events[last:])
	n.calls = make([][names.MaxSlots]atomic.Uint32, len(n.Pending))
	if x, tells := rs[0].Code.(interface{ Limits() coro.Limits }); tells && t.checked {
		l := x.Limits()
		n.limits = &l
	}
	t.recordPast(n, parent)
	n.Timed = slices.ContainsFunc(n.Pending, func(r coro.Request) bool { return r.Kind == coro.Sleep || Private(r) || r.Deadline > 0 })
	return n, nil
}

// knows returns the oldest token and the oldest random value that a client with these contents of its objects may still
// hold at node n.
func (n *Node) knows(memory string) (first, drawn uint8) {
	texts := false
	if k, _ := fmt.Sscanf(memory, "%d %t ", &first, &texts); k < 2 || texts || len(names.SecretsIn(memory)) > 0 {
		return n.Alive, n.AliveDrawn
	}
	return max(n.Alive, first), max(n.AliveDrawn, uint8(min(n.Values, math.MaxUint8)))
}

// segment returns the number of a list of events.
func (t *Trie) segment(list []rules.Event) uint32 {
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

// settle follows an observation and then all steps of the client that others cannot notice: it passes boundaries
// between rounds and, if the first step was of that kind, takes more of them until the next command.
func (t *Trie) settle(e Edge) Settled {
	t.mu.Lock()
	defer t.mu.Unlock()
	var events []rules.Event
	looked, most := uint8(0), e.Looks
	start, thread := t.nodes.get(e.From).Pending, t.nodes.get(e.From).Pending[e.Which].Thread
	quiet := Private(start[e.Which])
	for first := true; ; first = false {
		held := t.segments.Get(t.nodes.get(e.From).Held)
		quiet = quiet && !slices.ContainsFunc(held, Noticed)
		if !first { // it has been resumed, so these calls have happened
			events = append(events, held...)
		}
		if t.nodes.get(e.From).Pending[e.Which].Kind == coro.Clock && looked < looksLimit {
			looked++
		}
		at, err := t.child(e.key(t.nodes.get(e.From)))
		if err != nil {
			t.failure.CompareAndSwap(nil, &err)
			return Settled{Failed: true}
		}
		n := t.nodes.get(at.node)
		events = append(events, t.segments.Get(at.events)...)
		quiet = quiet && !slices.ContainsFunc(t.segments.Get(at.events), Noticed) && t.alone(start, n.Pending, thread) && (most == 0 || looked < most)
		which := slices.IndexFunc(n.Pending, func(r coro.Request) bool { return r.Kind == coro.Boundary })
		own := 0
		if quiet {
			if own = max(ThreadAt(n.Pending, thread), 0); Private(n.Pending[own]) {
				which = own
			}
		}
		if which < 0 {
			fused := quiet && n.Pending[own].Kind == coro.Command
			return Settled{Node: t.ended(at.node, n), Events: t.segment(events), Fused: fused, Which: uint8(own), Looked: looked}
		}
		e = Edge{From: at.node, Which: uint8(which), Answer: GoOn, Now: e.Now}
	}
}

// alone reports whether a thread may take its next step together with this one: it is the only
// thread or, if nodes are merged, the only one that has changed its request.
func (t *Trie) alone(before, after []coro.Request, thread int) bool {
	return len(after) == 1 || t.merge && OnlyMoved(before, after, thread)
}

// OnlyMoved reports whether only this thread has changed its request, or is the only one.
func OnlyMoved(before, after []coro.Request, thread int) bool {
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

// ThreadAt returns the index of a thread's request, or -1.
func ThreadAt(rs []coro.Request, thread int) int {
	return slices.IndexFunc(rs, func(r coro.Request) bool { return r.Thread == thread })
}

// ended returns the one node for all clients that have ended, or at if n has not ended. The caller
// holds t.mu.
func (t *Trie) ended(at uint32, n *Node) uint32 {
	if len(n.Pending) > 0 || !t.merge {
		return at
	}
	if t.end == 0 {
		t.end = t.nodes.add(&Node{Alive: math.MaxUint8, AliveDrawn: math.MaxUint8})
	}
	return t.end
}

// Dead returns the one node for all clients that have crashed.
func (t *Trie) Dead() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.died == 0 {
		t.died = t.nodes.add(&Node{Alive: math.MaxUint8, AliveDrawn: math.MaxUint8, Dead: true})
	}
	return t.died
}

// Private reports whether others cannot notice the answer to this request.
func Private(r coro.Request) bool {
	return r.Kind == coro.Clock || r.Kind == coro.Pause && r.Label == "start"
}

// Noticed reports whether the order of an event among those of others matters. The beginning of an
// acquisition, or its end without a grant, counts as well when its client takes its next step.
func Noticed(e rules.Event) bool {
	return e.Op.Kind != history.Acquire || e.End && e.Op.Outcome == history.OK
}

// key returns the edge, with its time only if the client can notice it: it reads the clock, or one of its
// timeouts has fired.
func (e Edge) key(from *Node) edgeKey {
	k := edgeKey{From: e.From, Which: e.Which, Answer: e.Answer}
	switch {
	case from.Pending[e.Which].Kind == coro.Clock:
		k.Now = e.Now
	case from.limited(e.Now):
		k.Now = from.lastLimit(e.Now)
	}
	return k
}

// lastLimit returns the earliest time at which the same timeouts have fired as now.
func (n *Node) lastLimit(now time.Duration) (last time.Duration) {
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

func (n *Node) limited(now time.Duration) bool {
	return slices.ContainsFunc(n.Pending, func(r coro.Request) bool { return r.Deadline > 0 && r.Deadline <= now })
}

// roundEnds reports whether the node is a boundary at which the contents of the client's objects
// are known.
func (n *Node) roundEnds() bool {
	return len(n.Pending) == 1 && n.Pending[0].Kind == coro.Boundary && n.Pending[0].Label != ""
}

// child returns the node that an observation leads to, and makes it if it is new. The caller holds
// t.mu.
func (t *Trie) child(key edgeKey) (child, error) {
	if to, known := t.children[key]; known {
		return to, nil
	}
	parent := t.nodes.get(key.From)
	rs, err := t.bring(key.From)
	if err != nil {
		return child{}, err
	}
	for _, r := range rs {
		r.Resume(int(key.Which), t.observation(parent, key))
	}
	n, err := t.place(rs, parent, key, func() (*Run, error) {
		r, err := t.again(key.From, 0)
		if err == nil {
			r.Resume(int(key.Which), t.observation(parent, key))
			err = r.Code.Err()
		}
		return r, err
	})
	if err != nil {
		rs.close()
		return child{}, t.blame(err, key)
	}
	memory := ""
	if t.merge && parent.roundEnds() {
		// Earlier observations matter only through the contents of the objects.
		memory = fmt.Sprint(parent.Values, n.Alive, n.AliveDrawn, " ", parent.Pending[0].Label)
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

// observation returns the client's observation.
func (t *Trie) observation(from *Node, key edgeKey) coro.Observation {
	var o coro.Observation
	if key.Answer != GoOn {
		o = t.servers.Answer(key.Answer)
	}
	o.Now = max(key.Now, from.Pending[key.Which].Until)
	return o
}

// bring returns runs at a node: those that were kept there, or new ones that repeat all
// observations on the way.
func (t *Trie) bring(to uint32) (runs, error) {
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
func (t *Trie) again(to uint32, seed uint64) (*Run, error) {
	r, err := t.replay(to, seed, t.merge && seed != 0)
	if err != nil && t.merge && seed != 0 {
		if straight, is := t.replay(to, seed, false); is == nil {
			straight.Code.Close()
			err = t.merging(to, err)
		}
	}
	return r, err
}

// repetitions is how often the code is executed again to check that it behaves alike: code with one fair
// random choice in each execution goes unnoticed once in 256 times.
const repetitions = 8

// merging returns ErrMerged for a difference between the ways to a node, unless the code differs even on one of them.
func (t *Trie) merging(at uint32, err error) error {
	for range repetitions {
		r, is := t.replay(at, 0, false)
		if is != nil {
			return is
		}
		r.Code.Close()
	}
	return fmt.Errorf("%w: %w", ErrMerged, err)
}

// blame turns err into ErrMerged if the runs differ only because they reached the node in different
// orders.
func (t *Trie) blame(err error, key edgeKey) error {
	if !t.merge || !errors.Is(err, names.ErrNotOpaque) && !errors.Is(err, ErrNondeterministic) || errors.Is(err, ErrMerged) {
		return err
	}
	var rs runs
	defer func() { rs.close() }()
	parent := t.nodes.get(key.From)
	one := func(seed uint64) (*Run, error) {
		r, err := t.replay(key.From, seed, false)
		if err == nil {
			r.Resume(int(key.Which), t.observation(parent, key))
			err = r.Code.Err()
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
	if _, other := t.place(rs, parent, key, func() (*Run, error) { return one(0) }); other != nil {
		return err
	}
	return t.merging(key.From, err)
}

// replay brings a new run to a node by repeating all observations on the way, in another order if
// shuffled, where that should make no difference.
func (t *Trie) replay(to uint32, seed uint64, shuffled bool) (*Run, error) {
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
		r.Resume(int(n.by.Which), t.observation(t.nodes.get(n.parent), n.by))
		err = t.same(r, n)
		i++
	}
	if err != nil {
		r.Code.Close()
		return nil, err
	}
	return r, nil
}

// ErrNondeterministic reports that a client behaved differently after the same observations.
var ErrNondeterministic = errors.New("this client is not deterministic")

// same checks that a run is at the node.
func (t *Trie) same(r *Run, n *Node) error {
	if err := r.failed(); err != nil {
		return err
	}
	return t.sameAfter(r, n, slices.Concat(t.segments.Get(n.events), t.segments.Get(n.Held)))
}

// sameAfter is same for a run with these events on the way to the node.
func (t *Trie) sameAfter(r *Run, n *Node, events []rules.Event) error {
	is := Said(t.names.Dictionary(0), n.Pending, events)
	if err := names.Follow(r.stand(), is, n.drawn); err != nil {
		return Chance(err)
	}
	return nil
}

func alike(known, now *Node) error {
	if known.events == now.events && known.Held == now.Held && reflect.DeepEqual(known.Pending, now.Pending) {
		return nil
	}
	return fmt.Errorf("after the same observations its next step was %s, and is now %s", requests(known.Pending), requests(now.Pending))
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
func (t *Trie) keep(id uint32, rs runs) {
	if len(rs[0].Code.Pending()) == 0 {
		rs.close()
		return
	}
	most := keptAlive
	if h, tells := rs[0].Code.(interface{ Holds() bool }); tells && h.Holds() {
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

// Close ends the executions that are kept at nodes.
func (t *Trie) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, rs := range t.live {
		rs.close()
		delete(t.live, id)
	}
}

// Call returns the number of a pending command as the servers see it from a client.
func (t *Trie) Call(n *Node, which, client int) uint32 {
	known := &n.calls[which][client]
	if id := known.Load(); id != 0 {
		return id - 1
	}
	r := n.Pending[which]
	c := servers.Call{Client: client, Node: r.Node, Tx: r.Tx, Conn: r.Conn, During: n.During(which)}
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

// Ready reports whether a thread of the client can run now.
func (n *Node) Ready(now time.Duration) bool {
	return slices.ContainsFunc(n.Pending, func(r coro.Request) bool { return Ready(&r, now) })
}

// Ready reports whether a request can be answered now.
func Ready(r *coro.Request, now time.Duration) bool {
	return r.Kind != coro.Sleep || servers.RoundUp(r.Until) <= now
}

// Hash returns the hash of the edge for a table.
func (k Edge) Hash() uint64 {
	return table.Spread(table.Pair(k.From, k.Answer), uint64(k.Now)<<16|uint64(k.Looks)<<8|uint64(k.Which))
}

// ErrMerged reports that two histories of a client were merged after which it behaves
// differently.
var ErrMerged = errors.New("a client may remember more than can be seen")

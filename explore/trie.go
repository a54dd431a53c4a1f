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

	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
)

// Execution is one run of a client's code, stepped from outside: a coro.Client, or
// whatever else can be brought to the same place twice.
type Execution interface {
	// Pending is what the client's threads stand before, in a fixed order; nothing:
	// it has ended.
	Pending() []coro.Request
	// Resume lets one of them go on, and returns when all stand again.
	Resume(i int, o coro.Observation)
	// Events are what the client came to since the last call.
	Events() []any
	// Err tells that the code cannot be stepped.
	Err() error
	// Close abandons it, as a crash does.
	Close()
}

// trie holds all that clients of one role can have seen. What a client has seen is
// all that its next command depends on, so its code is run once for every list of
// observations, and the search works with numbers of lists.
//
// A node is such a list. It is made by running the code from the start, feeding it
// the list again and then one observation more; whatever is fed again must lead to
// the same commands as before, or the client is not deterministic, which ends the
// search.
type trie struct {
	start func(*names.Book) Execution
	names names.Scheme
	// checked: runs are made twice, since their names may be spelled otherwise. Else the
	// executions see to that.
	checked  bool
	seed     uint64 // of the last other spelling
	servers  *servers
	settled  *memo[edge, settled]
	turning  *memo[lookAt, time.Duration]
	nodes    *nodes
	segments *interner[[]Event] // what happens between two observations

	mu         sync.Mutex // guards what follows: one execution at a time
	children   map[edgeKey]child
	end        uint32            // the node of those that have ended; 0: nobody has
	died       uint32            // see dead
	rounds     map[string]uint32 // nodes at the start of a round, by what is remembered
	live       map[uint32]runs
	executions atomic.Int64
	failure    atomic.Pointer[error] // the first
	merge      bool
	places     map[string]uint32 // nodes, by what their clients know: see pastOf
	steps      map[stepOf]uint32

	// Of what a client does with the time: see turnsAt.
	spans  []time.Duration
	level  map[lookFrom][]stretchOf
	turns  []time.Duration // where others turned, the last first
	probes int
	blind  atomic.Bool // some were not looked for
}

// node is a place in a client's code.
type node struct {
	pending []coro.Request
	parent  uint32
	by      edgeKey // from the parent
	events  uint32  // on the way from the parent, up to where held begin
	// held are the calls of operations that the client is about to begin: it may be held
	// up before them, so they count when it goes on. That is never too late to judge.
	held uint32
	// under are the kinds of the operations under way, the outermost first.
	under []history.Kind
	// foreign: the client has seen a name of another client.
	foreign bool
	// alive is the first of the client's tokens that it may remember, and aliveDrawn the
	// first of the random values.
	alive, aliveDrawn uint8
	// drawn are the random values that are new here, and values is how many there were on
	// the way here, with those.
	drawn  []names.Value
	values int
	// past is what each thread has seen, and told what the client has come to, both since it
	// was last known what it remembers: see pastOf.
	past []uint32
	told uint32
	// limits are the client's time-outs, if they are known.
	limits *coro.Limits
	// timed: a thread sleeps, has a time limit, or is about to look at the clock.
	timed bool
	// dead: the client has died, and nothing waits for it.
	dead bool
	// calls are the numbers of the pending commands as each client sends them, plus 1;
	// 0: not yet known.
	calls [][maxSlots]atomic.Uint32
}

// during is the kind of the operation that sends the node's commands.
func (n *node) during() history.Kind {
	if len(n.under) == 0 {
		return history.NoKind
	}
	return n.under[len(n.under)-1]
}

// nodes are a trie's, by number, 0 being the start.
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

// snapshot is the list as it is now; what is in it stays as it is.
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

// edge is an observation of one of a node's pending threads, at a time.
type edge struct {
	from   uint32
	which  uint8
	answer uint32 // of a command; goOn for all else
	now    time.Duration
	// looks, unless it is 0, is after how many looks at the clock the client is held up.
	looks uint8
}

// edgeKey is an edge with the time only if it matters.
type edgeKey edge

// child is the node that an edge leads to, and what happens on the way.
type child struct{ node, events uint32 }

// settled is where a client comes to stand before something that others can see.
type settled struct {
	node   uint32
	events uint32 // all on the way
	// fused: all was private, and the client is about to send a command: that can be one
	// step with the command.
	fused  bool
	which  uint8 // of the node's requests is that of the thread that went on, if fused
	looked uint8 // at the clock, so often
	// failed: the code cannot be stepped, or did something else than before: see
	// trie.failure.
	failed bool
}

// goOn is the answer number that stands for being let go on without one.
const goOn = ^uint32(0)

func newTrie(start func(*names.Book) Execution, scheme names.Scheme, checked bool, s *servers, merge bool, spans []time.Duration) (*trie, error) {
	t := &trie{
		start: start, names: scheme, checked: checked, servers: s, nodes: &nodes{}, segments: newInterner[[]Event](), merge: merge, spans: spans,
		children: map[edgeKey]child{}, places: map[string]uint32{}, steps: map[stepOf]uint32{}, rounds: map[string]uint32{}, live: map[uint32]runs{},
	}
	t.segments.id("", func() []Event { return nil }) // number 0
	t.settled = newMemo(t.settle)
	t.turning, t.level = newMemo(t.turnsAt), map[lookFrom][]stretchOf{}
	rs := t.runs()
	n, err := t.place(rs, nil, edgeKey{}, func() (*run, error) { return t.run(0), nil })
	if err != nil {
		return nil, err
	}
	t.nodes.add(n)
	t.keep(0, rs)
	return t, nil
}

// run is a new one, whose names are spelled in the way of this seed.
func (t *trie) run(seed uint64) *run {
	t.executions.Add(1)
	r := &run{book: t.names.Book(seed)}
	r.x = t.start(r.book)
	r.look()
	return r
}

// runs are new ones: if need be, several that spell names differently.
func (t *trie) runs() (rs runs) {
	for _, seed := range t.seeds() {
		rs = append(rs, t.run(seed))
	}
	return rs
}

// seeds are the seeds, one for each run, by which the runs to a node spell their names.
func (t *trie) seeds() []uint64 {
	all := []uint64{0}
	for i := 0; t.checked && i < names.Others; i++ {
		t.seed++
		all = append(all, t.seed)
	}
	return all
}

// place describes where runs stand. more brings another one there.
func (t *trie) place(rs runs, parent *node, by edgeKey, more func() (*run, error)) (*node, error) {
	n := &node{parent: by.from, by: by}
	if parent != nil {
		n.under, n.values = parent.under, parent.values
		n.foreign = parent.foreign || foreign(t.observation(parent, by).Reply)
		n.alive, n.aliveDrawn = parent.alive, parent.aliveDrawn
		if parent.roundEnds() {
			n.foreign = foreign(parent.pending[0].Label)
			n.alive, n.aliveDrawn = parent.knows(parent.pending[0].Label)
		}
	}
	var events []Event
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
	n.calls = make([][maxSlots]atomic.Uint32, len(n.pending))
	if x, tells := rs[0].x.(interface{ Limits() coro.Limits }); tells && t.checked {
		l := x.Limits()
		n.limits = &l
	}
	t.recordPast(n, parent)
	n.timed = slices.ContainsFunc(n.pending, func(r coro.Request) bool { return r.Kind == coro.Sleep || r.Kind == coro.Clock || r.Deadline > 0 })
	return n, nil
}

// knows are the first token and the first random value that a client with this memory may
// know, who came to it here: none older than those that it may have known before.
func (n *node) knows(memory string) (first, drawn uint8) {
	texts := false
	if k, _ := fmt.Sscanf(memory, "%d %t ", &first, &texts); k < 2 || texts || len(secretsIn(memory)) > 0 {
		return n.alive, n.aliveDrawn
	}
	return max(n.alive, first), max(n.aliveDrawn, uint8(min(n.values, math.MaxUint8)))
}

// segment numbers a list of events.
func (t *trie) segment(list []Event) uint32 {
	if len(list) == 0 {
		return 0
	}
	var key strings.Builder
	for _, e := range list {
		o := e.Op
		fmt.Fprintf(&key, "%t %d %d %d %d %d %v %d %v %v %v;", e.End, o.Kind, o.Outcome, o.Reason, o.Amount, o.Fence, o.Session, o.Until, o.Key, o.Arg, o.Result)
	}
	return t.segments.id(key.String(), func() []Event { return list })
}

// settle follows an observation, and then all that the client does without others
// noticing: turns from one round to the next and, if it began in private, what it
// does in private before its next command.
func (t *trie) settle(e edge) settled {
	t.mu.Lock()
	defer t.mu.Unlock()
	var events []Event
	looked, most := uint8(0), e.looks
	start, thread := t.nodes.get(e.from).pending, t.nodes.get(e.from).pending[e.which].Thread
	quiet := private(start[e.which])
	for first := true; ; first = false {
		held := t.segments.get(t.nodes.get(e.from).held)
		quiet = quiet && !slices.ContainsFunc(held, noticed)
		if !first { // what the client was about to do where it stood, it has done
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
		events = append(events, t.segments.get(at.events)...)
		quiet = quiet && !slices.ContainsFunc(t.segments.get(at.events), noticed) && t.alone(start, n.pending, thread) && (most == 0 || looked < most)
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

// alone tells that a thread can take its next step together with this one: it is the only one
// left or, if places are merged, the only one that has moved.
func (t *trie) alone(before, after []coro.Request, thread int) bool {
	return len(after) == 1 || t.merge && onlyMoved(before, after, thread)
}

// onlyMoved tells that of a client's threads only one has moved and goes on, or that only one
// is left.
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

// threadAt is the place of a thread's request; -1: it has none.
func threadAt(rs []coro.Request, thread int) int {
	return slices.IndexFunc(rs, func(r coro.Request) bool { return r.Thread == thread })
}

// ended is one node for all clients that have ended, whatever they have seen. The
// caller holds t.mu.
func (t *trie) ended(at uint32, n *node) uint32 {
	if len(n.pending) > 0 || !t.merge {
		return at
	}
	if t.end == 0 {
		t.end = t.nodes.add(&node{alive: math.MaxUint8, aliveDrawn: math.MaxUint8})
	}
	return t.end
}

// dead is the one node of all clients that have died where others can wait for them.
func (t *trie) dead() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.died == 0 {
		t.died = t.nodes.add(&node{alive: math.MaxUint8, aliveDrawn: math.MaxUint8, dead: true})
	}
	return t.died
}

// private tells that a client goes on from here without others noticing.
func private(r coro.Request) bool {
	return r.Kind == coro.Clock || r.Kind == coro.Pause && r.Label == "start"
}

// noticed tells whether it makes a difference when an event comes, among those of
// others. That an acquisition begins, or ends without a grant, may as well be said
// when its client does something next.
func noticed(e Event) bool {
	return e.Op.Kind != history.Acquire || e.End && e.Op.Outcome == history.OK
}

// key is the edge with the time only if the client notices it: it reads the clock,
// or a limit that it has set itself is over.
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

// lastLimit is a time at which the same time-outs are over as now.
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

// roundEnds tells that all that the client remembers is known.
func (n *node) roundEnds() bool {
	return len(n.pending) == 1 && n.pending[0].Kind == coro.Boundary && n.pending[0].Label != ""
}

// child is where an observation leads to. The caller holds t.mu.
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
		// What it has seen before matters no more than what it remembers of it.
		memory = fmt.Sprint(parent.values, n.alive, n.aliveDrawn, " ", parent.pending[0].Label)
		if id, known := t.rounds[memory]; known {
			defer t.swapRuns(id, rs)
			if err := alike(t.nodes.get(id), n); err != nil {
				return child{}, fmt.Errorf("%w: %w, or remembers more than can be seen: %w", errMerged, ErrNondeterministic, err)
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

// observation is what a key stands for.
func (t *trie) observation(from *node, key edgeKey) coro.Observation {
	var o coro.Observation
	if key.answer != goOn {
		o = t.servers.answers.get(key.answer)
	}
	o.Now = max(key.now, from.pending[key.which].Until)
	return o
}

// bring are runs that stand at a node: those that were left there, or new ones that
// are fed all observations on the way again.
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

// again is a new run at a node. Those that spell names otherwise go there in another order.
func (t *trie) again(to uint32, seed uint64) (*run, error) {
	r, err := t.replay(to, seed, t.merge && seed != 0)
	if err != nil && t.merge && seed != 0 {
		if straight, is := t.replay(to, seed, false); is == nil {
			straight.x.Close()
			err = fmt.Errorf("%w: %w", errMerged, err)
		}
	}
	return r, err
}

// blame finds out whether runs differ at the end of key because they came there in different
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
	return fmt.Errorf("%w: %w", errMerged, err)
}

// replay is a new run that is fed all observations on the way to a node; shuffled: in another
// order, where that should make no difference.
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

// ErrNondeterministic tells that a client did something else when it was shown the
// same again.
var ErrNondeterministic = errors.New("this client is not deterministic")

// same compares where a run stands with what is known of the node.
func (t *trie) same(r *run, n *node) error {
	if err := r.failed(); err != nil {
		return err
	}
	return t.sameAfter(r, n, slices.Concat(t.segments.get(n.events), t.segments.get(n.held)))
}

// sameAfter is same for a run that has come to these events on the way to the node.
func (t *trie) sameAfter(r *run, n *node, events []Event) error {
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
	return fmt.Errorf("after the same observations it stood before %s, and now before %s", requests(known.pending), requests(now.pending))
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

// keptAlive bounds how many executions wait at their nodes to be brought further.
const keptAlive = 256

// keep leaves runs at their node, since the next observation there is likely
// to be asked for soon.
func (t *trie) keep(id uint32, rs runs) {
	if len(rs[0].x.Pending()) == 0 {
		rs.close()
		return
	}
	if len(t.live) >= keptAlive {
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

// call numbers a pending command of a client as the servers see it.
func (t *trie) call(n *node, which, client int) uint32 {
	known := &n.calls[which][client]
	if id := known.Load(); id != 0 {
		return id - 1
	}
	r := n.pending[which]
	c := call{client: client, node: r.Node, tx: r.Tx, conn: r.Conn, during: n.during()}
	for _, cmd := range r.Commands {
		args := make([]string, len(cmd))
		for i, arg := range cmd {
			args[i] = global(arg, client)
		}
		c.commands = append(c.commands, args)
	}
	id := t.servers.call(c)
	known.Store(id + 1)
	return id
}

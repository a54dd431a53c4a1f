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
	start    func() Execution
	servers  *servers
	settled  *memo[edge, settled]
	nodes    *nodes
	segments *interner[[]Event] // what happens between two observations

	mu         sync.Mutex // guards what follows: one execution at a time
	children   map[edgeKey]uint32
	end        uint32            // the node of those that have ended; 0: nobody has
	rounds     map[string]uint32 // nodes at the start of a round, by what is remembered
	live       map[uint32]Execution
	executions atomic.Int64
	failure    atomic.Pointer[error] // the first
	merge      bool
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
	// alive is the first of the client's tokens that it may remember.
	alive uint8
	// timed: a thread sleeps, or has a time limit.
	timed bool
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
}

// edgeKey is an edge with the time only if it matters.
type edgeKey edge

// settled is where a client comes to stand before something that others can see.
type settled struct {
	node   uint32
	events uint32 // all on the way
	// fused: all was private, and the client is about to send a command: that can be one
	// step with the command.
	fused bool
	// failed: the code cannot be stepped, or did something else than before: see
	// trie.failure.
	failed bool
}

// goOn is the answer number that stands for being let go on without one.
const goOn = ^uint32(0)

func newTrie(start func() Execution, s *servers, merge bool) (*trie, error) {
	t := &trie{
		start: start, servers: s, nodes: &nodes{}, segments: newInterner[[]Event](), merge: merge,
		children: map[edgeKey]uint32{}, rounds: map[string]uint32{}, live: map[uint32]Execution{},
	}
	t.segments.id("", func() []Event { return nil }) // number 0
	t.settled = newMemo(t.settle)
	x := t.run()
	if err := x.Err(); err != nil {
		return nil, err
	}
	t.nodes.add(t.place(x, nil, edgeKey{}))
	t.keep(0, x)
	return t, nil
}

func (t *trie) run() Execution {
	t.executions.Add(1)
	return t.start()
}

// place describes where an execution stands.
func (t *trie) place(x Execution, parent *node, by edgeKey) *node {
	n := &node{pending: x.Pending(), parent: by.from, by: by}
	if parent != nil {
		n.under = parent.under
		n.foreign = parent.foreign || foreign(t.observation(parent, by).Reply)
		n.alive = parent.alive
		if parent.roundEnds() {
			n.foreign = foreign(parent.pending[0].Label)
			n.alive = alive(parent.pending[0].Label)
		}
	}
	var events []Event
	for _, any := range x.Events() {
		e := any.(Event)
		events = append(events, e)
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
	n.timed = slices.ContainsFunc(n.pending, func(r coro.Request) bool { return r.Kind == coro.Sleep || r.Deadline > 0 })
	return n
}

// alive is the first token that a client with this memory may know.
func alive(memory string) (first uint8) {
	if len(tokensIn(memory)) > 0 {
		return 0
	}
	_, err := fmt.Sscanf(memory, "%d ", &first)
	if err != nil {
		return 0
	}
	return first
}

// segment numbers a list of events.
func (t *trie) segment(list []Event) uint32 {
	if len(list) == 0 {
		return 0
	}
	var key strings.Builder
	for _, e := range list {
		o := e.Op
		fmt.Fprintf(&key, "%t %d %d %d %d %d %d %d %v %v %v;", e.End, o.Kind, o.Outcome, o.Reason, o.Amount, o.Fence, o.Session, o.Until, o.Key, o.Arg, o.Result)
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
	quiet := private(t.nodes.get(e.from).pending[e.which])
	for first := true; ; first = false {
		held := t.segments.get(t.nodes.get(e.from).held)
		quiet = quiet && !slices.ContainsFunc(held, noticed)
		if !first { // what the client was about to do where it stood, it has done
			events = append(events, held...)
		}
		at, err := t.child(e.key(t.nodes.get(e.from)))
		if err != nil {
			t.failure.CompareAndSwap(nil, &err)
			return settled{failed: true}
		}
		n := t.nodes.get(at)
		events = append(events, t.segments.get(n.events)...)
		quiet = quiet && !slices.ContainsFunc(t.segments.get(n.events), noticed) && len(n.pending) == 1
		which := slices.IndexFunc(n.pending, func(r coro.Request) bool { return r.Kind == coro.Boundary })
		if quiet && private(n.pending[0]) {
			which = 0
		}
		if which < 0 {
			fused := quiet && n.pending[0].Kind == coro.Command
			return settled{node: t.ended(at, n), events: t.segment(events), fused: fused}
		}
		e = edge{from: at, which: uint8(which), answer: goOn, now: e.now}
	}
}

// ended is one node for all clients that have ended, whatever they have seen. The
// caller holds t.mu.
func (t *trie) ended(at uint32, n *node) uint32 {
	if len(n.pending) > 0 || !t.merge {
		return at
	}
	if t.end == 0 {
		t.end = t.nodes.add(&node{alive: math.MaxUint8})
	}
	return t.end
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
	if from.pending[e.which].Kind == coro.Clock || from.limited(e.now) {
		k.now = e.now
	}
	return k
}

func (n *node) limited(now time.Duration) bool {
	return slices.ContainsFunc(n.pending, func(r coro.Request) bool { return r.Deadline > 0 && r.Deadline <= now })
}

// roundEnds tells that the client is between two rounds, and that what it
// remembers is known.
func (n *node) roundEnds() bool {
	return len(n.pending) == 1 && n.pending[0].Kind == coro.Boundary && n.pending[0].Label != ""
}

// child is the node that an observation leads to. The caller holds t.mu.
func (t *trie) child(key edgeKey) (uint32, error) {
	if id, known := t.children[key]; known {
		return id, nil
	}
	parent := t.nodes.get(key.from)
	x, err := t.bring(key.from)
	if err != nil {
		return 0, err
	}
	x.Resume(int(key.which), t.observation(parent, key))
	if err := x.Err(); err != nil {
		x.Close()
		return 0, err
	}
	n := t.place(x, parent, key)
	if t.merge && parent.roundEnds() {
		// What it has seen before matters no more than what it remembers of it.
		memory := parent.pending[0].Label
		if id, known := t.rounds[memory]; known {
			defer x.Close()
			if err := alike(t.nodes.get(id), n); err != nil {
				return 0, fmt.Errorf("%w, or remembers more than can be seen: %w", ErrNondeterministic, err)
			}
			t.children[key] = id
			return id, nil
		}
		t.rounds[memory] = uint32(t.nodes.len())
	}
	id := t.nodes.add(n)
	t.children[key] = id
	t.keep(id, x)
	return id, nil
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

// bring is an execution that stands at a node: one that was left there, or a new
// one that is fed all observations on the way again.
func (t *trie) bring(to uint32) (Execution, error) {
	if x := t.live[to]; x != nil {
		delete(t.live, to)
		return x, nil
	}
	var path []uint32
	for id := to; id != 0; id = t.nodes.get(id).parent {
		path = append(path, id)
	}
	x := t.run()
	if err := t.same(x, t.nodes.get(0)); err != nil {
		return nil, err
	}
	for i := len(path) - 1; i >= 0; i-- {
		n := t.nodes.get(path[i])
		x.Resume(int(n.by.which), t.observation(t.nodes.get(n.parent), n.by))
		if err := t.same(x, n); err != nil {
			x.Close()
			return nil, err
		}
	}
	x.Events()
	return x, nil
}

// ErrNondeterministic tells that a client did something else when it was shown the
// same again.
var ErrNondeterministic = errors.New("this client is not deterministic")

// same compares where an execution stands with what is known of the node.
func (t *trie) same(x Execution, n *node) error {
	if err := x.Err(); err != nil {
		return err
	}
	if err := alike(n, &node{pending: x.Pending(), events: n.events, held: n.held}); err != nil {
		return fmt.Errorf("%w: %w", ErrNondeterministic, err)
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

// keep leaves an execution at its node, since the next observation there is likely
// to be asked for soon.
func (t *trie) keep(id uint32, x Execution) {
	if len(x.Pending()) == 0 {
		x.Close()
		return
	}
	if len(t.live) >= keptAlive {
		for old, y := range t.live { // any
			y.Close()
			delete(t.live, old)
			break
		}
	}
	t.live[id] = x
}

func (t *trie) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, x := range t.live {
		x.Close()
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
	c := call{client: client, node: r.Node, tx: r.Tx, during: n.during()}
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

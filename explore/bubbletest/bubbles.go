package bubbletest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/scenarios"
)

// bubbles are the runs of one client's code in synctest bubbles: the code of a
// [clients.Execution] that need not keep to its variant.Env.
//
// A run goes from the start to one place and ends there: it is shown once the observations that lead to that place, and
// reports where its goroutines then stand. Places are kept, so an Execution is only a pointer to one of them, and no
// bubble waits between two steps of the search. Since every run repeats the whole way, it also checks that the code
// stands where it stood before.
//
// A place is described in canonical names (see package names), and reached by two runs
// at least, which spell the names of clients differently.
type bubbles struct {
	t       *testing.T
	config  scenarios.Config
	tries   int
	masters int
	who     clients.ClientSpec
	// patience is how long, in real time, one run may take.
	patience time.Duration

	scripts scripts
	runs    atomic.Int64
	spent   atomic.Int64 // on runs, in ns

	mu   sync.Mutex
	root *place
	seed uint64 // of the last run with another spelling
	// stuck is the error of a run that took longer than patience. There is no other run then: a search tries a client at many
	// times, and would wait as long at each.
	stuck error
}

// place is where a client stands after a list of steps.
type place struct {
	from *place
	by   step
	// now is the time of its clock, since the epoch; it has seen no later one.
	now time.Duration
	// stands are the requests before which its goroutines stand; pending adds the end of the first sleep to end, if
	// any.
	stands, pending []coro.Request
	events          []rules.Event // on the way here
	// drawn are the random values that the client drew on the way here; values counts all it has drawn so far.
	drawn  []names.Value
	values int
	// ended says that the client's own goroutine has; slept counts the sleeps since.
	ended bool
	slept int
	err   error
	next  map[step]*place
}

// step is one observation of a client: time has passed until at, and then, unless it was only asleep, the goroutine
// with this number gets its answer.
type step struct {
	thread int
	answer answer
	at     time.Duration
}

// asleep is the thread of a step that ends a sleep.
const asleep = -1

// answer is the answer to a goroutine that stands before a command.
type answer struct {
	reply  string
	failed coro.Failure
	closed bool // the run ends
}

// start returns where every execution starts.
func (c *bubbles) start() *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root == nil {
		c.root = c.run(nil, step{})
	}
	return c.root
}

// visit returns the place to which a step leads.
func (c *bubbles) visit(from *place, by step) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := from.next[by]; p != nil {
		return p
	}
	p := c.run(from, by)
	if from.next == nil {
		from.next = map[step]*place{}
	}
	from.next[by] = p
	return p
}

// runLimit is how long, in real time, one run may take.
const runLimit = 10 * time.Second

// run brings clients in bubbles of their own to the place after from, or to the start.
func (c *bubbles) run(from *place, by step) *place {
	p := &place{from: from, by: by}
	if from != nil {
		p.values, p.slept = from.values, from.slept
		if from.ended && by.thread == asleep {
			p.slept++
		}
	}
	first := c.once(p, 0)
	if p.err = first.err; p.err != nil {
		return p
	}
	stands := []*names.Stand{first.stand()}
	for range names.OthersAfter(c.seed) {
		c.seed++
		other := c.once(p, c.seed)
		if other.err != nil {
			p.err = other.err
			if !other.book.Plain() && !errors.Is(other.err, names.ErrNotOpaque) {
				p.err = other.book.Spelled(fmt.Errorf("with other names: %w", other.err))
			}
			return p
		}
		stands = append(stands, other.stand())
	}
	texts, drawn, err := names.Settle(stands, p.values, func() (*names.Stand, error) {
		r := c.once(p, 0)
		return r.stand(), r.err
	})
	if err != nil {
		p.err = clients.Chance(err)
		return p
	}
	p.now, p.ended, p.drawn, p.values = first.now, first.ended, drawn, p.values+len(drawn)
	p.pending, p.events = clients.Spelled(first.pending, first.events, texts)
	p.stands = p.pending[:len(first.stands)]
	return p
}

// once returns where one run to a place ends, in its own names, which are spelled as the seed says.
func (c *bubbles) once(to *place, seed uint64) *arrival {
	if c.stuck != nil {
		return &arrival{book: c.who.Names.Dictionary(seed), err: c.stuck}
	}
	var path []*place
	for p := to.from; p != nil; p = p.from {
		path = append(path, p)
	}
	began := time.Now()
	book := c.who.Names.Dictionary(seed)
	a := &arrival{book: book}
	b := newBubble(c, book, to.slept)
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.run(path, to.by, to.from != nil, a)
	}()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-over:
		c.runs.Add(1)
		c.spent.Add(int64(time.Since(began)))
		return a
	case <-timer.C: // and the run is abandoned, with an arrival that is not read
		c.stuck = fmt.Errorf("after %v a goroutine of the client still runs, or waits for something that is neither a command nor time, like a mutex that is held during a command", c.patience)
		return &arrival{book: book, err: c.stuck}
	}
}

// arrival is where a run stands in the end, in its own names: see place.
type arrival struct {
	book            *names.Dictionary
	now             time.Duration
	stands, pending []coro.Request
	events          []rules.Event
	ended           bool // the client's own goroutine has
	err             error
}

func (a *arrival) stand() *names.Stand { return clients.Said(a.book, a.pending, a.events) }

// execution is a client at a place, or on the way from one to the next.
type execution struct {
	code   *bubbles
	at     *place
	events []any
	// by is the observation, if the client is yet to look at the clock.
	by    step
	looks bool
}

// Pending returns, after an answer, only the look at the clock: the client's other requests wait.
func (x *execution) Pending() []coro.Request {
	switch {
	case x.at.err != nil:
		return nil
	case x.looks:
		return []coro.Request{{Kind: coro.Clock, Thread: x.by.thread}}
	}
	return x.at.pending
}

// Resume shows a client its next observation. Clock readings of the code cannot be seen, so the client is assumed to
// read the clock each time it goes on: after every answer it stands before a reading of the clock, where a search may
// hold it up.
func (x *execution) Resume(i int, o coro.Observation) {
	pending := x.Pending()
	if i >= len(pending) {
		return // ended, or failed
	}
	switch r := pending[i]; r.Kind {
	case coro.Clock:
		x.looks = false
		x.by.at = max(o.Now, x.by.at)
		x.arrive(x.code.visit(x.at, x.by))
	case coro.Sleep:
		x.arrive(x.code.visit(x.at, step{thread: asleep, at: r.Until}))
	default:
		x.looks = true
		x.by = step{thread: r.Thread, answer: answer{reply: o.Reply, failed: o.Failure}, at: x.at.now}
		if o.Failure == coro.TimedOut {
			x.by.at = max(x.by.at, r.Deadline)
		}
	}
}

func (x *execution) arrive(p *place) {
	x.at = p
	for _, e := range p.events {
		x.events = append(x.events, e)
	}
}

// Events returns the client's events since the last call.
func (x *execution) Events() []any {
	events := x.events
	x.events = nil
	return events
}

// Err returns why the code cannot be stepped.
func (x *execution) Err() error { return x.at.err }

// Close does nothing: no run is under way.
func (x *execution) Close() {}

// Drawn returns how many values the client has drawn at random.
func (x *execution) Drawn() int { return x.at.values }

// same compares a run with those that came to the same place before.
func (p *place) same(book *names.Dictionary, stands []coro.Request, events []rules.Event) error {
	is := clients.Said(book, p.stands, p.events)
	return clients.Chance(names.Follow(clients.Said(book, stands, events), is, p.drawn))
}

// Clients makes the executions of the clients of one search.
type Clients struct {
	t       *testing.T
	config  scenarios.Config
	tries   int
	masters int

	mu  sync.Mutex
	all map[clients.ClientSpec]*bubbles
}

// New makes the clients of a complete configuration, each with so many tries on so many servers. The bubbles belong to
// the test t.
func New(t *testing.T, config scenarios.Config, tries, masters int) *Clients {
	return &Clients{t: t, config: config, tries: tries, masters: masters, all: map[clients.ClientSpec]*bubbles{}}
}

// Start makes an execution of a client's code, at the start.
func (c *Clients) Start(who clients.ClientSpec) clients.Execution {
	c.mu.Lock()
	code := c.all[who]
	if code == nil {
		code = &bubbles{t: c.t, config: c.config, tries: c.tries, masters: c.masters, who: who, patience: runLimit}
		c.all[who] = code
	}
	c.mu.Unlock()
	return &execution{code: code, at: code.start()}
}

// Effort describes the runs so far.
func (c *Clients) Effort() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var runs, spent int64
	for _, code := range c.all {
		runs, spent = runs+code.runs.Load(), spent+code.spent.Load()
	}
	return fmt.Sprintf("%d runs in bubbles, of %v on average", runs, (time.Duration(spent) / time.Duration(max(runs, 1))).Round(time.Microsecond))
}

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
// A run goes from the start to one place and ends there: it is shown what led to that
// place, once, and says where its goroutines stand then. Places are kept, so an
// Execution is no more than a finger on one of them, and no bubble waits between two
// steps of the search. Since every run goes the whole way again, every run also checks
// that the code stands where it stood before.
//
// A place is described in canonical names (see package names), and reached by two runs
// at least, which spell the names of clients differently.
type bubbles struct {
	t       *testing.T
	config  scenarios.Config
	tries   int
	masters int
	who     clients.Who
	// patience is for how long, in real time, one run may take.
	patience time.Duration

	scripts scripts
	runs    atomic.Int64
	spent   atomic.Int64 // on runs, in ns

	mu   sync.Mutex
	root *place
	seed uint64 // of the last run with another spelling
}

// place is where a client stands after a list of steps.
type place struct {
	from *place
	by   step
	// now is the time of its clock, since the epoch; it has seen no later one.
	now time.Duration
	// stands are what its goroutines stand before, and pending the same with the end
	// of the sleep that ends first, if one sleeps.
	stands, pending []coro.Request
	events          []rules.Event // on the way here
	// drawn are the values that the client drew at random on the way here, and values is
	// how many it has drawn so far.
	drawn  []names.Value
	values int
	err    error
	next   map[step]*place
}

// step is what a client is shown: that time has passed until at, and then, unless it
// was only asleep, what the goroutine with this number stood for.
type step struct {
	thread int
	answer answer
	at     time.Duration
}

// asleep is the thread of a step that ends a sleep.
const asleep = -1

// answer is what a goroutine gets that stands before a command.
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

// visit returns the place that a step leads to.
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

// runLimit is for how long, in real time, one run may take.
const runLimit = 10 * time.Second

// run brings clients in bubbles of their own to the place after from, or to the start.
func (c *bubbles) run(from *place, by step) *place {
	p := &place{from: from, by: by}
	if from != nil {
		p.values = from.values
	}
	first := c.once(from, by, 0)
	if p.err = first.err; p.err != nil {
		return p
	}
	stands := []*names.Stand{first.stand()}
	for range names.Others {
		c.seed++
		other := c.once(from, by, c.seed)
		if other.err != nil {
			p.err = other.err
			if !other.book.Plain() && !errors.Is(other.err, names.ErrNotOpaque) {
				p.err = fmt.Errorf("%w: with other names: %w", names.ErrNotOpaque, other.err)
			}
			return p
		}
		stands = append(stands, other.stand())
	}
	texts, drawn, err := names.Settle(stands, p.values, func() (*names.Stand, error) {
		r := c.once(from, by, 0)
		return r.stand(), r.err
	})
	if err != nil {
		p.err = chance(err)
		return p
	}
	p.now, p.drawn, p.values = first.now, drawn, p.values+len(drawn)
	p.pending, p.events = clients.Spelled(first.pending, first.events, texts)
	p.stands = p.pending[:len(first.stands)]
	return p
}

// chance says of an error in words of a search what it means.
func chance(err error) error {
	if errors.Is(err, names.ErrChance) && !errors.Is(err, clients.ErrNondeterministic) {
		return fmt.Errorf("%w: shown the same, %w", clients.ErrNondeterministic, err)
	}
	return err
}

// once returns where one run comes to, in its own names, which are spelled in the way of this
// seed.
func (c *bubbles) once(from *place, by step, seed uint64) *arrival {
	var path []*place
	for p := from; p != nil; p = p.from {
		path = append(path, p)
	}
	began := time.Now()
	book := c.who.Names.Book(seed)
	a := &arrival{book: book}
	b := newBubble(c, book)
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.run(path, by, from != nil, a)
	}()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-over:
		c.runs.Add(1)
		c.spent.Add(int64(time.Since(began)))
		return a
	case <-timer.C: // and the run is left to itself, with an arrival that nobody looks at
		return &arrival{book: book, err: fmt.Errorf("after %v a goroutine of the client still runs, or waits for something that is neither a command nor time, like a mutex that is held during a command", c.patience)}
	}
}

// arrival is where a run stands in the end, in its own names: see place.
type arrival struct {
	book            *names.Book
	now             time.Duration
	stands, pending []coro.Request
	events          []rules.Event
	err             error
}

func (a *arrival) stand() *names.Stand { return clients.Said(a.book, a.pending, a.events) }

// execution is a client at a place, or on the way from one to the next.
type execution struct {
	code   *bubbles
	at     *place
	events []any
	// by is what it was shown, if it is yet to look at the clock.
	by    step
	looks bool
}

// Pending is, of a client that has got an answer, only that it looks at the clock: what
// else it has under way waits.
func (x *execution) Pending() []coro.Request {
	switch {
	case x.at.err != nil:
		return nil
	case x.looks:
		return []coro.Request{{Kind: coro.Clock, Thread: x.by.thread}}
	}
	return x.at.pending
}

// Resume shows a client what it stood for. Its clock readings cannot be observed, so it
// is assumed to read the clock each time that it goes on: after every answer it stands
// before a reading of the clock, where a search holds it up.
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

// Events returns what the client came to since the last call.
func (x *execution) Events() []any {
	events := x.events
	x.events = nil
	return events
}

// Err tells that the code cannot be stepped.
func (x *execution) Err() error { return x.at.err }

// Close does nothing: no run is left under way.
func (x *execution) Close() {}

// Drawn is how many values the client has drawn at random.
func (x *execution) Drawn() int { return x.at.values }

// same compares where a run stands with where others stood at the same place.
func (p *place) same(book *names.Book, stands []coro.Request, events []rules.Event) error {
	is := clients.Said(book, p.stands, p.events)
	return chance(names.Follow(clients.Said(book, stands, events), is, p.drawn))
}

// Clients makes the executions of the clients of one search.
type Clients struct {
	t       *testing.T
	config  scenarios.Config
	tries   int
	masters int

	mu  sync.Mutex
	all map[clients.Who]*bubbles
}

// New makes the clients of a complete configuration, of which each makes so many tries on
// so many servers. The bubbles are of the test t.
func New(t *testing.T, config scenarios.Config, tries, masters int) *Clients {
	return &Clients{t: t, config: config, tries: tries, masters: masters, all: map[clients.Who]*bubbles{}}
}

// Start makes an execution of a client's code, which stands where every one starts.
func (c *Clients) Start(who clients.Who) clients.Execution {
	c.mu.Lock()
	code := c.all[who]
	if code == nil {
		code = &bubbles{t: c.t, config: c.config, tries: c.tries, masters: c.masters, who: who, patience: runLimit}
		c.all[who] = code
	}
	c.mu.Unlock()
	return &execution{code: code, at: code.start()}
}

// Effort says what the runs took so far.
func (c *Clients) Effort() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var runs, spent int64
	for _, code := range c.all {
		runs, spent = runs+code.runs.Load(), spent+code.spent.Load()
	}
	return fmt.Sprintf("%d runs in bubbles, of %v on average", runs, (time.Duration(spent) / time.Duration(max(runs, 1))).Round(time.Microsecond))
}

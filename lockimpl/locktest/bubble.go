package locktest

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oversell/explore"
	"oversell/internal/coro"
	"oversell/scenarios"
)

// bubbles are the runs of one client's code in synctest bubbles: the code of an
// [explore.Execution] that need not keep to its variant.Env.
//
// A run goes from the start to one place and ends there: it is shown what led to that
// place, once, and says where its goroutines stand then. Places are kept, so an
// Execution is no more than a finger on one of them, and no bubble waits between two
// steps of the search. Since every run goes the whole way again, every run also checks
// that the code stands where it stood before.
type bubbles struct {
	t       *testing.T
	config  scenarios.Config
	tries   int
	masters int
	index   int
	// patience is for how long, in real time, one run may take.
	patience time.Duration

	scripts scripts
	runs    atomic.Int64
	spent   atomic.Int64 // on runs, in ns

	mu   sync.Mutex
	root *place
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
	events          []any // on the way here
	err             error
	next            map[step]*place
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

// start is where every execution starts.
func (c *bubbles) start() *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root == nil {
		c.root = c.run(nil, step{})
	}
	return c.root
}

// visit is the place that a step leads to.
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

// run brings a client in a bubble of its own to the place after from, or to the start.
func (c *bubbles) run(from *place, by step) *place {
	var path []*place
	for p := from; p != nil; p = p.from {
		path = append(path, p)
	}
	began := time.Now()
	p := &place{from: from, by: by}
	b := newBubble(c)
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.run(path, p)
	}()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-over:
		c.runs.Add(1)
		c.spent.Add(int64(time.Since(began)))
		return p
	case <-timer.C: // and the run is left to itself, with a place that nobody looks at
		return &place{from: from, by: by, err: fmt.Errorf("after %v a goroutine of the client still runs, or waits for something that is neither a command nor time, like a mutex that is held during a command", c.patience)}
	}
}

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

// Resume shows a client what it stood for. Since nobody sees it read the clock, it is
// taken to do so each time that it goes on: after every answer it stands before a
// look at the clock, where a search holds it up.
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
	x.events = append(x.events, p.events...)
}

// Events are what the client came to since the last call.
func (x *execution) Events() []any {
	events := x.events
	x.events = nil
	return events
}

// Err tells that the code cannot be stepped.
func (x *execution) Err() error { return x.at.err }

// Close does nothing: no run is left under way.
func (x *execution) Close() {}

// same compares where a run stands with where another stood at the same place.
func (p *place) same(stands []coro.Request, events []any) error {
	if reflect.DeepEqual(p.stands, stands) && reflect.DeepEqual(p.events, events) {
		return nil
	}
	return fmt.Errorf("%w: after the same answers at the same times it stood before %s, and now before %s",
		explore.ErrNondeterministic, described(p.stands, p.events), described(stands, events))
}

func described(stands []coro.Request, events []any) string {
	parts := []string{}
	for _, r := range stands {
		if r.Kind == coro.Command {
			parts = append(parts, fmt.Sprintf("%q on server %d", r.Commands, r.Node+1))
		} else {
			parts = append(parts, "the pause "+r.Label)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no command")
	}
	if len(events) > 0 {
		parts = append(parts, fmt.Sprintf("having come to %v", events))
	}
	return strings.Join(parts, " and ")
}

// bubblesOf makes the clients of a complete configuration; effort says what their runs
// took so far.
func bubblesOf(t *testing.T, c explore.Config) (start func(index int) explore.Execution, effort func() string) {
	var mu sync.Mutex
	all := map[int]*bubbles{}
	start = func(index int) explore.Execution {
		mu.Lock()
		code := all[index]
		if code == nil {
			code = &bubbles{t: t, config: c.Run, tries: c.Bounds.Tries, masters: c.Masters, index: index, patience: runLimit}
			all[index] = code
		}
		mu.Unlock()
		return &execution{code: code, at: code.start()}
	}
	effort = func() string {
		mu.Lock()
		defer mu.Unlock()
		var runs, spent int64
		for _, code := range all {
			runs, spent = runs+code.runs.Load(), spent+code.spent.Load()
		}
		return fmt.Sprintf("%d runs in bubbles, of %v on average", runs, (time.Duration(spent) / time.Duration(max(runs, 1))).Round(time.Microsecond))
	}
	return start, effort
}

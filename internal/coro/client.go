package coro

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Program is the code of one client. ctx is never done. When the program returns, the client ends,
// and the context of functions run by Env.Go is cancelled.
type Program func(ctx context.Context, w *Runtime)

// Options configure a client's environment.
type Options struct {
	// Masters is the number of servers, at least 1.
	Masters int
	// Epoch is the time for which Observation.Now is 0.
	Epoch time.Time
	// Token returns the n-th token of this client, from 0. If it is nil, the tokens are token-0,
	// token-1, and so on.
	Token func(n int) string
	// Number is the client's number, as variant.Stepper reports it.
	Number int64
	// Scripts are the texts of the scripts that were seen; nil: this client's own. Sharing it also makes executions
	// cheaper: they share connections.
	Scripts *Scripts
	// Patience is how long, in real time, the client may run without being parked; 0 means 5 s. Exceeding it is noticed
	// after at most twice that time.
	Patience time.Duration
}

// Client is a program under way. Its methods belong to one goroutine at a time,
// that of the driver.
//
// Threads are goroutines, of which at most one runs. Control passes by channels and not by iter.Pull, whose caller
// could not stop waiting for a thread that blocks.
type Client struct {
	options Options
	world   Runtime
	ports   []*port
	threads []*thread
	current *thread // the one that runs

	beside context.Context // of functions run by Env.Go
	end    context.CancelFunc

	// back reports that the current thread stopped: 0, or the step that got stuck.
	back chan uint64
	// step is odd while a thread runs.
	step atomic.Uint64
	lost bool // a thread got stuck
	// outside: the current thread waits for something outside of this program, which has a limit of its own.
	outside atomic.Bool
	closed  bool

	pending []Request // nil: to be computed
	order   []*thread // the threads of pending

	// deadlineSeen: a deadline was read, maybe by the program.
	deadlineSeen atomic.Bool
	// dead says that the client no longer runs: err is set, or it was closed.
	dead     atomic.Bool
	mu       sync.Mutex  // guards all below: goroutines of the program's own may come by
	watch    *time.Timer // finds threads that are stuck
	seen     uint64      // the step at the last look of watch
	err      error
	events   []any
	timeouts []*timeout
	over     []int // numbers of timeouts that fired and were not cancelled afterwards
	tokens   int
	watching Watching
	atEnd    []func()
}

// Start makes a client of p. It is parked in a Pause "start", before any of p's code has run. Close it after use.
func Start(p Program, o Options) *Client {
	o.Masters = max(o.Masters, 1)
	o.Epoch = o.Epoch.Round(0)
	if o.Scripts == nil {
		o.Scripts = &Scripts{}
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	c := &Client{options: o, back: make(chan uint64, 2)}
	c.world = Runtime{c: c}
	c.beside, c.end = context.WithCancel(context.Background())
	for node := range o.Masters {
		c.ports = append(c.ports, o.Scripts.take(c, node))
	}
	c.world.env = c.world.makeEnv()
	main := c.thread(func() { p(context.Background(), &c.world) })
	main.state = parked
	main.request, main.ctx = Request{Kind: Pause, Label: "start"}, context.Background()
	return c
}

// Pending returns the requests of the client's threads, by thread number. It is empty when the client has ended or
// failed. The result may be kept, but not changed.
func (c *Client) Pending() []Request {
	if c.dead.Load() {
		return nil
	}
	if c.pending == nil {
		c.order = c.order[:0]
		for _, t := range c.threads {
			if t.state == parked {
				c.order = append(c.order, t)
			}
		}
		slices.SortFunc(c.order, func(a, b *thread) int { return a.number - b.number })
		for _, t := range c.order {
			c.pending = append(c.pending, t.request)
		}
	}
	return c.pending
}

// Resume lets the thread of Pending()[i] go on with o, and returns when every
// thread is parked or has ended. Contexts whose deadline is not after o.Now end
// first; with TimedOut, also those not after the request's deadline. Resume a Sleep when Until or its Deadline has
// come. Resume does nothing for a client that has ended or failed.
func (c *Client) Resume(i int, o Observation) {
	if i >= len(c.Pending()) {
		return // ended, or failed
	}
	t := c.order[i]
	c.pending = nil
	now := o.Now
	if o.Failure == TimedOut {
		now = max(now, t.request.Deadline)
	}
	c.endContexts(now)
	t.observation = o
	c.run(t)
	c.settle()
}

// Events returns those emitted since the last call, in order.
func (c *Client) Events() []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := c.events
	c.events = nil
	return events
}

// Err returns why the client cannot go on: its program panicked, ended its goroutine, waited for
// something that is not in its Env, did something that cannot be parked, or got an invalid answer;
// or its threads wait for each other.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close abandons the client where it stands: a crash. Its deferred functions run, but every command, clock reading and
// wait in them panics without an effect. Close returns when the client's goroutines have ended, except one that waits
// for something outside its Env.
func (c *Client) Close() {
	if c.closed {
		return
	}
	c.closed = true
	c.dead.Store(true)
	stuck := c.current
	for _, t := range c.threads {
		if t != stuck && t.begun && t.state != ended {
			c.run(t)
		}
	}
	c.end()
	c.unwatch()
	for _, f := range c.atEnd {
		f()
	}
	for _, p := range c.ports {
		p.release(c.options.Scripts, c.Err() == nil && !c.lost)
	}
}

// Holds reports whether the client holds something outside of this program, which makes it expensive to keep.
func (c *Client) Holds() bool { return len(c.atEnd) > 0 }

// fail ends the client with its first error.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.dead.Load() {
		c.err = err
	}
	c.dead.Store(true)
}

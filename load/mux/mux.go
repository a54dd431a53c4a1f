// Package mux runs tens of thousands of clients as coroutines on a few connections.
//
// A client is the same code that runs as a goroutine elsewhere: a hook of go-redis parks
// each command with the client's worker. A worker runs one coroutine at a time. It gathers
// what they ask into pipelines of at most 64 commands, and lets each go on when its reply
// is there. So the cost of a command is that of switching between two coroutines and a
// share of two system calls, and the memory of a client is that of its stack.
//
// The engine is part of the experiment. Replies come in batches, so that an operation's
// interval is wider than the operation: a check of such a history is weaker, and reports
// say how wide the intervals are. Round trips are shorter than those of clients with
// connections of their own, which hides races: so every reply can be held back for a
// virtual round-trip time.
package mux

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"

	"oversell/internal/coro"
	"oversell/internal/errclass"
)

// Options say how clients are driven.
type Options struct {
	// Workers is how many clients run at the same time, each on lanes of its own; at least 1.
	Workers int
	// Lane makes one redis client per node, with one connection each. It is called PipesPerNode
	// times for each worker.
	Lane func() []redis.UniversalClient
	// Alone makes one *redis.Client per node for commands that need a connection of their own:
	// transactions, and those that block. It is called once for each worker.
	Alone func() []redis.UniversalClient
	// Hooks are hooks of every redis client that clients are given.
	Hooks []redis.Hook
	// RTT is the mean of the virtual round-trip time by which every reply is held back; 0:
	// none. It is distributed exponentially.
	RTT time.Duration
	// Seed fixes the virtual round-trip times.
	Seed uint64
	// Patience is for how long a client may run without coming to anything that parks it; 0
	// means 5 s. It is noticed after twice that at most.
	Patience time.Duration
}

// Mux owns the workers. Its methods are safe for concurrent use.
type Mux struct {
	o       Options
	epoch   time.Time
	workers []*Worker
	ran     int // clients
	closed  atomic.Bool
	dead    atomic.Bool // nothing reaches the world any more

	stopOnce sync.Once
	stopping atomic.Bool
	failOnce sync.Once
	failed   chan struct{} // closed after err is set
	err      error
}

// Worker is where some of the clients live. Its methods are for their coroutines, where
// nothing else is said.
type Worker struct{ worker }

// New makes a Mux. Close it after use.
func New(o Options) *Mux {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	m := &Mux{o: o, epoch: time.Now(), failed: make(chan struct{})}
	for i := range max(o.Workers, 1) {
		m.workers = append(m.workers, m.worker(i))
	}
	return m
}

func (m *Mux) worker(number int) *Worker {
	w := &Worker{worker{
		m: m, number: number, sharable: map[string]bool{},
		signal: make(chan struct{}, 1), rand: rand.New(rand.NewPCG(m.o.Seed, uint64(number))),
		widths: hdrhistogram.New(1, int64(time.Hour), 2),
	}}
	w.apart = m.o.Alone()
	w.fronts = w.Hooked(m.o.Hooks...)
	w.ctx = context.WithValue(context.Background(), here{}, w)
	pollers, holders := make([][]redis.UniversalClient, len(w.fronts)), m.o.Lane()
	for range pollPipes {
		for i, c := range m.o.Lane() {
			pollers[i] = append(pollers[i], c)
		}
	}
	for i := range w.fronts {
		w.lanes = append(w.lanes, w.lane(true, pollers[i]...), w.lane(false, holders[i]))
	}
	return w
}

// Hooked returns redis clients for clients of this worker, one per node, which have these
// hooks besides. It may be called by any goroutine.
func (w *Worker) Hooked(hooks ...redis.Hook) []redis.UniversalClient {
	all := make([]redis.UniversalClient, len(w.apart))
	for i, c := range w.apart {
		c := c.(*redis.Client)
		front := c.WithTimeout(c.Options().ReadTimeout) // the way to share its connections
		for _, h := range hooks {
			front.AddHook(h)
		}
		mine := &hook{w: &w.worker, node: i}
		front.AddHook(mine)
		mine.whole = true
		all[i] = front
	}
	return all
}

// Workers are the workers, in which clients are to be spread evenly.
func (m *Mux) Workers() []*Worker { return m.workers }

// Number is the worker's, from 0.
func (w *Worker) Number() int { return w.number }

// Thread is the body of a client in its worker.
type Thread struct {
	Worker *Worker
	Body   func()
}

// Run starts all threads at one instant and returns when all have ended, or when one blocks
// its worker: see Err. It is called by one goroutine at a time.
func (m *Mux) Run(threads []Thread) {
	m.ran = len(threads)
	defer collectLess(len(threads))()
	for _, t := range threads {
		w := &t.Worker.worker
		w.due.push(w.start(nil, t.Body))
	}
	over := make(chan struct{})
	go m.watch(over)
	var running sync.WaitGroup
	for _, w := range m.workers {
		w.over.Store(false)
		running.Go(w.loop)
	}
	go func() {
		running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-m.failed:
		m.abandon(over)
	}
}

// collectLess has garbage collected less often than by default, until it is undone: a command
// leaves some 600 bytes, and each collection looks at the stacks of all clients. Garbage may take
// about memoryForSpeed before it is collected, which with very many clients is more often than by
// default. If GOGC is set in the environment, it applies.
func collectLess(clients int) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	kept := 32<<20 + clients*stackSize
	old := debug.SetGCPercent(max(40, min(400, 100*memoryForSpeed/kept)))
	return func() { debug.SetGCPercent(old) }
}

const (
	stackSize      = 8 << 10 // of a client
	memoryForSpeed = 256 << 20
)

// abandon waits until the coroutines have ended by themselves after a failure, but not for
// one that blocks.
func (m *Mux) abandon(over <-chan struct{}) {
	m.Stop()
	select {
	case <-over:
		return
	case <-time.After(m.o.Patience):
	}
	m.dead.Store(true)
	for _, w := range m.workers {
		w.post(mail{why: stopped})
	}
	select {
	case <-over:
	case <-time.After(m.o.Patience): // one is blocked, and stays behind
	}
}

// watch looks whether every worker gets on.
func (m *Mux) watch(over <-chan struct{}) {
	tick := time.NewTicker(m.o.Patience)
	defer tick.Stop()
	seen := make([]uint64, len(m.workers))
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		for i, w := range m.workers {
			now := w.step.Load()
			if now%2 == 1 && now == seen[i] {
				m.fail(errclass.Usagef("a client blocks, or computes, for more than %v outside of its Env, which --engine mux cannot park: use --engine goroutine", m.o.Patience))
			}
			seen[i] = now
		}
	}
}

// Stop asks the clients to end: those who wait for a lock or rest in a section go on.
func (m *Mux) Stop() {
	m.stopOnce.Do(func() {
		m.stopping.Store(true)
		for _, w := range m.workers {
			w.post(mail{why: stopped})
		}
	})
}

// Err says why the clients cannot be run by this engine: one did something that cannot be
// parked. It is of class errclass.ErrUsage.
func (m *Mux) Err() error {
	select {
	case <-m.failed:
		return m.err
	default:
		return nil
	}
}

// fail notes the first reason for which clients cannot be run.
func (m *Mux) fail(err error) {
	m.failOnce.Do(func() {
		m.err = err
		close(m.failed)
	})
}

// errAlone is what goroutines get that no worker knows.
var errAlone = errclass.Usagef("%w, or be run with --engine goroutine", coro.ErrAlone)

// errOther is what a client gets that uses what belongs to a client of another worker.
var errOther = errors.New("a redis client was used outside of the client that it belongs to")

// Commands is how many commands were sent until now.
func (m *Mux) Commands() (n int64) {
	for _, w := range m.workers {
		n += w.counted.Load()
	}
	return n
}

// Close abandons every client where it stands, as a crash would: its deferred functions
// run, and reach nothing. Then it closes the connections.
func (m *Mux) Close() error {
	m.Stop()
	if m.closed.Swap(true) {
		return nil
	}
	m.dead.Store(true)
	var errs []error
	for _, w := range m.workers {
		errs = append(errs, w.close())
	}
	if m.ran >= many {
		debug.FreeOSMemory() // their stacks; what judges the run needs memory, too
	}
	return errors.Join(errs...)
}

// many is how many clients leave enough memory behind for it to be given back at once.
const many = 10_000

func (w *Worker) close() error {
	for w.over.Load() && len(w.all) > 0 {
		w.resume(w.all[len(w.all)-1])
	}
	var errs []error
	for i, l := range w.lanes {
		for _, p := range l.pipes {
			close(p.begin)
			if err := p.conn.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close lane %d: %w", i, err))
			}
		}
	}
	for _, c := range w.apart {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Widths are how long commands took, from when they were asked for until their replies were
// delivered: the median and the 99th percentile. Call it when the clients have ended.
func (m *Mux) Widths() (p50, p99 time.Duration) {
	all := hdrhistogram.New(1, int64(time.Hour), 2)
	for _, w := range m.workers {
		all.Merge(w.widths)
	}
	return time.Duration(all.ValueAtQuantile(50)), time.Duration(all.ValueAtQuantile(99))
}

// Pipelines is how many connections the clients share, to all servers together.
func (m *Mux) Pipelines() (n int) {
	for _, w := range m.workers {
		for _, l := range w.lanes {
			n += len(l.pipes)
		}
	}
	return n
}

// here is the key under which a context tells its worker.
type here struct{}

// Context returns the context of the clients of this worker, which never ends.
func (w *Worker) Context() context.Context { return w.ctx }

// Of returns the worker whose client has ctx as its Context, or a context derived from it; nil if
// ctx is no client's.
func Of(ctx context.Context) *Worker {
	w, _ := ctx.Value(here{}).(*Worker)
	return w
}

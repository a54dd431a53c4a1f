// Package mux runs tens of thousands of clients as coroutines on a few connections.
//
// A client runs the same code as in a goroutine: a hook of go-redis parks each command in the client's worker. A
// worker runs one coroutine at a time. It collects commands into pipelines of about 64 (a client's own pipeline is
// not split), and resumes each coroutine when its reply arrives. So a command costs a switch between two coroutines
// and a share of two system calls, and a client costs the memory of its stack.
//
// The engine is part of the experiment. Replies come in batches, so the interval of an operation is wider than the
// operation: a check of such a history is weaker, and reports show the widths. Round trips are shorter than those
// of clients with their own connections, which hides races; so every reply can be delayed by a virtual round-trip
// time.
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

// Options describe how to drive the clients.
type Options struct {
	// Workers is the number of workers, each with its own lanes, which run concurrently; at least 1.
	Workers int
	// Lane creates one redis client per node, with one connection each. It is called PipesPerNode times for each
	// worker.
	Lane func() []redis.UniversalClient
	// Alone creates one *redis.Client per node for commands that need a dedicated connection: transactions, and
	// commands that block. It is called once for each worker.
	Alone func() []redis.UniversalClient
	// Hooks are added to the redis clients that Worker.Redis returns.
	Hooks []redis.Hook
	// RTT is the mean of the virtual round-trip time that delays every reply; 0: none. It is exponentially
	// distributed, and at most 20 times the mean. A reply over a lane that would come after the ReadTimeout of Alone is
	// lost; on a dedicated connection it comes at the ReadTimeout at the latest.
	RTT time.Duration
	// Seed fixes the virtual round-trip times.
	Seed uint64
	// Patience is how long a client may run without parking; 0 means 5 s. A client that runs longer is detected within
	// twice that time.
	Patience time.Duration
}

// Mux owns the workers. Stop, Err and Commands are safe for concurrent use; the other methods are called one at a time.
type Mux struct {
	o       Options
	epoch   time.Time
	workers []*Worker
	ran     int // number of clients
	closed  atomic.Bool
	dead    atomic.Bool // commands no longer take effect

	stopOnce sync.Once
	stopping atomic.Bool
	failOnce sync.Once
	failed   chan struct{} // closed after err is set
	err      error
}

// Worker runs some of the clients. Unless documented otherwise, only their coroutines may call its methods.
type Worker struct{ worker }

// New creates a Mux. The caller closes it.
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
	w.timeout = w.apart[0].(*redis.Client).Options().ReadTimeout
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

// Hooked returns redis clients for clients of this worker, one per node, with these hooks in place of
// Options.Hooks. Any goroutine may call it.
func (w *Worker) Hooked(hooks ...redis.Hook) []redis.UniversalClient {
	all := make([]redis.UniversalClient, len(w.apart))
	for i, c := range w.apart {
		c := c.(*redis.Client)
		front := c.WithTimeout(c.Options().ReadTimeout) // shares its connections
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

// Workers returns the workers; spread clients evenly over them.
func (m *Mux) Workers() []*Worker { return m.workers }

// Number returns the worker's number, from 0.
func (w *Worker) Number() int { return w.number }

// Thread is the body of a client in its worker.
type Thread struct {
	Worker *Worker
	Body   func()
}

// Run starts all threads at the same time and returns when all have ended, or when one blocks its worker: see Err. It
// calls begin when all can start.
func (m *Mux) Run(threads []Thread, begin func()) {
	m.ran = len(threads)
	defer collectLess(len(threads))()
	for _, t := range threads {
		w := &t.Worker.worker
		w.due.push(w.start(nil, t.Body))
	}
	begin()
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

// collectLess reduces the frequency of garbage collection until undo is called: a command leaves some 600 bytes,
// and each collection scans the stacks of all clients. It lets garbage grow to about memoryForSpeed, which with
// very many clients is less than the default. If GOGC is set in the environment, it applies instead.
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

// abandon waits until the coroutines have ended after a failure, except for one that blocks.
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
	case <-time.After(m.o.Patience): // one blocks and is left behind
	}
}

// watch checks that every worker makes progress.
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
				m.fail(errclass.Usagef("a client blocks, or computes, for more than %v outside of its Env, so --engine mux cannot park it: use --engine goroutine", m.o.Patience))
			}
			seen[i] = now
		}
	}
}

// Stop asks the clients to end: those that wait for a lock or pause in a section continue.
func (m *Mux) Stop() {
	m.stopOnce.Do(func() {
		m.stopping.Store(true)
		for _, w := range m.workers {
			w.post(mail{why: stopped})
		}
	})
}

// Err explains why this engine cannot run the clients: one did something that cannot be parked. The error is of
// class errclass.ErrUsage.
func (m *Mux) Err() error {
	select {
	case <-m.failed:
		return m.err
	default:
		return nil
	}
}

// fail records the first reason why clients cannot be run.
func (m *Mux) fail(err error) {
	m.failOnce.Do(func() {
		m.err = err
		close(m.failed)
	})
}

// errAlone is the error for goroutines that belong to no worker.
var errAlone = errclass.Usagef("%w, or be run with --engine goroutine", coro.ErrAlone)

// errOther is the error for a client that uses a redis client of another worker.
var errOther = errclass.Usagef("a redis client was used outside of the client that it belongs to")

// Commands returns the number of commands sent so far.
func (m *Mux) Commands() (n int64) {
	for _, w := range m.workers {
		n += w.counted.Load()
	}
	return n
}

// Close stops every client where it is, like a crash: its deferred functions run, but have no effect outside. Then
// it closes the connections.
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
	if m.ran >= manyClients {
		debug.FreeOSMemory() // frees their stacks; judging the run needs memory, too
	}
	return errors.Join(errs...)
}

// manyClients is the number of clients from which Close returns the memory of a run to the system at once.
const manyClients = 10_000

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

// Widths returns how long commands took, from the call to the delivery of the reply: the median and the 99th
// percentile.
func (m *Mux) Widths() (p50, p99 time.Duration) {
	all := hdrhistogram.New(1, int64(time.Hour), 2)
	for _, w := range m.workers {
		all.Merge(w.widths)
	}
	return time.Duration(all.ValueAtQuantile(50)), time.Duration(all.ValueAtQuantile(99))
}

// Pipelines returns the number of connections that the clients share, over all servers.
func (m *Mux) Pipelines() (n int) {
	for _, w := range m.workers {
		for _, l := range w.lanes {
			n += len(l.pipes)
		}
	}
	return n
}

// here is the context key of the worker.
type here struct{}

// Context returns the context of the clients of this worker, which never ends.
func (w *Worker) Context() context.Context { return w.ctx }

// Of returns the worker of the client whose Context is ctx or a parent of it; nil if there is none.
func Of(ctx context.Context) *Worker {
	w, _ := ctx.Value(here{}).(*Worker)
	return w
}

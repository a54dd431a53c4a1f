package load

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/load/mux"
	"oversell/variant"
)

const (
	// mostWorkers bounds the workers: more take CPU time from the server, and make batches smaller.
	mostWorkers = 4
	// aloneAtOnce is the maximum number of commands of a worker in flight to a server on dedicated connections; by
	// default a server accepts 10,000 connections.
	aloneAtOnce = 8192
)

// workers returns the number of workers.
func workers() int { return min(runtime.GOMAXPROCS(0), mostWorkers) }

// PipelinesPerNode returns the number of connections to each node that all clients of Coroutines share.
func PipelinesPerNode() int { return workers() * mux.PipesPerNode }

// multiplex creates the workers and opens their pipelines.
func (e *Engine) multiplex(ctx context.Context) error {
	var lanes []redis.UniversalClient
	e.mux = mux.New(mux.Options{
		Workers: workers(),
		Lane: func() []redis.UniversalClient {
			conns := e.config.Dial(Pipeline, 1)
			lanes = append(lanes, conns...)
			return conns
		},
		Alone: func() []redis.UniversalClient { return e.config.Dial(Pipeline, aloneAtOnce) },
		RTT:   e.config.RTT, Seed: e.config.Seed,
		Hooks: []redis.Hook{pausing{}},
	})
	if e.config.Warm == nil {
		return nil
	}
	return e.config.Warm(ctx, 1, lanes...)
}

// workerOf returns the worker of a client.
func (e *Engine) workerOf(id int32) *mux.Worker {
	all := e.mux.Workers()
	return all[int(id)%max(e.config.Clients, 1)%len(all)]
}

// newWorkerClient creates a client that lives in a worker.
func (e *Engine) newWorkerClient(id int32, w *mux.Worker) *Client {
	c := &Client{ID: id, engine: e, worker: w, conns: w.Redis(), Rand: rand.New(rand.NewPCG(e.config.Seed, uint64(id))), end: func() {}}
	c.Env = variant.Env{Redis: c.conns, Clock: w.Clock(), Token: c.token, Wait: c.wait, Go: c.spawnSeated}
	if e.config.Inject != nil {
		if hook := e.config.Inject(id, &c.Env); hook != nil {
			c.Env.Redis = w.Hooked(pausing{}, hook)
		}
	}
	return c
}

// spawnSeated implements variant.Env.Go for a seated client.
func (c *Client) spawnSeated(f func(context.Context)) func(context.Context) error {
	if c.ctx == nil {
		c.ctx, c.end = context.WithCancel(c.worker.Context())
	}
	ctx := c.ctx
	return c.worker.Go(&c.group, func() { f(ctx) })
}

// runSeated is Run for clients that run in workers.
func (e *Engine) runSeated(clients []*Client, begin func(), body func(*Client)) {
	threads := make([]mux.Thread, len(clients))
	for i, c := range clients {
		threads[i] = mux.Thread{Worker: c.worker, Body: func() { body(c) }}
	}
	e.mux.Run(threads, begin)
}

// Context returns the context of the client's main thread, from which those of its other threads must be derived.
// It never ends.
func (c *Client) Context() context.Context {
	if c.worker == nil {
		return context.Background()
	}
	return c.worker.Context()
}

// Worker returns the number of the client's worker, or -1 for a client with its own goroutine. No two clients of a
// worker run at the same time.
func (c *Client) Worker() int {
	if c.worker == nil {
		return -1
	}
	return c.worker.Number()
}

// Turn begins a new round of the client. In a worker, it queues behind clients whose pause has ended.
func (c *Client) Turn() {
	if c.worker != nil {
		c.worker.Turn()
	}
}

// Holds tells the engine whether the client holds a lock.
func (c *Client) Holds(lock bool) {
	if c.worker != nil {
		c.worker.Hold(lock)
	}
}

// Both runs f and g concurrently, and returns when both have returned. f runs in the caller's thread.
func (c *Client) Both(f, g func()) {
	if c.worker == nil {
		var both sync.WaitGroup
		both.Go(g)
		f()
		both.Wait()
		return
	}
	join := c.worker.Beside(&c.group, g)
	f()
	_ = join(c.worker.Context()) // that context never ends
}

// Pipelines returns the number of connections that the clients share; 0 for Goroutines.
func (e *Engine) Pipelines() int {
	if e.mux == nil {
		return 0
	}
	return e.mux.Pipelines()
}

// CommandTimes returns the median and the 99th percentile of the duration of commands, from the call to the
// delivery of the reply; 0 if not measured.
func (e *Engine) CommandTimes() (median, tail time.Duration) {
	if e.mux == nil {
		return 0, 0
	}
	return e.mux.Widths()
}

// pausing is the hook that runs requested pauses of clients in workers.
type pausing struct{}

func (pausing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (pausing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		afterCommand(ctx)
		return err
	}
}

func (pausing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		afterCommand(ctx)
		return err
	}
}

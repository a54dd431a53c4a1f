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

// Pipeline is in the place of a client's ID for connections on which all clients of a
// worker send their commands.
const Pipeline = -2

const (
	// mostWorkers bounds the workers: more take processors from the server, and make
	// batches smaller.
	mostWorkers = 4
	// aloneAtOnce is how many commands of a worker can be under way to a server on connections
	// of their own; a server accepts 10,000 connections if nobody says otherwise.
	aloneAtOnce = 8192
)

// workers is how many there are.
func workers() int { return min(runtime.GOMAXPROCS(0), mostWorkers) }

// PipelinesPerNode is how many connections all clients of Coroutines share, to each node.
func PipelinesPerNode() int { return workers() * mux.PipesPerNode }

// multiplex makes the workers and opens their pipelines.
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

// workerOf is the worker of a client.
func (e *Engine) workerOf(id int32) *mux.Worker {
	all := e.mux.Workers()
	return all[int(id)%max(e.config.Clients, 1)%len(all)]
}

// seated is a client that lives in a worker.
func (e *Engine) seated(id int32, w *mux.Worker) *Client {
	c := &Client{ID: id, engine: e, worker: w, conns: w.Redis(), Rand: rand.New(rand.NewPCG(e.config.Seed, uint64(id))), end: func() {}}
	c.Env = variant.Env{Redis: c.conns, Clock: w.Clock(), Token: c.token, Wait: c.wait, Go: c.spawnSeated}
	if e.config.Inject != nil {
		if hook := e.config.Inject(id, &c.Env); hook != nil {
			c.Env.Redis = w.Hooked(pausing{}, hook)
		}
	}
	return c
}

// spawnSeated is a seated client's variant.Env.Go.
func (c *Client) spawnSeated(f func(context.Context)) func(context.Context) error {
	if c.ctx == nil {
		c.ctx, c.end = context.WithCancel(c.worker.Context())
	}
	ctx := c.ctx
	return c.worker.Go(&c.group, func() { f(ctx) })
}

// runSeated is Run for clients that run in workers.
func (e *Engine) runSeated(clients []*Client, body func(*Client)) {
	threads := make([]mux.Thread, len(clients))
	for i, c := range clients {
		threads[i] = mux.Thread{Worker: c.worker, Body: func() { body(c) }}
	}
	e.mux.Run(threads)
}

// Context is that of the client's own thread, of which all of its others are to be
// derived: it never ends.
func (c *Client) Context() context.Context {
	if c.worker == nil {
		return context.Background()
	}
	return c.worker.Context()
}

// Worker is the number of the worker in which the client lives: no two clients of one
// are at work at the same moment. It is -1 for a client that has a goroutine of its own.
func (c *Client) Worker() int {
	if c.worker == nil {
		return -1
	}
	return c.worker.Number()
}

// Turn says that the client begins a new round. Where clients share a worker, it stands in
// line behind those who have waited.
func (c *Client) Turn() {
	if c.worker != nil {
		c.worker.Turn()
	}
}

// Holds tells the engine that the client has a lock, or has none any more.
func (c *Client) Holds(lock bool) {
	if c.worker != nil {
		c.worker.Hold(lock)
	}
}

// Both runs f and g at the same time, and returns when both have returned. f goes on where
// the caller is.
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
	_ = join(c.worker.Context()) // which never ends
}

// Pipelines is how many connections the clients share; 0 for Goroutines.
func (e *Engine) Pipelines() int {
	if e.mux == nil {
		return 0
	}
	return e.mux.Pipelines()
}

// CommandTimes are the median and the 99th percentile of how long commands took, from when
// clients asked for them until replies were delivered; 0 where that is not measured.
func (e *Engine) CommandTimes() (median, tail time.Duration) {
	if e.mux == nil {
		return 0, 0
	}
	return e.mux.Widths()
}

// pausing is the hook that holds up who asked for that, of clients that live in workers.
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

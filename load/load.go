// Package load drives clients: it gives each client its environment ([variant.Env]), starts them all at the same
// time, and implements the strategies for waiting for a busy lock, so that all variants wait alike.
//
// The engine affects the results. One engine runs a goroutine per client, on a shared pool of
// connections or on a connection each. The other, in package load/mux, runs clients as coroutines on a few
// pipelines.
package load

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/closed"
	"oversell/internal/coro"
	"oversell/load/mux"
	"oversell/variant"
)

// Names of the engines in flags and reports.
const (
	// Goroutines runs a goroutine per client, on connections of its own or on a shared pool.
	Goroutines = "goroutine"
	// Coroutines runs clients as coroutines on a few pipelines; see package load/mux.
	Coroutines = "mux"
)

// Engines lists the names of the engines.
var Engines = []string{Goroutines, Coroutines}

// Config describes how to drive the load.
type Config struct {
	// Engine is one of Engines; empty: Goroutines.
	Engine string
	// RTT is the mean of the virtual round-trip time of Coroutines; 0: none.
	RTT time.Duration
	// Clients is the number of clients. Coroutines assigns a client to a worker by its ID modulo Clients, so that a
	// client whose ID is that of another plus Clients has the same worker.
	Clients int
	// Pool is the number of connections to each node that all clients share; 0 gives every client its own.
	Pool int
	// Waiting is the strategy for waiting for a busy lock.
	Waiting Waiting
	// Seed fixes every random choice: tokens, jitter, and each client's Rand.
	Seed uint64
	// InLine means that the lock under test queues its waiters itself. Then each release wakes all of them, because
	// only the lock knows whose turn it is.
	InLine bool
	// SQL is given to every client; nil unless a variant needs a database.
	SQL *sql.DB
	// Addr is given to every client, for code with a Redis client of its own.
	Addr []string
	// Dial creates one redis client per node with this many connections: for a client of the load, with its ID; with
	// [Pipeline] for the clients of a worker; with [Shared] for the shared pool, the subscription to releases and an
	// administrator.
	Dial func(client int32, connections int) []redis.UniversalClient
	// Inject, unless nil, is called for each new client. It may change the client's environment, and return a hook
	// for all its commands.
	Inject func(id int32, env *variant.Env) redis.Hook
	// Warm opens this many connections of each redis client before the load starts, so that dialling is not
	// measured; nil leaves that to the first command.
	Warm func(ctx context.Context, connections int, cs ...redis.UniversalClient) error
}

// Engine owns the clients of one run. Its methods are safe for concurrent use.
type Engine struct {
	config   Config
	clock    clock.Clock
	began    time.Time
	stopping chan struct{}
	stopOnce sync.Once
	hub      *hub // nil unless Waiting is PubSub
	pacer    pacer

	shared []redis.UniversalClient // nil if clients have their own connections
	mux    *mux.Mux                // nil unless the engine is Coroutines

	mu      sync.Mutex
	opened  []redis.UniversalClient
	relays  map[redis.UniversalClient]*relay
	clients atomic.Int32 // ID of the next client

	_           [64]byte     // keeps what every command writes off the cache lines of what it reads
	commands    atomic.Int64 // sent by all clients
	trips, took atomic.Int64 // commands and pipelines over shared connections, and their total time in ns
	_           [64]byte
}

// New creates an engine. The caller closes it.
func New(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{config: c, clock: clock.Real{}, began: time.Now(), stopping: make(chan struct{}), relays: map[redis.UniversalClient]*relay{}}
	if c.Engine == Coroutines {
		if err := e.multiplex(ctx); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if c.Pool > 0 {
		var err error
		if e.shared, err = e.dial(ctx, Shared, c.Pool); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if c.Waiting == PubSub {
		conns, err := e.dial(ctx, Shared, 1)
		if err == nil {
			e.hub, err = newHub(ctx, conns[0], c.InLine)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("subscribe to releases: %w", err), e.Close())
		}
	}
	return e, nil
}

// Shared and Pipeline replace a client's ID for connections that belong to no single client: those of the engine, and
// those of the clients of a worker.
const (
	Shared   int32 = -1
	Pipeline int32 = -2
)

// dial opens and warms one redis client per node.
func (e *Engine) dial(ctx context.Context, id int32, connections int) ([]redis.UniversalClient, error) {
	cs := e.config.Dial(id, connections)
	e.mu.Lock()
	for _, c := range cs {
		c.AddHook(attending{e})
		if _, single := c.(*redis.Client); !single && e.config.Inject != nil {
			e.relays[c] = &relay{}
			c.AddHook(e.relays[c])
		}
	}
	e.opened = append(e.opened, cs...)
	e.mu.Unlock()
	if e.config.Warm == nil {
		return cs, nil
	}
	return cs, e.config.Warm(ctx, connections, cs...)
}

// Client is one client's environment and its state in the engine. Except for functions started by Env.Go, one
// goroutine at a time uses it.
type Client struct {
	ID   int32
	Env  variant.Env
	Rand *rand.Rand

	engine *Engine                 // nil for a client made by Apart
	conns  []redis.UniversalClient // Env.Redis holds these, perhaps with a hook
	waits  int                     // since the last Begin
	ctx    context.Context         // for functions started by Env.Go; created on first use
	end    context.CancelFunc
	beside sync.WaitGroup

	worker *mux.Worker // nil for a client with a goroutine of its own
	group  mux.Group   // functions started by Env.Go in the worker
}

// Client creates the next client; IDs count from 0.
func (e *Engine) Client(ctx context.Context) (*Client, error) {
	id := e.clients.Add(1) - 1
	if e.mux != nil {
		return e.newWorkerClient(id, e.workerOf(id)), nil
	}
	conns := e.shared
	if conns == nil {
		var err error
		if conns, err = e.dial(ctx, id, 1); err != nil {
			return nil, err
		}
	}
	return e.client(id, conns), nil
}

// Administrator creates a client for work before and after the load. It is not part of the load, and no fault of
// clients or of the wire affects it.
func (e *Engine) Administrator(ctx context.Context) (*Client, error) {
	conns, err := e.dial(ctx, Shared, 1)
	if err != nil {
		return nil, err
	}
	return e.plain(e.clients.Add(1)-1, conns), nil
}

func (e *Engine) client(id int32, conns []redis.UniversalClient) *Client {
	c := e.plain(id, conns)
	if e.config.Inject != nil {
		if hook := e.config.Inject(id, &c.Env); hook != nil {
			c.Env.Redis = e.hooked(conns, hook)
		}
	}
	return c
}

// plain creates a client that no fault affects.
func (e *Engine) plain(id int32, conns []redis.UniversalClient) *Client {
	c := &Client{ID: id, engine: e, conns: conns, Rand: rand.New(rand.NewPCG(e.config.Seed, uint64(id)))}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.Env = variant.Env{Redis: conns, Addr: e.config.Addr, SQL: e.config.SQL, Clock: e.clock, Token: c.token, Wait: c.wait, Go: c.spawn}
	return c
}

// hooked returns clients that share the connections of others, with an additional hook.
func (e *Engine) hooked(conns []redis.UniversalClient, hook redis.Hook) []redis.UniversalClient {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := make([]redis.UniversalClient, len(conns))
	for i, conn := range conns {
		switch conn := conn.(type) {
		case *redis.Client:
			clone := conn.WithTimeout(conn.Options().ReadTimeout) // shares the pool; the clone has none of the original's hooks
			clone.AddHook(attending{e})
			clone.AddHook(hook)
			own[i] = clone
		default:
			e.relays[conn].to.Store(&hook)
			own[i] = conn
		}
	}
	return own
}

// Rename gives the client a new ID. After an operation with an unknown outcome a client continues under a new
// identity, because the operation may still take effect.
func (c *Client) Rename() { c.ID = c.engine.clients.Add(1) - 1 }

// Successor creates a client on the connections of a client that has died.
func (c *Client) Successor() *Client {
	c.end()
	id := c.engine.clients.Add(1) - 1
	if c.worker != nil {
		return c.engine.newWorkerClient(id, c.worker)
	}
	return c.engine.client(id, c.conns)
}

// Begin begins a new acquisition: backoff starts again.
func (c *Client) Begin() { c.waits = 0 }

// Released reports the release of a lock, so that a waiting strategy can notify waiters.
func (c *Client) Released(ctx context.Context, name string) {
	if c.engine != nil && c.engine.hub != nil {
		c.engine.hub.publish(ctx, c.Env.Redis[0], name)
	}
}

// End stops the functions started by Env.Go, and waits for them.
func (c *Client) End() {
	c.end()
	if c.worker != nil {
		c.worker.Await(&c.group)
	}
	c.beside.Wait()
}

// token returns 128 random bits.
func (c *Client) token() string { return fmt.Sprintf("%016x%016x", c.Rand.Uint64(), c.Rand.Uint64()) }

func (c *Client) spawn(f func(context.Context)) func(context.Context) error {
	return variant.StartIn(c.ctx, &c.beside, f)
}

// Stop asks the clients to end: waits for locks end, and Stopping becomes true. Operations in progress finish.
func (e *Engine) Stop() {
	e.stopOnce.Do(func() { close(e.stopping) })
	if e.mux != nil {
		e.mux.Stop()
	}
}

// Commands returns the number of commands that the clients have sent so far to all servers, including those in
// pipelines, but not those in scripts.
func (e *Engine) Commands() int64 {
	n := e.commands.Load()
	if e.mux != nil {
		n += e.mux.Commands()
	}
	return n
}

// Stopping reports whether Stop was called or the engine has failed; see Err.
func (e *Engine) Stopping() bool { return closed.Is(e.stopping) || e.Err() != nil }

// Err explains why this engine cannot run the clients; nil if it can. The error is of class errclass.ErrUsage.
func (e *Engine) Err() error {
	if e.mux == nil {
		return nil
	}
	return e.mux.Err()
}

// Run starts body for every client at the same time, as at the start of a flash sale, and returns when all have
// returned. It calls begin when all clients can start, before the first does.
func (e *Engine) Run(clients []*Client, begin func(), body func(*Client)) {
	if e.mux != nil {
		e.runSeated(clients, begin, body)
		return
	}
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for _, c := range clients {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			body(c)
		})
	}
	ready.Wait()
	begin()
	close(start)
	done.Wait()
}

// Sleep waits for d and reports true. It ends early, and reports false, when until is closed. If the run is
// stopping or ctx ends, it ends early and reports true. ctx must be, or be derived from, the Context of the
// sleeping client.
func (e *Engine) Sleep(ctx context.Context, d time.Duration, until <-chan struct{}) bool {
	if w := mux.Of(ctx); w != nil {
		return w.Sleep(ctx, d, until)
	}
	if e.mux != nil && coro.Marked() {
		panic("load: a client sleeps without its Context")
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-e.stopping:
	case <-until:
		return false
	}
	return true
}

// Close closes every connection that the engine opened.
func (e *Engine) Close() error {
	e.Stop()
	if e.hub != nil {
		e.hub.close()
	}
	e.pacer.close()
	var errs []error
	if e.mux != nil {
		errs = append(errs, e.mux.Close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.opened {
		errs = append(errs, c.Close())
	}
	e.opened = nil
	return errors.Join(errs...)
}

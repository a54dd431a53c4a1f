// Package load drives clients: it gives each one its world ([variant.Env]),
// starts them all at one instant, and lets them wait for a busy lock by one
// strategy, the same for everything that is compared.
//
// The engine is part of the experiment. One runs a goroutine per client in a closed
// loop, on a shared pool of connections or on a connection each. The other, of package
// load/mux, runs clients as coroutines on a few pipelines.
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

// The engines, by their names in flags and reports.
const (
	// Goroutines runs a goroutine per client, on connections of its own or on a shared pool.
	Goroutines = "goroutine"
	// Coroutines runs clients as coroutines on a few pipelines; see package load/mux.
	Coroutines = "mux"
)

// Engines lists the names of the engines.
var Engines = []string{Goroutines, Coroutines}

// Config says how to drive the load.
type Config struct {
	// Engine is one of Engines; empty: Goroutines.
	Engine string
	// RTT is the mean of the virtual round-trip time of Coroutines; 0: none.
	RTT time.Duration
	// Clients is how many clients there are. Those of Coroutines are spread by it: one whose
	// ID is that of another plus Clients has the same worker.
	Clients int
	// Pool is the number of connections that all clients share, to each node;
	// 0 gives every client connections of its own.
	Pool int
	// Waiting is how clients wait for a busy lock.
	Waiting Waiting
	// Seed fixes every random choice: tokens, jitter, and each client's Rand.
	Seed uint64
	// InLine says that the lock under test serves its waiters in a line of its own.
	// Then each release wakes them all, since only the lock knows whose turn it is.
	InLine bool
	// SQL is handed to every client; nil unless a variant needs a database.
	SQL *sql.DB
	// Addr is handed to every client, for code with a Redis client of its own.
	Addr []string
	// Dial makes one redis client per node with this many connections. It is
	// called once for a shared pool, with -1, and otherwise once per client, with
	// the client's ID. Coroutines have it called for each pipeline, with [Pipeline].
	Dial func(client int32, connections int) []redis.UniversalClient
	// Inject is told of each client when it is made, and may change its world, and
	// return a hook that every command of it passes through; nil: neither.
	Inject func(id int32, env *variant.Env) redis.Hook
	// Warm opens that many connections of each redis client before the load
	// starts, so that dialling is not measured; nil leaves that to the first command.
	Warm func(ctx context.Context, connections int, cs ...redis.UniversalClient) error
}

// Engine owns the clients of one run. Its methods are safe for concurrent use.
type Engine struct {
	config   Config
	clock    clock.Clock
	stopping chan struct{}
	stopOnce sync.Once
	hub      *hub // nil unless Waiting is PubSub
	pacer    pacer

	shared []redis.UniversalClient // nil with connections of their own
	mux    *mux.Mux                // nil unless the engine is Coroutines

	mu      sync.Mutex
	opened  []redis.UniversalClient
	relays  map[redis.UniversalClient]*relay
	clients atomic.Int32 // how many have been made

	commands    atomic.Int64 // sent, by whatever client
	trips, took atomic.Int64 // of commands and pipelines over shared connections, and their nanoseconds
}

// New makes an engine. Close it after use.
func New(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{config: c, clock: clock.Real{}, stopping: make(chan struct{}), relays: map[redis.UniversalClient]*relay{}}
	if c.Engine == Coroutines {
		if err := e.multiplex(ctx); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if c.Pool > 0 {
		var err error
		if e.shared, err = e.dial(ctx, nobody, c.Pool); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if c.Waiting == PubSub {
		conns, err := e.dial(ctx, nobody, 1)
		if err == nil {
			e.hub, err = newHub(ctx, conns[0], c.InLine)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("subscribe to releases: %w", err), e.Close())
		}
	}
	return e, nil
}

// nobody is in the place of a client's ID for connections that are shared.
const nobody = -1

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

// Client is one client's world and what the engine keeps for it. Apart from
// what Env.Go runs, it is used by one goroutine at a time.
type Client struct {
	ID   int32
	Env  variant.Env
	Rand *rand.Rand

	engine *Engine                 // nil for one that is Apart
	conns  []redis.UniversalClient // Env.Redis is these, or these with a hook
	waits  int                     // since the last Begin
	ctx    context.Context         // of what runs beside; nil: to be made
	end    context.CancelFunc
	beside sync.WaitGroup

	worker *mux.Worker // nil for one with a goroutine of its own
	group  mux.Group   // of what runs beside, in the worker
}

// Client makes the next client; IDs count from 0.
func (e *Engine) Client(ctx context.Context) (*Client, error) {
	id := e.clients.Add(1) - 1
	if e.mux != nil {
		return e.seated(id, e.workerOf(id)), nil
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

// Administrator is a client apart from the crowd, which nothing alters: for what
// comes before and after the load.
func (e *Engine) Administrator(ctx context.Context) (*Client, error) {
	conns, err := e.dial(ctx, nobody, 1)
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

// plain is a client that nothing has altered.
func (e *Engine) plain(id int32, conns []redis.UniversalClient) *Client {
	c := &Client{ID: id, engine: e, conns: conns, Rand: rand.New(rand.NewPCG(e.config.Seed, uint64(id)))}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.Env = variant.Env{Redis: conns, Addr: e.config.Addr, SQL: e.config.SQL, Clock: e.clock, Token: c.token, Wait: c.wait, Go: c.spawn}
	return c
}

// hooked are clients on the connections of others, with a hook of their own.
func (e *Engine) hooked(conns []redis.UniversalClient, hook redis.Hook) []redis.UniversalClient {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := make([]redis.UniversalClient, len(conns))
	for i, conn := range conns {
		switch conn := conn.(type) {
		case *redis.Client:
			clone := conn.WithTimeout(conn.Options().ReadTimeout) // the way to share a pool; it has no hooks of the original
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

// Rename gives the client a new ID. After an operation whose outcome is unknown a
// client goes on under a new identity, because what the old one asked for may still
// happen.
func (c *Client) Rename() { c.ID = c.engine.clients.Add(1) - 1 }

// Successor is a new client on this one's connections, which takes the place of one
// that has died.
func (c *Client) Successor() *Client {
	c.end()
	id := c.engine.clients.Add(1) - 1
	if c.worker != nil {
		return c.engine.seated(id, c.worker)
	}
	return c.engine.client(id, c.conns)
}

// Begin says that a new acquisition begins: back-off starts afresh.
func (c *Client) Begin() { c.waits = 0 }

// Released says that a lock was given back, so that a strategy that tells the
// waiters can do so.
func (c *Client) Released(ctx context.Context, name string) {
	if c.engine != nil && c.engine.hub != nil {
		c.engine.hub.publish(ctx, c.Env.Redis[0], name)
	}
}

// End ends what the client runs beside itself, and waits for it.
func (c *Client) End() {
	c.end()
	if c.worker != nil {
		c.worker.Await(&c.group)
	}
	c.beside.Wait()
}

// token is 128 random bits.
func (c *Client) token() string { return fmt.Sprintf("%016x%016x", c.Rand.Uint64(), c.Rand.Uint64()) }

func (c *Client) spawn(f func(context.Context)) func(context.Context) error {
	return variant.Beside(c.ctx, &c.beside, f)
}

// Stop asks the clients to end: nobody waits for a lock any more, and Stopping
// turns true. What is under way is finished.
func (e *Engine) Stop() {
	e.stopOnce.Do(func() { close(e.stopping) })
	if e.mux != nil {
		e.mux.Stop()
	}
}

// Commands is how many commands the clients have sent until now, those within a
// pipeline included, those within a script not, to whichever server.
func (e *Engine) Commands() int64 {
	n := e.commands.Load()
	if e.mux != nil {
		n += e.mux.Commands()
	}
	return n
}

// Stopping tells whether Stop was called, or the engine cannot go on: see Err.
func (e *Engine) Stopping() bool { return closed.Is(e.stopping) || e.Err() != nil }

// Err says why the clients cannot be run by this engine, if they cannot. It is of class
// errclass.ErrUsage.
func (e *Engine) Err() error {
	if e.mux == nil {
		return nil
	}
	return e.mux.Err()
}

// Run starts body for every client at one instant, the thundering start of a
// flash sale, and returns when all have returned.
func (e *Engine) Run(clients []*Client, body func(*Client)) {
	if e.mux != nil {
		e.runSeated(clients, body)
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
	close(start)
	done.Wait()
}

// Sleep waits for d and reports true. It ends early, and reports false, when
// until is closed; when the run is stopping or ctx ends it just ends early. ctx must be,
// or be derived from, the Context of the client that sleeps.
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

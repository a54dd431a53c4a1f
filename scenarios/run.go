package scenarios

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"oversell/history"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/target"
)

// Live is what may be watched while a run goes on.
type Live struct {
	Ops  atomic.Int64 // operations recorded
	Sold atomic.Int64 // pieces sold, as the buyers were told
}

// Run runs c, which must be complete, on t, and writes everything that happened
// to a history file at path. When ctx ends, the clients finish what they have
// under way, and the history is closed as interrupted: that is no error. An
// error means that the surroundings failed (no server, disk full); what had
// been recorded by then is in the file.
func Run(ctx context.Context, c Config, t *target.Target, path string, live *Live) error {
	r := &run{config: c, target: t, live: live, options: lockimpl.Options{TTL: c.TTL, Wait: c.Wait, RetryEvery: c.Retry}}
	r.prefix = newPrefix()
	r.lockName, r.product = r.prefix+"order", r.prefix+"phone"
	r.lockKey, r.productKey = history.Text(r.lockName), history.Text(r.product)
	return r.do(ctx, path)
}

// newPrefix marks the keys of one run, within their names, so that they are
// recognisable and in one hash slot, and so that only they are removed. It is no
// choice of the experiment and does not depend on the seed: two runs with one
// seed may share a server.
func newPrefix() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return "{ov-" + hex.EncodeToString(b[:]) + "}"
}

// run is a run under way.
type run struct {
	config              Config
	target              *target.Target
	live                *Live
	options             lockimpl.Options
	prefix              string
	lockName            string
	product             string
	lockKey, productKey history.Value

	engine *load.Engine
	log    *history.Log

	sessions, orders, steps atomic.Int64

	mu       sync.Mutex
	failures int64 // operations that ended in an error
	first    error // the first of them
}

func (r *run) do(ctx context.Context, path string) (err error) {
	engine, err := load.New(ctx, load.Config{
		Pool: r.config.Pool, Waiting: r.config.Waiting, Seed: r.config.Seed,
		Dial: func(n int) []redis.UniversalClient { return r.target.Clients(target.ConnOptions{PoolSize: n}) },
		Warm: target.Warm,
	})
	if err != nil {
		return err
	}
	r.engine = engine
	defer func() { err = errors.Join(err, r.cleanUp(), engine.Close()) }()

	crowd, err := r.crowd(ctx)
	if err != nil {
		return err
	}
	steward, err := engine.Client(ctx)
	if err != nil {
		return err
	}
	if err := r.open(ctx, steward); err != nil {
		return err
	}
	w, err := history.Create(path, r.header())
	if err != nil {
		return err
	}
	trailer, err := r.record(ctx, w, crowd, steward)
	if finished := w.Finish(trailer); err == nil { // a writer that failed once says so again
		err = finished
	}
	return err
}

// dialers bounds how many clients connect at once.
const dialers = 32

// crowd makes the clients, and a twin for each when orders may be resent.
func (r *run) crowd(ctx context.Context) ([]*load.Client, error) {
	n := r.config.Clients
	if r.config.Resend > 0 {
		n *= 2
	}
	crowd := make([]*load.Client, n)
	var g errgroup.Group
	g.SetLimit(dialers)
	for range n {
		g.Go(func() error {
			c, err := r.engine.Client(ctx)
			if err == nil {
				crowd[c.ID] = c
			}
			return err
		})
	}
	return crowd, g.Wait()
}

// open puts the product on sale.
func (r *run) open(ctx context.Context, steward *load.Client) error {
	if !r.config.Scenario.Sells() {
		return nil
	}
	if err := r.config.Sale.New(steward.Env, r.product).Open(ctx, r.config.Stock); err != nil {
		return fmt.Errorf("put %d pieces on sale: %w", r.config.Stock, err)
	}
	return nil
}

// sweepEvery is how often recorded operations go to the file: what a kill -9 can lose.
const sweepEvery = 50 * time.Millisecond

// record runs the load while its operations go to w, and reads the final state.
func (r *run) record(ctx context.Context, w *history.Writer, crowd []*load.Client, steward *load.Client) (history.Trailer, error) {
	r.log = history.NewLog(time.Now())
	sweeping, stopSweeping := context.WithCancel(context.Background())
	swept := make(chan error, 1)
	go func() {
		err := r.log.DrainEvery(sweeping, sweepEvery, w.Append)
		if err != nil {
			r.engine.Stop() // what is recorded from here on only fills memory
		}
		swept <- err
	}()
	trailer := r.drive(ctx, crowd)
	stateErr := r.readState(steward)
	stopSweeping()
	err := <-swept
	trailer.Notes = r.notes(stateErr)
	select {
	case <-r.target.Done():
		err = errors.Join(err, r.target.Err())
	default:
	}
	return trailer, err
}

// drive runs the clients to their end.
func (r *run) drive(ctx context.Context, crowd []*load.Client) history.Trailer {
	clients := make(map[*load.Client]*Client, len(crowd))
	for _, lc := range crowd[:r.config.Clients] {
		clients[lc] = r.client(lc)
	}
	for i, lc := range crowd[r.config.Clients:] {
		clients[crowd[i]].twin = r.client(lc)
	}
	defer r.stopWhen(ctx)()
	r.engine.Run(crowd[:r.config.Clients], func(lc *load.Client) { r.body(clients[lc]) })
	return history.Trailer{Interrupted: ctx.Err() != nil, Elapsed: r.log.Since(time.Now())}
}

// stopWhen stops the engine when ctx ends, the time is up, or the server is
// gone, until it is called off.
func (r *run) stopWhen(ctx context.Context) (callOff func()) {
	over := make(chan struct{})
	var up <-chan time.Time
	if r.config.Duration > 0 {
		up = time.After(r.config.Duration)
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-up:
		case <-r.target.Done():
		case <-over:
			return
		}
		r.engine.Stop()
	}()
	return func() { close(over) }
}

// body is one client's life.
func (r *run) body(c *Client) {
	ctx := context.Background() // what is under way is finished, also when the run is stopped
	defer func() {
		c.End()
		if c.twin != nil {
			c.twin.End()
		}
	}()
	for !r.engine.Stopping() && r.takeStep() && !r.config.Scenario.Step(ctx, c) {
	}
}

// takeStep takes one of the steps that the run is limited to.
func (r *run) takeStep() bool {
	return r.config.Ops == 0 || r.steps.Add(1) <= r.config.Ops
}

// stateTimeout bounds the reading of the final state.
const stateTimeout = 10 * time.Second

// readState records what the server holds when all clients have ended.
func (r *run) readState(lc *load.Client) error {
	if !r.config.Scenario.Sells() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	c := r.client(lc)
	for _, part := range []struct {
		name string
		of   func(stockimpl.State) int64
	}{
		{"left", func(s stockimpl.State) int64 { return s.Left }},
		{"reserved", func(s stockimpl.State) int64 { return s.Reserved }},
		{"sold", func(s stockimpl.State) int64 { return s.Sold }},
	} {
		op := c.begin(history.ReadState, r.productKey, history.Text(part.name))
		s, err := c.sale.State(ctx)
		if err != nil {
			return err
		}
		if n := part.of(s); n != stockimpl.Unsaid {
			op.Result = history.Int(n)
			c.record(op, nil)
		}
	}
	return nil
}

// failed counts an operation that ended in an error.
func (r *run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	if r.first == nil {
		r.first = err
	}
}

// notes are what no operation shows.
func (r *run) notes(stateErr error) (notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures > 0 {
		notes = append(notes, fmt.Sprintf("%d operations ended in an error; the first: %v", r.failures, r.first))
	}
	if stateErr != nil {
		notes = append(notes, fmt.Sprintf("the final state could not be read: %v", stateErr))
	}
	if r.config.Scenario.Sells() && r.config.Duration > 0 && r.engine.Stopping() && r.log.Since(time.Now()) >= r.config.Duration {
		notes = append(notes, fmt.Sprintf("the sale was ended by its time limit of %v, before everybody had an answer", r.config.Duration))
	}
	return notes
}

// cleanUp removes the run's keys from a server that will outlive the run.
func (r *run) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	select {
	case <-r.target.Done():
		return nil // nothing left to clean
	default:
	}
	_, err := r.target.Sweep(ctx, r.prefix)
	return err
}

// header describes the run to whoever judges its history.
func (r *run) header() history.Header {
	c := r.config
	expected, why := c.Expect()
	h := history.Header{
		Schema: history.Schema, Scenario: c.Scenario.Name, Lock: c.Lock.Name,
		Target: string(r.target.Kind), Topology: r.target.Topology, ServerVersion: r.target.ServerVersion,
		Engine: load.Goroutines, Waiting: string(c.Waiting), Seed: c.Seed,
		Clients: c.Clients, Pool: c.Pool, Started: time.Now().UTC(),
		TTL: c.TTL, Wait: c.Wait, Retry: c.Retry, Hold: c.Hold, Grace: Grace, Drift: expiryDrift,
		Promises: c.Promises(), Expected: expected, ExpectedFlaws: why,
	}
	if c.Scenario.Sells() {
		h.Sale, h.Stock, h.Quantity, h.Resend, h.Refund = c.Sale.Name, c.Stock, c.Quantity, c.Resend, c.Refund
	}
	return h
}

// expiryDrift is how late a server may be to let a key expire, whose clock runs
// as fast as ours: it counts in milliseconds and reads its clock once a round.
const expiryDrift = 10 * time.Millisecond

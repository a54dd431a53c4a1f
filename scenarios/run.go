package scenarios

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dustin/go-humanize"

	"oversell/database"
	"oversell/faults"
	"oversell/history"
	"oversell/internal/mark"
	"oversell/internal/phrase"
	"oversell/load"
	"oversell/load/arrival"
	"oversell/server"
	"oversell/variant"
)

// Live shows the state of a run while it goes on.
type Live struct {
	// History is the file that operations are written to, a moment after they end.
	History string

	Ops    atomic.Int64 // recorded operations
	Sold   atomic.Int64 // pieces sold, as the buyers were told
	Rounds atomic.Int64 // steps begun, if their number is limited

	faults atomic.Pointer[func() []history.FaultCount]
	log    atomic.Pointer[history.Log]

	mu      sync.Mutex
	cancel  context.CancelFunc // of the current run
	stopped string             // why it was stopped; empty if it was not
}

// Faults returns the counts of each fault so far, in the order of the run's faults; nil if
// there are no faults, or none can fire yet. It is safe for concurrent use.
func (l *Live) Faults() []history.FaultCount {
	if counts := l.faults.Load(); counts != nil {
		return (*counts)()
	}
	return nil
}

// Watermark returns how far the file is complete; the zero value while nothing is recorded. It is safe for concurrent
// use.
func (l *Live) Water() history.Watermark {
	if log := l.log.Load(); log != nil {
		return log.Watermark()
	}
	return history.Watermark{}
}

// Follow sets the log that the file is written from.
func (l *Live) Follow(log *history.Log) { l.log.Store(log) }

// Stop ends the run like a signal: operations in progress finish, faults are healed, and the history is closed. The
// history records why. It is safe for concurrent use; only the first call counts.
func (l *Live) Stop(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped != "" {
		return
	}
	l.stopped = why
	if l.cancel != nil {
		l.cancel()
	}
}

// Stopped returns the argument of Stop; empty if the run was not stopped. It is safe for concurrent use.
func (l *Live) Stopped() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// until returns a context that ends with ctx, or when the run is stopped.
func (l *Live) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel = cancel; l.stopped != "" {
		cancel()
	}
	return ctx, cancel
}

// Servers are the servers of a run.
type Servers struct {
	Redis *server.Target
	SQL   *database.DB // nil unless a variant needs one
}

// Run runs c, which must be complete, on s, and writes all operations to a history file at path. When ctx ends, the
// clients finish their operations in progress, and the history is closed as interrupted, without an error. An error
// is an environment error (no server, disk full); the file then has the operations recorded so far.
func Run(ctx context.Context, c Config, s Servers, path string, live *Live) error {
	r := &run{runObjects: newStage(c, mark.New()), target: s.Redis, db: s.SQL, live: live, book: c.arrivals()}
	return r.do(ctx, path)
}

// run is a run in progress.
type run struct {
	*runObjects
	target *server.Target
	db     *database.DB // nil unless a variant needs one
	live   *Live

	engine *load.Engine
	log    *history.Log
	book   *arrival.Book       // nil for a closed load
	shared []*history.Recorder // shared by the clients of a worker, by its number

	injector    *faults.Injector // nil without faults
	lifeline    connBreaker
	injured     sync.Map // of *faults.Client by client ID
	renamed     sync.Map // current client IDs by the number that the client was created with
	injections  *history.Recorder
	began       time.Duration // start of the load, since the start of the run
	lastGood    atomic.Int64  // last useful answer to any client, since the start of the run
	lastServed  atomic.Int64  // call of the last operation that had a useful answer, likewise
	recovered   atomic.Bool
	unrecovered atomic.Value           // string
	stuck       atomic.Pointer[string] // why the run was ended

	sessions, orders, requests atomic.Int64

	declined sync.Map     // tasks whose orders were declined because the stock was gone
	failing  atomic.Int64 // consecutive failed operations
	silence  silence
	timeUp   atomic.Bool  // the time limit ended the run
	late     atomic.Bool  // the faults kept it going beyond its time limit
	sold     atomic.Int64 // pieces, less refunds
	hopeless atomic.Bool  // the run was ended because it had sold far too many pieces

	restarted string // the server that was restarted by somebody else, in a sentence; empty: none

	mu         sync.Mutex
	failures   int64             // operations that ended in an error
	first      error             // the first error
	afterwards mostFrequentError // the errors since all scheduled faults were over
	broken     error             // an error after which no client can go on
}

func (r *run) do(ctx context.Context, path string) (err error) {
	ctx, cancel := r.live.until(ctx)
	defer cancel()
	if r.target.Kind == server.Address {
		r.target.Log(filepath.Dir(path))
		if err := r.target.Claim(r.prefix); err != nil {
			return err
		}
	}
	var db *sql.DB
	if r.db != nil {
		db = r.db.DB
		r.db.Log(filepath.Dir(path))
		if err := r.db.Claim(ctx, r.prefix); err != nil {
			return err
		}
	}
	if r.config.Engine == load.Coroutines && r.target.Topology == "cluster" {
		return ErrClusterMux
	}
	if err := r.inject(ctx); err != nil {
		return err
	}
	over := make(chan struct{})
	defer close(over)
	go r.endSoon(ctx, over)
	config := load.Config{
		Engine: r.config.Engine, RTT: r.config.RTT, Clients: r.config.Clients,
		SQL: db, InLine: slices.Contains(r.config.Lock.Promises, variant.FIFO), Pool: r.config.Pool, Waiting: r.config.Waiting, Seed: r.config.Seed,
		Dial: r.dial, Addr: r.target.Addresses(),
		Warm: server.Warm,
	}
	if r.injector != nil {
		config.Inject = r.injectClient
		defer func() { err = errors.Join(err, r.injector.Close()) }()
	}
	if err := r.target.Fits(r.connections()); err != nil {
		return err
	}
	engine, err := load.New(ctx, config)
	if err != nil {
		return err
	}
	r.engine = engine
	defer func() { err = errors.Join(err, r.cleanUp(), engine.Close()) }()

	crowd, err := r.crowd(ctx)
	if err != nil {
		return err
	}
	administrator, err := engine.Administrator(ctx)
	if err != nil {
		return err
	}
	defer administrator.End()
	if r.config.Outside != nil {
		defer r.config.Outside.End() // also for clients that were never set up
	}
	r.prepare(ctx, append(slices.Clone(crowd), administrator))
	r.log = history.NewLog(time.Now())
	r.live.Follow(r.log)
	if open := r.config.Scenario.Open; open != nil {
		if err := open(ctx, r.client(administrator)); err != nil {
			return err
		}
	}
	w, err := history.Create(path, r.header())
	if err != nil {
		return err
	}
	trailer, err := r.record(ctx, w, crowd, administrator)
	if finished := w.Finish(trailer); err == nil { // a writer that failed before returns its error again
		err = finished
	}
	return err
}

// prepare prepares the external system for the clients, so that its start is not part of the load.
func (r *run) prepare(ctx context.Context, crowd []*load.Client) {
	if r.config.Outside == nil {
		return
	}
	r.config.Outside.Begin()
	var all sync.WaitGroup
	for _, lc := range crowd {
		all.Go(func() { r.config.Outside.Prepare(ctx, lc.Env) })
	}
	all.Wait()
}

// gone returns why the external system no longer serves clients; nil if it does.
func (r *run) gone() error {
	if r.config.Outside == nil {
		return nil
	}
	return r.config.Outside.Err()
}

// connections returns the number of connections to each node, for clients and the run itself.
func (r *run) connections() int {
	n := r.config.Pool
	if r.config.Engine == load.Coroutines {
		n = load.PipelinesPerNode()
	}
	if n == 0 {
		n = r.config.Clients
		if r.config.twins() {
			n *= 2
		}
	}
	return n + ourConnections
}

// twins reports whether each buyer has a twin, which sends an order concurrently.
func (c Config) twins() bool { return c.Resend > 0 && !c.inTurn && !c.Scenario.Uses(variant.Queue) }

// ourConnections is the number of connections for managing the run and sampling the load of the server.
const ourConnections = 3

// dialers bounds how many clients connect concurrently.
const dialers = 32

// crowd creates the clients, and a twin for each if orders may be resent.
func (r *run) crowd(ctx context.Context) ([]*load.Client, error) {
	n := r.config.Clients
	if r.config.twins() {
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

// recorder returns the recorder of a client's operations. The clients of a worker never run concurrently, and share
// one.
func (r *run) recorder(lc *load.Client) *history.Recorder {
	n := lc.Worker()
	if n < 0 {
		return r.log.Recorder(lc.ID)
	}
	for len(r.shared) <= n {
		r.shared = append(r.shared, r.log.Recorder(lc.ID))
	}
	return r.shared[n]
}

// sweepEvery is the interval at which recorded operations are written to the file: a kill -9 loses about this
// much.
const sweepEvery = 50 * time.Millisecond

// record runs the load while its operations are written to w, and reads the final state.
func (r *run) record(ctx context.Context, w *history.Writer, crowd []*load.Client, administrator *load.Client) (history.Trailer, error) {
	sweeping, stopSweeping := context.WithCancel(context.Background())
	swept := make(chan error, 1)
	go func() {
		err := r.log.DrainEvery(sweeping, sweepEvery, w.Append)
		if err != nil {
			r.halt() // later records only use memory
		}
		swept <- err
	}()
	trailer := r.drive(ctx, crowd)
	ended, since := time.Now(), r.since()
	if r.injector != nil {
		r.injector.Stop() // the final state is read after all faults are healed
	}
	healing := time.Since(ended)
	stateErr := r.audit(ctx, administrator)
	stopSweeping()
	err := <-swept
	trailer.Faults = r.unseen(r.counts())
	trailer.Unrecovered, _ = r.unrecovered.Load().(string)
	trailer.Notes = append(r.notes(stateErr), r.overtime(trailer.Elapsed, healing)...)
	select {
	case <-r.target.Done():
		err = errors.Join(err, r.target.Err())
	default:
	}
	r.mu.Lock()
	err = errors.Join(err, r.broken, r.engine.Err())
	r.mu.Unlock()
	trailer.Aborted = r.aborted(err, since)
	if r.restarted != "" {
		trailer.Befell = []variant.Fault{variant.RestartEmpty, variant.DropReply}
	}
	return trailer, err
}

// drive runs the clients until they end.
func (r *run) drive(ctx context.Context, crowd []*load.Client) (t history.Trailer) {
	clients := make(map[*load.Client]*Client, len(crowd))
	for i, lc := range crowd[:r.config.Clients] {
		clients[lc] = r.client(lc)
		clients[lc].index = i
	}
	for i, lc := range crowd[r.config.Clients:] {
		twin := r.client(lc)
		clients[crowd[i]].twin = twin
		seatOf(clients[crowd[i]]).twin, seatOf(twin).isTwin = seatOf(twin), true
	}
	gauge := r.gaugeServers()
	defer func() { t.Servers, r.restarted = gauge.end() }()
	limit, over := time.NewTimer(math.MaxInt64), make(chan struct{})
	defer limit.Stop()
	defer close(over)
	go r.stopWhen(ctx, limit.C, over)
	began, commands, pool := time.Now(), r.engine.Commands(), r.engine.PoolUse()
	r.engine.Run(crowd[:r.config.Clients], func() {
		began = time.Now()
		if r.config.Duration > 0 {
			limit.Reset(r.config.Duration)
		}
		r.start(began, over)
	}, func(lc *load.Client) { r.body(clients[lc]) })
	t = history.Trailer{Interrupted: ctx.Err() != nil, Elapsed: time.Since(began), Commands: r.engine.Commands() - commands, Arrivals: r.arrived(), Pool: r.sharing(pool)}
	t.CommandMedian, t.CommandTail = r.engine.CommandTimes()
	return t
}

// start begins the load: all clients are there, and none has done anything. over is closed at its end.
func (r *run) start(now time.Time, over <-chan struct{}) {
	since := now.Sub(r.log.Start())
	r.began = since
	if r.book != nil {
		r.book.Open(since)
	}
	if r.injector != nil {
		r.lastGood.Store(int64(since))
		r.injector.StartAt(now)
		go r.followFaults(over)
		go r.watchProgress(over)
	}
}

// sharing returns how long clients waited for shared connections since before.
func (r *run) sharing(before load.PoolUse) *history.PoolUse {
	u := r.engine.PoolUse().Sub(before)
	if u.Sent == 0 {
		return nil
	}
	return &history.PoolUse{Sent: u.Sent, Took: u.Took, Waited: u.Waited, Wait: u.Wait}
}

// stopWhen stops the engine when ctx ends, the time limit is reached (up), or the server is gone. It returns when over is
// closed.
func (r *run) stopWhen(ctx context.Context, up <-chan time.Time, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-up:
		r.late.Store(r.lasting())
		r.awaitServed(ctx, over)
		r.outlast(ctx, over)
		r.timeUp.Store(true)
	case <-r.target.Done():
	case <-over:
		return
	}
	r.halt()
}

// halt ends the run: no client begins a new step, and operations that faults delay go on.
func (r *run) halt() {
	r.engine.Stop()
	if r.injector != nil {
		r.injector.Halt()
	}
}

// outlast waits until the run need not go on for its faults.
func (r *run) outlast(ctx context.Context, over <-chan struct{}) {
	r.await(ctx, over, nil, func() bool { return !r.lasting() })
}

// await waits until so returns true, the run is over, ctx ends, the target is gone, or limit fires.
func (r *run) await(ctx context.Context, over <-chan struct{}, limit <-chan time.Time, so func() bool) {
	for !so() {
		select {
		case <-ctx.Done():
			return
		case <-r.target.Done():
			return
		case <-over:
			return
		case <-limit:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// body is one client's life.
func (r *run) body(c *Client) {
	ctx := c.Context() // operations in progress finish, also when the run is stopped
	defer func() {
		c.End()
		if c.twin != nil {
			c.twin.End()
		}
	}()
	for !r.engine.Stopping() {
		c.Turn()
		done := c.Step(ctx)
		seatOf(c).stepped()
		if !done {
			continue
		}
		if !r.lasting() {
			return
		}
		r.engine.Sleep(ctx, idlePause, nil) // the client is done, but the faults are not
	}
}

// idlePause is how long a finished client waits before it asks again, while the run goes on for its faults.
const idlePause = 20 * time.Millisecond

// stateTimeout bounds the reading of the final state.
const stateTimeout = 10 * time.Second

// audit records what the server holds after all clients have ended.
func (r *run) audit(run context.Context, lc *load.Client) error {
	audit := r.config.Scenario.Audit
	if audit == nil {
		return nil
	}
	limit := stateTimeout
	if run.Err() != nil && r.injector != nil { // a server that a fault left broken does not reply
		limit = lastWords
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return audit(ctx, r.client(lc))
}

// failed counts an operation that ended in an error.
func (r *run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	if database.Failing(err) && r.broken == nil {
		r.broken = fmt.Errorf("the database cannot be written to: %w", err)
		r.halt()
	}
	if r.injector != nil && r.injector.Disturbed() {
		r.failing.Store(0)
	}
	if r.failing.Add(1) == failuresInARow || r.gone() != nil {
		r.halt()
	}
	if r.first == nil {
		r.first = err
	}
	if r.settled() {
		r.afterwards.add(err)
	}
}

// aborted explains what ended the run early, or why operations were no longer answered at its end; empty if neither
// happened. then is when the load ended.
func (r *run) aborted(err error, then time.Duration) string {
	switch {
	case err != nil:
		return r.target.Hide(err.Error())
	case r.restarted != "":
		return r.restarted
	case r.failing.Load() >= failuresInARow:
		return fmt.Sprintf("%d operations in a row ended in an error", failuresInARow)
	case r.gone() != nil:
		return r.target.Hide(phrase.OneLine(r.gone().Error()))
	case r.stuck.Load() != nil:
		return *r.stuck.Load()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	disturbed := r.injector != nil // faults may keep answers from all clients
	if all := r.live.Ops.Load(); !disturbed && 2*r.failures > all {
		return fmt.Sprintf("%d of %d operations ended in an error", r.failures, all)
	}
	if r.config.Outside != nil {
		if err := r.config.Outside.Silent(disturbed); err != nil {
			return r.target.Hide(phrase.OneLine(err.Error()))
		}
	}
	if r.timeUp.Load() && r.config.capped {
		return fmt.Sprintf("some clients had no answer after %v (see --duration)", r.config.Duration)
	}
	return r.silent(then)
}

// failuresInARow is how many consecutive operations of all clients may fail before the run gives up.
const failuresInARow = 1000

// notes returns facts that no operation shows.
func (r *run) notes(stateErr error) (notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.live.Stopped(); why != "" {
		notes = append(notes, "stopped at a violation: "+why)
	}
	if r.failures > 0 {
		notes = append(notes, fmt.Sprintf("operations that ended in an error: %d; the first: %s", r.failures, r.plainError(r.first)))
	}
	if r.config.spreadOut {
		notes = append(notes, fmt.Sprintf("sections lasted %v, so that the sale was running when the faults fired (see --hold)", r.config.Hold))
	}
	if stateErr != nil {
		notes = append(notes, fmt.Sprintf("the final state could not be read: %v", stateErr))
	}
	if r.config.Scenario.Uses(variant.Sale) && r.timeUp.Load() && !r.config.capped && (r.book == nil || !r.book.Served()) {
		notes = append(notes, fmt.Sprintf("the sale was ended after %v, before every client had an answer", r.config.Duration))
	}
	if r.hopeless.Load() {
		notes = append(notes, fmt.Sprintf("the sale was ended after %s pieces were sold, far too many: it would hardly have ended by itself (use --duration to let it go on)",
			humanize.Comma(r.config.hopeless())))
	}
	if r.config.Outside != nil {
		notes = append(notes, r.config.Outside.Notes()...)
	}
	return notes
}

// overtime returns notes about how the faults prolonged the run: elapsed is how long the clients ran, and healing
// how long it took after that until all faults were healed.
func (r *run) overtime(elapsed, healing time.Duration) (notes []string) {
	if r.late.Load() {
		notes = append(notes, fmt.Sprintf("the clients went on for %v instead of %v (see --duration): until then not every fault had ended, or they had not recovered",
			elapsed.Round(time.Millisecond), r.config.Duration))
	}
	if healing >= noticeable {
		notes = append(notes, fmt.Sprintf("the faults were healed %v after the clients had ended", healing.Round(time.Millisecond)))
	}
	return notes
}

// noticeable is how long healing must take to be reported.
const noticeable = 500 * time.Millisecond

// reinstateTimeout is how long the servers may take to restore their original masters.
const reinstateTimeout = time.Minute

// cleanUp removes the run's tables, and its keys from servers that outlive the run; on these it restores the
// original masters.
func (r *run) cleanUp() error {
	return errors.Join(r.cleanTarget(), r.cleanDatabase())
}

func (r *run) cleanDatabase() error {
	if r.db == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	_, err := r.db.Sweep(ctx, r.prefix)
	return err
}

func (r *run) cleanTarget() error {
	select {
	case <-r.target.Done():
		return nil // nothing left to clean
	default:
	}
	if r.config.BreaksServers() && r.target.Kind != server.Address {
		return nil // they end with the run, and some have ended already
	}
	ctx, cancel := context.WithTimeout(context.Background(), reinstateTimeout)
	defer cancel()
	err := r.target.Reinstate(ctx)
	ctx, cancel = context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	_, swept := r.target.Sweep(ctx, r.prefix)
	return errors.Join(err, swept)
}

// header describes the run for the judges of its history.
func (r *run) header() history.Header {
	c := r.config
	expected, why := c.Expect()
	h := history.Header{
		Schema: history.Schema, Scenario: c.Scenario.Name, Lock: c.Lock.Name,
		Target: string(r.target.Kind), Topology: r.target.Topology, ServerVersion: r.target.ServerVersion,
		Engine: c.Engine, RTT: c.RTT, Pipelines: r.engine.Pipelines(), Waiting: string(c.Waiting), Seed: c.Seed,
		Clients: c.Clients, Pool: c.Pool, Started: time.Now().UTC(),
		TTL: c.TTL, Wait: c.Wait, Retry: c.Retry, Hold: c.Hold, Grace: c.Grace(), Drift: expiryDrift,
		Promises: c.Promises(), Expected: expected, ExpectedFlaws: why,
		Declared: c.declared(), KnownToBreak: c.KnownToBreak(),
	}
	for _, s := range c.Subjects() {
		h.Objects = append(h.Objects, s.Of)
	}
	h.Renews = c.Lock.Renews
	h.Duration, h.Ops, h.Timeout = c.Duration, c.Ops, c.Timeout
	if c.OpenLoad() {
		h.Rate, h.Arrival = c.Rate.String(), string(c.Arrival)
	}
	h.Faults, h.Redial = c.sentences(), Redial
	h.IDs, h.Queue, h.Dispatch = c.IDs.Name, c.Queue.Name, c.Dispatch.Name
	if r.db != nil {
		h.SQL = fmt.Sprintf("%s %s", r.db.Kind, r.db.ServerVersion)
	}
	h.Abandon = c.Abandon
	h.Visibility, h.Delay, h.Die, h.Repeat = c.QueueOptions.Visibility, c.Delay, c.Die, c.Repeat
	h.Overwrite, h.Attempts = c.QueueOptions.Overwrite, c.QueueOptions.MaxAttempts
	if c.Scenario.Uses(variant.Queue) {
		h.Batch, h.Withdraw, h.Peek = c.Batch, c.Withdraw, c.Peek
	}
	if c.Scenario.Uses(variant.Sale) {
		h.Sale, h.Stock, h.Quantity, h.Resend, h.Refund = c.Sale.Name, c.Stock, c.Quantity, c.Resend, c.Refund
		h.RefuseStale = c.RefuseStale
	}
	return h
}

// expiryDrift is how late a server may expire a key if its clock runs at our rate: its clock has millisecond
// resolution and is read once per event loop iteration.
const expiryDrift = 10 * time.Millisecond

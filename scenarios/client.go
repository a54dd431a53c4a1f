package scenarios

import (
	"context"
	"errors"
	"time"

	"oversell/dispatchimpl"
	"oversell/faults"
	"oversell/history"
	"oversell/idimpl"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Client is one client of a running scenario: its environment, its handles of the lock and of the sale, and its
// driver. It is not safe for concurrent use.
type Client struct {
	*load.Client
	stage  *runObjects
	driver driver
	placed bool // the driver follows the client's places
	index  int  // among the run's clients; a successor keeps it
	locker lockimpl.Locker
	sale   stockimpl.Sale
	ids    idimpl.Generator
	queue  queueimpl.Queue
	pool   dispatchimpl.Pool
	// twin sends an order a second time while the first is in flight; nil without resends.
	twin *Client

	// injured is the client's state in the fault injector; nil in a run without faults.
	injured *faults.Client
	depth   int             // nested operations in progress
	leases  map[int64]lease // as granted, by session
	lost    bool            // an operation had no answer: the client gets a new identity
	deaths  int             // how often this client has died and was replaced
	via     object          // the last lockimpl.Lock.Via

	// inner holds the sessions of locks held inside the queue or the pool, by key.
	inner map[string]int64

	lastTask string    // enqueued by this client
	idle     time.Time // since when a consumer has found nothing
}

func (r *run) client(lc *load.Client) *Client {
	c := &Client{stage: r.runObjects, driver: &runDriver{run: r, ctx: lc.Context(), rec: r.recorder(lc)}}
	c.become(lc)
	return c
}

// become gives the client a new identity without memory.
func (c *Client) become(lc *load.Client) {
	c.Client = lc
	c.injured = c.driver.arrive(lc.ID, c.injured)
	if c.stage.config.Lock.New != nil {
		c.locker = c.stage.config.Lock.New(lc.Env)
	}
	if c.stage.config.Scenario.Uses(variant.Sale) {
		c.sale = c.stage.config.Sale.New(lc.Env, c.stage.product.name)
		if o, ok := c.sale.(stockimpl.Optimist); ok && c.stage.config.RefuseStale {
			o.RefuseStale()
		}
	}
	if c.stage.config.Scenario.Uses(variant.IDs) {
		c.ids = c.stage.config.IDs.New(lc.Env, c.stage.counter.name)
	}
	if c.stage.config.Scenario.Uses(variant.Dispatch) {
		c.pool = c.stage.config.Dispatch.New(lc.Env, c.stage.pool.name, c.recorded(c.locker), dispatchimpl.Options{Limit: c.stage.config.TTL})
	}
	if c.stage.config.Scenario.Uses(variant.Queue) {
		c.queue = c.stage.config.Queue.New(lc.Env, c.queueOptions())
	}
}

// queueOptions returns the run's options, with a lock that records its operations.
func (c *Client) queueOptions() queueimpl.Options {
	o := c.stage.config.QueueOptions
	if c.stage.config.Queue.Locked {
		o.Lock = func(variant.Env) lockimpl.Locker { return c.recorded(c.locker) }
		o.LockOptions = c.stage.options
	}
	return o
}

// nextOrder returns a new order, for one piece or, at random, for more.
func (c *Client) nextOrder() stockimpl.Order {
	o := stockimpl.Order{ID: c.driver.number(numberedOrder), Quantity: 1}
	if q := c.stage.config.Quantity; q > 1 {
		o.Quantity += c.Rand.IntN(q)
	}
	return o
}

func (c *Client) chance(p float64) bool { return p > 0 && c.Rand.Float64() < p }

// acquire acquires the scenario's lock under a new session number.
func (c *Client) acquire(ctx context.Context) (l lockimpl.Lock, session int64, ok bool) {
	l, session, err := c.acquireOn(ctx, c.locker, c.stage.lock.name, c.stage.options)
	return l, session, err == nil
}

func (c *Client) acquireOn(ctx context.Context, locker lockimpl.Locker, name string, o lockimpl.Options) (lockimpl.Lock, int64, error) {
	if c.dead() && !c.replaced() {
		return lockimpl.Lock{}, 0, faults.ErrCrashed
	}
	c.Begin()
	c.tries()
	session := c.driver.number(numberedSession)
	op := c.begin(history.Op{Kind: history.Acquire, Key: c.keyOf(name), Arg: history.Int(session)})
	l, err := locker.Acquire(c.Trying(ctx), name, o)
	if err == nil {
		op.Fence = l.Fence
		op.Until = c.leaseEnd(session, l)
		if l.Via != "" {
			op.Result = c.viaOf(l.Via)
		}
		if !l.Joined.IsZero() {
			join := op
			join.Kind, join.Fence, join.Until, join.Result = history.Join, 0, 0, history.Value{}
			join.Outcome, join.Return = history.OK, c.onRunClock(l.Joined)
			c.driver.ended(join, nil)
		}
	}
	if err != nil {
		c.givesUp()
	}
	ok := c.record(op, err)
	if ok {
		c.granted(locker, l)
	}
	c.Holds(ok)
	if err == nil && (!ok || c.dead()) {
		err = faults.ErrCrashed // no client is left to enter the section
		c.lost = c.lost || ok
		c.replaceLost()
	}
	return l, session, err
}

// keyOf returns the key of a lock as a value of the history. That of the scenario's lock has been interned before.
func (c *Client) keyOf(name string) history.Value {
	if name == c.stage.lock.name {
		return c.stage.lock.key
	}
	return history.Text(name)
}

// viaOf returns what granted a lock as a value of the history. It interns it only if it differs from the last one.
func (c *Client) viaOf(name string) history.Value {
	if c.via.name != name {
		c.via = object{name, history.Text(name)}
	}
	return c.via.key
}

// extend extends a lease. able is false if the lock cannot be extended: then nothing was sent, and nothing is
// recorded.
func (c *Client) extend(ctx context.Context, l lockimpl.Lock, session int64) (_ lockimpl.Lock, ok, able bool) {
	op := c.begin(history.Op{Kind: history.Extend, Key: c.stage.lock.key, Arg: history.Int(session)})
	extended, err := c.locker.Extend(ctx, l, c.stage.config.TTL)
	if errors.Is(err, errors.ErrUnsupported) {
		c.driver.dropped(op, err)
		c.leave()
		return l, true, false
	}
	if err == nil { // otherwise it is released as it was granted
		l = extended
		op.Until = c.leaseEnd(session, l)
	}
	return l, c.record(op, err), true
}

// release releases the scenario's lock.
func (c *Client) release(ctx context.Context, l lockimpl.Lock, session int64) {
	_ = c.releaseOn(ctx, c.locker, c.stage.lock.name, l, session) // recorded; an error needs no further handling
}

// releaseOn releases the lock of that name. The operation records the end of the lease as last renewed, to detect a section that
// outlived it.
func (c *Client) releaseOn(ctx context.Context, locker lockimpl.Locker, name string, l lockimpl.Lock, session int64) error {
	c.releases()
	if c.dead() {
		c.replaced()
		return faults.ErrCrashed
	}
	l = renewed(locker, l)
	op := c.begin(history.Op{Kind: history.Release, Key: c.keyOf(name), Arg: history.Int(session), Until: c.leaseEnd(session, l)})
	delete(c.leases, session)
	err := locker.Release(ctx, l)
	c.givesUp()
	if c.record(op, err) {
		c.Released(ctx, name)
	}
	c.Holds(false)
	return err
}

// rest spends a part of a section. It reports whether the section may go on, which it may not after the lock has
// reported its loss.
func (c *Client) rest(ctx context.Context, l lockimpl.Lock, d time.Duration) bool {
	var lost <-chan struct{}
	if loser, tells := c.locker.(lockimpl.LossNotifier); tells {
		lost = loser.Lost(l)
	}
	return c.driver.rest(ctx, d, lost)
}

// begin starts an operation of this client, which record or leave ends.
func (c *Client) begin(op history.Op) history.Op {
	c.depth++
	if c.injured != nil {
		c.injured.Enter(op.Kind.String())
	}
	now := c.driver.now()
	op.Client, op.Due, op.Call = c.ID, c.driver.due(now), now
	c.driver.began(op)
	return op
}

// leave ends what begin began. After an operation without an answer the client gets a new identity, because the
// operation may still take effect.
func (c *Client) leave() {
	c.depth--
	c.driver.settled(c.depth > 0)
	if c.injured != nil {
		c.injured.Leave()
	}
	c.replaceLost()
}

// replaceLost replaces a client whose operation had no answer.
func (c *Client) replaceLost() {
	if c.lost {
		c.replaced()
	}
}

// replaced replaces a client that is dead or lost an answer, unless it is in the middle of an operation.
func (c *Client) replaced() bool {
	if c.depth > 0 {
		return false
	}
	c.lost = false
	c.driver.replace(c)
	return true
}

// record ends an operation with err, and reports whether it succeeded. The outcome of an
// operation of a dead client is unknown.
func (c *Client) record(op history.Op, err error) bool {
	op.Outcome, op.Reason = outcomeOf(err)
	ops, errs := [1]history.Op{op}, [1]error{err}
	return c.recordAll(ops[:], errs[:]) && op.Outcome == history.OK
}

// recordAll ends one call that consists of several operations, all at the same time, each with its own error. It
// reports whether the call was answered. An operation that was not sent because the run ended is not recorded,
// unless its client was waiting for a lock or had taken a task.
func (c *Client) recordAll(ops []history.Op, errs []error) (answered bool) {
	if k := ops[0].Kind; k != history.Acquire && k != history.Effect && errors.Is(errs[0], variant.ErrStopped) {
		for i := range ops {
			c.driver.dropped(ops[i], errs[i])
		}
		c.leave()
		return false
	}
	now := c.driver.now()
	for i := range ops {
		op := &ops[i]
		op.Return = now
		op.Outcome, op.Reason = outcomeOf(errs[i])
		if c.dead() {
			op.Outcome, op.Reason = history.Unknown, history.NoReason
		}
		c.driver.ended(*op, errs[i])
		c.driver.went(c, *op, errs[i])
		answered = op.Outcome != history.Unknown
		c.lost = c.lost || !answered
	}
	c.leave()
	return answered
}

// recordAt records a successful operation whose times are set.
func (c *Client) recordAt(op history.Op) {
	op.Outcome = history.OK
	c.driver.ended(op, nil)
}

// lease is the end of a lease, by the client's clock and by the run's.
type lease struct {
	own time.Time
	run time.Duration
}

// leaseEnd returns the end of a session's lease by the clock of the run. It is converted once: a fault may change
// the client's clock during the lease.
func (c *Client) leaseEnd(session int64, l lockimpl.Lock) time.Duration {
	if c.injured == nil {
		return c.driver.at(l.Until)
	}
	if known, ok := c.leases[session]; ok && known.own.Equal(l.Until) {
		return known.run
	}
	if c.leases == nil {
		c.leases = map[int64]lease{}
	}
	c.leases[session] = lease{l.Until, c.onRunClock(l.Until)}
	return c.leases[session].run
}

// onRunClock converts a reading of the client's clock to the time of the run.
func (c *Client) onRunClock(t time.Time) time.Duration {
	if c.injured == nil || t.IsZero() {
		return c.driver.at(t)
	}
	return c.driver.at(t.Add(-c.injured.Ahead()))
}

// dead reports whether a fault has ended this client.
func (c *Client) dead() bool { return c.injured != nil && c.injured.Dead() }

// tries, granted, releases and givesUp report the client's lock state to the faults. Between granted and releases
// the client is in its section.
func (c *Client) tries() {
	if c.injured != nil {
		c.injured.Tries()
	}
}

func (c *Client) granted(locker lockimpl.Locker, l lockimpl.Lock) {
	if c.injured == nil {
		return
	}
	c.injured.Granted(func() bool {
		until := renewed(locker, l).Until
		return !until.IsZero() && c.Env.Clock.Now().After(until)
	})
}

func (c *Client) releases() {
	if c.injured != nil {
		c.injured.Releases()
	}
}

func (c *Client) givesUp() {
	if c.injured != nil {
		c.injured.GivenUp()
	}
}

// renewed returns a lock with its lease as last renewed, if the locker renews.
func renewed(locker lockimpl.Locker, l lockimpl.Lock) lockimpl.Lock {
	if r, renews := locker.(lockimpl.Renewer); renews {
		return r.Renewed(l)
	}
	return l
}

// outcomeOf classifies an error: only declared errors are definite.
func outcomeOf(err error) (history.Outcome, history.Reason) {
	if err == nil {
		return history.OK, history.NoReason
	}
	for _, d := range declared {
		if errors.Is(err, d.err) {
			return d.outcome, d.reason
		}
	}
	return history.Unknown, history.NoReason
}

// declared are the errors that are definite. A refusal because the run is ending precedes the refusal that wraps
// it.
var declared = []struct {
	err     error
	outcome history.Outcome
	reason  history.Reason
}{
	{variant.ErrStopped, history.Refused, history.Stopped},
	{lockimpl.ErrHeld, history.Refused, history.Held},
	{lockimpl.ErrLost, history.Refused, history.Lost},
	{queueimpl.ErrEmpty, history.Refused, history.Empty},
	{queueimpl.ErrLocked, history.Refused, history.Held},
	{queueimpl.ErrLost, history.Refused, history.Lost},
	{queueimpl.ErrChanged, history.Refused, history.Changed},
	{dispatchimpl.ErrEmpty, history.Refused, history.Empty},
	{dispatchimpl.ErrBusy, history.Refused, history.Held},
	{dispatchimpl.ErrLost, history.Refused, history.Lost},
	{errIgnored, history.OK, history.Repeated},
	{errDone, history.OK, history.Repeated},
	{stockimpl.ErrSoldOut, history.Refused, history.SoldOut},
	{stockimpl.ErrStale, history.Refused, history.Stale},
	{stockimpl.ErrRepeated, history.OK, history.Repeated},
}

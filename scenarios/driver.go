package scenarios

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/queueimpl"
)

// runObjects holds the objects and rules of a run: data shared by all clients.
type runObjects struct {
	config                              Config
	options                             lockimpl.Options
	prefix                              string // of every key
	lock, product, counter, queue, pool object

	finished atomic.Int64 // producers that are finished, or tasks that may have been submitted
	openPops sync.Map     // requests of pops without an answer
	given    atomic.Int64 // tasks of a dispatch given out
}

func newStage(c Config, prefix string) *runObjects {
	object := func(name string) object { return object{prefix + name, history.Text(prefix + name)} }
	return &runObjects{
		config:  c,
		options: lockimpl.Options{TTL: c.TTL, Wait: c.Wait, RetryEvery: c.Retry, MaxTries: c.MaxTries},
		prefix:  prefix,
		lock:    object("order"), product: object("phone"), counter: object("thread"),
		queue: object("orders"), pool: object("pool"),
	}
}

// object is the name of an object in this run.
type object struct {
	name string
	key  history.Value
}

// Kinds of numbers that clients draw.
const (
	numberedOrder   = "order" // also tasks, and requests for a number
	numberedSession = "session"
	numberedRequest = "request" // for tasks
)

// driver is what the steps of a client need beyond its variant.Env; a run (runDriver) or a search (searchDriver) provides it.
// Operations are passed by value to avoid heap allocations.
type driver interface {
	// enough reports whether nothing more must be begun.
	enough() bool
	// stopping reports whether the run is being ended and pauses are skipped.
	stopping() bool
	// takeStep takes one of the run's steps, and reports whether one was left. comes is the same if the number of
	// steps is not limited. In an open load both wait until the step is due.
	takeStep() bool
	comes() bool
	// keepsComing reports whether buyers continue after the stock is gone.
	keepsComing() bool
	// quiet reports, for a consumer that found nothing, whether nothing more can come.
	quiet(c *Client) bool
	// boundary is called before each acquisition, and before each action under the lock, with the place in the step that
	// the client has reached. It is only called for clients that are placed.
	boundary(c *Client, at place)
	// number returns a new number, unique among clients, of one of the kinds.
	number(of string) int64

	// rest spends time in a section. It returns false when lost is closed.
	rest(ctx context.Context, d time.Duration, lost <-chan struct{}) bool
	// now returns the time since the start; it increases with every call, or does not move.
	now() time.Duration
	// due returns when an operation that is called now should have started.
	due(call time.Duration) time.Duration
	// at converts a clock reading to the time since the start.
	at(t time.Time) time.Duration

	// began is called for an operation at its call, dropped for one that is left out of the history, and ended for
	// one that is recorded.
	began(op history.Op)
	dropped(op history.Op, err error)
	ended(op history.Op, err error)
	// settled is called after all finished operations were reported; within reports whether another operation
	// encloses them.
	settled(within bool)
	// went and failed report how operations end.
	went(c *Client, op history.Op, err error)
	failed(err error)
	// decline returns the result of a task that was declined because the stock is gone.
	decline(task string) error

	// arrive registers a client identity that replaces old, if that is not nil, and returns its state in the fault
	// injector.
	arrive(id int32, old *faults.Client) *faults.Client
	// replace replaces a client that is dead or lost an answer.
	replace(c *Client)
}

// place is a client's position in a step, with all that the step remembers there.
type place struct {
	round  int // at the start of one
	what   string
	number int64
	text   string
	again  int
	task   queueimpl.Task
	under  *grant // the lock that the client holds
	left   time.Duration
	next   string // the next action under the lock
	answer answer
}

// grant is a lock as its holder remembers it.
type grant struct {
	lock    lockimpl.Lock
	session int64
}

// holding returns a place under a lock, with the client's next action there.
func (at place) holding(l lockimpl.Lock, session int64, next string) place {
	l.Joined = time.Time{} // it is not read again
	at.round, at.under, at.next = 0, &grant{l, session}, next
	return at
}

// reaches calls the boundary before an acquisition.
func (c *Client) reaches(at place) {
	if c.placed {
		c.driver.boundary(c, at)
	}
}

// reachesUnder calls the boundary before the next action under a lock. a is the answer to the action before.
func (c *Client) reachesUnder(l lockimpl.Lock, session int64, at place, next string, a answer) {
	if c.placed { // otherwise the place is not even made
		at = at.holding(l, session, next)
		at.answer = a
		c.driver.boundary(c, at)
	}
}

// runDriver is one client's place in a run.
type runDriver struct {
	*run
	ctx  context.Context   // of the client; it outlasts a stopped run, so that operations in progress finish
	id   int32             // of the client
	rec  *history.Recorder // of the client, or shared by all clients of a worker
	call time.Duration     // of the current operation; 0: there is none
	turn turn
	// twin is the seat of the client's twin; nil if it has none or isTwin.
	twin   *runDriver
	isTwin bool
}

func (s *runDriver) now() time.Duration { return s.rec.Now() }

func (s *runDriver) boundary(*Client, place) {}

// began records the call of an operation, but not of a nested one.
func (s *runDriver) began(op history.Op) {
	if s.call == 0 {
		s.call = op.Call
		s.rec.Begun(op.Call)
	}
	s.rec.Noted()
}

func (s *runDriver) settled(within bool) {
	if !within && s.call != 0 {
		s.rec.Settled(s.call)
		s.call = 0
	}
	s.rec.Noted()
}

func (s *runDriver) dropped(history.Op, error) {}

func (s *runDriver) ended(op history.Op, _ error) {
	s.rec.SetClient(s.id)
	s.rec.Record(&op)
	s.live.Ops.Add(1)
}

func (s *runDriver) arrive(id int32, old *faults.Client) *faults.Client {
	s.id = id
	return s.injuredBy(id, old)
}

// replace gives the client a new identity: operations of the old one may still take effect.
func (s *runDriver) replace(c *Client) {
	s.engine.Sleep(c.Context(), errorPause, nil)
	if c.dead() {
		c.deaths++
		c.become(c.Successor())
		return
	}
	c.Rename()
	s.id = c.ID
	if c.injured != nil {
		s.renamed.Store(c.injured.Number(), c.ID)
	}
}

// errorPause slows down clients of a server that answers with errors.
const errorPause = 20 * time.Millisecond

func (r *run) enough() bool   { return r.engine.Stopping() }
func (r *run) stopping() bool { return r.engine.Stopping() }

// takeStep takes one of the run's limited steps, and reports whether one was left.
func (r *run) takeStep() bool {
	return r.config.Ops == 0 || r.live.Rounds.Add(1) <= r.config.Ops || r.lasting()
}

func (r *run) number(of string) int64 {
	switch of {
	case numberedOrder:
		return r.orders.Add(1)
	case numberedSession:
		return r.sessions.Add(1)
	}
	return r.requests.Add(1)
}

func (r *run) rest(ctx context.Context, d time.Duration, lost <-chan struct{}) bool {
	return d <= 0 || r.engine.Sleep(ctx, d, lost)
}

func (r *run) at(t time.Time) time.Duration { return r.log.Since(t) }

// quiet reports whether the producers have finished, and the client has found nothing for so long that nothing more
// can come.
func (r *run) quiet(c *Client) bool {
	if r.finished.Load() < int64((r.config.Clients+1)/2) {
		return false
	}
	if c.idle.IsZero() {
		c.idle = time.Now()
	}
	return time.Since(c.idle) > quietTime+r.config.Delay+r.config.QueueOptions.Visibility
}

// decline counts a declined task as done, once.
func (r *run) decline(task string) error {
	if _, again := r.declined.LoadOrStore(task, true); again {
		return errDone
	}
	return nil
}

// errDone is the result of a task that was done before.
var errDone = errors.New("task was done before")

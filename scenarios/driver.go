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

// stage is what clients work on and by which rules: data, the same for all clients
// of a run.
type stage struct {
	config                              Config
	options                             lockimpl.Options
	prefix                              string // of every key
	lock, product, counter, queue, pool object

	finished atomic.Int64 // producers that have nothing more to enqueue, or tasks that may have been submitted
	openPops sync.Map     // requests of pops without an answer
	given    atomic.Int64 // tasks of a dispatch, to whomever
}

func newStage(c Config, prefix string) *stage {
	object := func(name string) object { return object{prefix + name, history.Text(prefix + name)} }
	return &stage{
		config:  c,
		options: lockimpl.Options{TTL: c.TTL, Wait: c.Wait, RetryEvery: c.Retry, MaxTries: c.MaxTries},
		prefix:  prefix,
		lock:    object("order"), product: object("phone"), counter: object("thread"),
		queue: object("orders"), pool: object("pool"),
	}
}

// object is something that clients work on, by the name that it has in this run.
type object struct {
	name string
	key  history.Value
}

// What a client numbers.
const (
	numberedOrder   = "order" // also tasks, and wishes for a number
	numberedSession = "session"
	numberedRequest = "request" // for tasks
)

// driver is what the steps of one client need beyond its variant.Env, from
// whatever drives it: a run (seat) or a search (solo). Operations go by value,
// so that they stay off the heap.
type driver interface {
	// enough tells that nothing more is to be begun.
	enough() bool
	// stopping tells that the run is being ended, and that no time passes any more.
	stopping() bool
	// takeStep takes one of the steps that there are to take, and reports whether
	// there was one left. comes is the same where the number of steps is not limited. In
	// an open load both wait until the step is due.
	takeStep() bool
	comes() bool
	// keepsComing reports whether buyers come although the stock is gone.
	keepsComing() bool
	// quiet tells a consumer that found nothing whether nothing more can come.
	quiet(c *Client) bool
	// turn is told where in a step the client is: before each acquisition, and before each
	// thing that it does with the lock.
	boundary(c *Client, at place)
	// number is a new number, unique among clients, for one of the numbered things.
	number(of string) int64

	// rest lets time pass in a section. It reports false when lost is closed.
	rest(ctx context.Context, d time.Duration, lost <-chan struct{}) bool
	// now is the time since the start; it rises with every call, or stands still.
	now() time.Duration
	// due is when an operation that is called now should have started.
	due(call time.Duration) time.Duration
	// at converts a reading of the clock to the time since the start.
	at(t time.Time) time.Duration

	// began is told of an operation that is called, dropped of one that came to
	// nothing and is no part of the history, and ended of one that is.
	began(op history.Op)
	dropped(op history.Op, err error)
	ended(op history.Op, err error)
	// settled is told that everything that has ended was told of, and whether another
	// operation is under way around it.
	settled(within bool)
	// went and failed are told how things go.
	went(c *Client, op history.Op, err error)
	failed(err error)
	// decline says what becomes of a task that was declined for want of stock.
	decline(task string) error

	// arrive is told of an identity that takes the place of old, if that is not nil,
	// and returns what the faults know of it.
	arrive(id int32, old *faults.Client) *faults.Client
	// replace has another take the place of a client that is dead or had no answer.
	replace(c *Client)
}

// place is where in a step a client is, with all that the step remembers there.
type place struct {
	round  int // at the start of one
	what   string
	number int64
	text   string
	again  int
	task   queueimpl.Task
	under  *grant // what the client holds
	left   time.Duration
	next   string // of what it does under the lock
	answer answer
}

// grant is a lock as its holder remembers it.
type grant struct {
	lock    lockimpl.Lock
	session int64
}

// holding is a place under a lock, and what the client does there next.
func (at place) holding(l lockimpl.Lock, session int64, next string) place {
	l.Joined = time.Time{} // it is not read again
	at.round, at.under, at.next = 0, &grant{l, session}, next
	return at
}

// seat is one client's place in a run.
type seat struct {
	*run
	ctx  context.Context   // the client's: what is under way is finished, also when the run is stopped
	id   int32             // the client's
	rec  *history.Recorder // of the client, or of all clients of a worker
	call time.Duration     // of the operation under way; 0: there is none
	turn turn
	// twin is the seat of the client's twin; nil: it has none, or isTwin itself.
	twin   *seat
	isTwin bool
}

func (s *seat) now() time.Duration { return s.rec.Now() }

func (s *seat) boundary(*Client, place) {}

// began notes the call of an operation, but not of an operation within another one.
func (s *seat) began(op history.Op) {
	if s.call == 0 {
		s.call = op.Call
		s.rec.Begun(op.Call)
	}
	s.rec.Noted()
}

func (s *seat) settled(within bool) {
	if !within && s.call != 0 {
		s.rec.Settled(s.call)
		s.call = 0
	}
	s.rec.Noted()
}

func (s *seat) dropped(history.Op, error) {}

func (s *seat) ended(op history.Op, _ error) {
	s.rec.As(s.id)
	s.rec.Record(&op)
	s.live.Ops.Add(1)
}

func (s *seat) arrive(id int32, old *faults.Client) *faults.Client {
	s.id = id
	return s.injuredBy(id, old)
}

// replace gives the client a new identity: what the old one asked for may still
// happen.
func (s *seat) replace(c *Client) {
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

// errorPause keeps clients from hammering a server that answers with errors.
const errorPause = 20 * time.Millisecond

func (r *run) enough() bool   { return r.engine.Stopping() }
func (r *run) stopping() bool { return r.engine.Stopping() }

// takeStep takes one of the steps that the run is limited to, and reports
// whether there was one left.
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

// quiet reports whether the producers have finished, and the client has found
// nothing for so long that nothing more can come.
func (r *run) quiet(c *Client) bool {
	if r.finished.Load() < int64((r.config.Clients+1)/2) {
		return false
	}
	if c.idle.IsZero() {
		c.idle = time.Now()
	}
	return time.Since(c.idle) > quietTime+r.config.Delay+r.config.QueueOptions.Visibility
}

// decline counts a declined task as done, and once.
func (r *run) decline(task string) error {
	if _, again := r.declined.LoadOrStore(task, true); again {
		return errDone
	}
	return nil
}

// errDone answers a consumer whose task had been done before.
var errDone = errors.New("task was done before")

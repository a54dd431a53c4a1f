package scenarios

import (
	"context"
	"errors"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/internal/closed"
	"oversell/load"
	"oversell/stockimpl"
	"oversell/variant"
)

// ClientEnv is the environment of a client that is not driven by [Run]: a client of a search, in which a schedule
// decides what happens when. Every field but OpenPops and Turn must be set.
type ClientEnv struct {
	// Env is what the variants use. The client itself uses it only for the commands of a queue's effects and for
	// the waits of a consumer that found nothing; it never reads the clock.
	Env variant.Env
	// Index is the client's number in the scenario, from 0: producers are even. It is the Client of every
	// operation.
	Index int
	// Epoch is the start of the run.
	Epoch time.Time

	// Enough reports whether the client must begin nothing more in this round. It is called before every
	// acquisition for a sale or a number (so a busy lock is retried until Enough), before an order is sent again,
	// and before a task is enqueued; sometimes twice. For a task that was delivered the lock is tried at least
	// once; if it is not obtained, the consumer keeps the task, unfinished.
	Enough func() bool
	// Number returns a new number, from 1, unique among clients: of an "order" (also a task, or a request for a
	// number), a "session" (an acquisition) or a "request" (a pop). It is never 0.
	Number func(what string) int64
	// Pause returns when the schedule lets the client go on; what describes the pause. The scenario mutex pauses
	// once in each "section", and again for each extension of the lock, unless the lock reported its loss before.
	Pause func(what string)

	// Turn is called when all of the client's state is in memory: at the start of a round and, within one, before
	// each acquisition, section and release. Two clients of one configuration with equal memories behave alike,
	// whatever they did before. The position in the round is part of the memory.
	//
	// The objects in memory refer to infrastructure, which makes no difference and must be skipped: a [variant.Env]
	// and what belongs to one (redis clients, clocks, functions), and a pointer to the Client itself. Turn may be
	// nil.
	Turn func(begins bool, memory []any)

	// Began is called with an operation at its call, and Ended at its end. Operations may be nested: an effect
	// contains a purchase, and a queue's operation those of its lock. Times are zero, except Until.
	//
	// An operation that began and never ends is in progress, or its client was not allowed to go on. A Join ends
	// without Began, before its Acquire does.
	Began func(op history.Op)
	// Ended gets the outcome and the underlying error. If a consumer cannot know whether another one was first, the
	// outcome differs from that in Run: an Effect whose order was declined is Refused as SoldOut, and one with a
	// stale token, which Run does not record, is Refused as Stale.
	Ended func(op history.Op, err error)

	// OpenPops are the requests of pops that no client got an answer to. Audit looks up the tasks that they took.
	OpenPops []int64
}

// Alone creates a client of c in w. Names have no prefix, so the keys are Lock:order, Stock:phone, Id:thread,
// Queue:orders. c must be complete, and no variant of it may need an SQL database.
//
// Nothing is random: all orders are for Quantity pieces, all delays are Delay, and the probabilities Refund and
// Repeat must be 0 or 1 ([None] keeps them 0 when a config is completed). Resend, Die, Faults, Ops and Duration
// have no effect: a schedule resends by losing a reply, and kills a client by never resuming it. Hold has none
// either, because a schedule stretches any section, unless the scenario Extends the lock every half TTL of it.
func Alone(c Config, w ClientEnv) *Client {
	c.Resend, c.Die = 0, 0
	if !c.Scenario.Extends {
		c.Hold = 0
	}
	client := &Client{stage: newStage(c, ""), driver: &searchDriver{ClientEnv: w}, placed: true, index: w.Index}
	for _, request := range w.OpenPops {
		client.stage.openPops.Store(request, struct{}{})
	}
	client.become(load.NewDetached(int32(w.Index), w.Env))
	return client
}

// Open prepares the server, like the first client of a run.
func (c *Client) Open(ctx context.Context) error { return do(ctx, c, c.stage.config.Scenario.Open) }

// Step makes one round; it reports whether the client is done.
func (c *Client) Step(ctx context.Context) (done bool) { return c.stage.config.Scenario.Step(ctx, c) }

// Live makes up to this many rounds, until the client is done.
func (c *Client) Live(ctx context.Context, rounds int) {
	for n := 1; n <= rounds; n++ {
		c.driver.boundary(c, place{round: n})
		if c.Step(ctx) {
			return
		}
	}
}

// Audit reads the final state of the server; the readings are operations.
func (c *Client) Audit(ctx context.Context) error { return do(ctx, c, c.stage.config.Scenario.Audit) }

// do calls an optional function of a scenario.
func do(ctx context.Context, c *Client, f func(context.Context, *Client) error) error {
	if f == nil {
		return nil
	}
	return f(ctx, c)
}

// memory returns everything that the client remembers at a place and that can affect what it does next: the objects
// that it works with, those of the scenario, and values.
func (c *Client) memory(at place) []any {
	m := []any{at}
	if c.locker != nil {
		m = append(m, c.locker)
	}
	if c.sale != nil {
		m = append(m, c.sale)
	}
	if c.queue != nil {
		m = append(m, c.queue)
	}
	if c.ids != nil {
		m = append(m, c.ids)
	}
	if c.stage.config.Repeat > 0 { // otherwise it is never read
		m = append(m, c.lastTask)
	}
	return m
}

// searchDriver drives a client that runs alone, with a ClientEnv.
type searchDriver struct {
	ClientEnv
	handed bool // the client has received a task, and has begun nothing since
}

func (s *searchDriver) enough() bool { return !s.handed && s.Enough() }
func (*searchDriver) stopping() bool { return false } // a schedule ends without notice

func (s *searchDriver) boundary(c *Client, at place) {
	if s.Turn != nil {
		s.Turn(at.round > 0, c.memory(at))
	}
}

func (s *searchDriver) takeStep() bool         { return true }
func (*searchDriver) quiet(*Client) bool       { return false } // each look is a round of its own
func (*searchDriver) comes() bool              { return true }
func (*searchDriver) keepsComing() bool        { return false }
func (s *searchDriver) number(of string) int64 { return s.Number(of) }

// rest pauses regardless of the duration: the schedule decides how long a section lasts.
func (s *searchDriver) rest(_ context.Context, _ time.Duration, lost <-chan struct{}) bool {
	if closed.Is(lost) {
		return false
	}
	s.Pause("section")
	return !closed.Is(lost)
}

func (s *searchDriver) now() time.Duration { return 0 }

func (*searchDriver) due(call time.Duration) time.Duration { return call }

func (s *searchDriver) at(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(s.Epoch)
}

func (s *searchDriver) began(op history.Op) {
	s.handed = false
	s.Began(op)
}

func (s *searchDriver) settled(bool) {}

func (s *searchDriver) ended(op history.Op, err error) {
	s.handed = op.Kind == history.Pop && op.Outcome == history.OK
	s.Ended(op, err)
}

func (s *searchDriver) dropped(op history.Op, err error) {
	op.Outcome, op.Reason = outcomeOf(err)
	if errors.Is(err, errors.ErrUnsupported) { // nothing was sent
		op.Outcome, op.Reason = history.Refused, history.Stopped
	}
	s.Ended(op, err)
}

func (*searchDriver) went(*Client, history.Op, error) {}
func (*searchDriver) failed(error)                    {}

// decline does not decide whether it is the first time: only the driver, which sees all clients, knows.
func (*searchDriver) decline(string) error { return stockimpl.ErrSoldOut }

func (*searchDriver) arrive(int32, *faults.Client) *faults.Client { return nil }

// replace does nothing: the schedule identifies the client by its column.
func (*searchDriver) replace(*Client) {}

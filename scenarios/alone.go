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

// World drives a client that is not driven by [Run]: those of a
// search, in which a schedule decides what happens when. Every field but OpenPops
// and Turn must be set.
type World struct {
	// Env is all of the world that the variants touch. The client itself touches it
	// with the commands of a queue's effects, and with the waits of a consumer that
	// found nothing; it never reads the clock.
	Env variant.Env
	// Index is the client's number among the scenario's, from 0: producers are even.
	// It is the Client of every operation.
	Index int
	// Epoch is the time 0 of the run.
	Epoch time.Time

	// Enough tells that the client is to begin nothing more in this round. It is asked
	// before every acquisition for a sale or a number (so a lock that is not obtained is
	// tried for until there is enough), before an order is sent again, and before a task
	// is enqueued; sometimes twice. For a task that was handed out the lock is tried for
	// once at least; if it is not obtained then, the task stays in the client's hands,
	// undone.
	Enough func() bool
	// Number is a new number, from 1, unique among clients: of an "order" (also a
	// task, or a wish for a number), a "session" (an acquisition) or a "request" (a
	// pop). It is never 0.
	Number func(what string) int64
	// Pause returns when the schedule lets the client go on; what is a word for people.
	// The scenario mutex pauses once in each "section", and once more for each time
	// that it extends the lock, unless the lock has told it by then that it is lost.
	Pause func(what string)

	// Turn is told when the client has come to a point at which all that it remembers is
	// memory: as a round begins, and before each acquisition within one, each section and
	// each release. Two
	// clients of one configuration with equal memories go on alike, whatever they have
	// seen before. Where it is in a round is a part of it.
	//
	// The objects in it hold plumbing, which makes no difference and must be skipped: a
	// [variant.Env] and what comes from one (redis clients, clocks, functions), and a
	// pointer to the Client itself. It may be nil.
	Turn func(begins bool, memory []any)

	// Began is told of an operation as it is called, with all that is known by then,
	// and Ended as it has ended. Operations may be nested: an effect holds a purchase,
	// and a queue's operation those of its lock. Times are zero, except Until.
	//
	// An operation that began and never ends is under way, or its client was not allowed
	// to go on. A Join ends without having begun, before its Acquire does.
	Began func(op history.Op)
	// Ended is told of the outcome, and of the error behind it. If a consumer cannot
	// know whether another one was first, the outcome differs from the one in Run: an
	// Effect whose order was declined is Refused as SoldOut, and one whose token was
	// stale, which Run does not record, is Refused as Stale.
	Ended func(op history.Op, err error)

	// OpenPops are the requests of pops that no client got an answer to. Audit looks up
	// what they took.
	OpenPops []int64
}

// Alone makes a client of c in w. Names have no prefix, so the keys are Lock:order,
// Stock:phone, Id:thread, Queue:orders. c must be complete, and nothing in it may
// need an SQL database.
//
// Nothing is left to chance: all orders are for Quantity pieces, all delays are
// Delay, and the probabilities Refund and Repeat must be 0 or 1 ([None] leaves them 0
// when a config is completed). Resend, Die,
// Faults, Ops and Duration say nothing: a schedule resends by losing a reply, and
// kills by never coming back. Nor does Hold, since a schedule stretches any section;
// mutex alone extends its lock every half TTL of it.
func Alone(c Config, w World) *Client {
	c.Resend, c.Die = 0, 0
	if c.Scenario.Name != mutexName {
		c.Hold = 0
	}
	client := &Client{stage: newStage(c, ""), driver: &solo{World: w}, index: w.Index}
	for _, request := range w.OpenPops {
		client.stage.openPops.Store(request, struct{}{})
	}
	client.become(load.Apart(int32(w.Index), w.Env))
	return client
}

// Open prepares the server, as a client of its own does before any other begins.
func (c *Client) Open(ctx context.Context) error { return do(ctx, c, c.stage.config.Scenario.Open) }

// Step is one round; it reports when the client is done.
func (c *Client) Step(ctx context.Context) (done bool) { return c.stage.config.Scenario.Step(ctx, c) }

// Live is the client's life: so many rounds, unless it is done before.
func (c *Client) Live(ctx context.Context, rounds int) {
	for n := 1; n <= rounds; n++ {
		c.driver.boundary(c, place{round: n})
		if c.Step(ctx) {
			return
		}
	}
}

// Audit reads what the server holds in the end; the readings are operations.
func (c *Client) Audit(ctx context.Context) error { return do(ctx, c, c.stage.config.Scenario.Audit) }

// do does what a scenario may have.
func do(ctx context.Context, c *Client, f func(context.Context, *Client) error) error {
	if f == nil {
		return nil
	}
	return f(ctx, c)
}

// memory is everything that the client remembers at a place and that can make a
// difference to what it does: the objects that it works with, those that the scenario
// has, and values.
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

// solo drives a client in a World.
type solo struct {
	World
	handed bool // the client has a task in its hands, and has begun nothing since
}

func (s *solo) enough() bool { return !s.handed && s.Enough() }
func (*solo) stopping() bool { return false } // a schedule ends where it ends

func (s *solo) boundary(c *Client, at place) {
	if s.Turn != nil {
		s.Turn(at.round > 0, c.memory(at))
	}
}

func (s *solo) takeStep() bool         { return true }
func (*solo) quiet(*Client) bool       { return false } // each look is a round of its own
func (*solo) comes() bool              { return true }
func (*solo) keepsComing() bool        { return false }
func (s *solo) number(of string) int64 { return s.Number(of) }

// rest pauses whatever the duration is: how long a section lasts is the schedule's.
func (s *solo) rest(_ context.Context, _ time.Duration, lost <-chan struct{}) bool {
	if closed.Is(lost) {
		return false
	}
	s.Pause("section")
	return !closed.Is(lost)
}

func (s *solo) now() time.Duration { return 0 }

func (*solo) due(call time.Duration) time.Duration { return call }

func (s *solo) at(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(s.Epoch)
}

func (s *solo) began(op history.Op) {
	s.handed = false
	s.Began(op)
}

func (s *solo) settled(bool) {}

func (s *solo) ended(op history.Op, err error) {
	s.handed = op.Kind == history.Pop && op.Outcome == history.OK
	s.Ended(op, err)
}

func (s *solo) dropped(op history.Op, err error) {
	op.Outcome, op.Reason = outcomeOf(err)
	if errors.Is(err, errors.ErrUnsupported) { // nothing was done
		op.Outcome, op.Reason = history.Refused, history.Stopped
	}
	s.Ended(op, err)
}

func (*solo) went(*Client, history.Op, error) {}
func (*solo) failed(error)                    {}

// decline does not decide whether it is the first time: only the driver, which sees all
// clients, can tell.
func (*solo) decline(string) error { return stockimpl.ErrSoldOut }

func (*solo) arrive(int32, *faults.Client) *faults.Client { return nil }

// replace does nothing: the schedule knows the client by its column.
func (*solo) replace(*Client) {}

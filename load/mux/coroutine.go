package mux

import (
	"context"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/coro"
)

// why is the reason why a coroutine continues.
type why uint8

const (
	began     why = iota
	answered      // its command has its reply
	elapsed       // its time has passed
	cancelled     // its context ended
	told          // another coroutine, or a channel, woke it
	stopped       // the run is stopping
)

// coroutine is one thread of a client. Its fields belong to its worker.
type coroutine struct {
	w     *worker
	index int // in the worker's list
	next  func() (struct{}, bool)
	yield func(struct{}) bool

	// root is the client's main thread: this coroutine or the one that started it.
	root    *coroutine
	holding bool // for a root: the client holds a lock

	// ticket numbers the stops of the coroutine; an event for an earlier stop is ignored.
	ticket uint32
	parked bool
	// mayStop means that it continues when the run is stopped.
	mayStop bool
	// fresh means that its timer woke it, not a reply: its next request takes one of the places reserved for woken
	// clients in a batch.
	fresh bool
	why   why
	timer timer
	req   request

	ended   bool
	joiners []ticket
	group   *Group
}

// ticket identifies one stop of a coroutine.
type ticket struct {
	co     *coroutine
	number uint32
}

// start creates a coroutine that runs body. It runs when the worker first resumes it.
func (w *worker) start(parent *coroutine, body func()) *coroutine {
	co := &coroutine{w: w, fresh: true}
	co.timer.co, co.req.co = co, co
	co.root = co
	if parent != nil {
		co.root, co.fresh = parent.root, parent.fresh
	}
	next, _ := iter.Pull(func(yield func(struct{}) bool) {
		coro.Mark()
		co.yield = yield
		defer co.crash()
		if w.m.dead.Load() {
			return
		}
		body()
	})
	co.next, co.index = next, len(w.all)
	w.all = append(w.all, co)
	return co
}

// crash recovers any panic once the Mux is dead: its coroutines were crashed. Before that, a panic passes to the
// goroutine that resumed the coroutine, and ends the program like any panic.
func (co *coroutine) crash() {
	if co.w.m.dead.Load() {
		_ = recover()
	}
}

// newTicket returns the ticket of the next park of the current coroutine.
func (w *worker) newTicket() ticket {
	co := w.current
	co.ticket++
	co.why = began
	return ticket{co, co.ticket}
}

// park stops the current coroutine until an event resumes it.
func (w *worker) park() why {
	co := w.current
	co.parked = true
	co.yield(struct{}{})
	w.alive()
	return co.why
}

// alive panics once the Mux is dead.
func (w *worker) alive() {
	if w.m.dead.Load() {
		panic(coro.Crashed{})
	}
}

// caller returns the calling coroutine, which must be the one that this worker runs. For a helper, which is not a
// coroutine, it returns errHelper.
func (w *worker) caller(ctx context.Context) (*coroutine, error) {
	if !coro.Marked() {
		if ctx.Value(helping{}) != nil {
			return nil, errHelper
		}
		w.m.fail(errAlone)
		return nil, errAlone
	}
	w.alive()
	if w.current == nil {
		w.m.fail(errOther)
		return nil, errOther
	}
	return w.current, nil
}

// until parks the caller for a duration, or until its context ends, the channel is closed or, with mayStop, the run
// is stopped.
func (w *worker) until(ctx context.Context, d time.Duration, closed <-chan struct{}, mayStop bool) why {
	co := w.current
	t := w.newTicket()
	w.wheel.add(&co.timer, w.clock()+d)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { w.post(mail{wake: t, why: cancelled}) })()
	}
	if closed != nil {
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-closed:
				w.post(mail{wake: t, why: told})
			case <-over:
			}
		}()
	}
	co.mayStop = mayStop
	defer func() { co.mayStop = false }()
	return w.park()
}

// request is a request of a coroutine to a server.
type request struct {
	co   *coroutine
	one  redis.Cmder   // nil: a pipeline
	many []redis.Cmder // a pipeline
	call time.Duration
	// abandoned means that the coroutine has continued without the reply.
	abandoned bool
	sent      uint32 // the ticket of the stop
}

// errLate is the error of a request whose reply would have come after the timeout.
var errLate = fmt.Errorf("no reply within the timeout: %w", os.ErrDeadlineExceeded)

// lose sets errLate as the result of every command of a request.
func (r *request) lose() {
	if r.one != nil {
		r.one.SetErr(errLate)
	}
	coro.FailAll(r.many, errLate) //nolint:errcheck // err returns it
}

// err returns the first error of the commands.
func (r *request) err() error {
	if r.one != nil {
		return r.one.Err()
	}
	for _, cmd := range r.many {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

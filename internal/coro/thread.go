package coro

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// state is the state of a thread.
type state uint8

const (
	fresh   state = iota // started by Env.Go, and has not run
	running              // at most one thread
	parked               // its request is in Pending
	joining              // waits until another thread has ended, or its context is done
	ended
)

// thread is the program's own code, or a function run by Env.Go.
type thread struct {
	c           *Client
	number      int
	do          func()
	begun       bool
	state       state
	wake        chan struct{}
	request     Request
	observation Observation
	// ctx is the context of the request or the join.
	ctx context.Context
	// leaves says that the thread goes on by itself when ctx is done.
	leaves bool
	// last is the context of the latest request whose context can end other than by a timeout.
	last context.Context
	// awaited says that ctx already had time to end.
	awaited bool
	joins   *thread
	// sends is the thread's request to the library, until it is sent.
	sends *sending
}

// thread returns a new thread, with the lowest number that no live thread has.
func (c *Client) thread(do func()) *thread {
	taken := func(n int) bool {
		return slices.ContainsFunc(c.threads, func(t *thread) bool { return t.number == n && t.state != ended })
	}
	t := &thread{c: c, do: do, wake: make(chan struct{}, 1)}
	for taken(t.number) {
		t.number++
	}
	c.threads = append(c.threads, t)
	return t
}

// run lets t run until it stops.
func (c *Client) run(t *thread) {
	t.state = running
	c.current = t
	step := c.step.Add(1)
	if t.begun {
		t.wake <- struct{}{}
	} else {
		t.begun = true
		c.guard()
		go t.main()
	}
	for {
		switch <-c.back {
		case 0:
		case step:
			c.lost = true
			c.step.Add(1)
			c.fail(fmt.Errorf("thread %d waits for something that is not in its Env", t.number))
			return
		default:
			continue // an earlier step that ended just in time
		}
		break
	}
	c.current = nil
	c.step.Add(1)
}

// guard starts the watch for threads that are stuck.
func (c *Client) guard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == nil {
		c.watch = time.AfterFunc(c.options.Patience, c.look)
	}
}

// unwatch ends the watch.
func (c *Client) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		c.watch.Stop()
		c.watch = nil
	}
}

// look checks, from time to time, whether the same step is still under way. That is cheaper than a timer for each step.
func (c *Client) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == nil {
		return
	}
	now := c.step.Load()
	if now%2 == 1 && now == c.seen && !c.outside.Load() {
		select {
		case c.back <- now:
		default: // it has just stopped
		}
	}
	c.seen = now
	c.watch.Reset(c.options.Patience)
}

// ErrPanicked is the error of a client whose code panicked.
var ErrPanicked = errors.New("the program panicked")

// main is a thread's goroutine.
func (t *thread) main() {
	Mark()
	grow()
	returned := false
	defer func() {
		switch r := recover(); {
		case t.c.dead.Load():
		case r != nil:
			t.c.fail(fmt.Errorf("%w: %v%s", ErrPanicked, r, where()))
		case !returned:
			t.c.fail(errors.New("the program ended its goroutine"))
		}
		t.state = ended
		t.stop()
	}()
	t.do()
	returned = true
}

// grow makes the stack as large as a command needs, while there is little to copy: growing it later is a third of the
// cost of a short thread.
//
//go:noinline
func grow() {
	var space [12 << 10]byte
	runtime.KeepAlive(&space)
}

// stop hands control back to the driver.
func (t *thread) stop() {
	select {
	case t.c.back <- 0:
	default: // a thread that got stuck has no receiver
	}
}

// own reports whether the calling goroutine is a thread, and fails the client if it
// is not.
func (c *Client) own() bool {
	if Marked() {
		return true
	}
	c.fail(ErrAlone)
	return false
}

// alive panics in the threads of a dead client.
func (c *Client) alive() {
	if c.dead.Load() {
		panic(Crashed{})
	}
}

// park stops the current thread until the driver, or the end of ctx if it leaves
// then, lets it go on.
func (c *Client) park(ctx context.Context, r Request, leaves bool) Observation {
	c.alive()
	o := c.stand(ctx, r, leaves)
	c.alive()
	return o
}

// stand is park, but does not check whether the client is dead: the caller does.
func (c *Client) stand(ctx context.Context, r Request, leaves bool) Observation {
	t := c.current
	r.Thread = t.number
	r.Deadline = c.deadline(ctx)
	t.request, t.ctx, t.leaves, t.awaited = r, ctx, leaves, false
	if ctx = untimed(ctx); ctx.Done() != nil {
		t.last = ctx
	}
	t.state = parked
	t.stop()
	<-t.wake
	return t.observation
}

func (t *thread) wait() {
	t.stop()
	<-t.wake
	t.c.alive()
}

// join stops the current thread until other has ended or ctx is done.
func (c *Client) join(ctx context.Context, other *thread) error {
	c.alive()
	t := c.current
	t.ctx, t.leaves, t.joins = ctx, true, other
	for other.state != ended && ctx.Err() == nil {
		t.state = joining
		if d := c.deadline(ctx); d > 0 {
			// The driver decides when the deadline comes.
			t.request = Request{Thread: t.number, Kind: Sleep, Label: "join", Until: d, Deadline: d}
			t.state = parked
		}
		t.wait()
	}
	t.joins = nil
	if other.state == ended {
		return nil
	}
	return context.Cause(ctx)
}

// settle runs threads until each is parked for the driver.
func (c *Client) settle() {
	for !c.dead.Load() {
		if t := c.ready(); t != nil {
			c.run(t)
			continue
		}
		if c.threads[0].state == ended && c.beside.Err() == nil {
			c.end()
			c.awaitEnds()
			continue
		}
		if c.awaitJoined() {
			continue
		}
		c.checkDeadlock()
		return
	}
}

// ready returns the first thread that needs no driver to go on.
func (c *Client) ready() *thread {
	for _, t := range c.threads {
		switch {
		case t.state == fresh,
			t.joins != nil && t.state != ended && t.joins.state == ended,
			(t.state == parked || t.state == joining) && t.leaves && t.ctx.Err() != nil:
			return t
		}
	}
	return nil
}

// moment is how long, in real time, a context that ends by context.AfterFunc may take, since that has a goroutine of
// its own.
const moment = 20 * time.Millisecond

// awaitEnds gives the contexts of all threads time to end with the client.
func (c *Client) awaitEnds() {
	for _, t := range c.threads {
		if t.state == parked && t.last != nil {
			await(t.last)
		}
	}
	c.mu.Lock()
	within := slices.Clone(c.timeouts)
	c.mu.Unlock()
	for _, t := range within {
		if t.outer.Err() != nil { // a context is done a little before those derived from it
			await(t)
		}
	}
}

// awaitJoined gives the contexts of parked threads that others join time to end, and reports
// whether one ended.
func (c *Client) awaitJoined() bool {
	for _, t := range c.threads {
		s := t.joins
		if s == nil || t.state == ended || s.state != parked || !s.leaves || s.awaited {
			continue
		}
		s.awaited = true
		if s.ctx.Done() != nil && await(s.ctx) {
			return true
		}
	}
	return false
}

func await(ctx context.Context) bool {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-timer.C:
		return ctx.Err() != nil
	}
}

// checkDeadlock fails a client whose threads only wait for each other.
func (c *Client) checkDeadlock() {
	waits := false
	for _, t := range c.threads {
		if t.state == parked {
			return
		}
		waits = waits || t.state == joining
	}
	if waits {
		c.fail(errors.New("the program's threads wait for each other"))
	}
}

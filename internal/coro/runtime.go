package coro

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// Runtime is the environment of a program. It is only for the program's threads.
type Runtime struct {
	c   *Client
	env variant.Env
}

// Env returns the client's environment. Everything in it that takes time parks:
//
// A command parks as Command, unless its context is done already: then it fails at
// once. Clock.Now parks as Clock. Clock.Sleep reads the clock and then parks as Sleep; Clock.WithTimeout reads the
// clock, and its context ends when the driver says that this time has passed. Its Deadline is in the time of this
// clock. Wait parks as Pause "wait". Sleep and Wait also end, without the driver, when another thread ends their
// context.
//
// Functions passed to Go run when the calling thread stops next, in the order of the calls. A join does not appear in
// Pending; under a context with a deadline it is a Sleep until that.
//
// SQL is nil. A program must not add hooks to the redis clients, and must not close them.
func (w *Runtime) Env() variant.Env { return w.env }

// Pause parks as a Pause with this label.
func (w *Runtime) Pause(label string) { w.stop(Request{Kind: Pause, Label: label}) }

// Boundary parks as a Boundary: memory describes the program's whole memory.
func (w *Runtime) Boundary(memory string) { w.stop(Request{Kind: Boundary, Label: memory}) }

func (w *Runtime) stop(r Request) {
	if w.c.own() {
		w.c.park(context.Background(), r, false)
	}
}

// Emit passes an event to the driver of the client. It does not park.
func (w *Runtime) Emit(event any) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.c.dead.Load() {
		w.c.events = append(w.c.events, event)
	}
}

// Tokens returns how many tokens have been drawn.
func (w *Runtime) Tokens() int {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return w.c.tokens
}

func (w *Runtime) makeEnv() variant.Env {
	env := variant.Env{Clock: ticker{w.c}, Token: w.token, Wait: w.wait, Go: w.spawn, Step: stepper{w.c}}
	for _, p := range w.c.ports {
		env.Redis = append(env.Redis, redis.UniversalClient(p.rdb))
	}
	return env
}

func (w *Runtime) token() string {
	w.c.mu.Lock()
	n := w.c.tokens
	w.c.tokens++
	w.c.mu.Unlock()
	if w.c.options.Token == nil {
		return "token-" + strconv.Itoa(n)
	}
	return w.c.options.Token(n)
}

func (w *Runtime) wait(ctx context.Context, _ string, _ time.Duration) error {
	if !w.c.own() {
		return ErrAlone
	}
	w.c.alive()
	if ctx.Err() == nil {
		w.c.park(ctx, Request{Kind: Pause, Label: "wait"}, true)
	}
	return context.Cause(ctx)
}

func (w *Runtime) spawn(f func(context.Context)) func(context.Context) error {
	c := w.c
	if !c.own() {
		return func(context.Context) error { return ErrAlone }
	}
	c.alive()
	t := c.thread(func() { f(c.beside) })
	return func(ctx context.Context) error {
		if !c.own() {
			return ErrAlone
		}
		return c.join(ctx, t)
	}
}

// ticker is a client's clock.
type ticker struct{ c *Client }

// Now parks as Clock.
func (k ticker) Now() time.Time {
	if !k.c.own() {
		return k.c.options.Epoch
	}
	return k.c.options.Epoch.Add(k.now(context.Background()))
}

func (k ticker) now(ctx context.Context) time.Duration {
	return k.look(ctx, "")
}

// look is like now, and labels the request: ForLimit or ForSleep, if the program does not see the time that it reads.
func (k ticker) look(ctx context.Context, what string) time.Duration {
	return k.c.park(ctx, Request{Kind: Clock, Label: what}, false).Now
}

// Sleep parks at a Clock, to read the present time, and then at a Sleep. If ctx is done or d is not
// positive, it returns at once.
func (k ticker) Sleep(ctx context.Context, d time.Duration) error {
	if !k.c.own() {
		return ErrAlone
	}
	k.c.alive()
	if ctx.Err() != nil || d <= 0 {
		return context.Cause(ctx)
	}
	until := k.look(ctx, ForSleep) + d
	if ctx.Err() == nil {
		k.c.park(ctx, Request{Kind: Sleep, Until: until}, true)
	}
	return context.Cause(ctx)
}

// WithTimeout parks at a Clock. If ctx is done or d is not positive, it does not park, and returns
// a context that is done.
func (k ticker) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if !k.c.own() || d <= 0 || ctx.Err() != nil {
		inner, cancel := context.WithCancelCause(ctx)
		cancel(context.DeadlineExceeded)
		return inner, func() {}
	}
	at := k.look(ctx, ForLimit) + d
	inner, cancel := context.WithCancelCause(ctx)
	t := &timeout{Context: inner, c: k.c, cancel: cancel, outer: untimed(ctx), at: at, end: k.c.options.Epoch.Add(at)}
	t.id = k.c.current.limit()
	k.c.mu.Lock()
	k.c.timeouts = append(k.c.timeouts, t)
	k.c.mu.Unlock()
	return t, func() {
		k.c.forget(t)
		cancel(context.Canceled)
	}
}

// timeout is a context that the driver ends.
type timeout struct {
	context.Context
	c      *Client
	id     int
	cancel context.CancelCauseFunc
	outer  context.Context // the argument of the outermost WithTimeout
	at     time.Duration
	end    time.Time
}

// timed is the key of contexts under a timeout.
type timed struct{}

// untimed returns ctx as it was before any WithTimeout.
func untimed(ctx context.Context) context.Context {
	if t, _ := ctx.Value(timed{}).(*timeout); t != nil {
		return t.outer
	}
	return ctx
}

func (t *timeout) Value(key any) any {
	if key == (timed{}) {
		return t
	}
	return t.Context.Value(key)
}

// Deadline returns the deadline in the time of the client's clock. Contexts derived from this one
// inherit it, except those of context.WithoutCancel, so it never reaches a socket.
func (t *timeout) Deadline() (time.Time, bool) {
	t.c.deadlineSeen.Store(true)
	return t.deadline()
}

func (t *timeout) deadline() (time.Time, bool) {
	if outer, has := deadlineOf(t.Context); has && outer.Before(t.end) {
		return outer, true
	}
	return t.end, true
}

// deadlineOf returns ctx.Deadline() without noting that the program may have read it.
func deadlineOf(ctx context.Context) (time.Time, bool) {
	t, _ := ctx.Value(timed{}).(*timeout)
	if t == nil {
		return ctx.Deadline()
	}
	seen := t.c.deadlineSeen.Load()
	end, has := ctx.Deadline() // a context derived from it may have one of its own
	t.c.deadlineSeen.Store(seen)
	return end, has
}

// deadline returns the deadline of ctx, since the epoch; 0: none.
func (c *Client) deadline(ctx context.Context) time.Duration {
	if ctx.Value(timed{}) == nil {
		return 0
	}
	end, has := deadlineOf(ctx)
	if !has {
		return 0
	}
	return end.Sub(c.options.Epoch)
}

// forget drops a timeout that is no longer needed.
func (c *Client) forget(t *timeout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeouts = slices.DeleteFunc(c.timeouts, func(u *timeout) bool { return u == t })
	c.over = slices.DeleteFunc(c.over, func(id int) bool { return id == t.id })
}

// limit returns the lowest number that no timeout of this thread has.
func (t *thread) limit() int {
	l := t.c.Limits()
	used := func(n int) bool {
		return slices.Contains(l.Over, n) || slices.ContainsFunc(l.Live, func(l Limit) bool { return l.Number == n })
	}
	n := t.number * limitsOfThread
	for used(n) {
		n++
	}
	return n
}

// limitsOfThread bounds the number of running timeouts of one thread.
const limitsOfThread = 1 << 16

// ThreadOf returns the thread that started the timeout with this number.
func ThreadOf(limit int) int { return limit / limitsOfThread }

// Limits describes the timeouts of a client's contexts.
type Limits struct {
	// Live are the timeouts that are running. Over are the numbers of the timeouts that have fired
	// without a later cancellation of their contexts. A new timeout gets the lowest number of its
	// thread that is in neither list.
	Live []Limit
	Over []int
	// Seen reports that the program may have called Deadline on one of the contexts.
	Seen bool
}

// Limit is a running timeout. At is when it fires, as a duration since the epoch.
type Limit struct {
	Number int
	At     time.Duration
}

// Limits returns the current timeouts of the client.
func (c *Client) Limits() Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := Limits{Seen: c.deadlineSeen.Load(), Over: slices.Sorted(slices.Values(c.over))}
	for _, t := range c.timeouts {
		l.Live = append(l.Live, Limit{t.id, t.at})
	}
	slices.SortFunc(l.Live, func(a, b Limit) int { return a.Number - b.Number })
	return l
}

// endContexts ends the contexts whose deadline is not after now.
func (c *Client) endContexts(now time.Duration) {
	c.mu.Lock()
	var due []*timeout
	c.timeouts = slices.DeleteFunc(c.timeouts, func(t *timeout) bool {
		if t.at <= now {
			due, c.over = append(due, t), append(c.over, t.id)
		}
		return t.at <= now
	})
	c.mu.Unlock()
	for _, t := range due {
		t.cancel(context.DeadlineExceeded)
	}
}

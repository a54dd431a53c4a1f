package coro

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// World is what a program gets of the world. It is for the program's threads only.
type World struct {
	c   *Client
	env variant.Env
}

// Env is the client's environment. Everything in it that takes time parks:
//
// A command parks as Command, unless its context is done already: then it fails at
// once. Clock.Now parks as Clock. Clock.Sleep reads the clock and then parks as
// Sleep; Clock.WithTimeout reads the clock, and its context ends when the driver
// says that so much time has passed. Its Deadline is in the time of this clock. Wait
// parks as Pause "wait". Sleep and Wait also end, without the driver, when another
// thread ends their context.
//
// What Go is given runs when the thread that called it stops next, in the order of
// the calls. A join is not to be seen in Pending; under a context with a deadline it
// is a Sleep until that.
//
// SQL is nil. The redis clients are lent: a program must not add hooks to them, and
// must not close them.
func (w *World) Env() variant.Env { return w.env }

// Pause parks as a Pause with this label.
func (w *World) Pause(label string) { w.stop(Request{Kind: Pause, Label: label}) }

// Boundary parks as a Boundary: memory is all that the program remembers.
func (w *World) Boundary(memory string) { w.stop(Request{Kind: Boundary, Label: memory}) }

func (w *World) stop(r Request) {
	if w.c.own() {
		w.c.park(context.Background(), r, false)
	}
}

// Emit hands an event to whoever drives the client. It does not park.
func (w *World) Emit(event any) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.c.dead.Load() {
		w.c.events = append(w.c.events, event)
	}
}

// Tokens is how many tokens have been drawn.
func (w *World) Tokens() int {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return w.c.tokens
}

func (w *World) makeEnv() variant.Env {
	env := variant.Env{Clock: ticker{w.c}, Token: w.token, Wait: w.wait, Go: w.spawn}
	for _, p := range w.c.ports {
		env.Redis = append(env.Redis, redis.UniversalClient(p.rdb))
	}
	return env
}

func (w *World) token() string {
	w.c.mu.Lock()
	n := w.c.tokens
	w.c.tokens++
	w.c.mu.Unlock()
	if w.c.options.Token == nil {
		return "token-" + strconv.Itoa(n)
	}
	return w.c.options.Token(n)
}

func (w *World) wait(ctx context.Context, _ string, _ time.Duration) error {
	if !w.c.own() {
		return errAlone
	}
	w.c.alive()
	if ctx.Err() == nil {
		w.c.park(ctx, Request{Kind: Pause, Label: "wait"}, true)
	}
	return context.Cause(ctx)
}

func (w *World) spawn(f func(context.Context)) func(context.Context) error {
	c := w.c
	if !c.own() {
		return func(context.Context) error { return errAlone }
	}
	c.alive()
	t := c.thread(func() { f(c.beside) })
	return func(ctx context.Context) error {
		if !c.own() {
			return errAlone
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
	return k.c.park(ctx, Request{Kind: Clock}, false).Now
}

// Sleep parks as Clock, for the present, and then as Sleep.
func (k ticker) Sleep(ctx context.Context, d time.Duration) error {
	if !k.c.own() {
		return errAlone
	}
	k.c.alive()
	if ctx.Err() != nil || d <= 0 {
		return context.Cause(ctx)
	}
	until := k.now(ctx) + d
	if ctx.Err() == nil {
		k.c.park(ctx, Request{Kind: Sleep, Until: until}, true)
	}
	return context.Cause(ctx)
}

// WithTimeout parks as Clock, unless the context is done before.
func (k ticker) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if !k.c.own() || d <= 0 || ctx.Err() != nil {
		inner, cancel := context.WithCancelCause(ctx)
		cancel(context.DeadlineExceeded)
		return inner, func() {}
	}
	at := k.now(ctx) + d
	inner, cancel := context.WithCancelCause(ctx)
	t := &timeout{Context: inner, cancel: cancel, outer: untimed(ctx), at: at, end: k.c.options.Epoch.Add(at)}
	k.c.mu.Lock()
	k.c.timeouts = append(k.c.timeouts, t)
	k.c.mu.Unlock()
	return t, func() {
		k.c.forget(t)
		cancel(context.Canceled)
	}
}

// timeout is a context whose end the driver brings about.
type timeout struct {
	context.Context
	cancel context.CancelCauseFunc
	outer  context.Context // what was given to the outermost WithTimeout
	at     time.Duration
	end    time.Time
}

// timed is the key under which contexts tell that they are under a timeout.
type timed struct{}

// untimed is ctx as it was before any WithTimeout.
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

// Deadline is in the time of the client's clock. This way contexts derived from this
// one pass it on, and those without cancel do not. It never comes to a socket.
func (t *timeout) Deadline() (time.Time, bool) {
	if outer, has := t.Context.Deadline(); has && outer.Before(t.end) {
		return outer, true
	}
	return t.end, true
}

// deadline is that of ctx, since the epoch; 0: none.
func (c *Client) deadline(ctx context.Context) time.Duration {
	end, has := ctx.Deadline()
	if !has || ctx.Value(timed{}) == nil {
		return 0
	}
	return end.Sub(c.options.Epoch)
}

// forget drops a time-out that nobody needs any more.
func (c *Client) forget(t *timeout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeouts = slices.DeleteFunc(c.timeouts, func(u *timeout) bool { return u == t })
}

// endContexts ends those whose deadline has come.
func (c *Client) endContexts(now time.Duration) {
	c.mu.Lock()
	var due []*timeout
	c.timeouts = slices.DeleteFunc(c.timeouts, func(t *timeout) bool {
		if t.at <= now {
			due = append(due, t)
		}
		return t.at <= now
	})
	c.mu.Unlock()
	for _, t := range due {
		t.cancel(context.DeadlineExceeded)
	}
}

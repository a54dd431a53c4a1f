package mux

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/closed"
	"oversell/variant"
)

// Redis returns the redis clients of the worker's clients, one per node. Only their coroutines may use them; they
// must not close them or add hooks.
func (w *Worker) Redis() []redis.UniversalClient { return w.fronts }

// Clock returns the machine's clock; its Sleep parks.
func (w *Worker) Clock() clock.Clock { return ticker{clock.Real{}, w} }

// ticker is a clock whose Sleep parks.
type ticker struct {
	clock.Real
	w *Worker
}

// Sleep parks for d, or until ctx is done, in which case it returns the cause.
func (t ticker) Sleep(ctx context.Context, d time.Duration) error {
	if _, err := t.w.caller(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil || d <= 0 {
		return context.Cause(ctx)
	}
	if t.w.until(ctx, d, nil, false) == cancelled {
		return context.Cause(ctx)
	}
	return nil
}

// Sleep parks for d and reports true. It ends early, and reports false, when until is closed. If the run is
// stopping or ctx ends, it ends early and reports true.
func (w *Worker) Sleep(ctx context.Context, d time.Duration, until <-chan struct{}) bool {
	if _, err := w.caller(context.Background()); err != nil || w.m.stopping.Load() {
		return true
	}
	if closed.Is(until) {
		return false
	}
	return w.until(ctx, d, until, true) != told
}

// Wait parks a client that waits for a lock. It goes on when a batch has room for it.
func (w *Worker) Wait(ctx context.Context, d time.Duration) error {
	co, err := w.caller(context.Background())
	switch {
	case err != nil:
		return err
	case w.m.stopping.Load():
		return variant.ErrStopped
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	co.fresh = true
	switch w.until(ctx, d, nil, true) {
	case stopped:
		return variant.ErrStopped
	case cancelled:
		return context.Cause(ctx)
	}
	if w.m.stopping.Load() {
		return variant.ErrStopped
	}
	return nil
}

// Turn begins a new round of the calling coroutine's client. It queues behind clients whose pause has ended.
func (w *Worker) Turn() {
	co := w.current
	if co == nil {
		return
	}
	w.alive()
	co.fresh = true
	if w.due.len() > 0 {
		w.newTicket()
		w.due.push(co)
		w.park()
	}
}

// Hold sets whether the client of the calling coroutine holds a lock.
func (w *Worker) Hold(holds bool) {
	if w.current != nil {
		w.current.root.holding = holds
	}
}

// Group counts the coroutines started by Go and Beside that have not ended.
type Group struct {
	n       int
	waiting ticket
}

func (g *Group) left(w *worker) {
	if g.n--; g.n == 0 {
		w.wake(g.waiting, told)
	}
}

// Go runs f as a coroutine of the caller's client. join waits until it has ended; if the context of join ends first, it
// returns the cause.
func (w *Worker) Go(g *Group, f func()) (join func(context.Context) error) {
	return w.spawn(g, f, false)
}

// Beside is like Go, for the thread of another client, which holds locks of its own.
func (w *Worker) Beside(g *Group, f func()) (join func(context.Context) error) {
	return w.spawn(g, f, true)
}

func (w *Worker) spawn(g *Group, f func(), another bool) (join func(context.Context) error) {
	parent, err := w.caller(context.Background())
	if err != nil {
		return func(context.Context) error { return err }
	}
	co := w.start(parent, f)
	co.group = g
	if another {
		co.root = co
	}
	g.n++
	w.ready.push(co)
	return func(ctx context.Context) error { return w.join(ctx, co) }
}

// join parks until a coroutine or ctx ends.
func (w *Worker) join(ctx context.Context, co *coroutine) error {
	if _, err := w.caller(context.Background()); err != nil {
		return err
	}
	if co.ended {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := w.newTicket()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { w.post(mail{wake: t, why: cancelled}) })()
	}
	co.joiners = append(co.joiners, t)
	if w.park() == cancelled && !co.ended {
		return context.Cause(ctx)
	}
	return nil
}

// Await parks until the threads of a group have ended.
func (w *Worker) Await(g *Group) {
	if _, err := w.caller(context.Background()); err != nil || g.n == 0 {
		return
	}
	g.waiting = w.newTicket()
	w.park()
}

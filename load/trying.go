package load

import (
	"context"
	"sync/atomic"

	"oversell/variant"
)

// tryKey is the context key of a try.
type tryKey struct{}

// try is the context of an operation. It records whether the operation, or one attempt at a lock, has sent anything.
type try struct {
	context.Context
	begun atomic.Bool
	until untilStopped // the context of the first command, so that it need not be allocated
}

// Value implements context.Context.
func (t *try) Value(key any) any {
	if _, own := key.(tryKey); own {
		return t
	}
	return t.Context.Value(key)
}

// Trying returns a context for an operation. If the run is stopped while its first command waits for a shared
// connection, that command is never sent and returns [variant.ErrStopped]: with more clients than connections, most of
// them are there. The same applies to the first command after each wait for a lock, since a stop ends such a wait. Later
// commands are always sent; otherwise stopping would look like a crash. Without a shared pool, and for a command whose
// own context can end, Trying changes nothing.
func (c *Client) Trying(ctx context.Context) context.Context {
	if c.engine == nil || c.engine.config.Pool == 0 {
		return ctx
	}
	t := &try{Context: ctx}
	t.until = untilStopped{t, c.engine.stopping}
	return t
}

// triesAgain marks the end of a wait between two attempts.
func triesAgain(ctx context.Context) {
	if t, _ := ctx.Value(tryKey{}).(*try); t != nil {
		t.begun.Store(false)
	}
}

// unlessStopped returns the context of a command; if the command is the first of a try, the context ends when the
// run is stopped. The driver checks it only until it has a connection. The context of a command with a deadline is
// not changed.
func (e *Engine) unlessStopped(ctx context.Context) context.Context {
	t, _ := ctx.Value(tryKey{}).(*try)
	if t == nil || t.begun.Swap(true) || ctx.Done() != nil {
		return ctx
	}
	if ctx == context.Context(t) {
		return &t.until
	}
	return &untilStopped{ctx, e.stopping}
}

// untilStopped is a context that ends when a run is stopped.
type untilStopped struct {
	context.Context
	stopping <-chan struct{}
}

func (c *untilStopped) Done() <-chan struct{} { return c.stopping }

func (c *untilStopped) Err() error {
	select {
	case <-c.stopping:
		return variant.ErrStopped
	default:
		return nil
	}
}

package load

import (
	"context"
	"sync/atomic"

	"oversell/variant"
)

// tryKey is how a context carries a try to the connections.
type tryKey struct{}

// try is an operation, or one look at a lock, of which nothing has been sent so far, or
// something has.
type try struct{ begun atomic.Bool }

// Trying returns a context for an operation. When the run is stopped while its first
// command waits for a shared connection, that command is never sent and ends in
// [variant.ErrStopped]: with more clients than connections, most of them are there. The
// same goes for the first command after each wait for a lock, as the wait would have
// ended so. What follows is always sent, or our own stop would look like a crash.
func (c *Client) Trying(ctx context.Context) context.Context {
	if c.engine == nil || c.engine.config.Pool == 0 {
		return ctx
	}
	return context.WithValue(ctx, tryKey{}, new(try))
}

// triesAgain says that the wait between two tries is over.
func triesAgain(ctx context.Context) {
	if t, _ := ctx.Value(tryKey{}).(*try); t != nil {
		t.begun.Store(false)
	}
}

// unlessStopped is the context of a command: one that is done when the run is stopped,
// if the command is the first of a try. The driver minds that only until it has a
// connection. A command with a deadline is left to it.
func (e *Engine) unlessStopped(ctx context.Context) context.Context {
	t, _ := ctx.Value(tryKey{}).(*try)
	if t == nil || t.begun.Swap(true) || ctx.Done() != nil {
		return ctx
	}
	return untilStopped{ctx, e.stopping}
}

// untilStopped is a context that is done when a run is stopped.
type untilStopped struct {
	context.Context
	stopping <-chan struct{}
}

func (c untilStopped) Done() <-chan struct{} { return c.stopping }

func (c untilStopped) Err() error {
	select {
	case <-c.stopping:
		return variant.ErrStopped
	default:
		return nil
	}
}

package mux

import (
	"context"
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"

	"oversell/internal/coro"
)

// hook parks every command in the worker of its client. It is the innermost hook.
type hook struct {
	w    *worker
	node int
	// whole is set when the redis client has all its hooks. What is later derived from it is a transaction or a
	// dedicated connection, whose commands cannot use a lane.
	whole bool
}

// helping marks the contexts of goroutines that wait for a connection for a coroutine. Their commands go directly
// to the connection.
type helping struct{}

// errHelper marks a helper, which goes directly to its connection.
var errHelper = errors.New("a helper")

func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	derived := h.whole
	return func(ctx context.Context, cmd redis.Cmder) error {
		co, err := h.w.caller(ctx)
		switch {
		case err == errHelper:
			return next(ctx, cmd)
		case err != nil:
			return err
		case derived || !h.w.shares(cmd):
			return h.w.alone(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		case ctx.Done() != nil:
			return h.w.askUntil(ctx, h.lane(co), cmd, nil)
		}
		co.req.one, co.req.many = cmd, nil
		h.w.ask(h.lane(co), &co.req)
		return cmd.Err()
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	derived := h.whole
	return func(ctx context.Context, cmds []redis.Cmder) error {
		co, err := h.w.caller(ctx)
		switch {
		case err == errHelper:
			return next(ctx, cmds)
		case err != nil:
			return coro.FailAll(cmds, err)
		case derived || !h.w.allShare(cmds):
			return h.w.alone(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		case ctx.Done() != nil:
			return h.w.askUntil(ctx, h.lane(co), nil, cmds)
		}
		co.req.one, co.req.many = nil, cmds
		h.w.ask(h.lane(co), &co.req)
		return co.req.err()
	}
}

// lane returns the lane of a coroutine: holders have their own, so that their commands do not queue behind those of
// waiters.
func (h *hook) lane(co *coroutine) *lane {
	if co.root.holding {
		return h.w.lanes[2*h.node+1]
	}
	return h.w.lanes[2*h.node]
}

func (w *worker) allShare(cmds []redis.Cmder) bool {
	for _, cmd := range cmds {
		if !w.shares(cmd) {
			return false
		}
	}
	return true
}

// ask sends a request of the current coroutine, and returns when it is answered.
func (w *worker) ask(l *lane, r *request) why {
	r.call, r.abandoned = w.now, false
	r.sent = w.newTicket().number
	l.ask(r)
	why := w.park()
	w.widths.RecordValue(int64(w.now - r.call)) //nolint:errcheck // values off the scale are not counted
	return why
}

// askUntil is ask for commands whose context may end. It sends a copy, because the command may still be in flight
// when the caller has continued.
func (w *worker) askUntil(ctx context.Context, l *lane, one redis.Cmder, many []redis.Cmder) error {
	if err := ctx.Err(); err != nil {
		return coro.FailAll(many, err)
	}
	co := w.current
	r := &request{co: co}
	if one != nil {
		r.one = copyOf(one)
	}
	for _, cmd := range many {
		r.many = append(r.many, copyOf(cmd))
	}
	t := ticket{co, co.ticket + 1} // the next stop
	stop := context.AfterFunc(ctx, func() { w.post(mail{wake: t, why: cancelled}) })
	why := w.ask(l, r)
	stop()
	if why == cancelled {
		r.abandoned = true
		return coro.FailAll(many, ctx.Err())
	}
	if one != nil {
		assign(one, r.one)
	}
	for i, cmd := range many {
		assign(cmd, r.many[i])
	}
	return r.err()
}

// alone makes a helper wait for a command that needs a connection of its own. There are as many helpers as such
// commands in flight; with fewer, clients with a connection could wait for clients without one.
func (w *worker) alone(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := w.newTicket()
	call := w.now
	var err error
	go func() {
		err = do(context.WithValue(ctx, helping{}, true))
		w.post(mail{wake: t, why: answered})
	}()
	w.sent++
	w.park()
	w.widths.RecordValue(int64(w.now - call)) //nolint:errcheck // as above
	return err
}

// copyOf returns a copy of a command with the same arguments.
func copyOf(cmd redis.Cmder) redis.Cmder {
	c := reflect.New(reflect.TypeOf(cmd).Elem())
	c.Elem().Set(reflect.ValueOf(cmd).Elem())
	return c.Interface().(redis.Cmder)
}

// assign copies a reply from the copy to the command.
func assign(cmd, copied redis.Cmder) {
	reflect.ValueOf(cmd).Elem().Set(reflect.ValueOf(copied).Elem())
}

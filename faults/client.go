package faults

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
)

// ErrCrashed is what every command of a client that has crashed ends in, without
// having been sent. It stands for the end of a process: whatever the client's code
// does about it, clean-up included, reaches no server.
var ErrCrashed = errors.New("the client has crashed")

// Client is what the faults know of one client, and, as a hook of go-redis, what
// stands between it and its connections. One goroutine calls Enter, Leave,
// Granted, GivenUp and Recovered; the client's commands may come from several.
type Client struct {
	in *Injector
	id int // counted from 1, as in the sentences

	during   atomic.Pointer[doing]
	state    atomic.Pointer[State]
	answered atomic.Int32 // commands since the grant
	dead     atomic.Bool
	canceled atomic.Bool
	frozen   atomic.Int64 // until this time since the start of the load
	ahead    atomic.Int64 // of its clock
}

// doing is an operation within others.
type doing struct {
	kind string
	in   *doing
}

var (
	waiting = Waiting
	holding = Holding
	idle    = Idle
)

// Enter says that the client begins an operation, by the kind that histories give
// it; Leave that the innermost one has ended.
func (c *Client) Enter(kind string) {
	c.thawed() // the frozen begin nothing
	c.during.Store(&doing{kind, c.during.Load()})
}

// Leave is the end of what Enter began.
func (c *Client) Leave() {
	if d := c.during.Load(); d != nil {
		c.during.Store(d.in)
	}
	c.canceled.Store(false)
}

// Tries says that the client tries to obtain a lock, Granted that it has one, and
// GivenUp that it has neither one nor the hope of one.
func (c *Client) Tries() { c.state.Store(&waiting) }

// Granted is described at Tries.
func (c *Client) Granted() {
	c.answered.Store(0)
	c.state.Store(&holding)
	c.in.granted()
}

// GivenUp is described at Tries.
func (c *Client) GivenUp() { c.state.Store(&idle) }

// Number is the client's, counted from 0 as when it was made.
func (c *Client) Number() int { return c.id - 1 }

// Dead tells whether the client has crashed.
func (c *Client) Dead() bool { return c.dead.Load() }

// Ahead is how far the client's clock is ahead of the real one.
func (c *Client) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// doingNow are the operations in which the client is, the innermost first.
func (c *Client) doingNow() (kinds []string) {
	for d := c.during.Load(); d != nil; d = d.in {
		kinds = append(kinds, d.kind)
	}
	return kinds
}

func (c *Client) stateNow() State {
	if s := c.state.Load(); s != nil {
		return *s
	}
	return Idle
}

// Clock is the client's own clock: base, ahead of it or behind by what the faults
// say.
func (c *Client) Clock(base clock.Clock) clock.Clock { return skewed{base, c} }

type skewed struct {
	clock.Clock
	c *Client
}

func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.c.Ahead()) }

// Wait wraps a client's way of waiting: the dead wait for nothing.
func (c *Client) Wait(wait func(context.Context, string, time.Duration) error) func(context.Context, string, time.Duration) error {
	return func(ctx context.Context, key string, atMost time.Duration) error {
		if c.Dead() {
			return ErrCrashed
		}
		return wait(ctx, key, atMost)
	}
}

// DialHook implements redis.Hook.
func (c *Client) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (c *Client) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return c.command([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook. To the faults, a pipeline is one
// command that answers to the names of all of its own.
func (c *Client) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return c.command(cmds, func() error { return next(ctx, cmds) })
	}
}

// command sends cmds, unless a fault prevents it, and lets the client see the
// answer, unless a fault prevents that.
func (c *Client) command(cmds []redis.Cmder, send func() error) error {
	if len(cmds) > 0 && cmds[0].Name() == "hello" {
		return send() // by which the driver opens a connection
	}
	again, err := c.boundary(Before, cmds)
	if err != nil {
		return refuse(cmds, err)
	}
	err = send()
	if again && c.lives() == nil {
		err = send()
	}
	if c.stateNow() == Holding {
		c.answered.Add(1)
	}
	again, failed := c.boundary(After, cmds)
	if failed != nil {
		return refuse(cmds, failed)
	}
	if again {
		err = send()
	}
	return err
}

// refuse ends commands with an error, as if there were no connection.
func refuse(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// boundary lets the faults strike at one side of a command.
func (c *Client) boundary(m Moment, cmds []redis.Cmder) (again bool, err error) {
	if err := c.lives(); err != nil || !c.in.active.Load() {
		return false, err
	}
	for _, s := range c.in.onClients {
		if s.fault.Where.at() == m && c.matches(s, m, cmds) && s.trigger.fires(c.in.now()) {
			again = c.suffer(s) || again
		}
	}
	c.thawed()
	return again, c.lives()
}

// at is the side of a command at which a fault of a client strikes: the far one,
// if its sentence does not say.
func (w Where) at() Moment {
	if w.Moment == AnyMoment {
		return After
	}
	return w.Moment
}

func (c *Client) matches(s *strike, m Moment, cmds []redis.Cmder) bool {
	for _, cmd := range cmds {
		if s.fault.Where.matches(c.point(m, cmd)) {
			return true
		}
	}
	return false
}

// lives is nil while the client may send commands.
func (c *Client) lives() error {
	switch {
	case c.dead.Load():
		return ErrCrashed
	case c.canceled.Load():
		return context.Canceled
	}
	return nil
}

// suffer carries out a blow, and reports whether the command is to be sent again.
func (c *Client) suffer(s *strike) (again bool) {
	blow := s.fault.Kind.Strike(s.fault)
	from, state := c.in.now(), c.stateNow()
	switch {
	case blow.Crash:
		c.dead.Store(true)
	case blow.Cancel:
		c.canceled.Store(true)
	case blow.Freeze > 0:
		c.freeze(from + blow.Freeze)
		c.thawed()
	case blow.Pause > 0:
		c.in.sleep(context.Background(), blow.Pause)
	}
	c.in.struck(s, hit{at: "client " + itoa(c.id), client: c.id, state: state, from: from, to: c.in.now()})
	return blow.Resend
}

// freeze keeps every command of the client from going out or being seen to be
// answered until a time.
func (c *Client) freeze(until time.Duration) {
	for {
		old := c.frozen.Load()
		if old >= int64(until) || c.frozen.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// thawed waits until the client is not frozen.
func (c *Client) thawed() {
	for {
		left := time.Duration(c.frozen.Load()) - c.in.now()
		if left <= 0 || !c.in.sleep(context.Background(), left) {
			return
		}
	}
}

// point is what the faults can tell of this side of a command.
func (c *Client) point(m Moment, cmd redis.Cmder) point {
	return point{
		moment: m, names: namesOf(cmd.Args()), key: keyOf(cmd.Args()),
		during: c.doingNow(), state: c.stateNow(), client: c.id,
		first: m == After && c.answered.Load() == 1,
	}
}

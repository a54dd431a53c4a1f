package faults

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
)

// ErrCrashed is the error of every command of a client that has crashed. The command is
// not sent. It simulates the end of a process: nothing that the client's code does afterwards, including clean-up,
// reaches a server.
var ErrCrashed = errors.New("the client has crashed")

// Client holds the faults' state of one client. It is also a hook of go-redis,
// between the client and its connections. One goroutine calls Enter, Leave, Tries,
// Granted, Releases and GivenUp; the client's commands may come from several.
type Client struct {
	in *Injector
	id int // counted from 1, as in the sentences
	// base is the clock by which the client is held up; nil: the machine's.
	base clock.Clock

	during   atomic.Pointer[doing]
	state    atomic.Pointer[State]
	over     atomic.Pointer[func() bool] // tells whether the lease of the grant is over
	outlived atomic.Pointer[func() bool] // the last grant reported to have outlived its lease
	answered atomic.Int32                // commands of the client's own thread since the grant
	dead     atomic.Bool
	canceled atomic.Bool
	frozen   atomic.Int64 // until this time since the start of the load

	ahead atomic.Int64 // of its clock
	moves atomic.Pointer[move]
}

// move is a fault that moves a client's clock, and its result.
type move struct {
	by   *armed
	told sync.Once // of the injection, when the client reads the moved clock
}

// doing is an operation, which may be nested in others.
type doing struct {
	kind string
	in   *doing
}

var (
	waiting = Waiting
	holding = Holding
	idle    = Idle
)

// Enter reports that the client begins an operation of a kind, as named in histories; Leave reports that the innermost
// one has ended.
func (c *Client) Enter(kind string) {
	c.thawed() // a frozen client begins nothing
	within := c.during.Load()
	if within == nil {
		c.canceled.Store(false)
		c.setClock()
	}
	c.during.Store(&doing{kind, within})
}

// Leave ends the operation that Enter began.
func (c *Client) Leave() {
	if d := c.during.Load(); d != nil {
		c.during.Store(d.in)
	}
	c.canceled.Store(false)
}

// Tries marks the client as waiting for a lock.
func (c *Client) Tries() { c.state.Store(&waiting) }

// Granted reports that the client's code has been granted a lock: its section begins. over reports whether the lease
// has ended; nil: it never does. Faults of a holder fire here, too, for a section may contain no command.
func (c *Client) Granted(over func() bool) {
	c.answered.Store(0)
	c.over.Store(&over)
	c.state.Store(&holding)
	c.in.granted()
	c.fireBetweenCommands(point{})
	if c.in.o.Bare {
		c.fireBetweenCommands(point{first: true})
	}
}

// Releases reports that the client's code is about to release the lock: the section is over. A fault that fires after
// the first command of a section fires here if this section sent no command although other sections do.
func (c *Client) Releases() {
	if c.answered.Load() == 0 && c.stateNow() == Holding && !c.in.o.Bare {
		c.fireBetweenCommands(point{first: true})
	}
	c.state.Store(&idle)
}

// GivenUp reports that the client has no lock and stops waiting for one.
func (c *Client) GivenUp() { c.state.Store(&idle) }

// Number returns the client's number, counted from 0, as passed when it was made.
func (c *Client) Number() int { return c.id - 1 }

// Dead reports whether the client has crashed.
func (c *Client) Dead() bool { return c.dead.Load() }

// Ahead returns how far the client's clock is ahead of its base clock; negative: behind.
func (c *Client) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// doingNow returns the client's operations under way, the innermost first.
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

// Clock returns the client's own clock: base, moved ahead or behind by the faults.
func (c *Client) Clock(base clock.Clock) clock.Clock {
	c.base = base
	return skewed{base, c}
}

// sleep holds the client up, and reports false when the faults were stopped before the time
// was over.
func (c *Client) sleep(d time.Duration) bool {
	if c.base == nil || d <= 0 {
		return c.in.sleep(d)
	}
	return c.base.Sleep(c.in.acting, d) == nil
}

type skewed struct {
	clock.Clock
	c *Client
}

// Now returns the client's time. The first reading of a moved clock counts as an injection.
func (s skewed) Now() time.Time {
	if m := s.c.moves.Load(); m != nil && s.c.ahead.Load() != 0 {
		m.told.Do(func() {
			now := s.c.in.now()
			s.c.in.injected(m.by, hit{at: "client " + itoa(s.c.id), client: s.c.id, state: s.c.stateNow(), from: now, to: now})
		})
	}
	return s.Clock.Now().Add(s.c.Ahead())
}

// setClock moves the client's clock if a fault asks for it. The clock moves only between
// two operations, while the client holds nothing, so that the lease of a grant and the
// operations on it are measured by one clock.
func (c *Client) setClock() {
	if m := c.moves.Load(); m != nil && c.stateNow() != Holding {
		c.ahead.Store(int64(m.by.fault.Amount))
	}
}

// startedIn marks the background threads that an operation of the client starts.
type startedIn struct{}

// Go wraps the function by which a client starts a background thread, so that a thread that outlives its operation,
// such as a renewal, can be distinguished from the client's own.
func (c *Client) Go(run func(func(context.Context)) func(context.Context) error) func(func(context.Context)) func(context.Context) error {
	return func(f func(context.Context)) func(context.Context) error {
		in := c.during.Load()
		return run(func(ctx context.Context) { f(context.WithValue(ctx, startedIn{}, in)) })
	}
}

// beside reports whether a command comes from a background thread: the operation that
// started the thread has ended.
func (c *Client) beside(ctx context.Context) bool {
	in, started := ctx.Value(startedIn{}).(*doing)
	if !started {
		return false
	}
	for d := c.during.Load(); d != nil; d = d.in {
		if d == in {
			return false
		}
	}
	return true
}

// Wait wraps a client's way of waiting: a crashed client does not wait.
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
		return c.command(ctx, []redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook. The faults treat a pipeline as one command
// that answers to the names of all commands in it.
func (c *Client) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return c.command(ctx, cmds, func() error { return next(ctx, cmds) })
	}
}

// command sends cmds and passes the answer to the client, unless faults prevent either.
func (c *Client) command(ctx context.Context, cmds []redis.Cmder, send func() error) error {
	if len(cmds) > 0 && cmds[0].Name() == "hello" {
		return send() // by which the driver opens a connection
	}
	b := boundary{cmds: cmds, beside: c.beside(ctx)}
	again, err := c.at(Before, b)
	if err != nil {
		return refuse(cmds, err)
	}
	err = send()
	if again != nil && c.lives() == nil {
		err = c.resend(again, send)
	}
	if c.stateNow() == Holding && !b.beside {
		b.first = c.answered.Add(1) == 1
	}
	again, failed := c.at(After, b)
	if failed != nil {
		return refuse(cmds, failed)
	}
	if again != nil {
		err = c.resend(again, send)
	}
	return err
}

// resend sends a command once more. It is an injection only if the server got it.
func (c *Client) resend(s *armed, send func() error) error {
	from, state := c.in.now(), c.stateNow()
	err := send()
	if answer := redis.Error(nil); redis.HasErrorPrefix(err, "NOSCRIPT") {
		s.vain("the server did not know the script that was sent again by its digest")
	} else if err == nil || errors.As(err, &answer) {
		s.brought("commands executed twice", 1)
		c.in.injected(s, hit{at: "client " + itoa(c.id), client: c.id, state: state, from: from, to: c.in.now()})
	} else {
		s.vain("the command could not be sent again: " + err.Error())
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

// boundary is one side of a command, or of several in a pipeline.
type boundary struct {
	cmds   []redis.Cmder
	beside bool // they come from a background thread
	first  bool // the client's first answer since the grant
}

// at lets the faults fire at one side of a command. again is the fault that has the command sent once more, or nil.
func (c *Client) at(m Moment, b boundary) (again *armed, err error) {
	if err := c.lives(); err != nil || !c.in.active.Load() {
		return nil, err
	}
	for _, s := range c.in.onClients {
		if s.fault.Where.at() != m || b.beside && s.disruption.ofThread() || !c.matches(s, m, b) {
			continue
		}
		if s.disruption.Cancel && c.during.Load() == nil || !s.trigger.fires(c.in.now()) {
			continue // there is no operation to cancel, or the fault is not due yet
		}
		if s.disruption.Resend {
			again = s
			continue
		}
		c.apply(s)
	}
	c.thawed()
	return again, c.lives()
}

// fireBetweenCommands lets the faults hit a client that holds a lock and is not at a command.
func (c *Client) fireBetweenCommands(p point) {
	if c.lives() != nil || !c.in.active.Load() {
		return
	}
	p.during, p.state, p.client = c.doingNow(), Holding, c.id
	for _, s := range c.in.onClients {
		if s.disruption.needsCommand() || !s.fault.Where.matchesGrant(p) || !s.trigger.fires(c.in.now()) {
			continue
		}
		c.apply(s)
	}
	c.thawed()
}

// at returns the side of a command at which a fault of a client fires. If the sentence names no side, it is after the
// command.
func (w Where) at() Moment {
	if w.Moment == AnyMoment {
		return After
	}
	return w.Moment
}

func (c *Client) matches(s *armed, m Moment, b boundary) bool {
	for _, cmd := range b.cmds {
		p := c.point(m, cmd)
		p.first = m == After && b.first
		if s.fault.Where.matches(p) {
			return true
		}
	}
	return false
}

// lives returns nil while the client may send commands.
func (c *Client) lives() error {
	switch {
	case c.dead.Load():
		return ErrCrashed
	case c.canceled.Load():
		return context.Canceled
	}
	return nil
}

// apply applies a disruption to the client.
func (c *Client) apply(s *armed) {
	disruption := s.disruption
	from, state := c.in.now(), c.stateNow()
	switch {
	case disruption.Crash:
		c.dead.Store(true)
	case disruption.Cancel:
		c.canceled.Store(true)
	case disruption.Freeze > 0:
		if !c.freeze(from + disruption.Freeze) {
			s.vain("the client was frozen for longer already")
			return
		}
		c.thawed()
	case disruption.Pause > 0:
		c.sleep(disruption.Pause)
	}
	s.brought(disruption.effect(state), 1)
	if over := c.over.Load(); disruption.holdsUp() && state == Holding && over != nil && *over != nil && (*over)() && c.outlived.Swap(over) != over {
		s.brought("leases outlived", 1)
	}
	c.in.injected(s, hit{at: "client " + itoa(c.id), client: c.id, state: state, from: from, to: c.in.now()})
}

// freeze sets the time until which the client's commands and answers wait. It returns false if the client is frozen
// until then already.
func (c *Client) freeze(until time.Duration) bool {
	for {
		old := c.frozen.Load()
		if old >= int64(until) {
			return false
		}
		if c.frozen.CompareAndSwap(old, int64(until)) {
			return true
		}
	}
}

// thawed waits until the client's freeze is over or the faults are stopped.
func (c *Client) thawed() {
	for {
		left := time.Duration(c.frozen.Load()) - c.in.now()
		if left <= 0 || !c.sleep(left) {
			return
		}
	}
}

// point collects what the faults can know about this side of a command.
func (c *Client) point(m Moment, cmd redis.Cmder) point {
	return point{
		moment: m, names: namesOf(cmd.Args()), key: keyOf(cmd.Args()),
		during: c.doingNow(), state: c.stateNow(), client: c.id,
	}
}

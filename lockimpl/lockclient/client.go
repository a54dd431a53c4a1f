// Package lockclient is a client of a lock under test with a connection that the suite controls: its commands pass
// through proxies of its own, so that it can be cut off, held up and killed, whatever Redis client the lock uses. The
// calls of the lock are timed and named, so that a call that never returns can be named.
package lockclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/server"
	"oversell/variant"
	"oversell/wire"
)

// Config is shared by the clients.
type Config struct {
	// Ctx ends the calls of the clients.
	Ctx    context.Context
	Lock   lockimpl.Variant
	Server *server.Target
	Seed   uint64
	// Lasted returns how long the machine and the servers have answered in time.
	Lasted func() time.Duration
	// Doubted is called with a lease that may have been granted: the call without an answer was made at that time or
	// later.
	Doubted func(from time.Time, ttl time.Duration)
	// Panicked, unless it is nil, is called when the lock's code panics. The error has the stack.
	Panicked func(error)
}

// Client is one client of the lock under test. Its commands pass through proxies of its
// own, one for each master.
type Client struct {
	Locker lockimpl.Locker
	Number int
	Env    variant.Env
	// Links are its ways to the masters.
	Links []*Link
	// Ahead is how far its clock is ahead of the other clocks.
	Ahead time.Duration
	// Hooked is how many commands were sent by way of Env.Redis.
	Hooked atomic.Int64
	// Hashed says that one of them was a script by its hash.
	Hashed atomic.Bool
	// Ctx ends with the client.
	Ctx context.Context
	// End ends its background work.
	End context.CancelFunc

	world  Config
	conns  []redis.UniversalClient
	direct bool // see Direct
	beside sync.WaitGroup

	mu     sync.Mutex // guards what follows
	rand   *rand.Rand
	tokens int
	doing  string // the call under way
	since  time.Time
	least  time.Duration // by Config.Lasted, until when the call may take its time
	slow   string        // the call that took the longest
	names  map[keyed]string
	took   time.Duration
}

// CommandTimeout bounds the wait for one reply, so that a client that was cut off gives up
// within a rule.
const CommandTimeout = 3 * time.Second

// New makes a client with a number of its own. It is not connected yet.
func New(w Config, number int) *Client {
	c := &Client{world: w, Number: number}
	c.rand = rand.New(rand.NewPCG(w.Seed, uint64(number)))
	c.Ctx, c.End = context.WithCancel(context.WithoutCancel(w.Ctx))
	c.Env = variant.Env{Clock: clock.Real{}, Token: c.token, Wait: c.wait, Go: c.spawn}
	return c
}

// Connect connects the client to each server and, by Again, makes its Locker.
func (c *Client) Connect() error {
	w := c.world
	for node := range w.Server.Nodes() {
		o := w.Server.Options(node, server.ConnOptions{PoolSize: 4, Timeout: CommandTimeout})
		l := &Link{}
		p, err := wire.Listen(w.Ctx, wire.Options{To: o.Addr, Decide: l.judge, Fired: l.happened})
		if err != nil {
			return err
		}
		l.proxy = p
		c.Links = append(c.Links, l)
		o.Addr = p.Addr()
		o.MaxConcurrentDials = 2 // a call that gives up leaves its dial behind: on a busy machine there would be thousands
		conn := redis.NewClient(o)
		conn.AddHook(counted{&c.Hooked, &c.Hashed})
		c.conns = append(c.conns, conn)
		c.Env.Redis = append(c.Env.Redis, conn)
		c.Env.Addr = append(c.Env.Addr, o.Addr)
		for err := conn.Ping(w.Ctx).Err(); err != nil; err = conn.Ping(w.Ctx).Err() {
			if w.Ctx.Err() != nil {
				return fmt.Errorf("connect to %s: %w", w.Server.Addrs[node], err)
			}
			c.sleep(Pace) // a busy machine
		}
	}
	c.Hooked.Store(0)
	return nil
}

// Again gives the client a new Locker with the same Env.
func (c *Client) Again() { c.Locker = c.world.Lock.New(c.Env) }

// Thread returns a second Locker with the Env of a client, for another thread of the same program.
func (c *Client) Thread() *Client {
	return &Client{Locker: c.world.Lock.New(c.Env), world: c.world, Number: c.Number, Env: c.Env, Ahead: c.Ahead, Ctx: c.Ctx, End: func() {}, Links: c.Links}
}

// Direct connects the client to the masters without the ways that the suite controls, so that its calls are quick.
func (c *Client) Direct() {
	w := c.world
	c.direct = true
	c.Env.Redis, c.Env.Addr = nil, nil
	for node := range w.Server.Nodes() {
		o := w.Server.Options(node, server.ConnOptions{PoolSize: 4, Timeout: CommandTimeout})
		conn := redis.NewClient(o)
		c.conns = append(c.conns, conn)
		c.Env.Redis, c.Env.Addr = append(c.Env.Redis, conn), append(c.Env.Addr, o.Addr)
	}
	c.Again()
}

// Die ends the client as a crash does: nothing that it sends from now on arrives.
func (c *Client) Die() {
	for _, l := range c.Links {
		l.proxy.Close()
	}
	c.End()
}

// Close ends the client and its background work.
func (c *Client) Close() {
	c.Die()
	for _, conn := range c.conns {
		conn.Close()
	}
	done := make(chan struct{})
	go func() { c.beside.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(CommandTimeout): // code that minds no context is left behind
	}
}

// Freeze stops all traffic between the client and its servers, until Thaw.
func (c *Client) Freeze() {
	for _, l := range c.Links {
		l.proxy.Cut(wire.Both)
		l.mark(true)
	}
}

// Thaw ends a Freeze.
func (c *Client) Thaw() {
	for _, l := range c.Links {
		l.proxy.Restore()
		l.mark(false)
	}
}

// disturbed reports whether the suite acts on the client's commands.
func (c *Client) disturbed() bool {
	if c.Ctx.Err() != nil {
		return true
	}
	for _, l := range c.Links {
		l.mu.Lock()
		is := l.cut || l.act != nil
		l.mu.Unlock()
		if is {
			return true
		}
	}
	return false
}

// token returns 128 random bits.
func (c *Client) token() string {
	c.Note()
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%016x%016x", c.rand.Uint64(), c.rand.Uint64())
}

// Note counts a requested token.
func (c *Client) Note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
}

// TokensRequested returns how many tokens were requested.
func (c *Client) TokensRequested() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens
}

// IntN draws a number below n.
func (c *Client) IntN(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

// wait looks again after the retry interval, less up to half of it by chance.
func (c *Client) wait(ctx context.Context, _ string, atMost time.Duration) error {
	pause := atMost
	if half := int(atMost / 2); half > 0 {
		pause -= time.Duration(c.IntN(half))
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.Ctx.Done():
		return variant.ErrStopped
	}
}

func (c *Client) spawn(f func(context.Context)) func(context.Context) error {
	done := make(chan struct{})
	c.beside.Go(func() {
		defer close(done)
		var err error
		defer c.caught("a function that Env.Go runs", &err)
		f(c.Ctx)
	})
	return variant.Join(done)
}

// begin notes a call with its wait, so that a call that never returns can be named.
func (c *Client) begin(what string, wait time.Duration) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doing, c.since, c.least = what, time.Now(), wait+2*CommandTimeout
	if c.world.Lasted != nil {
		c.least += c.world.Lasted()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if took := time.Since(c.since); took > c.took {
			c.slow, c.took = c.doing, took
		}
		c.doing = ""
	}
}

// Slow describes the call that took the longest.
func (c *Client) Slow() (what string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%s by client %d returned after %v", c.slow, c.Number, c.took.Round(100*time.Millisecond)), c.took
}

// Caller tells which of its calls took the longest. A [Client] is one.
type Caller interface {
	Slow() (what string, took time.Duration)
}

// Call is a call that has returned.
type Call struct {
	What string
	Took time.Duration
}

// Slow implements [Caller].
func (c Call) Slow() (what string, took time.Duration) { return c.What, c.Took }

// SlowestOf returns the call that took the longest of all callers.
func SlowestOf[C Caller](callers []C) (slowest Call) {
	for _, c := range callers {
		if what, took := c.Slow(); took > slowest.Took {
			slowest = Call{what, took}
		}
	}
	return slowest
}

// Slowest describes the call that took the longest of all callers; it is empty if no call took a while.
func Slowest[C Caller](callers []C) (what string) {
	slowest := SlowestOf(callers)
	if slowest.Took <= CommandTimeout {
		return ""
	}
	return slowest.What
}

// Stuck describes a call that has been under way for a while.
func (c *Client) Stuck() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doing == "" || time.Since(c.since) < time.Second {
		return ""
	}
	return fmt.Sprintf("%s by client %d has not returned for %v", c.doing, c.Number, time.Since(c.since).Round(100*time.Millisecond))
}

// Hangs is Stuck for a call that has taken longer than its wait and the time for two commands. Time in which the machine or the
// servers did not answer in time does not count.
func (c *Client) Hangs() string {
	c.mu.Lock()
	hangs := c.world.Lasted != nil && c.world.Lasted() > c.least
	c.mu.Unlock()
	if !hangs {
		return ""
	}
	return c.Stuck()
}

// caught must be deferred. It turns a panic into an error, which it also passes to Config.Panicked.
func (c *Client) caught(what string, err *error) {
	if p := recover(); p != nil {
		*err = suitetest.Panicked(what, p)
		if c.world.Panicked != nil {
			c.world.Panicked(*err)
		}
	}
}

// Acquire calls Acquire once.
func (c *Client) Acquire(ctx context.Context, name string, o lockimpl.Options) (l lockimpl.Lock, err error) {
	defer c.begin(fmt.Sprintf("Acquire of %q with a wait of %v", name, o.Wait), o.Wait)()
	defer c.caught("Acquire", &err)
	start, disturbed := c.Env.Clock.Now(), c.disturbed()
	began, healthy := time.Now(), c.world.Lasted()
	l, err = c.Locker.Acquire(ctx, name, o)
	if err == nil && l.Until.IsZero() {
		l.Until = start.Add(o.TTL)
	}
	if err == nil && l.Key != name {
		c.named(l, name)
	}
	if err != nil && !errors.Is(err, lockimpl.ErrHeld) {
		// The suite's own faults are meant to test the lock. A machine that stood still ended ctx by itself.
		stalled := time.Since(began)-(c.world.Lasted()-healthy) > CommandTimeout/4
		if end, ends := ctx.Deadline(); !disturbed && (stalled || ctx.Err() == nil && (!ends || time.Until(end) > CommandTimeout/10)) {
			from := time.Now().Add(-CommandTimeout) // answers to commands before were refusals
			if began.After(from) {
				from = began
			}
			c.world.Doubted(from, o.TTL)
		}
	}
	return l, err
}

// Extend calls Extend once.
func (c *Client) Extend(l lockimpl.Lock, ttl time.Duration) (m lockimpl.Lock, err error) {
	defer c.begin(fmt.Sprintf("Extend of %q", l.Key), 0)()
	defer c.caught("Extend", &err)
	start := c.Env.Clock.Now()
	m, err = c.Locker.Extend(c.world.Ctx, l, ttl)
	if err == nil && m.Until.IsZero() {
		m.Until = start.Add(ttl)
	}
	if name := c.Name(l); err == nil && m.Key != name {
		c.named(m, name)
	}
	return m, err
}

// Release calls Release once.
func (c *Client) Release(l lockimpl.Lock) (err error) {
	defer c.begin(fmt.Sprintf("Release of %q", l.Key), 0)()
	defer c.caught("Release", &err)
	return c.Locker.Release(c.world.Ctx, l)
}

// keyed identifies a grant whose Lock.Key is not the name.
type keyed struct{ key, token string }

func (c *Client) named(l lockimpl.Lock, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[keyed]string{}
	}
	c.names[keyed{l.Key, l.Token}] = name
}

// Name returns the name for which the client was granted a lock: Lock.Key, or what Acquire was called with, if the lock puts
// something else there.
func (c *Client) Name(l lockimpl.Lock) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name, ok := c.names[keyed{l.Key, l.Token}]; ok {
		return name
	}
	return l.Key
}

// Until returns when the lease may end at the earliest, by the real clock: as the client knows it, less Grain.
func (c *Client) Until(l lockimpl.Lock) time.Time {
	if r, renews := c.Locker.(lockimpl.Renewer); renews {
		if m := r.Renewed(l); m.Until.After(l.Until) {
			l = m
		}
	}
	if away := time.Until(l.Until).Abs(); away < c.Ahead.Abs()/2 && c.Ahead.Abs() > time.Minute {
		return l.Until.Add(-Grain) // the lock reads the real clock, whatever Env.Clock says
	}
	return l.Until.Add(-c.Ahead - Grain)
}

// Patience is how long a lock may take to be granted when it is free, or when its lease is over: much
// longer than a busy machine needs.
const Patience = 8 * time.Second

// Pace is the pause between two attempts.
const Pace = 5 * time.Millisecond

// Take obtains a lock that is free or becomes free within a time, which may be over. After an error that leaves the outcome
// open it tries again.
func (c *Client) Take(name string, ttl, free time.Duration) (lockimpl.Lock, error) {
	return c.TakeWithin(name, ttl, max(free, 0)+Patience)
}

// TakeWithin is Take with a limit on the whole, measured in the time during which the machine and the servers answer.
func (c *Client) TakeWithin(name string, ttl, limit time.Duration) (lockimpl.Lock, error) {
	return c.TakeEvery(name, ttl, Pace, limit)
}

// TakeEvery is TakeWithin for a client that looks at an interval of its own.
func (c *Client) TakeEvery(name string, ttl, every, limit time.Duration) (lockimpl.Lock, error) {
	var last error // that is not only the end of the time
	since := time.Now()
	for start := c.world.Lasted(); ; {
		left := max(limit-(c.world.Lasted()-start), 0)
		ctx, cancel := context.WithTimeout(c.world.Ctx, left+Pace)
		l, err := c.Acquire(ctx, name, lockimpl.Options{TTL: ttl, Wait: left, RetryEvery: every})
		cancel()
		if err == nil {
			return l, nil
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			last = err
		}
		if c.world.Lasted()-start >= limit || c.world.Ctx.Err() != nil {
			return l, &Ungranted{Since: since, Limit: limit, Sure: c.world.Lasted()-start >= limit, Last: last, Quiet: c.quiet(since)}
		}
		c.sleep(Pace)
	}
}

// Try makes one attempt, and a few more after errors that leave the outcome open.
func (c *Client) Try(name string, ttl time.Duration) (l lockimpl.Lock, err error) {
	for range 10 {
		if l, err = c.Acquire(c.world.Ctx, name, lockimpl.Options{TTL: ttl, RetryEvery: Pace}); err == nil || errors.Is(err, lockimpl.ErrHeld) {
			return l, err
		}
		c.sleep(Pace)
	}
	return l, err
}

// Practise makes each call once on a lock that nobody else uses, so that scripts are loaded and set-up is complete.
func (c *Client) Practise(name string, ttl time.Duration, extends bool) {
	l, err := c.Try(name+"-practice", ttl)
	if err != nil {
		return
	}
	if extends {
		_, _ = c.Extend(l, ttl)
	}
	_ = c.Release(l)
}

// Longest makes each call once on a free lock, and an acquire by another client while it is held, and returns how many commands the
// longest call sent to one master.
func Longest(c, other *Client, name string, extends bool) (commands int) {
	call := func(c *Client, do func()) {
		c.Plan(nil)
		do()
		commands = max(commands, c.Sent())
	}
	o := lockimpl.Options{TTL: time.Minute, RetryEvery: Pace}
	var l lockimpl.Lock
	var err error
	if call(c, func() { l, err = c.Acquire(c.Ctx, name, o) }); err != nil {
		return commands
	}
	call(other, func() { _, _ = other.Acquire(other.Ctx, name, o) })
	if extends {
		call(c, func() { l, _ = c.Extend(l, o.TTL) })
	}
	call(c, func() { _ = c.Release(l) })
	return commands
}

func (c *Client) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.world.Ctx.Done():
	}
}

// Ungranted is the error of a client that was not granted a lock in time.
type Ungranted struct {
	Since time.Time     // when it was asked for first
	Limit time.Duration // for how long
	Sure  bool          // the machine and the servers answered in time for as long
	Last  error         // the last answer
	Quiet time.Duration // for how long it had sent no command
}

// Error says how long the client asked, and the last answer. If the client had sent no command for longer than a command takes, the call
// did not wait for the server.
func (u *Ungranted) Error() string {
	s := fmt.Sprintf("not granted in %v; the last answer was %q", u.Limit.Round(time.Millisecond), u.Last)
	if u.Quiet > CommandTimeout {
		s += fmt.Sprintf("; Acquire had sent no command for %v, so that all of its commands had been answered or had failed: it waited for something else than the server", u.Quiet.Round(100*time.Millisecond))
	}
	return s
}

// Unwrap returns the last answer.
func (u *Ungranted) Unwrap() error { return u.Last }

// FixedClock is a clock that always shows the same time.
type FixedClock struct {
	clock.Real
	At time.Time
}

// Now is always the same.
func (s FixedClock) Now() time.Time { return s.At }

package locktest

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
	"oversell/internal/rediscmd"
	"oversell/lockimpl"
	"oversell/server"
	"oversell/variant"
	"oversell/wire"
)

// client is one client of the lock under test. Its commands pass through proxies of its
// own, one for each master, so that it can be cut off, held up and killed, whatever
// Redis client it uses.
type client struct {
	locker lockimpl.Locker
	b      *bench
	number int
	env    variant.Env
	links  []*link
	conns  []redis.UniversalClient
	ahead  time.Duration // of its clock
	hooked atomic.Int64  // commands sent by way of env.Redis

	ctx    context.Context // ends with the client
	end    context.CancelFunc
	beside sync.WaitGroup

	mu     sync.Mutex // guards what follows
	rand   *rand.Rand
	tokens int
	doing  string // the call under way
	since  time.Time
}

// commandTimeout bounds the wait for one reply, so that a client that was cut off gives up
// within a rule.
const commandTimeout = 3 * time.Second

// change alters the world of a client before its Locker is made.
type change func(*client)

// clockAhead makes a client whose clock is ahead of the others', or behind them.
func clockAhead(d time.Duration) change {
	return func(c *client) { c.ahead, c.env.Clock = d, shifted{d} }
}

// named makes a client that uses this token for every grant.
func named(token string) change {
	return func(c *client) { c.env.Token = func() string { c.note(); return token } }
}

// shifted is the real clock, moved.
type shifted struct{ ahead time.Duration }

func (s shifted) Now() time.Time { return time.Now().Add(s.ahead) }

func (s shifted) Sleep(ctx context.Context, d time.Duration) error {
	return clock.Real{}.Sleep(ctx, d)
}

func (s shifted) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return clock.Real{}.WithTimeout(ctx, d)
}

// newClient connects a client.
func (b *bench) newClient(changes ...change) (*client, error) {
	c := &client{b: b}
	c.number = int(b.run.clients.Add(1))
	c.rand = rand.New(rand.NewPCG(b.run.seed, uint64(c.number)))
	c.ctx, c.end = context.WithCancel(context.WithoutCancel(b.ctx))
	c.env = variant.Env{Clock: clock.Real{}, Token: c.token, Wait: c.wait, Go: c.spawn}
	b.adopt(c)
	for node := range b.run.server.Nodes() {
		o := b.run.server.Options(node, server.ConnOptions{PoolSize: 4, Timeout: commandTimeout})
		l := &link{}
		p, err := wire.Listen(b.ctx, wire.Options{To: o.Addr, Judge: l.judge, Fired: l.happened})
		if err != nil {
			return nil, err
		}
		l.proxy = p
		c.links = append(c.links, l)
		o.Addr = p.Addr()
		conn := redis.NewClient(o)
		conn.AddHook(counted{&c.hooked})
		c.conns = append(c.conns, conn)
		c.env.Redis = append(c.env.Redis, conn)
		c.env.Addr = append(c.env.Addr, o.Addr)
		for err := conn.Ping(b.ctx).Err(); err != nil; err = conn.Ping(b.ctx).Err() {
			if b.ctx.Err() != nil {
				return nil, fmt.Errorf("connect to %s: %w", b.run.server.Addrs[node], err)
			}
			b.sleep(pace) // a busy machine
		}
	}
	c.hooked.Store(0)
	for _, ch := range changes {
		ch(c)
	}
	c.locker = b.run.lock.New(c.env)
	return c, nil
}

// client is newClient for rules: a machine without a connection to spare ends them.
func (b *bench) client(changes ...change) *client {
	c, err := b.newClient(changes...)
	if err != nil {
		panic(failure{err})
	}
	return c
}

// failure is what a rule panics with when it cannot go on.
type failure struct{ error }

// again gives the client a new Locker in the same world.
func (c *client) again() { c.locker = c.b.run.lock.New(c.env) }

// thread is a second Locker in the world of a client, for another thread of the same
// program.
func (c *client) thread() *client {
	return &client{locker: c.b.run.lock.New(c.env), b: c.b, number: c.number, env: c.env, ahead: c.ahead, ctx: c.ctx, end: func() {}, links: c.links}
}

// die ends the client as a crash does: nothing that it does from now on arrives.
func (c *client) die() {
	for _, l := range c.links {
		l.proxy.Close()
	}
	c.end()
}

// close ends the client and everything that it runs beside itself.
func (c *client) close() {
	c.die()
	for _, conn := range c.conns {
		conn.Close()
	}
	done := make(chan struct{})
	go func() { c.beside.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(commandTimeout): // code that minds no context is left behind
	}
}

// freeze stops all that passes between the client and its servers, until thaw.
func (c *client) freeze() {
	for _, l := range c.links {
		l.proxy.Cut(wire.Both)
		l.mark(true)
	}
}

func (c *client) thaw() {
	for _, l := range c.links {
		l.proxy.Restore()
		l.mark(false)
	}
}

// disturbed tells whether the suite does something to what the client sends.
func (c *client) disturbed() bool {
	if c.ctx.Err() != nil {
		return true
	}
	for _, l := range c.links {
		l.mu.Lock()
		is := l.cut || l.act != nil
		l.mu.Unlock()
		if is {
			return true
		}
	}
	return false
}

// token is 128 random bits.
func (c *client) token() string {
	c.note()
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%016x%016x", c.rand.Uint64(), c.rand.Uint64())
}

// note counts the tokens that were asked for.
func (c *client) note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
}

func (c *client) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens
}

// chance draws a number below n.
func (c *client) chance(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

// wait looks again after the retry interval, less up to half of it by chance.
func (c *client) wait(ctx context.Context, _ string, atMost time.Duration) error {
	pause := atMost
	if half := int(atMost / 2); half > 0 {
		pause -= time.Duration(c.chance(half))
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return variant.ErrStopped
	}
}

func (c *client) spawn(f func(context.Context)) func(context.Context) error {
	done := make(chan struct{})
	c.beside.Go(func() {
		defer close(done)
		f(c.ctx)
	})
	return variant.Join(done)
}

// begin notes a call, so that one that never returns can be named.
func (c *client) begin(what string) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doing, c.since = what, time.Now()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.doing = ""
	}
}

// stuck tells of a call that has been under way for a while.
func (c *client) stuck() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doing == "" || time.Since(c.since) < time.Second {
		return ""
	}
	return fmt.Sprintf("%s by client %d has not returned for %v", c.doing, c.number, time.Since(c.since).Round(100*time.Millisecond))
}

// acquire is one call of Acquire.
func (c *client) acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	defer c.begin(fmt.Sprintf("Acquire of %q with a wait of %v", name, o.Wait))()
	start, disturbed := c.env.Clock.Now(), c.disturbed()
	began, healthy := time.Now(), c.b.run.lasted()
	l, err := c.locker.Acquire(ctx, name, o)
	if err == nil && l.Until.IsZero() {
		l.Until = start.Add(o.TTL)
	}
	if err != nil && !errors.Is(err, lockimpl.ErrHeld) {
		// What the suite did, it did to see what the lock makes of it. A machine that stood still ended ctx by itself.
		stalled := time.Since(began)-(c.b.run.lasted()-healthy) > commandTimeout/4
		if end, ends := ctx.Deadline(); !disturbed && (stalled || ctx.Err() == nil && (!ends || time.Until(end) > commandTimeout/10)) {
			from := time.Now().Add(-commandTimeout) // answers to commands before were refusals
			if began.After(from) {
				from = began
			}
			c.b.doubted(from, o.TTL)
		}
	}
	return l, err
}

func (c *client) extend(l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	defer c.begin(fmt.Sprintf("Extend of %q", l.Key))()
	start := c.env.Clock.Now()
	m, err := c.locker.Extend(c.b.ctx, l, ttl)
	if err == nil && m.Until.IsZero() {
		m.Until = start.Add(ttl)
	}
	return m, err
}

func (c *client) release(l lockimpl.Lock) error {
	defer c.begin(fmt.Sprintf("Release of %q", l.Key))()
	return c.locker.Release(c.b.ctx, l)
}

// until is the end of the lease as the client knows it, by the real clock.
func (c *client) until(l lockimpl.Lock) time.Time {
	if r, renews := c.locker.(lockimpl.Renewer); renews {
		if m := r.Renewed(l); m.Until.After(l.Until) {
			l = m
		}
	}
	return l.Until.Add(-c.ahead)
}

// patience is how long a lock may take to be granted when it is free, or when its lease is over: much
// longer than a busy machine needs.
const patience = 8 * time.Second

// pace is the pause between two tries.
const pace = 5 * time.Millisecond

// take obtains a lock that is free or becomes free within a time. An error that leaves
// the outcome open is worth another try.
func (c *client) take(name string, ttl, free time.Duration) (lockimpl.Lock, error) {
	return c.takeWithin(name, ttl, free+patience)
}

func (c *client) takeWithin(name string, ttl, limit time.Duration) (lockimpl.Lock, error) {
	var last error // that is not only the end of the time
	since := time.Now()
	for start := c.b.run.lasted(); ; {
		left := max(limit-(c.b.run.lasted()-start), 0)
		ctx, cancel := context.WithTimeout(c.b.ctx, left+pace)
		l, err := c.acquire(ctx, name, lockimpl.Options{TTL: ttl, Wait: left, RetryEvery: pace})
		cancel()
		if err == nil {
			return l, nil
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			last = err
		}
		if c.b.run.lasted()-start >= limit || c.b.ctx.Err() != nil {
			return l, &ungranted{since, limit, c.b.run.lasted()-start >= limit, last}
		}
		c.b.sleep(pace)
	}
}

// try makes one attempt. An error that leaves the outcome open is worth a few more.
func (c *client) try(name string, ttl time.Duration) (l lockimpl.Lock, err error) {
	for range 10 {
		if l, err = c.acquire(c.b.ctx, name, lockimpl.Options{TTL: ttl, RetryEvery: pace}); err == nil || errors.Is(err, lockimpl.ErrHeld) {
			return l, err
		}
		c.b.sleep(pace)
	}
	return l, err
}

// link is a client's way to one master.
type link struct {
	proxy *wire.Proxy

	mu  sync.Mutex
	n   int // commands since the last plan
	act func(nth int, cmd wire.Command) wire.Action
	// after, unless nil, is called when something was done to a command, before the client can see it.
	after func()
	cut   bool
}

// plan sets the actions on the commands of this link from now on.
func (l *link) plan(act func(nth int, cmd wire.Command) wire.Action, after func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.act, l.after = 0, act, after
}

func (l *link) happened(wire.Command, wire.Action) {
	l.mu.Lock()
	after := l.after
	l.mu.Unlock()
	if after != nil {
		after()
	}
}

func (l *link) mark(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

// judge decides about a command. Those that open a connection pass.
func (l *link) judge(cmd wire.Command) wire.Action {
	if rediscmd.Is(cmd.Name, rediscmd.Opens) {
		return wire.Action{}
	}
	l.mu.Lock()
	l.n++
	n, act := l.n, l.act
	l.mu.Unlock()
	if act == nil {
		return wire.Action{}
	}
	return act(n, cmd)
}

// plan says what is to be done to the client's commands from now on, counted from 1 on
// each of its links; nil: nothing.
func (c *client) plan(act func(nth int, cmd wire.Command) wire.Action) {
	for _, l := range c.links {
		l.plan(act, nil)
	}
}

// sent is how many commands have passed a link since the last plan, at the most.
func (c *client) sent() (n int) {
	for _, l := range c.links {
		l.mu.Lock()
		n = max(n, l.n)
		l.mu.Unlock()
	}
	return n
}

// counted counts commands.
type counted struct{ n *atomic.Int64 }

func (counted) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}

func (h counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

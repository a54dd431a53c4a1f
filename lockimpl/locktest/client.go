package locktest

import (
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/lockimpl/lockclient"
)

// client is one client of the lock under test, in a rule.
type client struct {
	*lockclient.Client
	b *bench
	// line, unless nil, is what its commands by Env.Redis pass first.
	line *interrupt.Interceptor
}

// change alters the Env of a client before its Locker is made.
type change func(*client)

// clockAhead makes a client with a clock that is ahead of the others, or behind them.
func clockAhead(d time.Duration) change {
	return func(c *client) { c.Ahead, c.Env.Clock = d, clock.Shifted{Clock: clock.Real{}, By: d} }
}

// drawing makes a client whose tokens are made of new ones.
func drawing(of func(fresh string) string) change {
	return func(c *client) {
		fresh := c.Env.Token
		c.Env.Token = func() string { return of(fresh()) }
	}
}

// intercepted is a client of which the suite acts on what it sends by Env.Redis.
func intercepted(c *client) { c.Env, c.line = interrupt.Intercept(c.Env) }

// forget has the server forget, for this client, the scripts that it was sent.
func (c *client) forget() {
	if c.b.forgets {
		c.line.ForgetScripts()
	}
}

// newClient connects a client.
func (b *bench) newClient(changes ...change) (*client, error) {
	c := &client{b: b}
	c.Client = lockclient.New(lockclient.Config{
		Ctx: b.ctx, Lock: b.run.lock, Server: b.run.server, Seed: b.run.seed, Lasted: b.run.lasted, Doubted: b.doubted, Panicked: b.failed,
	}, int(b.run.clients.Add(1)))
	b.adopt(c)
	if err := c.Connect(); err != nil {
		return nil, err
	}
	for _, ch := range changes {
		ch(c)
	}
	if b.forgets {
		intercepted(c)
	}
	c.Again()
	return c, nil
}

// client is newClient for rules: it ends the rule, by a panic with a failure, if the client cannot connect. It
// is for code that checked runs; other goroutines must call newClient, or checked themselves.
func (b *bench) client(changes ...change) *client {
	c, err := b.newClient(changes...)
	if err != nil {
		panic(failure{err})
	}
	return c
}

// failure is the value with which a rule panics when it cannot go on.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// thread returns another thread of the program of a client.
func (c *client) thread() *client { return &client{c.Thread(), c.b, c.line} }

const (
	commandTimeout = lockclient.CommandTimeout
	patience       = lockclient.Patience
	pace           = lockclient.Pace
)

package databasetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/database"
	"oversell/internal/stepped"
)

// Client is client code under way that stops before each statement, and each
// command to Redis, until it is told to go on: the same as internal/stepped does
// for Redis alone. A transaction is one step, "begin": on SQLite nobody else
// could write while it stands still. Its methods belong to one goroutine, that of
// the schedule.
type Client struct {
	// SQL is the client's own pool.
	SQL *sql.DB

	ctx     context.Context
	crash   context.CancelFunc
	running atomic.Bool
	parked  chan string // what it stands before; closed at the end
	pass    chan struct{}
	next    string
	err     error
}

// NewClient makes a client of db that is not under way yet: until Start nothing
// is held back. Its commands to rdb, unless that is nil, are held back as well;
// rdb must be the client's own.
func NewClient(t testing.TB, db *database.DB, rdb *redis.Client) *Client {
	t.Helper()
	c := &Client{parked: make(chan string), pass: make(chan struct{})}
	c.ctx, c.crash = context.WithCancel(context.Background())
	c.SQL = db.Pool(func(base driver.Connector) driver.Connector { return connector{base, c} })
	if rdb != nil {
		rdb.AddHook(stepped.Hook(c.park))
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SQL.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Crash()
		c.SQL.Close()
	})
	return c
}

// Start runs do up to its first statement or command. A client starts once.
func (c *Client) Start(do func(context.Context) error) {
	c.running.Store(true)
	go func() {
		defer close(c.parked)
		c.err = do(c.ctx)
	}()
	c.next = <-c.parked
}

// Next is what the client stands before: the first word of a statement or the
// name of a command, in lower case. It is empty when the client has ended.
func (c *Client) Next() string { return c.next }

// Step lets that take effect and brings the client to what comes after it.
func (c *Client) Step() {
	c.pass <- struct{}{}
	c.next = <-c.parked
}

// Steps lets these pass, which must be the client's next ones.
func (c *Client) Steps(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if c.next != name {
			t.Fatalf("the client stands before %q; the schedule says %q", c.next, name)
		}
		c.Step()
	}
}

// Ended expects that the client is done, and returns what its code returned.
func (c *Client) Ended(t testing.TB) error {
	t.Helper()
	if c.next != "" {
		t.Fatalf("the client stands before %q; the schedule says that it is done", c.next)
	}
	return c.err
}

// Crash ends the client where it stands: nothing more of it takes effect. It
// waits for the code to end.
func (c *Client) Crash() {
	c.crash()
	for c.next != "" {
		c.next = <-c.parked
	}
}

func (c *Client) park(ctx context.Context, name string) error {
	if !c.running.Load() {
		return nil
	}
	select {
	case c.parked <- name:
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-c.pass:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

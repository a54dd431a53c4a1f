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

// Client is running client code that stops before each statement, and each command to Redis, until it is told to
// continue, like internal/stepped for Redis alone. A transaction is one step, "begin": on SQLite no other client
// could write while it is stopped. Only the goroutine of the schedule may call its methods.
type Client struct {
	// SQL is the client's own pool.
	SQL *sql.DB

	ctx     context.Context
	crash   context.CancelFunc
	running atomic.Bool
	parked  chan string // what it is stopped before; closed at the end
	pass    chan struct{}
	next    string
	err     error
}

// NewClient creates a client of db that is not started: until Start it does not stop. It stops before commands to
// rdb, too, unless that is nil; rdb must belong to the client.
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

// Start runs do up to its first statement or command. It is called once.
func (c *Client) Start(do func(context.Context) error) {
	c.running.Store(true)
	go func() {
		defer close(c.parked)
		c.err = do(c.ctx)
	}()
	c.next = <-c.parked
}

// Next returns what the client is stopped before: the first word of a statement or the name of a command, in lower
// case. It is empty after the client has ended.
func (c *Client) Next() string { return c.next }

// Step executes that and runs the client to its next stop.
func (c *Client) Step() {
	c.pass <- struct{}{}
	c.next = <-c.parked
}

// Steps executes these, which must be the client's next ones.
func (c *Client) Steps(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if c.next != name {
			t.Fatalf("the client stands before %q; the schedule says %q", c.next, name)
		}
		c.Step()
	}
}

// Ended expects that the client has ended, and returns the error of its code.
func (c *Client) Ended(t testing.TB) error {
	t.Helper()
	if c.next != "" {
		t.Fatalf("the client stands before %q; the schedule says that it is done", c.next)
	}
	return c.err
}

// Crash ends the client where it is stopped: nothing more takes effect. It waits for the code to end.
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

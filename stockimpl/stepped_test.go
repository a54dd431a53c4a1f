package stockimpl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/internal/stepped"
	"oversell/lockimpl"
	"oversell/stockimpl"
)

// buyer is a client that runs a sale's code step by step.
type buyer struct {
	*stepped.Client
	name string
	left int64
}

// call is a call that a client makes, stepped or not.
type call func(context.Context, stockimpl.Sale) (int64, error)

func buying(id int64, pieces int, fence int64) call {
	return func(ctx context.Context, s stockimpl.Sale) (int64, error) {
		return s.Buy(ctx, stockimpl.Order{ID: id, Quantity: pieces}, lockimpl.Lock{Fence: fence})
	}
}

func refunding(id int64, pieces int, fence int64) call {
	return func(ctx context.Context, s stockimpl.Sale) (int64, error) {
		return s.Refund(ctx, stockimpl.Order{ID: id, Quantity: pieces}, lockimpl.Lock{Fence: fence})
	}
}

// stage is one product of one sale, for the clients of one schedule.
type stage struct {
	*testing.T
	addr    string
	sale    stockimpl.Variant
	product string
	plain   stockimpl.Sale // not stepped
}

// newStage opens a new product with this stock on the server at addr.
func newStage(t *testing.T, addr, sale string, stock int64) *stage {
	t.Helper()
	v, ok := stockimpl.Find(sale)
	if !ok {
		t.Fatalf("no sale %q", sale)
	}
	s := &stage{T: t, addr: addr, sale: v, product: newProduct()}
	s.loadScripts()
	s.plain = v.New(world(t, addr), s.product)
	if err := s.plain.Open(t.Context(), stock); err != nil {
		t.Fatal(err)
	}
	return s
}

// loadScripts has the server load every script of the sale, by using another product, so that running a script is a
// single command from then on.
func (s *stage) loadScripts() {
	s.Helper()
	sale := s.sale.New(world(s.T, s.addr), newProduct())
	ctx, order, lock := s.Context(), stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{Fence: 1}
	err := sale.Open(ctx, 1)
	if err == nil {
		_, err = sale.Buy(ctx, order, lock)
	}
	if err == nil {
		_, err = sale.Refund(ctx, order, lock)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// start begins a client's call, which stops before its first command.
func (s *stage) start(name string, do call) *buyer {
	s.Helper()
	env := world(s.T, s.addr)
	client := env.Redis[0].(*redis.Client)
	if err := client.Ping(s.Context()).Err(); err != nil { // connects, so that this is no step
		s.Fatal(err)
	}
	sale := s.sale.New(env, s.product)
	c := &buyer{name: name}
	c.Client = stepped.Start(client, func(ctx context.Context) (err error) {
		c.left, err = do(ctx, sale)
		return err
	})
	s.Cleanup(c.Crash) // a client that the test abandons must not outlive the test
	return c
}

// step executes a client's next command, which must be this one, and stops before the one after.
func (s *stage) step(c *buyer, command string) {
	s.Helper()
	if c.Next() != command {
		s.Fatalf("client %s stands before %q; the schedule says %q", c.name, c.Next(), command)
	}
	c.Step()
}

// ends checks that the client has finished, with this answer.
func (s *stage) ends(c *buyer, want error, left int64) {
	s.Helper()
	switch {
	case c.Next() != "":
		s.Fatalf("client %s stands before %q; the schedule says that it is done", c.name, c.Next())
	case !errors.Is(c.Err(), want):
		s.Fatalf("client %s was answered %v; want %v", c.name, c.Err(), want)
	case c.left != left:
		s.Fatalf("client %s was told that %d are left; want %d", c.name, c.left, left)
	}
}

// holds checks the state of the sale on the server.
func (s *stage) holds(want stockimpl.State) {
	s.Helper()
	got, err := s.plain.State(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if got != want {
		s.Fatalf("the server holds %+v; want %+v", got, want)
	}
}

// answers makes a call that is not stepped, and checks its answer.
func (s *stage) answers(do call, want error, left int64) {
	s.Helper()
	got, err := do(s.Context(), s.plain)
	if !errors.Is(err, want) || got != left {
		s.Fatalf("answered %d left, %v; want %d, %v", got, err, left, want)
	}
}

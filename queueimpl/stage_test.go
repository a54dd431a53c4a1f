package queueimpl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/stepped"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/variant"
)

// stage is one queue, for the clients of one schedule.
type stage struct {
	*testing.T
	target  *server.Target
	v       queueimpl.Variant
	o       queueimpl.Options
	name    string
	clients int
}

// on calls play with a new stage for each of the queues. "zset-locked/L" is the queue zset-locked with the lock L.
func on(t *testing.T, play func(*stage), queues ...string) {
	t.Helper()
	target := startRedis(t)
	for _, name := range queues {
		t.Run(name, func(t *testing.T) {
			play(newStage(t, target, name))
		})
	}
}

func newStage(t *testing.T, target *server.Target, name string) *stage {
	t.Helper()
	s := &stage{T: t, target: target, name: newName()}
	queue, lock, _ := strings.Cut(name, "/")
	var ok bool
	if s.v, ok = queueimpl.Find(queue); !ok {
		t.Fatalf("no queue %q", queue)
	}
	if lock != "" {
		l, ok := lockimpl.Find(lock)
		if !ok {
			t.Fatalf("no lock %q", lock)
		}
		s.o.Lock = l.New
	}
	s.loadScripts()
	return s
}

// loadScripts has the server load the scripts of the queue and of the lock, by using another queue, so that running a
// script is a single command from then on.
func (s *stage) loadScripts() {
	s.Helper()
	other := *s
	other.name = newName()
	c := other.client()
	in := c.enqueue("a")
	got := c.pops("a")
	if a, ok := c.queue.(queueimpl.Acker); ok {
		if err := a.Ack(s.Context(), other.name, got[0]); err != nil {
			s.Fatal(err)
		}
	}
	if d, ok := c.queue.(queueimpl.Dequeuer); ok {
		if err := d.Dequeue(s.Context(), other.name, "a", in[0].Score); !errors.Is(err, queueimpl.ErrChanged) {
			s.Fatal(err)
		}
	}
}

// client is one client of the queue. at is nil unless it is stepped.
type client struct {
	*stage
	id    string
	queue queueimpl.Queue
	redis *redis.Client
	tasks []queueimpl.Task // the result of a stepped call
	at    *stepped.Client
}

func (s *stage) client() *client { return s.clientAt(clock.Real{}) }

// clientAt returns a client with a clock of its own. It does not wait for locks.
func (s *stage) clientAt(clk clock.Clock) *client {
	s.Helper()
	s.clients++
	c := &client{stage: s, id: fmt.Sprint("client-", s.clients), redis: connect(s.T, s.target)}
	n := 0
	c.queue = s.v.New(variant.Env{
		Redis: []redis.UniversalClient{c.redis},
		Clock: clk,
		Token: func() string { n++; return fmt.Sprintf("%p-%d", c, n) },
		Wait:  func(context.Context, string, time.Duration) error { return variant.ErrStopped },
	}, s.o)
	return c
}

// enqueue enqueues tasks without stepping, and checks that exactly these were entered.
func (c *client) enqueue(ids ...string) []queueimpl.Task {
	c.Helper()
	in, err := c.queue.Enqueue(c.Context(), c.name, ids...)
	if err != nil || !slices.Equal(idsOf(in), ids) {
		c.Fatalf("%s: enqueue of %q answered %v, %v", c.id, ids, in, err)
	}
	return in
}

// pops pops tasks without stepping, and checks that it gets exactly these.
func (c *client) pops(want ...string) []queueimpl.Task {
	c.Helper()
	tasks, err := c.queue.Pop(c.Context(), c.name, max(len(want), 1))
	if len(want) == 0 && errors.Is(err, queueimpl.ErrEmpty) {
		return nil
	}
	if err != nil || !slices.Equal(idsOf(tasks), want) {
		c.Fatalf("%s: pop answered %v, %v; want %q", c.id, tasks, err, want)
	}
	return tasks
}

// popping returns a new client that has begun to pop one task and has stopped before its first command.
func (s *stage) popping() *client {
	s.Helper()
	return s.client().begin(func(ctx context.Context, c *client) (err error) {
		c.tasks, err = c.queue.Pop(ctx, c.name, 1)
		return err
	})
}

func (s *stage) enqueueing(id string) *client {
	s.Helper()
	return s.client().begin(func(ctx context.Context, c *client) (err error) {
		c.tasks, err = c.queue.Enqueue(ctx, c.name, id)
		return err
	})
}

func (s *stage) dequeueing(id string, score float64) *client {
	s.Helper()
	return s.client().begin(func(ctx context.Context, c *client) error {
		return c.queue.(queueimpl.Dequeuer).Dequeue(ctx, c.name, id, score)
	})
}

func (c *client) begin(do func(context.Context, *client) error) *client {
	c.at = stepped.Start(c.redis, func(ctx context.Context) error { return do(ctx, c) })
	c.Cleanup(c.at.Crash)
	return c
}

// step executes the client's next commands, which must be these.
func (c *client) step(commands ...string) {
	c.Helper()
	for _, command := range commands {
		if got := c.at.Next(); got != command {
			c.Fatalf("%s stands before %q; the schedule says %q", c.id, got, command)
		}
		c.at.Step()
	}
}

// ends checks that the client has finished, with this error and these tasks.
func (c *client) ends(want error, ids ...string) {
	c.Helper()
	if next := c.at.Next(); next != "" {
		c.Fatalf("%s stands before %q; the schedule says that it is done", c.id, next)
	}
	if err := c.at.Err(); !errors.Is(err, want) {
		c.Fatalf("%s was answered %v; want %v", c.id, err, want)
	}
	if got := idsOf(c.tasks); !slices.Equal(got, ids) {
		c.Fatalf("%s was answered %q; want %q", c.id, got, ids)
	}
}

// waits checks which tasks wait on the server, and returns them.
func (s *stage) waits(ids ...string) []queueimpl.Task {
	s.Helper()
	state, err := s.client().queue.State(s.Context(), s.name)
	if err != nil {
		s.Fatal(err)
	}
	if got := idsOf(state.Waiting); !slices.Equal(got, ids) {
		s.Fatalf("%q wait on the server; want %q", got, ids)
	}
	return state.Waiting
}

// lost checks that no task waits and that a pop finds none.
func (s *stage) lost() {
	s.Helper()
	s.waits()
	s.client().pops()
}

// comes pops until the task is delivered.
func (s *stage) comes(id string) queueimpl.Task {
	s.Helper()
	c := s.client()
	for {
		tasks, err := c.queue.Pop(s.Context(), s.name, 1)
		if err == nil {
			if tasks[0].ID != id {
				s.Fatalf("%q was delivered; want %q", tasks[0].ID, id)
			}
			return tasks[0]
		}
		if !errors.Is(err, queueimpl.ErrEmpty) {
			s.Fatal(err)
		}
		if err := (clock.Real{}).Sleep(s.Context(), time.Millisecond); err != nil {
			s.Fatalf("%q never came back: %v", id, err)
		}
	}
}

// admin returns a Redis client that is not stepped.
func (s *stage) admin() *redis.Client {
	s.Helper()
	return connect(s.T, s.target)
}

// endLease ends the lock's lease, by deleting its key.
func (s *stage) endLease() {
	s.Helper()
	if n, err := s.admin().Del(s.Context(), "Lock:Queue:"+s.name).Result(); err != nil || n != 1 {
		s.Fatalf("the lock was not there: %d, %v", n, err)
	}
}

func idsOf(tasks []queueimpl.Task) []string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

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

// stage is one queue, and its clients.
type stage struct {
	*testing.T
	target  *server.Target
	v       queueimpl.Variant
	o       queueimpl.Options
	name    string
	clients int
}

// on calls play with a fresh stage for each of the queues. "zset-locked/L" is that
// queue under the lock L.
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

// loadScripts lets the server see the queue's and the lock's scripts, on another
// queue, so that each is one command from now on.
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

// client is one client's code, stepped or not.
type client struct {
	*stage
	id    string
	queue queueimpl.Queue
	redis *redis.Client
	tasks []queueimpl.Task // what a stepped call answered
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

// enqueue is not stepped, and must enter exactly these.
func (c *client) enqueue(ids ...string) []queueimpl.Task {
	c.Helper()
	in, err := c.queue.Enqueue(c.Context(), c.name, ids...)
	if err != nil || !slices.Equal(idsOf(in), ids) {
		c.Fatalf("%s: enqueue of %q answered %v, %v", c.id, ids, in, err)
	}
	return in
}

// pops is not stepped, and must get exactly these.
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

// popping begins a pop of one task and stands before its first command.
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

// step lets these commands of the client pass, which must be its next ones.
func (c *client) step(commands ...string) {
	c.Helper()
	for _, command := range commands {
		if got := c.at.Next(); got != command {
			c.Fatalf("%s stands before %q; the schedule says %q", c.id, got, command)
		}
		c.at.Step()
	}
}

// ends expects that the client is done, with this answer and these tasks.
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

// waits expects what waits on the server.
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

// lost expects that no client has the task or will be given it.
func (s *stage) lost() {
	s.Helper()
	s.waits()
	s.client().pops()
}

// comes looks until the task is delivered.
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

// admin returns a plain client.
func (s *stage) admin() *redis.Client {
	s.Helper()
	return connect(s.T, s.target)
}

// endLease lets the lock's lease run out.
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

package mux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/coro"
	"oversell/internal/errclass"
	"oversell/internal/servertest"
	"oversell/variant"
)

// dial returns a function for Options that makes redis clients of these servers.
func dial(connections int, addrs ...string) func() []redis.UniversalClient {
	return func() (all []redis.UniversalClient) {
		for _, addr := range addrs {
			all = append(all, redis.NewClient(&redis.Options{
				Addr: addr, PoolSize: connections, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1,
				ContextTimeoutEnabled: true, Protocol: 2, DisableIdentity: true,
			}))
		}
		return all
	}
}

func start(t testing.TB, o Options, addrs ...string) *Mux {
	t.Helper()
	o.Lane, o.Alone = dial(1, addrs...), dial(4096, addrs...)
	m := New(o)
	t.Cleanup(func() { m.Close() })
	return m
}

// run runs n clients with this body.
func run(t testing.TB, m *Mux, n int, body func(i int, w *Worker)) {
	t.Helper()
	var threads []Thread
	for i := range n {
		w := m.Workers()[i%len(m.Workers())]
		threads = append(threads, Thread{w, func() { body(i, w) }})
	}
	over := make(chan struct{})
	go func() { m.Run(threads, func() {}); close(over) }()
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		t.Fatal("the run does not end")
	}
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestCommandsAreAnswered(t *testing.T) {
	addr, _ := servertest.Start(t)
	for _, rtt := range []time.Duration{0, time.Millisecond} {
		m := start(t, Options{Workers: 2, RTT: rtt}, addr)
		var done atomic.Int64
		run(t, m, 300, func(i int, w *Worker) {
			ctx := context.Background()
			for k := range 20 {
				key := fmt.Sprint(rtt, "k", i)
				if n, err := w.Redis()[0].Incr(ctx, key).Result(); err != nil || n != int64(k+1) {
					t.Errorf("incr: %d, %v", n, err)
				}
				_ = w.Wait(ctx, time.Millisecond)
				w.Sleep(ctx, time.Millisecond, nil)
			}
			done.Add(1)
		})
		if done.Load() != 300 {
			t.Errorf("%d clients ended", done.Load())
		}
	}
}

// TestRepliesAfterTheTimeout checks that a command ends in an error if its virtual round trip is longer than the timeout,
// and that the server has carried it out.
func TestRepliesAfterTheTimeout(t *testing.T) {
	addr, _ := servertest.Start(t)
	hasty := func() []redis.UniversalClient {
		return []redis.UniversalClient{dial(10, addr)()[0].(*redis.Client).WithTimeout(50 * time.Millisecond)}
	}
	m := New(Options{RTT: time.Hour, Lane: dial(1, addr), Alone: hasty})
	defer m.Close()
	var slowest atomic.Int64
	run(t, m, 10, func(_ int, w *Worker) {
		start := time.Now()
		if err := w.Redis()[0].Incr(context.Background(), "n").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("incr: %v", err)
		}
		_, err := w.Redis()[0].Pipelined(context.Background(), func(p redis.Pipeliner) error { p.Incr(context.Background(), "n"); return nil })
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("incr in a pipeline: %v", err)
		}
		slowest.Store(max(slowest.Load(), int64(time.Since(start))))
	})
	if took := time.Duration(slowest.Load()); took > 10*time.Second {
		t.Errorf("two commands took %v", took)
	}
	c := dial(1, addr)()[0]
	defer c.Close()
	if n, err := c.Get(t.Context(), "n").Int(); err != nil || n != 20 {
		t.Errorf("n is %d, %v; want 20", n, err)
	}
}

// TestWatch checks that a transaction has a connection of its own: of two that read the same value and write, one
// fails.
func TestWatch(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	const clients, each = 40, 5
	run(t, m, clients, func(_ int, w *Worker) {
		ctx := w.Context()
		for range each {
			for add(ctx, w.Redis()[0]) != nil {
			}
		}
	})
	c := dial(1, addr)()[0]
	defer c.Close()
	if n, err := c.Get(t.Context(), "n").Int(); err != nil || n != clients*each {
		t.Errorf("n is %d, %v; want %d", n, err, clients*each)
	}
}

// add adds 1 to n, or returns redis.TxFailedErr.
func add(ctx context.Context, c redis.UniversalClient) error {
	return c.Watch(ctx, func(tx *redis.Tx) error {
		n, err := tx.Get(ctx, "n").Int()
		if err != nil && err != redis.Nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "n", n+1, 0).Err() })
		return err
	}, "n")
}

// TestBlockingCommands checks that a command that blocks does not delay other clients, however many there are.
func TestBlockingCommands(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 1}, addr)
	var got atomic.Int64
	const consumers = 100
	run(t, m, 2*consumers, func(i int, w *Worker) {
		ctx, c := w.Context(), w.Redis()[0]
		if i >= consumers {
			w.Sleep(ctx, 20*time.Millisecond, nil)
			if err := c.LPush(ctx, "list", i).Err(); err != nil {
				t.Error(err)
			}
			return
		}
		if v, err := c.BLPop(ctx, 10*time.Second, "list").Result(); err != nil || len(v) != 2 {
			t.Errorf("blpop: %v, %v", v, err)
		}
		got.Add(1)
	})
	if got.Load() != consumers {
		t.Errorf("%d consumers got something", got.Load())
	}
}

// TestScripts checks that scripts run by their SHA, even if the server has lost them.
func TestScripts(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	script := redis.NewScript(`return redis.call("INCRBY", KEYS[1], ARGV[1])`)
	run(t, m, 200, func(i int, w *Worker) {
		ctx, c := w.Context(), w.Redis()[0]
		if i%50 == 49 {
			c.ScriptFlush(ctx)
		}
		if n, err := script.Run(ctx, c, []string{fmt.Sprint(i)}, 7).Int(); err != nil || n != 7 {
			t.Errorf("client %d: %d, %v", i, n, err)
		}
	})
}

// TestPipelines checks that each command of a client's pipeline gets its own reply beside those of other clients.
func TestPipelines(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	run(t, m, 100, func(i int, w *Worker) {
		ctx, c := w.Context(), w.Redis()[0]
		key := fmt.Sprint(i)
		var get *redis.StringCmd
		var wrong *redis.IntCmd
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, key, "v"+key, 0)
			wrong = p.Incr(ctx, key)
			get = p.Get(ctx, key)
			return nil
		})
		if err == nil || wrong.Err() == nil || get.Val() != "v"+key {
			t.Errorf("client %d: error %v, %v, and got %q", i, err, wrong.Err(), get.Val())
		}
	})
}

// TestCancelledCommands checks that a command returns when its context ends, whether it is queued in a lane or in
// flight. Its reply is dropped, and no other command gets it.
func TestCancelledCommands(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 1, RTT: 50 * time.Millisecond}, addr)
	run(t, m, 200, func(i int, w *Worker) {
		c, key := w.Redis()[0], fmt.Sprint("k", i)
		ctx, cancel := w.Clock().WithTimeout(w.Context(), 5*time.Millisecond)
		defer cancel()
		for k := 0; ; k++ {
			n, err := c.Incr(ctx, key).Result()
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil || n != int64(k+1) {
				t.Errorf("incr: %d, %v", n, err)
				return
			}
		}
		if v, err := c.Echo(w.Context(), key).Result(); err != nil || v != key {
			t.Errorf("echo: %q, %v", v, err)
		}
	})
}

// TestBrokenConnections checks that commands in flight when a connection breaks end in an error, and that clients
// continue with the next connection.
func TestBrokenConnections(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	admin := dial(1, addr)()[0]
	defer admin.Close()
	var failed atomic.Int64
	go func() { // a break between two batches is not noticed, so there are many
		for failed.Load() == 0 {
			admin.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes")
		}
	}()
	run(t, m, 100, func(_ int, w *Worker) {
		ctx, c := w.Context(), w.Redis()[0]
		for c.Incr(ctx, "n").Err() == nil && failed.Load() == 0 {
		}
		failed.Add(1)
		for try := 0; c.Incr(ctx, "n").Err() != nil; try++ {
			if try == 1000 {
				t.Error("the client does not connect again")
				return
			}
			_ = w.Clock().Sleep(ctx, 5*time.Millisecond)
		}
	})
	if failed.Load() != 100 {
		t.Errorf("%d clients went on", failed.Load())
	}
}

// TestForeignGoroutine checks that a client that uses the engine from a goroutine of its own is detected, with
// advice.
func TestForeignGoroutine(t *testing.T) {
	addr, _ := servertest.Start(t)
	for name, use := range map[string]func(w *Worker) error{
		"command": func(w *Worker) error { return w.Redis()[0].Get(context.Background(), "k").Err() },
		"sleep":   func(w *Worker) error { return w.Clock().Sleep(context.Background(), time.Millisecond) },
		"wait":    func(w *Worker) error { return w.Wait(context.Background(), time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, Options{}, addr)
			w := m.Workers()[0]
			var got error
			m.Run([]Thread{{w, func() {
				done := make(chan struct{})
				go func() { defer close(done); got = use(w) }()
				<-done
				w.Redis()[0].Get(w.Context(), "k")
			}}}, func() {})
			if !errors.Is(got, coro.ErrAlone) || !errors.Is(m.Err(), errclass.ErrUsage) || !strings.Contains(m.Err().Error(), "--engine goroutine") {
				t.Errorf("the goroutine got %v, and the run %v", got, m.Err())
			}
		})
	}
}

// TestClientOfAnotherWorker checks that a client that uses a redis client of another worker is detected.
func TestClientOfAnotherWorker(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	one, other := m.Workers()[0], m.Workers()[1]
	var got error
	m.Run([]Thread{{one, func() { got = other.Redis()[0].Get(context.Background(), "k").Err() }}}, func() {})
	if !errors.Is(got, errOther) || !errors.Is(m.Err(), errclass.ErrUsage) {
		t.Errorf("the client got %v, and the run %v; want an error of class ErrUsage", got, m.Err())
	}
}

// TestBlockingCode checks that a client that blocks is detected.
func TestBlockingCode(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Patience: 20 * time.Millisecond}, addr)
	w := m.Workers()[0]
	forever := make(chan struct{})
	m.Run([]Thread{{w, func() { <-forever }}}, func() {})
	if !errors.Is(m.Err(), errclass.ErrUsage) || !strings.Contains(m.Err().Error(), "blocks") {
		t.Errorf("error %v", m.Err())
	}
	close(forever)
}

// TestCrash checks that, after a crash, no code gets a reply, neither deferred code nor code that recovers.
func TestCrash(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{}, addr)
	var cleaned []string
	w := m.Workers()[0]
	go func() {
		servertest.Await(t, "the lock", func() bool {
			c := dial(1, addr)()[0]
			defer c.Close()
			return c.Exists(context.Background(), "lock").Val() == 1
		})
		m.fail(errors.New("a test's"))
	}()
	m.o.Patience = 50 * time.Millisecond
	m.Run([]Thread{{w, func() {
		ctx, c := w.Context(), w.Redis()[0]
		defer func() { cleaned = append(cleaned, "outer") }()
		defer func() {
			defer func() { cleaned = append(cleaned, "inner") }()
			_ = recover() // recovering does not help
			c.Del(ctx, "lock")
			cleaned = append(cleaned, "the lock")
		}()
		c.Set(ctx, "lock", 1, 0)
		_ = w.Clock().Sleep(ctx, time.Hour)
		cleaned = append(cleaned, "never")
	}}}, func() {})
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(cleaned, " "); got != "inner outer" {
		t.Errorf("cleaned up: %s", got)
	}
	c := dial(1, addr)()[0]
	defer c.Close()
	if c.Exists(t.Context(), "lock").Val() != 1 {
		t.Error("a dead client deleted its lock")
	}
}

// TestManyWaiters checks that clients get a lock for which 10,000 wait, one at a time, although all of them send
// commands: those of its holder have a lane of their own.
func TestManyWaiters(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	const clients = 10_000
	inside, most, got := atomic.Int64{}, atomic.Int64{}, atomic.Int64{}
	run(t, m, clients, func(_ int, w *Worker) {
		ctx, c := w.Context(), w.Redis()[0]
		for !c.SetNX(ctx, "lock", 1, 0).Val() {
			if got.Load() > 300 {
				return
			}
			if err := w.Wait(ctx, 5*time.Millisecond); err != nil {
				t.Error(err)
			}
		}
		w.Hold(true)
		most.Store(max(most.Load(), inside.Add(1)))
		c.Get(ctx, "k")
		inside.Add(-1)
		got.Add(1)
		c.Del(ctx, "lock")
		w.Hold(false)
	})
	if most.Load() != 1 || got.Load() < 300 {
		t.Errorf("%d clients got the lock, at most %d of them at once", got.Load(), most.Load())
	}
}

// TestThreads checks that a thread beside a client ends with its context, can be joined, and that joining respects a
// deadline.
func TestThreads(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{Workers: 2}, addr)
	run(t, m, 50, func(i int, w *Worker) {
		ctx, cancel := context.WithCancel(w.Context())
		var g Group
		first := w.Go(&g, func() { w.Redis()[0].Incr(ctx, "n") })
		second := w.Go(&g, func() {
			if err := w.Clock().Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
				t.Errorf("sleep: %v", err)
			}
		})
		if err := first(w.Context()); err != nil {
			t.Error(err)
		}
		soon, end := w.Clock().WithTimeout(w.Context(), time.Millisecond)
		defer end()
		if err := second(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("join: %v", err)
		}
		cancel()
		w.Await(&g)
		if g.n != 0 {
			t.Errorf("%d threads are left", g.n)
		}
	})
}

// TestStop checks that stopping ends waits and rests, and no other sleep.
func TestStop(t *testing.T) {
	addr, _ := servertest.Start(t)
	m := start(t, Options{}, addr)
	run(t, m, 4, func(i int, w *Worker) {
		ctx := w.Context()
		switch i {
		case 0:
			if err := w.Wait(ctx, time.Hour); !errors.Is(err, variant.ErrStopped) {
				t.Errorf("wait: %v", err)
			}
		case 1:
			if !w.Sleep(ctx, time.Hour, nil) {
				t.Error("a rest that the end of the run cut short was reported as a lost lock")
			}
		case 2:
			lost := make(chan struct{})
			time.AfterFunc(time.Millisecond, func() { close(lost) })
			if w.Sleep(ctx, time.Hour, lost) {
				t.Error("the lock was lost, and the rest went on")
			}
			m.Stop()
		case 3:
			if err := w.Clock().Sleep(ctx, 10*time.Millisecond); err != nil {
				t.Error(err)
			}
		}
	})
}

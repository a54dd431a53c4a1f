package coro

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestCrash checks that, after a crash, no request is answered, not even in deferred functions.
func TestCrash(t *testing.T) {
	var cleaned []string
	p := func(ctx context.Context, w *Runtime) {
		env := w.Env()
		defer func() { cleaned = append(cleaned, "outer") }()
		defer env.Clock.Now()
		defer func() {
			defer func() { cleaned = append(cleaned, "inner") }()
			_ = recover() // does not stop the crash
			env.Redis[0].Del(ctx, "lock")
			cleaned = append(cleaned, "the lock")
		}()
		join := env.Go(func(ctx context.Context) {
			defer func() { cleaned = append(cleaned, "beside") }()
			env.Redis[0].Get(ctx, "b")
		})
		env.Redis[0].Get(ctx, "a")
		w.Emit("never")
		_ = join(ctx)
	}
	before := runtime.NumGoroutine()
	for range 20 {
		cleaned = nil
		c := Start(p, Options{})
		c.Resume(0, Observation{})
		if got := fmt.Sprint(showAll(c.Pending())); got != "[get a get b]" {
			t.Fatal(got)
		}
		c.Close()
		c.Close()
		if c.Pending() != nil || c.Events() != nil || c.Err() != nil {
			t.Errorf("left over: %v %v %v", c.Pending(), c.Events(), c.Err())
		}
		if got := strings.Join(cleaned, " "); got != "inner outer beside" {
			t.Errorf("cleaned up: %s", got)
		}
	}
	settled(t, before)
}

// settled waits for goroutines that are about to end, and checks that no more are left than before.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestCloseBeforeAnything(t *testing.T) {
	c := Start(func(context.Context, *Runtime) { t.Error("ran") }, Options{})
	c.Close()
	c.Resume(0, Observation{})
}

// TestCrashInTransaction checks that the connection of a client that crashed in a transaction is not used again.
func TestCrashInTransaction(t *testing.T) {
	shared := &Scripts{}
	for range 2 * connections {
		c := Start(add, Options{Scripts: shared})
		c.Resume(0, Observation{})
		c.Resume(0, Observation{Reply: "+OK\r\n"})
		if got := show(c.Pending()[0]); got != "get n" {
			t.Fatal(got)
		}
		c.Close()
	}
	sure(t, follow(t, add, Options{Scripts: shared}, reply("watch n", "+OK\r\n"), reply("get n", "$-1\r\n"), reply("unwatch", "+OK\r\n")))
}

func TestFailures(t *testing.T) {
	get := func(ctx context.Context, w *Runtime) { w.Env().Redis[0].Get(ctx, "k") }
	for _, test := range []struct {
		name, want string
		p          Program
		o          Observation
	}{
		{"panic", "the program panicked: oh\n\t", func(ctx context.Context, w *Runtime) {
			defer w.Env().Redis[0].Del(ctx, "k")
			get(ctx, w)
			panic("oh")
		}, Observation{Reply: "$-1\r\n"}},
		{"nil pointer", "nil pointer dereference\n\t", func(ctx context.Context, w *Runtime) {
			get(ctx, w)
			var p *Client
			p.options = Options{}
		}, Observation{Reply: "$-1\r\n"}},
		{"exit", "ended its goroutine", func(ctx context.Context, w *Runtime) {
			get(ctx, w)
			runtime.Goexit()
		}, Observation{Reply: "$-1\r\n"}},
		{"too little", "are not 1 replies", get, Observation{Reply: "$5\r\nab\r\n"}},
		{"too much", "are not 1 replies", get, Observation{Reply: "$-1\r\n:1\r\n"}},
		{"nothing", "are not 1 replies", get, Observation{}},
		{"deadlock", "wait for each other", func(ctx context.Context, w *Runtime) {
			get(ctx, w)
			var join func(context.Context) error
			join = w.Env().Go(func(ctx context.Context) { _ = join(ctx) })
			_ = join(ctx)
		}, Observation{Reply: "$-1\r\n"}},
		{"subscription", "cannot be parked", func(ctx context.Context, w *Runtime) {
			get(ctx, w)
			s := w.Env().Redis[0].Subscribe(ctx, "c")
			defer s.Close()
			_, _ = s.Receive(ctx)
		}, Observation{Reply: "$-1\r\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			c := Start(test.p, Options{})
			c.Resume(0, Observation{})
			c.Resume(0, test.o)
			for len(c.Pending()) > 0 {
				c.Resume(0, Observation{Reply: ":1\r\n"})
			}
			if err := c.Err(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want %s", err, test.want)
			}
			c.Close()
			settled(t, before)
		})
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		err := w.Env().Redis[0].Set(ctx, "k", struct{}{}, 0).Err()
		w.Emit(err != nil && strings.Contains(err.Error(), "can't marshal"))
		w.Emit(w.Env().Redis[0].Get(ctx, "k").Val())
	}, Options{}, reply("get k", "$1\r\nx\r\n"))
	sure(t, c)
	if got := fmt.Sprint(c.Events()); got != "[true x]" {
		t.Error(got)
	}
}

// TestForeignGoroutines checks that goroutines that are not the client's threads are detected, whatever they do.
func TestForeignGoroutines(t *testing.T) {
	for name, do := range map[string]func(context.Context, *Runtime){
		"command":  func(ctx context.Context, w *Runtime) { w.Env().Redis[0].Get(ctx, "k") },
		"pipeline": func(ctx context.Context, w *Runtime) { _, _ = w.Env().Redis[0].Pipelined(ctx, piped(ctx)) },
		"now":      func(_ context.Context, w *Runtime) { w.Env().Clock.Now() },
		"sleep":    func(ctx context.Context, w *Runtime) { _ = w.Env().Clock.Sleep(ctx, time.Second) },
		"wait":     func(ctx context.Context, w *Runtime) { _ = w.Env().Wait(ctx, "k", time.Second) },
		"pause":    func(_ context.Context, w *Runtime) { w.Pause("a") },
		"boundary": func(_ context.Context, w *Runtime) { w.Boundary("a") },
		"timeout": func(ctx context.Context, w *Runtime) {
			_, cancel := w.Env().Clock.WithTimeout(ctx, time.Second)
			cancel()
		},
		"go": func(ctx context.Context, w *Runtime) { _ = w.Env().Go(func(context.Context) {})(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			c := Start(func(ctx context.Context, w *Runtime) {
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() { do(ctx, w) })
				}
				all.Wait()
				w.Pause("never seen")
			}, Options{})
			c.Resume(0, Observation{})
			if err := c.Err(); err == nil || !strings.Contains(err.Error(), "starts goroutines of its own") {
				t.Errorf("error %v", err)
			}
			if c.Pending() != nil {
				t.Errorf("it goes on with %q", showAll(c.Pending()))
			}
			c.Close()
			settled(t, before)
		})
	}
}

func piped(ctx context.Context) func(redis.Pipeliner) error {
	return func(p redis.Pipeliner) error { return p.Get(ctx, "k").Err() }
}

// TestForeignGoroutineAfterTheEnd checks that a goroutine that outlives its client gets an error.
func TestForeignGoroutineAfterTheEnd(t *testing.T) {
	shared := &Scripts{}
	var env func() error
	c := follow(t, func(ctx context.Context, w *Runtime) {
		env = func() error { return w.Env().Redis[0].Get(ctx, "k").Err() }
	}, Options{Scripts: shared})
	c.Close()
	if err := env(); err == nil {
		t.Error("a closed client answered")
	}
}

func TestRealWait(t *testing.T) { synctest.Test(t, realWait) }

func realWait(t *testing.T) {
	forever := make(chan struct{})
	c := Start(func(ctx context.Context, w *Runtime) {
		w.Env().Go(func(context.Context) { w.Pause("beside") })
		w.Pause("a")
		<-forever
		w.Pause("b")
	}, Options{Patience: 20 * time.Millisecond})
	c.Resume(0, Observation{})
	time.Sleep(100 * time.Millisecond) // a pause of the driver does not count
	sure(t, c)
	c.Resume(0, Observation{})
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "not in its Env") {
		t.Errorf("error %v", err)
	}
	c.Close()
	close(forever)
	synctest.Wait()
}

// TestRealWaitInACrash checks that a deferred function that waits for something outside of Env does not hold up a crash.
func TestRealWaitInACrash(t *testing.T) {
	forever := make(chan struct{})
	c := Start(func(_ context.Context, w *Runtime) {
		w.Env().Go(func(context.Context) {
			defer func() { <-forever }()
			w.Pause("b")
		})
		defer func() { <-forever }()
		w.Pause("a")
	}, Options{Patience: 20 * time.Millisecond})
	c.Resume(0, Observation{})
	c.Close()
	close(forever)
}

func TestContextThatEndsLate(t *testing.T) {
	for range 50 {
		c := follow(t, func(ctx context.Context, w *Runtime) {
			env := w.Env()
			stopped, stop := context.WithCancel(ctx)
			join := env.Go(func(ctx context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(stopped, cancel)()
				w.Emit(env.Clock.Sleep(ctx, time.Second))
			})
			w.Pause("a")
			stop()
			w.Emit(join(ctx))
		}, Options{}, step{want: "clock", at: 1}, at("pause a", 0))
		sure(t, c)
		if got := fmt.Sprint(c.Events()); got != "[context canceled <nil>]" {
			t.Fatal(got)
		}
		c.Close()
	}
}

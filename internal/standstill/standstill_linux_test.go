package standstill

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
)

// TestProbeIdle checks that a probe of a server that answers reports less than the time since it began.
func TestProbeIdle(t *testing.T) {
	addr, _ := servertest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	began := time.Now()
	w := Begin([]redis.UniversalClient{client})
	defer w.End()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for w.Longest() > time.Since(began)/2 {
		if <-tick.C; time.Since(began) > 1000*every {
			t.Fatalf("a server that answers stood still for %v of %v", w.Longest(), time.Since(began))
		}
	}
}

// TestWatch checks that a watch notices that its server stands still, also while it does, and remembers it.
func TestWatch(t *testing.T) {
	addr, server := servertest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w := Begin([]redis.UniversalClient{client})
	defer w.End()
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	const long = 20 * every
	tick := time.NewTicker(every)
	defer tick.Stop()
	for w.Longest() < long {
		if <-tick.C; time.Since(began) > 100*long {
			t.Fatalf("a server that stood still for %v stood still for %v", time.Since(began), w.Longest())
		}
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if d := w.Longest(); d < long || d > time.Since(began) {
		t.Errorf("the longest standstill was %v; want %v or more, and no more than %v", d, long, time.Since(began))
	}
}

// TestBusyServer checks that a server on which a script goes on stands still, though it answers BUSY.
func TestBusyServer(t *testing.T) {
	addr, _ := servertest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	defer client.Close()
	if err := client.ConfigSet(t.Context(), "busy-reply-threshold", "1").Err(); err != nil {
		t.Fatal(err)
	}
	script := make(chan error, 1)
	go func() { script <- client.Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err() }()
	w := Begin([]redis.UniversalClient{client})
	defer w.End()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for began := time.Now(); w.Longest() < 20*every; <-tick.C {
		if time.Since(began) > 1000*every {
			t.Fatalf("a server with an endless script stood still for %v", w.Longest())
		}
	}
	for client.ScriptKill(t.Context()).Err() != nil { // it may not have begun
		<-tick.C
	}
	if err := <-script; err == nil {
		t.Error("the endless script ended by itself")
	}
}

package load

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/server"
)

// TestPoolUse checks that commands that wait for a shared connection are counted, with their wait, apart from those
// that find one free, and that clients with their own connections never wait.
func TestPoolUse(t *testing.T) {
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	engine := func(pool int) *Engine {
		e, err := New(t.Context(), Config{
			Pool: pool, Waiting: Poll,
			Dial: func(_ int32, n int) []redis.UniversalClient { return tg.Clients(server.ConnOptions{PoolSize: n}) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}
	e := engine(1)
	e.began = e.began.Add(-time.Hour) // commands take the time since they were sent
	c, err := e.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	get := func() { c.Env.Redis[0].Get(t.Context(), "a") }
	get() // the first command also connects
	before := e.PoolUse()
	get()
	if u := e.PoolUse().Sub(before); u.Sent != 1 || u.Waited != 0 || u.Wait != 0 || u.Took <= 0 || u.Took > time.Hour {
		t.Errorf("nobody had to wait: %+v", u)
	}
	before = e.PoolUse()
	only := e.shared[0].(*redis.Client).Conn() // takes the only connection of the pool
	if err := only.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(get)
	}
	for e.shared[0].PoolStats().PendingRequests < 3 {
		runtime.Gosched()
	}
	only.Close()
	waiting.Wait()
	if u := e.PoolUse().Sub(before); u.Sent != 4 || u.Waited != 3 || u.Wait <= 0 || u.Took < u.Wait {
		t.Errorf("three had to wait, for the one that sent PING: %+v", u)
	}

	own := engine(0)
	if c, err = own.Client(t.Context()); err != nil {
		t.Fatal(err)
	}
	get()
	if u := own.PoolUse(); u != (PoolUse{}) {
		t.Errorf("with a connection of its own: %+v", u)
	}
}

// TestGreetings checks that the commands with which go-redis opens a connection do not count.
func TestGreetings(t *testing.T) {
	var cmds []redis.Cmder
	for _, name := range []string{"hello", "AUTH", "select", "client", "get"} {
		cmds = append(cmds, redis.NewStatusCmd(t.Context(), name))
	}
	if n := countHandshake(append(cmds, nil)); n != 4 {
		t.Errorf("%d greetings, want 4", n)
	}
}

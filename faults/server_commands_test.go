package faults

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/server"
)

func TestScriptFlush(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"embedded", "process"} {
		tg := openServers(t, server.Spec{Target: kind, Topology: "masters:2"})
		for _, c := range []struct {
			sentence    string
			first, last string
		}{{"script-flush", "NOSCRIPT", "NOSCRIPT"}, {"script-flush node 2", "7", "NOSCRIPT"}} {
			var sha string
			for n := 1; n <= 2; n++ {
				var err error
				if sha, err = tg.Admin(n).ScriptLoad(t.Context(), "return 7").Result(); err != nil {
					t.Fatal(err)
				}
				wantReply(t, tg.Admin(n), "7", "EVALSHA", sha, 0)
			}
			broken(t, Site{Target: tg}, c.sentence)()
			wantReply(t, tg.Admin(1), c.first, "EVALSHA", sha, 0)
			wantReply(t, tg.Admin(2), c.last, "EVALSHA", sha, 0)
		}
	}
}

// TestScriptFlushWithADeadServer checks that script-flush flushes the servers that answer, even if another one is down.
func TestScriptFlushWithADeadServer(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "masters:2"})
	if err := tg.Kill(1); err != nil {
		t.Fatal(err)
	}
	broken(t, Site{Target: tg}, "script-flush")()
	if _, err := injectAt(t, Site{Target: tg}, "script-flush node 1"); err == nil {
		t.Error("scripts of a dead server were flushed")
	}
}

// awaitClients waits until the first server says this about its clients, of which the test's administrator is one.
func awaitClients(t *testing.T, tg *server.Target, says string) {
	t.Helper()
	servertest.Await(t, says, func() bool {
		return strings.Contains(tg.Admin(1).Info(t.Context(), "clients").Val(), says+"\r\n")
	})
}

func TestClientKill(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	// The client has a single connection, so that no dead one is left in its pool, which would answer with an error.
	client := tg.Client(0, server.ConnOptions{})
	defer client.Close()
	blocked := make(chan error)
	go func() { blocked <- client.BLPop(context.Background(), 10*time.Second, "nothing").Err() }()
	awaitClients(t, tg, "blocked_clients:1")
	broken(t, Site{Target: tg}, "client-kill")()
	if err := <-blocked; err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("a client was not disconnected: its command answered %v", err)
	}
	wantReply(t, client, "PONG", "PING") // on a new connection
	client.Close()
	awaitClients(t, tg, "connected_clients:1")
	if _, err := injectAt(t, Site{Target: tg}, "client-kill"); err == nil {
		t.Log("somebody else was connected") // an idle connection of the administrator
	} else if want := "close the connections of clients of server 1: no client is connected"; err.Error() != want {
		t.Errorf("without clients: %v; want %q", err, want)
	}
}

func TestClientPause(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	client := tg.Client(0, server.ConnOptions{})
	defer client.Close()
	wantReply(t, client, "PONG", "PING")
	begin := time.Now()
	var silent int64
	var over time.Time
	heal := broken(t, Site{Target: tg, Brought: func(_ string, n int64) { silent += n }, Over: func(at time.Time) { over = at }}, "client-pause 400ms")
	broke := time.Now()
	wantReply(t, client, "PONG", "PING")
	if took := time.Since(begin); took < 390*time.Millisecond {
		t.Errorf("during a pause of 400ms a PING took %v", took)
	}
	heal()
	if silent != 400 || over.After(broke.Add(400*time.Millisecond)) || over.Before(begin.Add(400*time.Millisecond)) {
		t.Errorf("a pause of 400ms from %v on was over at %v, after %d ms without an answer", broke, over, silent)
	}
	begin = time.Now()
	broken(t, Site{Target: tg}, "client-pause 1m")() // healed at once
	wantReply(t, client, "PONG", "PING")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("a pause of 1m was ended after %v; want at once", took)
	}
	// A longer pause is prolonged without a gap.
	heal = broken(t, Site{Target: tg}, "client-pause 1500ms")
	begin = time.Now()
	wantReply(t, client, "PONG", "PING")
	if took := time.Since(begin); took < 1400*time.Millisecond {
		t.Errorf("during a pause of 1500ms a PING took %v", took)
	}
	heal()
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "masters:2"})
	client := tg.Client(1, server.ConnOptions{})
	defer client.Close()
	wantReply(t, client, "OK", "SET", "k", "v", "PX", "60000")
	heal := broken(t, Site{Target: tg}, "read-only node 2 for 1s")
	for range 50 { // long enough for the server to look for its master
		wantReply(t, client, "READONLY", "SET", "k", "w")
		time.Sleep(30 * time.Millisecond)
	}
	wantReply(t, client, "v", "GET", "k")
	wantReply(t, tg.Admin(1), "OK", "SET", "k", "w")
	heal()
	wantReply(t, client, "v", "GET", "k")
	wantReply(t, client, "OK", "SET", "k", "w")
}

func TestClockNode(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "masters:2", Clocks: true})
	for n := 1; n <= 2; n++ {
		wantReply(t, tg.Admin(n), "OK", "SET", "lock", "a", "PX", "10000")
	}
	heal := broken(t, Site{Target: tg}, "clock +60s on node 2")
	wantAhead(t, tg, 2, time.Minute)
	wantAhead(t, tg, 1, 0)
	wantReply(t, tg.Admin(2), "redis: nil", "GET", "lock")
	wantReply(t, tg.Admin(1), "a", "GET", "lock")
	heal()
	wantAhead(t, tg, 2, 0)
	if f := mustParse(t, "clock +60s on node 2"); !f.When.ForGood {
		t.Error("a clock jumps back before the end")
	}
	if f := mustParse(t, "clock -60s on node 2 for 1s"); f.When.ForGood || f.lasts() != time.Second {
		t.Error("a clock that is to jump back after 1s does not")
	}
}

func wantAhead(t *testing.T, tg *server.Target, n int, want time.Duration) {
	t.Helper()
	now, err := tg.Admin(n).Time(t.Context()).Result()
	if ahead := time.Until(now); err != nil || ahead > want+time.Second || ahead < want-5*time.Second {
		t.Errorf("server %d is ahead by %v, %v; want %v", n, ahead, err, want)
	}
}

package faults

import (
	"context"
	"errors"
	"testing"
	"time"

	"oversell/server"
)

func TestKill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		persist bool
		want    string
	}{{"without an append-only file", false, "redis: nil"}, {"with one", true, "v"}} {
		t.Run(c.name, func(t *testing.T) {
			tg := openServers(t, server.Spec{Target: "process", Persist: c.persist})
			client := tg.Client(0, server.ConnOptions{})
			defer client.Close()
			wantReply(t, client, "OK", "SET", "k", "v")
			heal := broken(t, Site{Target: tg}, "kill")
			if err := client.Get(t.Context(), "k").Err(); err == nil {
				t.Error("a killed server answers")
			}
			heal()
			wantReply(t, tg.Admin(1), c.want, "GET", "k")
		})
	}
}

func TestKillForGood(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "masters:3"})
	heal, err := injectAt(t, Site{Target: tg}, "kill node 2 for good")
	if heal != nil || err != nil {
		t.Fatalf("kill for good heals, or failed: %v", err)
	}
	if err := tg.Admin(2).Ping(t.Context()).Err(); err == nil {
		t.Error("the server answers")
	}
	// Another fault can still be injected and healed.
	broken(t, Site{Target: tg}, "freeze node 1 100ms")()
	if _, err := injectAt(t, Site{Target: tg}, "restart node 2"); err == nil {
		t.Error("a dead server was killed again")
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "masters:3", Persist: true})
	for _, c := range []struct{ sentence, want string }{
		{"restart node 3", "v"}, {"restart node 3 empty", "redis: nil"},
	} {
		for n := 2; n <= 3; n++ {
			wantReply(t, tg.Admin(n), "OK", "SET", "k", "v")
		}
		broken(t, Site{Target: tg}, c.sentence)()
		wantReply(t, tg.Admin(3), c.want, "GET", "k")
		wantReply(t, tg.Admin(2), "v", "GET", "k")
	}
}

// TestRestartTakesItsTime checks that a server stays away for as long as the fault says, even if it is healed early.
func TestRestartTakesItsTime(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	begin := time.Now()
	broken(t, Site{Target: tg}, "restart after 400ms")()
	if took := time.Since(begin); took < 400*time.Millisecond {
		t.Errorf("it came back after %v", took)
	}
	heal, err := injectAt(t, Site{Target: tg}, "restart after 1m")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := heal(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "server 1 was to stay away for 1m0s: context deadline exceeded" {
		t.Errorf("healed too early: %v", err)
	}
}

func TestFreezeNode(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	hasty := tg.Client(0, server.ConnOptions{Timeout: 50 * time.Millisecond})
	defer hasty.Close()
	wantReply(t, hasty, "OK", "SET", "lock", "a", "PX", "300")
	heal := broken(t, Site{Target: tg}, "freeze node 1 1s")
	if err := hasty.Incr(t.Context(), "late").Err(); err == nil {
		t.Error("a frozen server answers")
	}
	time.Sleep(300 * time.Millisecond)
	heal()
	wantReply(t, tg.Admin(1), "1", "GET", "late")          // executed after the client gave up
	wantReply(t, tg.Admin(1), "redis: nil", "GET", "lock") // the lease ran out while the server was frozen
}

// TestAtOnceIsBeforeTheLoad checks that a fault at 0s has fired before the clients start; otherwise the first of them may
// still find what it takes away.
func TestAtOnceIsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "masters:3"})
	in, err := New(t.Context(), Options{Target: tg, Record: func(Injection) {}, Faults: []Fault{mustParse(t, "kill node 3 at 0s for good"), mustParse(t, "kill node 2")}})
	if err != nil {
		t.Fatal(err)
	}
	client := tg.Client(2, server.ConnOptions{})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	in.Start()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("the server answers after the start")
	}
	if err := tg.Admin(2).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the fault without a time has fired already: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
}

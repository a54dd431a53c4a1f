package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server"
)

// standIns lists the topologies in which a server can take the place of another.
var standIns = []string{"replica", "sentinel", "cluster"}

// lockIn is the name of a lock whose key is on the first master, even in a cluster.
const lockIn = "Lock:{b}"

func TestFailover(t *testing.T) {
	t.Parallel()
	for _, topology := range standIns {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			tg := openServers(t, server.Spec{Target: "process", Topology: topology})
			client := tg.Client(0, server.ConnOptions{Timeout: time.Second})
			defer client.Close()
			wantReply(t, client, "OK", "SET", lockIn, "a")
			if err := tg.AwaitHealthy(t.Context()); err != nil { // now the replicas have the key, too
				t.Fatal(err)
			}
			wantServed(t, tg, 1, true)
			broken(t, Site{Target: tg}, "failover")()
			wantServed(t, tg, 1, false)
			wantRole(t, tg, 1, "slave")
			awaitReply(t, tg, client, "a", "GET", lockIn)
			broken(t, Site{Target: tg}, "failover node 1")() // the server that has taken the place of node 1
			awaitReply(t, tg, client, "OK", "SET", lockIn, "b")
		})
	}
}

func TestSplitBrain(t *testing.T) {
	t.Parallel()
	for _, topology := range standIns {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			tg := openServers(t, server.Spec{Target: "process", Topology: topology})
			people := lockingCrowd(t, tg, 6, lockIn, 20*time.Second, 100*time.Millisecond)
			if err := people.await(t.Context()); err != nil {
				t.Fatal(err)
			}
			heal := broken(t, Site{Target: tg, Key: lockIn, Await: people.awaitAndKeep}, "split-brain")
			wantServed(t, tg, 1, false)
			if topology != "cluster" {
				wantRole(t, tg, 1, "master")
				wantReply(t, tg.Admin(1), "OK", "SET", "{b}who", "old")
			}
			time.Sleep(time.Second)
			heal()
			wantRole(t, tg, 1, "slave")
			if holds := people.stop(); overlaps(holds) == 0 {
				t.Errorf("nobody obtained a lock that was held: %v", holds)
			}
			// Nothing is left of the split: a failover works again.
			broken(t, Site{Target: tg}, "failover")()
		})
	}
}

// TestSplitBrainWithoutAGrant checks that a split brain that ends before a lock is granted leaves the primary in place.
func TestSplitBrainWithoutAGrant(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "replica"})
	await := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	f := mustParse(t, "split-brain")
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	heal, err := f.Kind.Inject(ctx, f, Site{Target: tg, Key: "k", Chosen: 1, Await: await})
	if err == nil || heal == nil {
		t.Fatalf("without a grant: %v", err)
	}
	if err := heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantServed(t, tg, 1, true)
	wantReply(t, tg.Admin(1), "OK", "SET", "k", "v")
	wantReply(t, tg.Admin(1), "1", "WAIT", 1, 5000)
}

// TestEverythingHeals checks that servers that can replace each other recover from every fault, even if one has replaced
// another in the meantime.
func TestEverythingHeals(t *testing.T) {
	t.Parallel()
	sentences := []string{
		"oom for 1s", "evict", "script-flush", "client-kill", "client-pause 1500ms", "read-only for 1s",
		"kill for 1s", "freeze node 1 2s", "restart node 2 empty", "freeze node 4 1s",
		"clock +60s on node 1 for 1s", // must be last: a node of a cluster ignores the others for a minute after its clock was set back by one
	}
	for _, topology := range standIns {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			tg := openServers(t, server.Spec{Target: "process", Topology: topology, Clocks: true, Persist: true})
			people := lockingCrowd(t, tg, 4, "Lock:{a}", 2*time.Second, 20*time.Millisecond) // in a cluster, this key is on node 3
			if topology == "sentinel" {
				wantRefusal(t, mustParse(t, "oom for 1s node 4"), tg, "node 4 is a sentinel, which keeps no keys")
				wantRefusal(t, mustParse(t, "kill node 4"), tg, "")
			}
			if topology == "cluster" {
				wantRefusal(t, mustParse(t, "read-only for 1s"), tg, "a cluster decides itself which of its nodes is a replica: use topology single, masters:N, replica or sentinel")
			}
			for _, sentence := range sentences {
				f := mustParse(t, sentence)
				if f.Where.Node > len(tg.Servers()) || f.Kind.Name == kindReadOnly.Name && topology == "cluster" {
					continue
				}
				if err := people.await(t.Context()); err != nil {
					t.Fatal(err)
				}
				heal := broken(t, Site{Target: tg, Key: people.key, Await: people.await}, sentence)
				time.Sleep(f.lasts())
				heal()
				if err := tg.AwaitHealthy(t.Context()); err != nil {
					t.Fatalf("after %q: %v", sentence, err)
				}
			}
		})
	}
}

// TestSplitBrainWithoutALock checks that, without a lock, a split brain loses the last writes.
func TestSplitBrainWithoutALock(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Topology: "replica"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wantReply(t, tg.Admin(1), "1", "INCR", "id")
	awaitReply(t, tg, tg.Admin(2), "1", "GET", "id")
	go func() {
		for ctx.Err() == nil {
			tg.Admin(1).Incr(ctx, "id")
		}
	}()
	heal := broken(t, Site{Target: tg}, "split-brain")
	defer heal()
	before, errOld := tg.Admin(1).Get(ctx, "id").Int()
	after, errNew := tg.Admin(2).Get(ctx, "id").Int()
	if errOld != nil || errNew != nil || after >= before {
		t.Errorf("the new primary is at %d, %v, the old one at %d, %v", after, errNew, before, errOld)
	}
	for n := 1; n <= 2; n++ {
		wantRole(t, tg, n, "master")
	}
}

// wantServed checks whether the server that was master number is still the primary itself.
func wantServed(t *testing.T, tg *server.Target, number int, itself bool) {
	t.Helper()
	now, err := tg.Primary(t.Context(), number)
	if err != nil || (now == number) != itself {
		t.Errorf("master %d is server %d now, %v", number, now, err)
	}
}

func wantRole(t *testing.T, tg *server.Target, number int, want string) {
	t.Helper()
	text, err := tg.Admin(number).Info(t.Context(), "replication").Result()
	if err != nil || !strings.Contains(text, "role:"+want+"\r\n") {
		t.Errorf("server %d is no %s, %v: %.40q", number, want, err, text)
	}
}

// awaitReply waits until a client that must first find the new master gets this answer.
func awaitReply(t *testing.T, tg *server.Target, c redis.UniversalClient, want string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := Site{Target: tg}.insist(ctx, func(ctx context.Context) error {
		got, err := c.Do(ctx, args...).Text()
		if err == nil && got != want {
			err = fmt.Errorf("it answers %q", got)
		}
		return err
	})
	if err != nil {
		t.Errorf("%v: want %q: %v", args, want, err)
	}
}

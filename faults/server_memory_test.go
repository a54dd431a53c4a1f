package faults

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"oversell/server"
)

func memoryOf(t *testing.T, tg *server.Target, n int) map[string]string {
	t.Helper()
	now, err := settings(t.Context(), tg.Admin(n), "maxmemory*")
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestOOM(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	c := tg.Admin(1)
	if err := configure(t.Context(), c, "maxmemory", "1000000000", "maxmemory-policy", "allkeys-lru"); err != nil {
		t.Fatal(err)
	}
	before := memoryOf(t, tg, 1)
	wantReply(t, c, "OK", "SET", "k", "1")
	heal := broken(t, Site{Target: tg}, "oom for 1s")
	wantReply(t, c, "OOM", "SET", "lock", "a", "NX", "PX", "1000")
	wantReply(t, c, "OOM", "DECR", "k")
	wantReply(t, c, "OOM", "EVAL", "return redis.call('SET', KEYS[1], 'a')", 1, "lock")
	wantReply(t, c, "1", "PEXPIRE", "k", "60000")
	wantReply(t, c, "1", "GET", "k")
	if heal, err := injectAt(t, Site{Target: tg}, "oom for 1s"); heal != nil || err == nil || err.Error() != "take the memory of server 1: another fault has already taken its memory" {
		t.Errorf("a second time: %v", err)
	}
	heal()
	wantReply(t, c, "0", "DECR", "k")
	if after := memoryOf(t, tg, 1); !maps.Equal(before, after) {
		t.Errorf("the settings are %v; they were %v", after, before)
	}
}

// TestEvict checks that evict removes the lock and only keys with a time to live, and not too many of the others.
func TestEvict(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	c := tg.Admin(1)
	for i := range 300 {
		wantReply(t, c, "OK", "SET", fmt.Sprintf("order-%d", i), strings.Repeat("x", 100))
		wantReply(t, c, "OK", "SET", fmt.Sprintf("lock-%d", i), "x", "PX", "3600000")
	}
	before := memoryOf(t, tg, 1)
	people := lockingCrowd(t, tg, 8, "Lock:order", 20*time.Second, 200*time.Millisecond)
	awaitClients(t, tg, "connected_clients:9") // a connection takes memory
	for range 5 {
		var evicted int64 // the grant
		await := func(ctx context.Context) error {
			err := people.awaitAndKeep(ctx)
			evicted = people.grants.Load()
			return err
		}
		broken(t, Site{Target: tg, Key: people.key, Await: await}, "evict")()
		if err := people.awaitMore(t.Context(), evicted); err != nil {
			t.Fatal(err)
		}
		people.keeping.Store(false)
	}
	if n := overlaps(people.stop()); n < 5 {
		t.Errorf("5 evictions led to %d overlaps", n)
	}
	if after := memoryOf(t, tg, 1); !maps.Equal(before, after) {
		t.Errorf("the settings are %v; they were %v", after, before)
	}
	orders, locks := c.Keys(t.Context(), "order-*").Val(), c.Keys(t.Context(), "lock-*").Val()
	if len(orders) != 300 || len(locks) < 100 {
		t.Errorf("of 300 keys without a time to live, %d are left, and of 300 with one, %d", len(orders), len(locks))
	}
	t.Logf("of 300 other locks %d are left", len(locks))
}

func TestEvictFails(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process"})
	await := func(context.Context) error { return nil }
	wantReply(t, tg.Admin(1), "OK", "SET", "eternal", "a")
	for _, c := range []struct {
		on   Site
		want string
	}{
		{Site{}, "evict the lock's key: this run has no lock"},
		{Site{Key: "eternal", Await: await}, "evict eternal from server 1: it has no lease, so it could only be evicted together with the stock"},
		{Site{Key: "k"}, "nobody locks here"},
	} {
		c.on.Target = tg
		heal, err := injectAt(t, c.on, "evict")
		if heal != nil || err == nil || err.Error() != c.want {
			t.Errorf("evict %q: %v; want %q", c.on.Key, err, c.want)
		}
	}
	defer broken(t, Site{Target: tg}, "oom for 1s")()
	if _, err := injectAt(t, Site{Target: tg, Key: "k", Await: await}, "evict"); err == nil || err.Error() != "evict k from server 1: another fault has already taken its memory" {
		t.Errorf("evict without memory: %v", err)
	}
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/server"
	"oversell/variant"
)

// openServers opens a target. It skips the test if there is no redis-server, unless OVERSELL_REQUIRE_ALL=1.
func openServers(t *testing.T, spec server.Spec) *server.Target {
	t.Helper()
	if spec.Target == "process" {
		servertest.NeedServer(t)
	}
	tg, err := server.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	return tg
}

func mustParse(t *testing.T, sentence string) Fault {
	t.Helper()
	f, err := Parse(sentence)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// never is a Site.Await for tests without clients that take a lock.
func never(context.Context) error { return errors.New("nobody locks here") }

// injectAt injects a fault without an injector, and returns the function that heals it.
func injectAt(t *testing.T, on Site, sentence string) (heal func(context.Context) error, err error) {
	t.Helper()
	f := mustParse(t, sentence)
	if f.Kind.Needs != nil {
		if err := f.Kind.Needs(t.Context(), f, on.Target); err != nil {
			t.Fatalf("%q is refused: %v", sentence, err)
		}
	}
	if on.Chosen = f.Where.Node; on.Chosen == 0 {
		if on.Chosen, err = serverOfKey(t.Context(), on.Target, on.Key); err != nil {
			t.Fatal(err)
		}
	}
	if on.Await == nil {
		on.Await = never
	}
	ctx, cancel := context.WithTimeout(t.Context(), breaking)
	defer cancel()
	begin := time.Now()
	heal, err = f.Kind.Inject(ctx, f, on)
	t.Logf("%q fired after %v", sentence, time.Since(begin).Round(time.Millisecond))
	return heal, err
}

// broken injects a fault, and returns a function that heals it. Both must succeed.
func broken(t *testing.T, on Site, sentence string) (healed func()) {
	t.Helper()
	heal, err := injectAt(t, on, sentence)
	if heal == nil {
		heal = func(context.Context) error { return nil }
	}
	healed = func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), healing)
		defer cancel()
		begin := time.Now()
		if err := heal(ctx); err != nil {
			t.Errorf("heal %q: %v", sentence, err)
		}
		t.Logf("%q healed after %v", sentence, time.Since(begin).Round(time.Millisecond))
	}
	if err != nil {
		healed()
		t.Fatalf("%q: %v", sentence, err)
	}
	return healed
}

// wantReply checks what a command answers: a value, or the beginning of an error.
func wantReply(t *testing.T, c redis.Cmdable, want string, args ...any) {
	t.Helper()
	cmd := redis.NewCmd(t.Context(), args...)
	var err error
	switch c := c.(type) {
	case *redis.Client:
		err = c.Process(t.Context(), cmd)
	case redis.UniversalClient:
		err = c.Process(t.Context(), cmd)
	default:
		t.Fatalf("%T processes no commands", c)
	}
	got := fmt.Sprint(cmd.Val())
	if err != nil {
		got = err.Error()
	}
	if got != want && (err == nil || !strings.HasPrefix(got, want)) {
		t.Errorf("%v answers %q; want %q", args, got, want)
	}
}

// hold is an interval in which a client believed that it held the lock.
type hold struct {
	client   int
	from, to time.Time
}

func (h hold) String() string {
	return fmt.Sprintf("client %d %s-%s", h.client, h.from.Format("05.000"), h.to.Format("05.000"))
}

// crowd is a number of clients that take turns at a lock.
type crowd struct {
	key     string
	grants  atomic.Int64
	keeping atomic.Bool // clients do not release the lock
	mu      sync.Mutex
	holds   []hold
	stopped chan struct{}
	running sync.WaitGroup
}

// lockingCrowd starts n clients, each with its own connection, that take the lock with a lease, hold it for the time
// section, and then try again. They stop when the test ends.
func lockingCrowd(t *testing.T, tg *server.Target, n int, key string, lease, section time.Duration) *crowd {
	c := &crowd{key: key, stopped: make(chan struct{})}
	for i := range n {
		client := tg.Client(0, server.ConnOptions{Timeout: time.Second})
		c.running.Go(func() {
			defer client.Close()
			for c.pause(5 * time.Millisecond) {
				c.turn(client, i, lease, section)
			}
		})
	}
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *crowd) stop() []hold {
	select {
	case <-c.stopped:
	default:
		close(c.stopped)
	}
	c.running.Wait()
	return c.holds
}

// pause waits, and returns false if the crowd was stopped.
func (c *crowd) pause(d time.Duration) bool {
	select {
	case <-c.stopped:
		return false
	case <-time.After(d):
		return true
	}
}

func (c *crowd) turn(client redis.UniversalClient, id int, lease, section time.Duration) {
	ctx := context.Background()
	token := fmt.Sprintf("client %d", id)
	if ok, err := client.SetNX(ctx, c.key, token, lease).Result(); err != nil || !ok {
		return
	}
	h := hold{client: id, from: time.Now()}
	c.grants.Add(1)
	for c.pause(section) && c.keeping.Load() {
	}
	h.to = time.Now()
	c.mu.Lock()
	c.holds = append(c.holds, h)
	c.mu.Unlock()
	if client.Get(ctx, c.key).Val() == token {
		client.Del(ctx, c.key)
	}
}

// await waits until a client is granted the lock; it is a Site.Await.
func (c *crowd) await(ctx context.Context) error { return c.awaitMore(ctx, c.grants.Load()) }

// awaitMore waits until the lock was granted more than n times.
func (c *crowd) awaitMore(ctx context.Context, n int64) error {
	for c.grants.Load() <= n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until a client obtains the lock: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// awaitAndKeep is like await, but afterwards no client releases the lock.
func (c *crowd) awaitAndKeep(ctx context.Context) error {
	err := c.await(ctx)
	c.keeping.Store(err == nil)
	return err
}

// overlaps counts the holds during which another client obtained the lock.
func overlaps(holds []hold) (n int) {
	slices.SortFunc(holds, func(a, b hold) int { return a.from.Compare(b.from) })
	for i := 1; i < len(holds); i++ {
		if holds[i].from.Before(holds[i-1].to) {
			n++
		}
	}
	return n
}

func TestNeeds(t *testing.T) {
	embedded := openServers(t, server.Spec{Target: "embedded", Topology: "masters:2"})
	single := openServers(t, server.Spec{Target: "process"})
	const (
		noKill   = "the in-memory emulation cannot be killed or frozen: that needs a server of its own, --target process or container"
		noAdmin  = "the in-memory emulation does not know administrative commands: that needs a real server, --target process or container"
		noClock  = "the clock of a server of kind embedded cannot be moved: that needs --target process"
		noShim   = "the clocks of these servers cannot be moved, because they were started without preparing for it (Spec.Clocks)"
		noOther  = "the in-memory emulation has no replicas to fail over to: use --target process or container, with --topology replica, sentinel or cluster"
		noFollow = "a failover needs a replica, which topology single does not have: use --topology replica, sentinel or cluster"
	)
	for _, c := range []struct {
		sentence         string
		embedded, single string
	}{
		{"kill", noKill, ""},
		{"restart empty", noKill, ""},
		{"freeze node 1 1s", noKill, ""},
		{"failover", noOther, noFollow},
		{"split-brain", noKill, noFollow},
		{"script-flush", "", ""},
		{"client-kill", noAdmin, ""},
		{"client-pause 1s", noAdmin, ""},
		{"evict", noAdmin, ""},
		{"oom for 1s", noAdmin, ""},
		{"read-only for 1s", noAdmin, ""},
		{"clock +60s node 1", noClock, noShim},
	} {
		f := mustParse(t, c.sentence)
		wantRefusal(t, f, embedded, c.embedded)
		wantRefusal(t, f, single, c.single)
	}
}

// wantRefusal checks that a fault is refused with the text want, or is not refused if want is empty.
func wantRefusal(t *testing.T, f Fault, tg *server.Target, want string) {
	t.Helper()
	err := f.Kind.Needs(t.Context(), f, tg)
	switch {
	case err == nil && want == "":
	case err == nil:
		t.Errorf("%q is not refused on %s %s", f.Text, tg.Kind, tg.Topology)
	case err.Error() != want:
		t.Errorf("%q on %s %s is refused with %q; want %q", f.Text, tg.Kind, tg.Topology, err, want)
	case !errors.Is(err, server.ErrUsage):
		t.Errorf("%q is not of class %v", err, server.ErrUsage)
	}
}

func TestServerKindsProvoke(t *testing.T) {
	const lease = time.Second
	stalled := []variant.Fault{variant.Overrun, variant.FreezeRenewal}
	for sentence, want := range map[string][]variant.Fault{
		"kill for 999ms":              {variant.DropReply, variant.RestartEmpty},
		"kill":                        {variant.DropReply}, // 1s
		"kill for good":               {variant.DropReply},
		"restart":                     {variant.DropReply, variant.RestartEmpty},
		"restart empty after 1s":      {variant.DropReply},
		"freeze node 1 999ms":         nil,
		"freeze node 1 1s":            stalled,
		"freeze node 1 5s":            append([]variant.Fault{variant.DropReply, variant.LateRequest}, stalled...),
		"client-pause 1s":             stalled,
		"failover":                    {variant.Failover, variant.DropReply},
		"split-brain":                 {variant.Failover, variant.DropReply},
		"script-flush":                nil,
		"client-kill":                 {variant.DropReply},
		"evict":                       {variant.Evict},
		"oom for 1s":                  {variant.Crash},
		"read-only for 1s":            {variant.Crash},
		"clock +1s on node 1":         {variant.ClockJump},
		"clock -1s on node 1":         {variant.ClockJump},
		"clock -1s on node 1 for 10s": {variant.ClockJump},
	} {
		f := mustParse(t, sentence)
		if got := f.Kind.Provokes(f, lease); !slices.Equal(got, want) {
			t.Errorf("%q under a lease of %v provokes %v; want %v", sentence, lease, got, want)
		}
	}
}

// TestInsist checks that insist tries again until it succeeds or its context ends, and then returns the last error.
func TestInsist(t *testing.T) {
	on := Site{Target: openServers(t, server.Spec{Target: "embedded"})}
	tries := 0
	err := on.insist(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	never := func(context.Context) error { return errors.New("never") }
	if err := on.insist(ctx, never); err == nil || err.Error() != "never" {
		t.Errorf("when time is up: %v", err)
	}
	if err := on.Target.Close(); err != nil {
		t.Fatal(err)
	}
	if err := on.insist(t.Context(), never); err == nil || err.Error() != "never" {
		t.Errorf("when the target has ended: %v", err)
	}
}

package lockload

import (
	"context"
	"testing"
	"time"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// sound returns a sound lock of the repository.
func sound(t *testing.T) lockimpl.Variant {
	t.Helper()
	for _, v := range lockimpl.Variants {
		if v.Name == "lua-release" {
			return v
		}
	}
	t.Fatal("lua-release is gone")
	panic("unreachable")
}

// world returns a Config whose clients use a sound lock on the emulation until ctx ends.
func world(t *testing.T, ctx context.Context) Config {
	t.Helper()
	s := opentest.Open(t, server.Spec{Target: "embedded", Topology: "single"})
	start, lock := time.Now(), sound(t)
	number := make(chan int, 1)
	number <- 1
	return Config{
		Ctx: ctx, Lock: lock, Seed: 1, Extends: true, Tells: true, Promises: []variant.Property{variant.MutualExclusion},
		Client: func() (*lockclient.Client, error) {
			n := <-number
			number <- n + 1
			c := lockclient.New(lockclient.Config{
				Ctx: ctx, Lock: lock, Server: s, Seed: 1,
				Lasted: func() time.Duration { return time.Since(start) }, Doubted: func(time.Time, time.Duration) {},
			}, n)
			t.Cleanup(c.Close)
			if err := c.Connect(); err != nil {
				return nil, err
			}
			c.Again()
			return c, nil
		},
	}
}

// TestLoad checks that a sound lock is granted under load, and that no promise is found broken.
func TestLoad(t *testing.T) {
	for _, troubled := range []bool{false, true} {
		load := New(world(t, t.Context()), Plan{Clients: 4, Locks: []string{"order", "order-"}, Lease: time.Second, Lasts: 500 * time.Millisecond, Troubled: troubled})
		load.Run()
		if n, last := load.Granted(); n == 0 {
			t.Errorf("nobody was granted the lock, the last error was %v", last)
		}
		for _, f := range load.Judge(time.Second) {
			t.Errorf("a sound lock was accused of %v: %s", f.Property, f.Text)
		}
	}
}

// TestEnds checks that a load ends with its run at whatever point its clients are, also when a client has died and no
// other can be made.
func TestEnds(t *testing.T) {
	for n := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		load := New(world(t, ctx), Plan{Clients: 4, Locks: []string{"order"}, Lease: 20 * time.Millisecond, Lasts: time.Minute, Troubled: true})
		time.AfterFunc(time.Duration(n)*10*time.Millisecond, cancel)
		load.Run()
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := world(t, ctx)
	c, err := w.Client()
	if err != nil {
		t.Fatal(err)
	}
	load := New(w, Plan{Lease: 20 * time.Millisecond, Locks: []string{"order"}, Troubled: true})
	load.start = time.Now()
	load.Client = func() (*lockclient.Client, error) { cancel(); return nil, context.Canceled }
	load.drive(c, time.Now().Add(5*time.Second))
	if ctx.Err() == nil {
		t.Error("no client died in 5 s, so nothing was tried")
	}
}

// TestAMillisecondEarly checks that a lock is not accused that is granted almost a millisecond before the end of a lease: it
// may count in whole milliseconds. It is accused if it is granted earlier.
func TestAMillisecondEarly(t *testing.T) {
	for early, accused := range map[time.Duration]bool{900 * time.Microsecond: false, 1100 * time.Microsecond: true} {
		load := New(world(t, t.Context()), Plan{Clients: 2, Locks: []string{"order"}, Lease: time.Second})
		load.start = time.Now()
		end := load.start.Add(time.Second)
		for i, until := range []time.Time{end, end.Add(time.Second)} {
			at := time.Duration(i) * (time.Second - early)
			load.ops = append(load.ops, history.Op{
				Client: int32(i), Kind: history.Acquire, Outcome: history.OK, Key: history.Text("order"), Arg: history.Int(int64(i + 1)),
				Call: at, Return: at + time.Microsecond, Until: load.until(lockimpl.Lock{Until: until}),
			})
		}
		if found := load.Judge(time.Second); len(found) > 0 != accused {
			t.Errorf("%v early: %v; accused is to be %v", early, found, accused)
		}
	}
}

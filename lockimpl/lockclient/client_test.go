package lockclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
	"oversell/wire"
)

// plain is a lock that sends one command in each call.
type plain struct{ env variant.Env }

func (p plain) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: p.env.Token()}
	ok, err := p.env.Redis[0].SetNX(ctx, key, l.Token, o.TTL).Result()
	if err == nil && !ok {
		err = lockimpl.ErrHeld
	}
	return l, err
}

func (p plain) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, errors.ErrUnsupported
}

func (p plain) Release(ctx context.Context, l lockimpl.Lock) error {
	return p.env.Redis[0].Del(ctx, l.Key).Err()
}

// TestClient checks that a client counts the commands that pass through its connection, that planned faults happen to
// them, and that an answer that the suite itself lost leaves no doubt.
func TestClient(t *testing.T) {
	s := opentest.Open(t, server.Spec{Target: "embedded", Topology: "single"})
	doubts := 0
	start := time.Now()
	w := Config{
		Ctx: t.Context(), Server: s, Seed: 1,
		Lock:    lockimpl.Variant{New: func(env variant.Env) lockimpl.Locker { return plain{env} }},
		Lasted:  func() time.Duration { return time.Since(start) },
		Doubted: func(time.Time, time.Duration) { doubts++ },
	}
	c := New(w, 1)
	t.Cleanup(c.Close)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	c.Again()
	l, err := c.Take("order", time.Minute, 0)
	if err != nil || c.Sent() != 1 || c.Hooked.Load() != 1 || c.TokensRequested() != 1 {
		t.Fatalf("%v, %d commands on the way, %d in the client, %d tokens; want one of each", err, c.Sent(), c.Hooked.Load(), c.TokensRequested())
	}
	if left := time.Until(c.Until(l)); left < 50*time.Second {
		t.Errorf("the lease ends in %v; want a minute", left)
	}
	if _, err := c.Try("order", time.Minute); !errors.Is(err, lockimpl.ErrHeld) {
		t.Errorf("of a held lock, %v; want ErrHeld", err)
	}
	var none *Ungranted
	if _, err := c.TakeWithin("order", time.Minute, 50*time.Millisecond); !errors.As(err, &none) || !none.Sure || !errors.Is(err, lockimpl.ErrHeld) {
		t.Errorf("of a lock that stays held, %v; want that it was not granted, for sure", err)
	}
	c.Plan(func(int, wire.Command) wire.Action { return wire.Action{Verb: wire.Reset} })
	if _, err := c.Acquire(t.Context(), "other", lockimpl.Options{TTL: time.Minute}); err == nil || errors.Is(err, lockimpl.ErrHeld) || doubts > 0 {
		t.Errorf("without an answer, %v, and %d doubts; want an error, and none", err, doubts)
	}
	c.Plan(nil)
	if err := c.Release(l); err != nil {
		t.Error(err)
	}
	c.Die()
	if _, err := c.Acquire(t.Context(), "other", lockimpl.Options{TTL: time.Minute}); err == nil {
		t.Error("a dead client was granted a lock")
	}
}

// late is a lock whose first calls are not answered in time.
type late struct {
	plain
	calls *int
}

func (l late) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	if *l.calls++; *l.calls < 4 {
		return lockimpl.Lock{}, context.DeadlineExceeded
	}
	return l.plain.Acquire(ctx, key, o)
}

// TestTakeOfALockThatIsFree checks that a lock that has been free for long is granted as patiently as one that is free now.
func TestTakeOfALockThatIsFree(t *testing.T) {
	calls, start := 0, time.Now()
	c := New(Config{
		Ctx: t.Context(), Server: opentest.Open(t, server.Spec{Target: "embedded", Topology: "single"}), Seed: 1,
		Lock:   lockimpl.Variant{New: func(env variant.Env) lockimpl.Locker { return late{plain{env}, &calls} }},
		Lasted: func() time.Duration { return time.Since(start) }, Doubted: func(time.Time, time.Duration) {},
	}, 1)
	t.Cleanup(c.Close)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	c.Again()
	if _, err := c.Take("order", time.Minute, -time.Hour); err != nil || calls != 4 {
		t.Errorf("%v after %d calls; want the lock after 4", err, calls)
	}
}

// TestSlowest checks that the call that took the longest is named, if it took a while.
func TestSlowest(t *testing.T) {
	quick, slow := &Client{Number: 1}, &Client{Number: 2}
	quick.begin("Acquire of \"quick\"", 0)()
	end := slow.begin("Acquire of \"slow\"", 0)
	slow.since = slow.since.Add(-2 * CommandTimeout)
	if what := Slowest([]*Client{quick, slow}); what != "" {
		t.Errorf("%q is named, and no call took a while", what)
	}
	end()
	slow.begin("Release of \"slow\"", 0)()
	if what, want := Slowest([]*Client{quick, slow}), `Acquire of "slow" by client 2 returned after 6s`; what != want {
		t.Errorf("%q is named; want %q", what, want)
	}
}

// TestHangs checks that a call hangs if it takes longer than its wait while the machine answers in time, and not because of
// the machine.
func TestHangs(t *testing.T) {
	healthy := time.Minute
	c := &Client{Number: 1, world: Config{Lasted: func() time.Duration { return healthy }}}
	for _, wait := range []time.Duration{0, 8 * time.Second} {
		end := c.begin("Acquire of \"order\"", wait)
		c.since = c.since.Add(-time.Hour)
		healthy += wait + 2*CommandTimeout
		if what := c.Hangs(); what != "" {
			t.Errorf("with a wait of %v: %q", wait, what)
		}
		healthy += time.Millisecond
		if what, want := c.Hangs(), "Acquire of \"order\" by client 1 has not returned for 1h0m0s"; what != want {
			t.Errorf("with a wait of %v: %q; want %q", wait, what, want)
		}
		end()
		if what := c.Hangs(); what != "" {
			t.Errorf("after the call: %q", what)
		}
	}
}

// TestUntilByEitherClock checks that the end of a lease is converted from the client's clock, unless the lock reads the real
// one, and that it may be a millisecond early.
func TestUntilByEitherClock(t *testing.T) {
	now := time.Now()
	for _, ahead := range []time.Duration{0, 2 * time.Second, -2 * time.Second, time.Hour, -time.Hour} {
		c := &Client{Locker: plain{}, Ahead: ahead}
		if got, want := c.Until(lockimpl.Lock{Until: now.Add(ahead + time.Minute)}), now.Add(time.Minute-Grain); !got.Equal(want) {
			t.Errorf("%v ahead: the lease ends in %v; want %v", ahead, got.Sub(now), want.Sub(now))
		}
		if ahead.Abs() < time.Hour {
			continue
		}
		if got, want := c.Until(lockimpl.Lock{Until: now.Add(time.Minute)}), now.Add(time.Minute-Grain); !got.Equal(want) {
			t.Errorf("%v ahead, by the real clock: the lease ends in %v; want %v", ahead, got.Sub(now), want.Sub(now))
		}
	}
}

// twice is a lock whose acquire has two transactions, and a command before them.
type twice struct{ plain }

func (l twice) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	rdb := l.env.Redis[0]
	if err := rdb.Incr(ctx, key+":asked").Err(); err != nil {
		return lockimpl.Lock{}, err
	}
	for _, field := range []string{"one", "two"} {
		if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HIncrBy(ctx, key+":tried", field, 1)
			p.HIncrBy(ctx, key+":tried", "all", 1)
			return nil
		}); err != nil {
			return lockimpl.Lock{}, err
		}
	}
	return lockimpl.Lock{Key: key}, nil
}

// TestTransactionsCountOnce checks that a transaction is one command, which is executed or not.
func TestTransactionsCountOnce(t *testing.T) {
	start := time.Now()
	w := Config{
		Ctx: t.Context(), Server: opentest.Open(t, server.Spec{Target: "embedded", Topology: "single"}), Seed: 1,
		Lock:   lockimpl.Variant{New: func(env variant.Env) lockimpl.Locker { return twice{plain{env}} }},
		Lasted: func() time.Duration { return time.Since(start) }, Doubted: func(time.Time, time.Duration) {},
	}
	connect := func(number int) *Client {
		c := New(w, number)
		t.Cleanup(c.Close)
		if err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		c.Again()
		return c
	}
	c, other := connect(1), connect(2)
	if n := Longest(c, other, "measured", false); n != 3 {
		t.Errorf("the longest call has %d commands; want 3", n)
	}
	for n, want := range map[int]string{1: "", 2: "", 3: "one", 4: "one two"} {
		key := fmt.Sprint("order-", n)
		c.Arm(n, wire.DropRequest)
		_, err := c.Acquire(t.Context(), key, lockimpl.Options{TTL: time.Minute})
		c.Plan(nil)
		if (err == nil) != (n == 4) {
			t.Errorf("without command %d: %v", n, err)
		}
		done, err := other.Env.Redis[0].HKeys(t.Context(), key+":tried").Result()
		done = slices.DeleteFunc(done, func(field string) bool { return field == "all" })
		slices.Sort(done)
		if got := strings.Join(done, " "); err != nil || got != want {
			t.Errorf("without command %d: the transactions %q were executed, %v; want %q", n, got, err, want)
		}
	}
}

// TestUngrantedInSilence checks that a client that sends nothing while it waits for a lock is said to wait for something else than the
// server.
func TestUngrantedInSilence(t *testing.T) {
	const words = "it waited for something else than the server"
	for quiet, want := range map[time.Duration]bool{0: false, CommandTimeout: false, 2 * CommandTimeout: true} {
		u := &Ungranted{Limit: Patience, Last: context.DeadlineExceeded, Quiet: quiet}
		if strings.Contains(u.Error(), words) != want {
			t.Errorf("after a silence of %v the error is %q; want that it says %q: %t", quiet, u, words, want)
		}
	}
	since := time.Now().Add(-time.Minute)
	for _, tt := range []struct {
		c    *Client
		want time.Duration
	}{{&Client{}, time.Minute}, {&Client{direct: true}, 0}, {&Client{Links: []*Link{{}, {at: time.Now().Add(-time.Second)}}}, time.Second}} {
		if got := tt.c.quiet(since); (got - tt.want).Abs() > time.Second/2 {
			t.Errorf("it has sent nothing for %v; want %v", got, tt.want)
		}
	}
}

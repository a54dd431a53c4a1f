package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/history"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/stockimpl"
	"oversell/variant"
)

func openServer(t *testing.T, kind, topology string) *server.Target {
	t.Helper()
	return opentest.Open(t, server.Spec{Target: kind, Topology: topology})
}

// runOn completes and runs c and reads its history back.
func runOn(t *testing.T, ctx context.Context, c Config, s *server.Target) *history.History {
	t.Helper()
	if err := c.Complete(s.Nodes()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.bin")
	if err := Run(ctx, c, Servers{Redis: s}, path, new(Live)); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if h.Trailer == nil || h.Cut != "" {
		t.Fatalf("the history has no end: %s", h.Cut)
	}
	return h
}

// tally counts the operations of a kind with an outcome.
func tally(h *history.History, kind history.Kind, outcome history.Outcome) (n int) {
	for _, op := range h.Ops {
		if op.Kind == kind && op.Outcome == outcome {
			n++
		}
	}
	return n
}

func state(t *testing.T, h *history.History, what string) int64 {
	t.Helper()
	for _, op := range h.Ops {
		if op.Kind == history.ReadState && op.Arg.String() == what {
			n, _ := op.Result.Num()
			return n
		}
	}
	t.Fatalf("the history holds no final state %q", what)
	return 0
}

func TestSeckillSellsOut(t *testing.T) {
	for _, waiting := range load.Waitings {
		for _, pool := range []int{0, 3} {
			c := config(t, "seckill", "lua-release", "plain")
			c.Waiting, c.Pool = waiting, pool
			h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
			if sold := tally(h, history.Buy, history.OK); sold != 20 {
				t.Errorf("%s, pool %d: sold %d of 20", waiting, pool, sold)
			}
			if n := tally(h, history.Buy, history.Refused); n != c.Clients {
				t.Errorf("%s, pool %d: %d buyers were told that it is sold out; want all %d", waiting, pool, n, c.Clients)
			}
			if left := state(t, h, "left"); left != 0 {
				t.Errorf("%s, pool %d: %d left", waiting, pool, left)
			}
			if n := tally(h, history.Acquire, history.Unknown); n > 0 || len(h.Trailer.Notes) > 0 {
				t.Errorf("%s, pool %d: %d unknown acquires, notes %q", waiting, pool, n, h.Trailer.Notes)
			}
		}
	}
}

// generous is a sale that never sells out and accepts every refund.
type generous struct{ stockimpl.Sale }

func (generous) Buy(context.Context, stockimpl.Order, lockimpl.Lock) (int64, error)    { return 7, nil }
func (generous) Refund(context.Context, stockimpl.Order, lockimpl.Lock) (int64, error) { return 7, nil }

// TestHopelessSaleEnds checks that a sale that cannot end by itself is ended with a note when it has sold far too
// many pieces, and not before, and that a sale with a given duration goes on.
func TestHopelessSaleEnds(t *testing.T) {
	c := config(t, "seckill", "none", "decr")
	c.Clients, c.Stock = 4, 20
	if n := c.hopeless(); n != 100_000 {
		t.Errorf("a sale of %d is hopeless after %d", c.Stock, n)
	}
	const enough = 2000
	c.leastHopeless = enough // 100,000 take half a minute
	open := c.Sale.New
	c.Sale.New = func(env variant.Env, product string) stockimpl.Sale { return generous{open(env, product)} }
	s := openServer(t, "embedded", "single")
	h := runOn(t, t.Context(), c, s)
	sold := tally(h, history.Buy, history.OK)
	if sold < enough || sold > enough+100 || h.Trailer.Aborted != "" || !strings.Contains(strings.Join(h.Trailer.Notes, " "), "the sale was ended after 2,000 pieces were sold") {
		t.Errorf("sold %d; ended by %q, notes %q", sold, h.Trailer.Aborted, h.Trailer.Notes)
	}
	c.Refund = 1
	c.Ops = enough + 1000
	if sold := tally(runOn(t, t.Context(), c, s), history.Buy, history.OK); sold != int(c.Ops) {
		t.Errorf("sold %d, which were all refunded", sold)
	}
	c.Refund, c.Ops, c.Duration = 0, enough+1000, time.Minute
	if sold := tally(runOn(t, t.Context(), c, s), history.Buy, history.OK); sold != int(c.Ops) {
		t.Errorf("sold %d of the %d rounds that were asked for", sold, c.Ops)
	}
}

// owing is a sale that has sold one piece more than it had.
type owing struct{ stockimpl.Sale }

func (owing) State(context.Context) (stockimpl.State, error) {
	return stockimpl.State{Left: -1, Sold: stockimpl.Unsaid}, nil
}

// TestLessThanNothingLeft checks that a negative stock is read like any other.
func TestLessThanNothingLeft(t *testing.T) {
	c := config(t, "seckill", "none", "decr")
	c.Clients, c.Stock = 4, 20
	open := c.Sale.New
	c.Sale.New = func(env variant.Env, product string) stockimpl.Sale { return owing{open(env, product)} }
	if left := state(t, runOn(t, t.Context(), c, openServer(t, "embedded", "single")), "left"); left != -1 {
		t.Errorf("%d left, want -1", left)
	}
}

func TestTimesOfAClientRise(t *testing.T) {
	c := config(t, "seckill", "none", "lua")
	c.Stock, c.Resend = 300, 0.3
	h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
	last := map[int32]time.Duration{}
	for _, op := range h.Ops {
		if op.Kind == history.Join {
			continue
		}
		if op.Call <= last[op.Client] && last[op.Client] > 0 {
			t.Fatalf("client %d called at %v, and its operation before returned at %v", op.Client, op.Call, last[op.Client])
		}
		if op.Return <= op.Call || op.Due > op.Call {
			t.Fatalf("an operation that goes backwards: %v", op)
		}
		last[op.Client] = op.Return
	}
}

func TestResentOrdersAndRefunds(t *testing.T) {
	c := config(t, "seckill", "lua-release", "lua")
	c.Stock, c.Resend, c.Refund = 60, 0.5, 0.5
	h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
	repeated := 0
	for _, op := range h.Ops {
		if op.Reason == history.Repeated {
			repeated++
		}
	}
	if repeated == 0 {
		t.Error("no resent order was recognised")
	}
	if tally(h, history.Refund, history.OK) == 0 {
		t.Error("nobody refunded anything")
	}
}

func TestQuantities(t *testing.T) {
	c := config(t, "seckill", "lua-release", "plain")
	c.Quantity = 3
	h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
	sizes := map[int64]bool{}
	var sold int64
	for _, op := range h.Ops {
		if op.Kind != history.Buy {
			continue
		}
		sizes[op.Pieces()] = true
		if op.Outcome == history.OK {
			sold += op.Pieces()
		}
	}
	if len(sizes) != 3 || sold+state(t, h, "left") != 20 {
		t.Errorf("orders of sizes %v; sold %d, left %d of 20", sizes, sold, state(t, h, "left"))
	}
}

// TestAllOfAQueue checks that the history has batches of enqueues and pops, withdrawals and peeks, each with its
// answer.
func TestAllOfAQueue(t *testing.T) {
	c := config(t, "queue", "lua-release", "")
	c.Queue, _ = queueimpl.Find("zset-locked")
	c.Clients, c.Ops, c.Batch, c.Withdraw, c.Peek = 4, 60, 4, 0.3, 0.5
	c.Repeat = None // an id that is enqueued again may be both withdrawn and popped
	h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
	calls := map[history.Kind]map[string]int{}
	withdrawn, popped := map[string]bool{}, map[string]bool{}
	for _, op := range h.Ops {
		if calls[op.Kind] == nil {
			calls[op.Kind] = map[string]int{}
		}
		if op.Session != (history.Value{}) {
			calls[op.Kind][op.Session.String()]++
		}
		switch {
		case op.Kind == history.Dequeue && op.Outcome == history.OK:
			withdrawn[op.Arg.String()] = true
		case op.Kind == history.Pop && op.Outcome == history.OK:
			popped[op.Result.String()] = true
		}
	}
	for _, kind := range []history.Kind{history.Enqueue, history.Pop, history.Peek} {
		if largest := slices.Max(slices.Collect(maps.Values(calls[kind]))); largest < 2 || largest > c.Batch {
			t.Errorf("the largest %s has %d tasks; want 2 to %d", kind, largest, c.Batch)
		}
	}
	if len(withdrawn) == 0 || tally(h, history.Peek, history.OK) == 0 {
		t.Errorf("%d tasks withdrawn, %d peeked at", len(withdrawn), tally(h, history.Peek, history.OK))
	}
	for id := range withdrawn {
		if popped[id] {
			t.Errorf("task %s was withdrawn and handed out", id)
		}
	}
	if h.Header.Batch != 4 || h.Header.Withdraw != 0.3 || h.Header.Peek != 0.5 {
		t.Errorf("the header says batch %d, withdraw %v, peek %v", h.Header.Batch, h.Header.Withdraw, h.Header.Peek)
	}
}

func TestStaleOrdersAreRefused(t *testing.T) {
	c := config(t, "seckill", "none", "watch")
	c.Clients, c.Stock, c.RefuseStale = 8, 200, true
	h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
	stale := 0
	for _, op := range h.Ops {
		if op.Kind == history.Buy && op.Reason == history.Stale {
			stale++
		}
	}
	if stale == 0 || tally(h, history.Buy, history.OK) != 200 {
		t.Errorf("%d orders refused as stale, %d of 200 sold", stale, tally(h, history.Buy, history.OK))
	}
	c = config(t, "seckill", "none", "lua")
	c.RefuseStale = true
	if err := c.Complete(1); err == nil || !strings.Contains(err.Error(), "--refuse-stale") {
		t.Errorf("a sale that is not optimistic: %v", err)
	}
}

func TestMutexExtendsLongSections(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	c.TTL, c.Hold, c.Ops, c.Clients = 500*time.Millisecond, 600*time.Millisecond, 3, 2
	var extends, releases int
	for range 3 { // on a busy machine an extend may come too late
		h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
		extends, releases = tally(h, history.Extend, history.OK), tally(h, history.Release, history.OK)
		if extends >= 6 && releases == 3 {
			return
		}
	}
	t.Errorf("%d extends in 3 sections of 600 ms with a lease of 500 ms, want 2 or more each, and %d releases, want 3", extends, releases)
}

// rigid is a lock that cannot extend.
type rigid struct{ lockimpl.Locker }

func (rigid) Extend(_ context.Context, l lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	return l, fmt.Errorf("extend is not implemented: %w", errors.ErrUnsupported)
}

// TestLocksThatCannotExtendAreHeldToTheEnd checks that a section lasts as long as it was asked to, although the lock
// cannot extend, and that the history has no extensions.
func TestLocksThatCannotExtendAreHeldToTheEnd(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	make := c.Lock.New
	c.Lock.New = func(env variant.Env) lockimpl.Locker { return rigid{make(env)} }
	c.TTL, c.Hold, c.Ops, c.Clients = 400*time.Millisecond, 250*time.Millisecond, 2, 2
	h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
	held, ended := map[string]time.Duration{}, 0
	for _, op := range h.Ops {
		switch {
		case op.Kind == history.Extend:
			t.Errorf("%v is in the history", op)
		case op.Kind == history.Acquire && op.Outcome == history.OK:
			held[op.Arg.String()] = op.Return
		case op.Kind == history.Release:
			ended++
			if took := op.Call - held[op.Arg.String()]; took < c.Hold {
				t.Errorf("a section of %v was held for %v", c.Hold, took)
			}
		}
	}
	if ended == 0 {
		t.Error("no section has ended")
	}
}

// TestWatchdogRenewsTheRecordedLease checks that the history shows the renewed lease: a section under a watchdog does
// not outlive it.
func TestWatchdogRenewsTheRecordedLease(t *testing.T) {
	c := config(t, "seckill", "watchdog", "plain")
	c.TTL, c.Hold, c.Stock, c.Clients = 150*time.Millisecond, 300*time.Millisecond, 2, 2
	h := runOn(t, t.Context(), c, openServer(t, "process", "single"))
	for _, op := range h.Ops {
		if op.Kind == history.Release && op.Outcome == history.OK && op.Until < op.Call {
			t.Errorf("a renewed lock was released after the lease that the history shows: %v", op)
		}
	}
}

func TestStopLetsClientsFinish(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	h := stoppedRun(t, c, 100)
	if !h.Trailer.Interrupted {
		t.Error("the history does not say that it was interrupted")
	}
	for _, op := range h.Ops {
		if op.Outcome == history.Unknown {
			t.Errorf("our own stop left an operation open: %v", op)
		}
	}
	if got, want := tally(h, history.Release, history.OK), tally(h, history.Acquire, history.OK); got != want {
		t.Errorf("%d locks were taken and %d released", want, got)
	}
}

// TestStopLeavesTasksInHand checks that a worker that is stopped while it waits for the lock has not lost the task
// that it holds.
func TestStopLeavesTasksInHand(t *testing.T) {
	c := config(t, "seckill-queued", "lua-release", "plain")
	c.Queue, _ = queueimpl.Find("zset-atomic")
	c.Clients, c.Stock, c.Delay, c.Hold = 24, 1_000_000, time.Microsecond, 5*time.Millisecond // makes all but one of the workers wait
	h := stoppedRun(t, c, 2000)
	handled, stopped := map[string]bool{}, 0
	for _, op := range h.Ops {
		if op.Kind == history.Effect {
			handled[op.Arg.String()] = true
			if op.Reason == history.Stopped {
				stopped++
			}
		}
	}
	for _, op := range h.Ops {
		if op.Kind == history.Pop && op.Outcome == history.OK && !handled[op.Result.String()] {
			t.Errorf("of task %s nothing is known after %v", op.Result, op)
		}
	}
	if stopped == 0 {
		t.Error("nobody was stopped with a task in its hands")
	}
}

// stoppedRun returns the history of an endless run that is stopped after a number of operations.
func stoppedRun(t *testing.T, c Config, ops int64) *history.History {
	t.Helper()
	c.Duration = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	s := openServer(t, "process", "single")
	live := new(Live)
	if err := c.Complete(1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.bin")
	done := make(chan error)
	go func() { done <- Run(ctx, c, Servers{Redis: s}, path, live) }()
	underWay(live, ops)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// underWay waits until this many operations have been recorded.
func underWay(live *Live, ops int64) {
	for range time.Tick(time.Millisecond) {
		if live.Ops.Load() >= ops {
			return
		}
	}
}

// TestServerDeath checks that, when the server dies, the run ends and says why, and that what was recorded is
// readable.
func TestServerDeath(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	c.Duration = time.Hour
	s := openServer(t, "process", "single")
	live := new(Live)
	if err := c.Complete(1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.bin")
	done := make(chan error)
	go func() { done <- Run(t.Context(), c, Servers{Redis: s}, path, live) }()
	underWay(live, 100)
	if err := syscall.Kill(s.PID(0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, server.ErrEnvironment) || !strings.Contains(err.Error(), "died") {
		t.Errorf("the run ended with %v; want to hear of the server's death", err)
	}
	h, err := history.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Ops) < 100 {
		t.Errorf("%d operations were saved; 100 had been recorded before the server died", len(h.Ops))
	}
}

// TestErrorsAreUnknown checks that only declared answers are definite outcomes.
func TestErrorsAreUnknown(t *testing.T) {
	for _, c := range []struct {
		err     error
		outcome history.Outcome
		reason  history.Reason
	}{
		{nil, history.OK, history.NoReason},
		{context.DeadlineExceeded, history.Unknown, history.NoReason},
		{errors.New("connection reset"), history.Unknown, history.NoReason},
		{lockimpl.ErrHeld, history.Refused, history.Held},
		{errors.Join(lockimpl.ErrHeld, variant.ErrStopped), history.Refused, history.Stopped},
	} {
		if o, r := outcomeOf(c.err); o != c.outcome || r != c.reason {
			t.Errorf("%v is recorded as %v (%v); want %v (%v)", c.err, o, r, c.outcome, c.reason)
		}
	}
}

// TestKeysAreRemoved checks that a run removes its keys from a server that outlives it, and no others.
func TestKeysAreRemoved(t *testing.T) {
	s := openServer(t, "process", "single")
	admin := s.Client(0, server.ConnOptions{})
	defer admin.Close()
	if err := admin.Set(t.Context(), "somebody-elses", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, lock := range []string{"fair", "fenced", "php-lock-printed"} {
		c := config(t, "seckill", lock, "lua")
		runOn(t, t.Context(), c, s)
	}
	keys, err := admin.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 {
		t.Errorf("after the runs the server holds %v, %v; want only somebody-elses", keys, err)
	}
}

func TestRedlockOnFiveMasters(t *testing.T) {
	c := config(t, "seckill", "redlock", "plain")
	h := runOn(t, t.Context(), c, openServer(t, "process", "masters:5"))
	if sold := tally(h, history.Buy, history.OK); sold != 20 {
		t.Errorf("sold %d of 20", sold)
	}
	if h.Header.Topology != "masters:5" {
		t.Errorf("the header says topology %s", h.Header.Topology)
	}
}

// keyed is a lock that puts something else than its name into Lock.Key.
type keyed struct{ lockimpl.Locker }

func (k keyed) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := k.Locker.Acquire(ctx, name, o)
	l.Key = "stored under " + l.Key
	return l, err
}

func (k keyed) Release(ctx context.Context, l lockimpl.Lock) error {
	l.Key = strings.TrimPrefix(l.Key, "stored under ")
	return k.Locker.Release(ctx, l)
}

// TestNameOfALock checks that a history names a lock as the run does, whatever is in Lock.Key.
func TestNameOfALock(t *testing.T) {
	c := config(t, "seckill", "lua-release", "plain")
	c.Clients, c.Stock = 2, 5
	sound := c.Lock.New
	c.Lock.New = func(env variant.Env) lockimpl.Locker { return keyed{sound(env)} }
	h := runOn(t, t.Context(), c, openServer(t, "embedded", ""))
	acquired, released := map[string]bool{}, map[string]bool{}
	for _, op := range h.Ops {
		switch op.Kind {
		case history.Acquire:
			acquired[op.Key.String()] = true
		case history.Release:
			released[op.Key.String()] = true
		}
	}
	if len(acquired) != 1 || !maps.Equal(acquired, released) {
		t.Errorf("acquired %v and released %v; want one name", acquired, released)
	}
}

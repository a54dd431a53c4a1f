package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/idimpl"
	"oversell/load/arrival"
	"oversell/queueimpl"
)

func rateOf(t *testing.T, text string) arrival.Rate {
	t.Helper()
	r, err := arrival.ParseStages(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dues returns the due times of operations of one kind since the first one, in order.
func dues(h *history.History, kind history.Kind) (all []time.Duration) {
	for _, op := range h.Ops {
		if op.Kind == kind {
			all = append(all, op.Due)
		}
	}
	slices.Sort(all)
	for i := len(all) - 1; i >= 0; i-- {
		all[i] -= all[0]
	}
	return all
}

// TestStepsAreDueAsTheSeedSays checks, in every scenario, that the first operation of each step is due when an
// arrival is, to the nanosecond, whenever it was called, and that the operations after it are as late as it is.
func TestStepsAreDueAsTheSeedSays(t *testing.T) {
	queue, _ := queueimpl.Find("zset-atomic")
	incr, _ := idimpl.Find("incr")
	for _, x := range []struct {
		scenario, lock, sale string
		first                history.Kind
		n                    int
		change               func(c *Config)
	}{
		{"seckill", "none", "lua", history.Acquire, 70, func(c *Config) { c.Ops, c.Resend = 70, None }}, // the stock of 20 is sold before
		{"seckill", "none", "lua", history.Acquire, 28, func(c *Config) { c.Resend = None }},            // the stock of 20, and a refusal for each of the 8 clients
		{"mutex", "lua-release", "", history.Acquire, 50, func(c *Config) { c.Duration = 500 * time.Millisecond }},
		{"ids", "none", "", history.Acquire, 60, func(c *Config) { c.Ops, c.IDs = 60, incr }},
		{"floors", "none", "", history.Acquire, 60, func(c *Config) { c.Ops, c.IDs = 60, incr }},
		{"queue", "", "", history.Enqueue, 60, func(c *Config) { c.Ops, c.Queue, c.Repeat, c.Delay = 60, queue, None, None }},
		{"seckill-queued", "", "lua", history.Enqueue, 40, func(c *Config) { c.Queue, c.Repeat, c.Delay, c.Resend = queue, None, None, None }},
	} {
		for _, process := range []arrival.Process{arrival.Constant, arrival.Poisson} {
			lock := x.lock
			if lock == "" {
				lock = "none"
			}
			c := config(t, x.scenario, lock, x.sale)
			if x.lock == "" {
				c.Lock.New = nil
			}
			c.Rate, c.Arrival = rateOf(t, "0:100"), process
			x.change(&c)
			h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
			got, want := dues(h, x.first), c.Rate.Sequence(process, c.Seed)
			begins, _ := want.Next()
			missed := 0 // a busy machine may not catch up before the end
			if a := h.Trailer.Arrivals; a != nil && c.Duration > 0 {
				missed = int(a.Missed)
			}
			if process == arrival.Constant && len(got)+missed != x.n || len(got) < x.n/2 {
				t.Errorf("%s, %s: %d steps; want %d", x.scenario, process, len(got), x.n)
			}
			for i, at := range got {
				if i > 0 {
					next, _ := want.Next()
					if at != next-begins {
						t.Errorf("%s, %s: step %d is due %v after the first; want %v", x.scenario, process, i, at, next-begins)
						break
					}
				}
			}
			late := map[int32]time.Duration{}
			for _, op := range h.Ops {
				switch {
				case op.Due > op.Call:
					t.Fatalf("%s: called before it was due: %v", x.scenario, op)
				case op.Kind == x.first:
					late[op.Client] = op.Call - op.Due
				case (op.Kind == history.Buy || op.Kind == history.Release) && x.first == history.Acquire && op.Call-op.Due != late[op.Client]:
					t.Fatalf("%s: %v late in a step that was %v late", x.scenario, op.Call-op.Due, late[op.Client])
				}
			}
			if a := h.Trailer.Arrivals; a == nil || int(a.Begun) != len(got) || int(a.Missed) != missed || h.Header.Rate != "100" || h.Header.Arrival != string(process) {
				t.Errorf("%s, %s: %+v of %q", x.scenario, process, a, h.Header.Rate)
			}
		}
	}
}

// TestTwinsAreAsLate checks that the two requests of an order that is sent twice at once have one due time.
func TestTwinsAreAsLate(t *testing.T) {
	c := config(t, "seckill", "none", "lua")
	c.Rate, c.Resend = rateOf(t, "0:200"), 1
	h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
	at := map[time.Duration]int{}
	for _, op := range h.Ops {
		if op.Kind == history.Acquire {
			at[op.Due]++
		}
	}
	for due, n := range at {
		if n != 2 {
			t.Errorf("%d orders are due at %v; want the two of a step", n, due)
		}
	}
	if int(h.Trailer.Arrivals.Begun) != len(at) {
		t.Errorf("%d arrivals, and %d times", h.Trailer.Arrivals.Begun, len(at))
	}
}

// TestClosedLoadIsNeverLate checks that, in a closed load, every operation is due when it is called.
func TestClosedLoadIsNeverLate(t *testing.T) {
	c := config(t, "seckill", "lua-release", "plain")
	h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
	for _, op := range h.Ops {
		if op.Due != op.Call {
			t.Fatalf("%v is due at %v", op, op.Due)
		}
	}
	if h.Trailer.Arrivals != nil || h.Header.Rate != "" {
		t.Errorf("%+v", h.Trailer.Arrivals)
	}
}

// TestArrivalsWaitForAServerThatIsFrozen checks that an arrival that is due while a server does nothing counts from
// its due time, even if no client is free to call.
func TestArrivalsWaitForAServerThatIsFrozen(t *testing.T) {
	s := openServer(t, "process", "")
	f, err := faults.Parse("freeze node 1 500ms at 300ms")
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, "seckill", "none", "lua")
	c.Stock, c.Faults, c.Duration, c.Rate, c.Resend = 100_000, []faults.Fault{f}, time.Second, rateOf(t, "0:200"), None
	h := runOn(t, t.Context(), c, s)
	i := slices.IndexFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Fault })
	if i < 0 {
		t.Fatal("nothing was frozen")
	}
	frozen, waited, called := h.Ops[i], 0, 0
	for _, op := range h.Ops {
		if op.Kind != history.Buy || op.Due < frozen.Call+20*time.Millisecond || op.Due > frozen.Call+100*time.Millisecond {
			continue
		}
		if op.Return-op.Due < 350*time.Millisecond {
			t.Errorf("due %v after the freeze, answered after %v", op.Due-frozen.Call, op.Return-op.Due)
		}
		if waited++; op.Return-op.Call >= 350*time.Millisecond {
			called++
		}
	}
	if a := h.Trailer.Arrivals; waited < 10 || called > c.Clients || a.Waited == 0 { // a busy machine may not catch up before the end
		t.Errorf("%d waited, %d of them called into it; %+v", waited, called, h.Trailer.Arrivals)
	}
}

// TestEveryArrivalIsCounted checks, with far more clients than arrivals, that each arrival that was due by the end of the
// load was begun or is counted as missed.
func TestEveryArrivalIsCounted(t *testing.T) {
	c := config(t, "ids", "none", "")
	c.IDs, _ = idimpl.Find("incr")
	c.Clients, c.Ops, c.Duration, c.Rate = 1000, 0, 200*time.Millisecond, rateOf(t, "0:1000")
	h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
	if a := h.Trailer.Arrivals; a.Begun+a.Missed != 200 {
		t.Errorf("%d arrivals begun, %d missed; 200 were due", a.Begun, a.Missed)
	}
	for _, op := range h.Ops {
		if op.Due <= 0 {
			t.Fatalf("%v was due before the clients were there", op)
		}
	}
}

// TestStoppedOpenLoad checks that arrivals that are due when the run is stopped and have no client count as missed.
func TestStoppedOpenLoad(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	c.Clients, c.Hold, c.Duration, c.Rate = 2, time.Hour, 100*time.Millisecond, rateOf(t, "0:1000")
	if err := c.Complete(1); err != nil {
		t.Fatal(err)
	}
	r := &run{runObjects: newStage(c, ""), book: c.arrivals()}
	a, _ := r.book.Take(0, false)
	r.book.Begin(&a, 0)
	if r.book.Served() {
		t.Error("99 arrivals are left")
	}
	if got := r.book.Close(time.Second, true); got.Missed != 99 || got.Begun != 1 {
		t.Errorf("%+v", got)
	}
}

func TestRatesThatMakeNoSense(t *testing.T) {
	for _, x := range []struct {
		stages string
		change func(c *Config)
		want   string
	}{
		{"0:0.1", func(c *Config) { c.Duration = time.Second }, "at --rate 0.1 fewer than one arrival is due in 1s"},
		{"0:0.0001", func(*Config) {}, "a run ends within a day"},
		{"0:0,1ms:1", func(*Config) {}, "fewer than one arrival is due in 1ms"},
		{"0:1k,1s:0", func(*Config) {}, ""},
		{"0:10", func(*Config) {}, ""},
	} {
		c := config(t, "seckill", "none", "lua")
		c.Rate = rateOf(t, x.stages)
		x.change(&c)
		err := c.Complete(1)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v; want %q", x.stages, err, x.want)
		}
	}
	c := config(t, "seckill", "none", "lua")
	c.Rate = rateOf(t, "0:1")
	if err := c.Complete(1); err != nil || c.Capped() < 28*time.Second+time.Minute {
		t.Errorf("28 arrivals at one a second have %v: %v", c.Capped(), err)
	}
	c.Rate, c.Duration, c.capped = rateOf(t, "0:1,9s:2"), 0, false
	if err := c.Complete(1); err != nil || c.Duration != 9*time.Second || c.Capped() != 0 {
		t.Errorf("stages of 9 s end a run after %v: %v", c.Duration, err)
	}
}

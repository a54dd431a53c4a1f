package history

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"oversell/clock"
)

func TestNowStrictlyRises(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, c := range map[string]clock.Clock{"a clock that stands still": clock.NewVirtual(start), "the machine's clock": clock.Real{}} {
		log := NewLogOn(c, start)
		if c == (clock.Real{}) {
			log = NewLog(time.Now())
		}
		r := log.Recorder(1)
		last := r.Now()
		for range 10_000 {
			if now := r.Now(); now <= last {
				t.Fatalf("%s: %v after %v", name, now, last)
			} else {
				last = now
			}
		}
	}
}

func TestNowFollowsTheRunsClock(t *testing.T) {
	start := time.Unix(1000, 0)
	v := clock.NewVirtual(start)
	log := NewLogOn(v, start)
	r := log.Recorder(1)
	v.Advance(time.Minute)
	if got := r.Now(); got != time.Minute {
		t.Errorf("Now() = %v, want 1m", got)
	}
	if got := log.Since(start.Add(time.Hour)); got != time.Hour {
		t.Errorf("Since(start+1h) = %v", got)
	}
	if got := log.Since(time.Time{}); got != 0 {
		t.Errorf("Since(no time) = %v, want 0", got)
	}
	if !log.Start().Equal(start) {
		t.Errorf("Start() = %v", log.Start())
	}
}

func TestRecordMendsTheReturn(t *testing.T) {
	start := time.Unix(1000, 0)
	log := NewLogOn(clock.NewVirtual(start), start)
	r := log.Recorder(7)
	call := r.Now()
	for _, ret := range []time.Duration{call, call - 1, 0, -5} {
		r.Record(&Op{Client: 99, Call: call, Return: ret})
	}
	next := r.Now()
	ops := drained(t, log)
	for _, op := range ops {
		if op.Client != 7 || op.Call != call || op.Return != call+1 {
			t.Errorf("recorded %v, want client 7, call %v, return %v", op, call, call+1)
		}
		if next <= op.Return {
			t.Errorf("the next reading, %v, is not after the healed return, %v", next, op.Return)
		}
	}
	if len(ops) != 4 {
		t.Errorf("%d operations, want 4", len(ops))
	}
}

// drained returns the operations of one sweep.
func drained(t testing.TB, log *Log) (all []Op) {
	t.Helper()
	if err := log.Drain(func(ops []Op) error { all = append(all, ops...); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDrainTakesPartialChunksOnce(t *testing.T) {
	log := NewLog(time.Now())
	r := log.Recorder(1)
	next := int64(0)
	for _, n := range []int{1, 0, 15, 1, 16, 17, 200, 3, 128, 5000, 0, 2} {
		from := next
		for range n {
			r.Record(&Op{Arg: Int(next), Call: r.Now()})
			next++
		}
		ops := drained(t, log)
		if len(ops) != n {
			t.Fatalf("a sweep found %d operations, want %d", len(ops), n)
		}
		for i, op := range ops {
			if op.Arg != Int(from+int64(i)) {
				t.Fatalf("operation %d of the sweep is number %v, want %d", i, op.Arg, from+int64(i))
			}
		}
	}
}

func TestConcurrentRecordersLoseNothing(t *testing.T) {
	const clients, each = 8, 20_000
	log := NewLog(time.Now())
	ctx, stop := context.WithCancel(t.Context())
	next := make([]int64, clients)
	done := make(chan error, 1)
	go func() {
		done <- log.DrainEvery(ctx, time.Millisecond, func(ops []Op) error {
			for _, op := range ops {
				if op.Arg != Int(next[op.Client]) {
					return errors.New("out of order: " + op.String())
				}
				next[op.Client]++
			}
			return nil
		})
	}()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			r := log.Recorder(int32(c))
			for i := range each {
				r.Record(&Op{Arg: Int(int64(i)), Call: r.Now(), Return: r.Now()})
				if i%1000 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for c, n := range next {
		if n != each {
			t.Errorf("client %d: %d operations arrived, want %d", c, n, each)
		}
	}
}

func TestFailingSinkLosesNothing(t *testing.T) {
	full := errors.New("disk full")
	for _, failAt := range []int{0, 1, 2} {
		log := NewLog(time.Now())
		const clients, each = 3, 4000
		var recorders []*Recorder
		for c := range clients {
			recorders = append(recorders, log.Recorder(int32(c)))
		}
		record := func() {
			for _, r := range recorders {
				for range each {
					r.Record(&Op{Arg: Int(int64(r.Now())), Call: r.Now()})
				}
			}
		}
		record()
		var got []Op
		calls := 0
		err := log.Drain(func(ops []Op) error {
			if calls == failAt {
				return full
			}
			calls++
			got = append(got, ops...)
			return nil
		})
		if !errors.Is(err, full) {
			t.Fatalf("Drain = %v, want the sink's error", err)
		}
		record()
		got = append(got, drained(t, log)...)
		checkPerClient(t, got, clients, 2*each)
	}
}

func checkPerClient(t *testing.T, ops []Op, clients, each int) {
	t.Helper()
	count := make([]int, clients)
	last := make([]int64, clients)
	for _, op := range ops {
		n, _ := op.Arg.Num()
		if n <= last[op.Client] {
			t.Fatalf("client %d: %d after %d", op.Client, n, last[op.Client])
		}
		last[op.Client] = n
		count[op.Client]++
	}
	for c, n := range count {
		if n != each {
			t.Errorf("client %d: %d operations, want %d", c, n, each)
		}
	}
}

func TestDrainEveryReturnsTheSinksError(t *testing.T) {
	full := errors.New("disk full")
	log := NewLog(time.Now())
	r := log.Recorder(1)
	r.Record(&Op{})
	err := log.DrainEvery(t.Context(), 0, func([]Op) error { return full })
	if !errors.Is(err, full) {
		t.Fatalf("DrainEvery = %v, want the sink's error", err)
	}
	r.Record(&Op{})
	if n := len(drained(t, log)); n != 2 {
		t.Errorf("%d operations are left in memory, want 2", n)
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	log := NewLog(time.Now())
	r := log.Recorder(1)
	op := Op{Kind: Buy, Key: Text("order"), Outcome: OK}
	keep := func([]Op) error { return nil }
	round := func() {
		for i := range 5000 {
			op.Arg = Int(int64(i))
			op.Call = r.Now()
			op.Return = r.Now()
			r.Record(&op)
		}
		if err := log.Drain(keep); err != nil {
			t.Fatal(err)
		}
	}
	round()
	round()
	if n := testing.AllocsPerRun(10, round); n != 0 {
		t.Errorf("%v allocations in 5,000 operations and a sweep, want 0", n)
	}
}

// BenchmarkRecord records from several goroutines while the log is swept.
func BenchmarkRecord(b *testing.B) {
	log := NewLog(time.Now())
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() {
		done <- log.DrainEvery(ctx, 10*time.Millisecond, func([]Op) error { return nil })
	}()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := log.Recorder(1)
		op := Op{Kind: Buy, Key: Text("order"), Outcome: OK}
		for i := time.Duration(0); pb.Next(); i += 2 {
			op.Call, op.Return = i, i+1
			r.Record(&op)
		}
	})
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecordAlone measures the cost to one client. The sweeps run while the timer is stopped.
func BenchmarkRecordAlone(b *testing.B) {
	log := NewLog(time.Now())
	r := log.Recorder(1)
	op := Op{Kind: Buy, Key: Text("order"), Outcome: OK}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		op.Call, op.Return = time.Duration(i), time.Duration(i+1)
		r.Record(&op)
		if i%10_000 == 0 {
			b.StopTimer()
			drained(b, log)
			b.StartTimer()
		}
	}
}

package arrival_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"oversell/history"
	"oversell/load/arrival"
	"oversell/reports"
)

// server answers after a fixed time, except during a stall, in which it does nothing.
type server struct{ takes, stalls, lasts time.Duration }

func (s server) answers(call time.Duration) time.Duration {
	if end := s.stalls + s.lasts; call+s.takes > s.stalls && call < end {
		return max(call, end) + s.takes
	}
	return call + s.takes
}

// drive lets clients serve an open load in virtual time, and returns the latencies that they record.
func drive(b *arrival.Book, clients int, s server) reports.Latency {
	free := make([]time.Duration, clients) // when each client is free
	latencies := reports.NewLatencies()
	for {
		i := slices.Index(free, slices.Min(free))
		a, left := b.Take(free[i], false)
		if !left {
			return latencies.Summary()["buy"]
		}
		call := max(a.Due, free[i])
		b.Begin(&a, call)
		free[i] = s.answers(call)
		b.End(a, free[i])
		latencies.Add(&history.Op{Kind: history.Buy, Outcome: history.OK, Due: a.Due, Call: call, Return: free[i]})
	}
}

// TestStallIsMeasuredFromWhenArrivalsWereDue compares the p99 of a server that stalls for 500 ms, under 20,000
// arrivals a second, with a calculation. After the stall, arrivals end 1/capacity apart and come 1/rate apart, so the
// k-th since the stall began is answered stall + service − k·(1/rate − 1/capacity) after it was due. Measured from
// the call the stall is hidden: only 200 calls, one in 300, meet it.
func TestStallIsMeasuredFromWhenArrivalsWereDue(t *testing.T) {
	const (
		clients, rate = 200, 20_000
		length        = 3 * time.Second
	)
	s := server{takes: 5 * time.Millisecond, stalls: time.Second, lasts: 500 * time.Millisecond}
	r, err := arrival.ParseRate("20k")
	if err != nil {
		t.Fatal(err)
	}
	capacity := clients / s.takes.Seconds()
	behind := 0.01 * rate * length.Seconds() // the number of arrivals that were slower than the p99
	want := 1e3 * (s.lasts.Seconds() + s.takes.Seconds() - behind*(1./rate-1/capacity))
	for _, p := range []arrival.Process{arrival.Constant, arrival.Poisson} {
		b := arrival.NewBook(r, p, 1, length, 0)
		l := drive(b, clients, s)
		if got := l.Due.P99; math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: p99 from when arrivals were due is %.1f ms; calculated, %.1f ms", p, got, want)
		}
		if l.Call.P99 > 6 {
			t.Errorf("%s: p99 from the call is %.1f ms; the stall should not show in it", p, l.Call.P99)
		}
		if seen := b.Close(length, false); seen.Missed != 0 || seen.Waited < 5000 || seen.Driver.Max != 0 || seen.Late.P99 < 450*time.Millisecond {
			t.Errorf("%s: %+v", p, seen)
		}
	}
}

// TestNoStall checks that, without a stall, nothing is late and both measures are equal.
func TestNoStall(t *testing.T) {
	r, _ := arrival.ParseStages("0:100,1s:20k")
	b := arrival.NewBook(r, arrival.Constant, 1, time.Second, 0)
	l := drive(b, 200, server{takes: 5 * time.Millisecond})
	if l.Due != nil && l.Due.P99 != l.Call.P99 {
		t.Errorf("from when due %+v, from the call %+v", l.Due, l.Call)
	}
	if seen := b.Close(time.Second, false); seen.Late.Max != 0 || seen.Begun != 10_050 || math.Abs(seen.Offered-10_050) > 10 {
		t.Errorf("%+v", seen)
	}
}

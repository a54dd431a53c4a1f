package scenarios

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/load/arrival"
	"oversell/reports"
	"oversell/server"
)

// BenchmarkStall freezes a redis-server for 500 ms in an open load of 3 s. It compares the p99 from the due times of
// orders with the p99 that follows from the stall: the slowest hundredth is due in the first part of the stall, and
// clients work it off at the speed that they have afterwards. See TestStallIsMeasuredFromWhenArrivalsWereDue for the
// same in virtual time.
func BenchmarkStall(b *testing.B) {
	s, err := server.Open(b.Context(), server.Spec{Target: "process", Topology: "single"})
	if err != nil {
		b.Skip(err)
	}
	defer s.Close()
	for b.Loop() {
		h := stalled(b, s)
		due, call, want := stallOf(h)
		b.ReportMetric(due, "due-p99-ms")
		b.ReportMetric(call, "call-p99-ms")
		b.ReportMetric(want, "calculated-ms")
		b.ReportMetric(100*(due/want-1), "off-%")
		b.ReportMetric(float64(h.Trailer.Arrivals.Driver.P99)/1e6, "driver-p99-ms")
	}
}

const stallRate = 2000

func stalled(b *testing.B, s *server.Target) *history.History {
	c := openConfig(b)
	if err := c.Complete(1); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "history.bin")
	if err := Run(b.Context(), c, Servers{Redis: s}, path, new(Live)); err != nil {
		b.Fatal(err)
	}
	h, err := history.Read(path)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func openConfig(b *testing.B) Config {
	f, err := faults.Parse("freeze node 1 500ms at 1s")
	if err != nil {
		b.Fatal(err)
	}
	c := config(b, "seckill", "none", "lua")
	c.Clients, c.Stock, c.Resend, c.Duration = 16, 1_000_000, None, 3*time.Second
	c.Faults, c.Rate = []faults.Fault{f}, arrival.Rate{{Rate: stallRate}}
	return c
}

// stallOf returns the p99 of purchases from their due times and from their calls, and the p99 calculated from the
// stall, in milliseconds.
func stallOf(h *history.History) (due, call, want float64) {
	l := reports.NewLatencies()
	var frozen history.Op
	for _, op := range h.Ops {
		if l.Add(&op); op.Kind == history.Fault {
			frozen = op
		}
	}
	end := max(frozen.Return, frozen.Until)
	var after []history.Op // orders due in the stall and answered after it, in the order of their answers
	for _, op := range h.Ops {
		if op.Kind == history.Buy && op.Due > frozen.Call && op.Due < end && op.Return > end {
			after = append(after, op)
		}
	}
	slices.SortFunc(after, func(a, b history.Op) int { return int(a.Return - b.Return) })
	n := len(after)
	capacity := float64(n) / (after[n-1].Return - end).Seconds()
	behind := 0.01 * float64(h.Trailer.Arrivals.Begun)
	want = 1e3 * ((end - frozen.Call).Seconds() - behind*(1./stallRate-1/capacity))
	buy := l.Summary()["buy"]
	return buy.Due.P99, buy.Call.P99, want
}

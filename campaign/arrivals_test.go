package campaign

import (
	"strings"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/checker"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// offered returns the arrivals of an open load without problems.
func offered() history.Arrivals {
	return history.Arrivals{Begun: 10_000, Offered: 1000, Achieved: 1000, Highest: 1000, Step: history.Spans{P50: 5 * time.Millisecond}}
}

// TestUnofferedLoad checks that a run is inconclusive, with a reason, if it did not offer its load: arrivals were
// missed for want of clients, or the driver began them late. A stall of the servers is no such reason.
func TestUnofferedLoad(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		change func(h *history.Header, a *history.Arrivals)
		want   string // empty: the load was offered
	}{
		{"as it was to be", func(*history.Header, *history.Arrivals) {}, ""},
		{"a hundredth was missed", func(_ *history.Header, a *history.Arrivals) { a.Begun, a.Missed = 9900, 100 }, ""},
		{"more was missed", func(_ *history.Header, a *history.Arrivals) { a.Begun, a.Missed = 9000, 1000 }, "1,000 of 10,000 arrivals were never begun: 8 clients were too few"},
		{"many were missed by a machine that is too slow for its clients", func(_ *history.Header, a *history.Arrivals) {
			a.Begun, a.Missed, a.Driver.P99 = 100, 9900, 50*ms
		}, "this machine is too slow"},
		{"nothing came", func(_ *history.Header, a *history.Arrivals) { *a = history.Arrivals{} }, "no arrival was due"},
		{"the driver at its limit", func(_ *history.Header, a *history.Arrivals) { a.Driver.P99 = 20 * ms }, ""},
		{"the driver was late", func(_ *history.Header, a *history.Arrivals) { a.Driver.P99 = 23 * ms }, "arrivals began up to 23.0 ms (p99) after a client was free for them, and 20ms is tolerated: this machine is too slow"},
		{"a stall at the end, with clients enough", func(_ *history.Header, a *history.Arrivals) {
			a.Achieved, a.ForClient = 900, history.Spans{P50: 100 * ms, P99: 500 * ms}
		}, ""},
		{"too few clients", func(_ *history.Header, a *history.Arrivals) {
			a.Achieved, a.ForClient.P50, a.Step.P50 = 800, 900*ms, 10*ms
		}, "8 clients began 800 arrivals a second, and 1,000 were due: a step took 10.0 ms (p50), so 1,000 arrivals a second need 10 clients; use more --clients"},
		{"too few clients for a rate that is reached late, and not for long", func(_ *history.Header, a *history.Arrivals) { a.Step.P50 = 10 * ms }, ""},
		{"too few producers", func(h *history.Header, a *history.Arrivals) {
			h.Queue, a.Achieved, a.ForClient.P50 = "zset-atomic", 800, 900*ms
		}, "4 clients began 800 arrivals a second"},
	} {
		a := offered()
		h := history.History{Header: history.Header{Rate: "1000", Clients: 8}, Trailer: &history.Trailer{Arrivals: &a}, Ops: []history.Op{
			{Client: 1, Kind: history.Acquire, Call: 1, Return: 5}, {Client: 2, Kind: history.Acquire, Call: 2, Return: 6},
		}}
		c.change(&h.Header, &a)
		for result, want := range map[checker.Result]string{checker.Holds: reports.Inconclusive, checker.Violated: reports.Violated} {
			got, why := judging.Verdict(&h, []checker.Verdict{{Of: variant.Lock, Property: variant.MutualExclusion, Result: result, Opportunities: 3}}, true)
			if c.want == "" && result == checker.Holds {
				want = reports.Pass
			}
			if got != want || got == reports.Inconclusive && !strings.Contains(why, c.want) || strings.Contains(why, "\n") {
				t.Errorf("%s: %s (%s); want %s (%s)", c.name, got, why, want, c.want)
			}
		}
	}
	h := history.History{Header: history.Header{Rate: "1000"}, Trailer: &history.Trailer{}}
	if why := judging.Unoffered(&h); !strings.Contains(why, "the trailer does not") {
		t.Errorf("a trailer without arrivals: %q", why)
	}
	h.Header.Rate = ""
	if why := judging.Unoffered(&h); why != "" {
		t.Errorf("a closed load: %q", why)
	}
}

// TestOpenLoadIsReported checks that the JSON report of an open load has latencies both from the call and from the
// due time, that the open load is described in sentences, and that a request counts from the due time of its step.
func TestOpenLoadIsReported(t *testing.T) {
	o, err := Parse(strings.Fields("--target embedded --lock lua-release --sale plain --clients 4 --stock 40 --rate 200 --arrival poisson --seed 3"))
	if err != nil {
		t.Fatal(err)
	}
	_, d := ran(t, *o)
	r := d.Runs[0]
	a := r.Arrivals
	if a == nil || a.Rate != "200" || a.Process != "poisson" || a.Begun < 40 || len(r.OpenLoad()) != 3 {
		t.Fatalf("%+v", a)
	}
	if due := r.Latency["buy"].Due; due == nil || due.Max < r.Latency["buy"].Call.Max {
		t.Errorf("%+v", r.Latency["buy"])
	}
	if q := r.Request; q == nil || q.Due == nil || q.Due.P50 < q.Call.P50 {
		t.Errorf("%+v", r.Request)
	}
}

// TestRequestsAreDueWhenTheirStepIs checks the times of a buyer that was due at 10 ms, asked for the lock at 30 ms
// and had an answer at 70 ms: it waited 60 ms, of which the service took 40 ms.
func TestRequestsAreDueWhenTheirStepIs(t *testing.T) {
	const ms = time.Millisecond
	h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: 9}, Ops: []history.Op{
		{Client: 1, Kind: history.Acquire, Outcome: history.OK, Due: 10 * ms, Call: 30 * ms, Return: 50 * ms},
		{Client: 1, Kind: history.Buy, Outcome: history.OK, Due: 40 * ms, Call: 60 * ms, Return: 70 * ms},
	}}
	counted := judging.NewCounting(h)
	counted.Read(h.Ops)
	l := counted.Work(h, 1).Request()
	if l == nil || l.Due == nil || l.Due.Max < 59.9 || l.Due.Max > 60.1 || l.Call.Max < 39.9 || l.Call.Max > 40.1 {
		t.Errorf("%+v", l)
	}
}

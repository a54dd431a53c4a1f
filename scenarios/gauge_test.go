package scenarios

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"oversell/history"
	"oversell/server"
)

// gaugeOf returns a gauge of one server with this usage.
func gaugeOf(usage func(number int) (server.Usage, error)) *gauge {
	start := time.Now()
	return &gauge{
		usage: func(_ context.Context, number int) (server.Usage, error) { return usage(number) },
		since: func(t time.Time) time.Duration { return t.Sub(start) }, over: make(chan struct{}),
		servers: []*gauged{{number: 1, load: history.ServerLoad{Server: "server 1"}, every: gaugeEvery}},
	}
}

// TestGaugeKeepsWhatFits checks that, however long a run is, the gauge keeps a bounded number of samples, the first
// among them, and asks less and less often.
func TestGaugeKeepsWhatFits(t *testing.T) {
	n := int64(0)
	g := gaugeOf(func(int) (server.Usage, error) { n++; return server.Usage{Commands: n}, nil })
	for range 10 * mostSamples {
		g.ask()
	}
	s := g.servers[0]
	if len(s.load.Samples) > mostSamples || s.every < 8*gaugeEvery || s.load.Samples[0].Commands != 1 {
		t.Errorf("%d samples from %+v on, one every %v", len(s.load.Samples), s.load.Samples[0], s.every)
	}
	if !slices.IsSortedFunc(s.load.Samples, func(a, b history.LoadSample) int { return int(a.Commands - b.Commands) }) {
		t.Error("the samples are out of order")
	}
	if loads, _ := g.end(); len(loads) != 1 || loads[0].Server != "server 1" || loads[0].Samples[len(loads[0].Samples)-1].Commands != n {
		t.Errorf("the last sample is missing: %d answers, %+v", n, loads)
	}
}

// TestGaugeOfASilentServer checks that a server that does not report its load is not asked again, and that a server
// whose reply a fault prevents is asked again.
func TestGaugeOfASilentServer(t *testing.T) {
	asked := 0
	g := gaugeOf(func(int) (server.Usage, error) { asked++; return server.Usage{}, fmt.Errorf("no: %w", server.ErrUsage) })
	g.ask()
	g.ask()
	if loads, _ := g.end(); asked != 1 || len(loads) != 0 {
		t.Errorf("asked %d times, and told %+v; want once, and nothing", asked, loads)
	}
	g = gaugeOf(func(int) (server.Usage, error) {
		if asked++; asked == 3 {
			return server.Usage{}, server.ErrEnvironment
		}
		return server.Usage{}, nil
	})
	g.ask()
	g.ask()
	if loads, _ := g.end(); len(loads) != 1 || len(loads[0].Samples) != 2 {
		t.Errorf("after a question without an answer: %+v; want two samples", loads)
	}
}

// TestRunTellsOfTheServer checks that a run on a server has the server's counts from before and after the load, and
// that a run on the emulation has none.
func TestRunTellsOfTheServer(t *testing.T) {
	for kind, want := range map[string]int{"process": 1, "embedded": 0} {
		h := runOn(t, t.Context(), config(t, "seckill", "lua-release", "plain"), openServer(t, kind, "single"))
		if len(h.Trailer.Servers) != want {
			t.Fatalf("%s: %+v; want %d servers", kind, h.Trailer.Servers, want)
		}
		for _, s := range h.Trailer.Servers {
			first, last := s.Samples[0], s.Samples[len(s.Samples)-1]
			if last.Commands-first.Commands < h.Trailer.Commands || last.At <= first.At || last.CPU < first.CPU {
				t.Errorf("%s: from %+v to %+v, though the clients sent %d commands", s.Server, first, last, h.Trailer.Commands)
			}
		}
	}
}

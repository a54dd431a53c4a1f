package explore

import (
	"testing"

	"oversell/history"
	"oversell/internal/cputime"
	"oversell/reports"
	"oversell/variant"
)

// BenchmarkSearch measures a search that finds nothing: of the sale that checks the fencing token on read and on write.
func BenchmarkSearch(b *testing.B) {
	for _, plain := range []bool{false, true} {
		name := "reduced"
		if plain {
			name = "plain"
		}
		b.Run(name, func(b *testing.B) {
			s := sought{scenario: "seckill", lock: "fenced", sale: "fenced", stock: 2, bounds: reports.Bounds{Clients: 3, Tries: 2, Advances: 2, Lost: 1, TimeMS: 60_000}}
			c := s.config(b)
			if c.Plain = plain; plain {
				c.Bounds.Clients = 2 // three take most of a minute
			}
			var transitions, states int64
			var bytes float64
			for b.Loop() {
				r, err := Run(b.Context(), c)
				if err != nil || r.Verdict != reports.Pass {
					b.Fatal(r.Verdict, r.Why, err)
				}
				transitions += r.Stats.Transitions
				states, bytes = r.Stats.States, r.Stats.BytesPerState
			}
			b.ReportMetric(float64(transitions)/b.Elapsed().Seconds(), "transitions/s")
			b.ReportMetric(float64(states), "states")
			b.ReportMetric(bytes, "bytes/state")
		})
	}
}

// BenchmarkProof measures searches of millions of states: of the sale that checks the fencing token on read and on
// write, with three clients and with four. The last search checks all promises of these variants, as the command does.
func BenchmarkProof(b *testing.B) {
	two := []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}, {Of: variant.Lock, Property: variant.MutualExclusion}}
	four := reports.Bounds{Clients: 4, Tries: 3, Advances: 2, Crashes: 1, Lost: 1}
	for _, c := range []struct {
		sought
		look []history.Promise
	}{
		{sought{name: "3 clients, 3 tries", bounds: reports.Bounds{Clients: 3, Tries: 3, Advances: 4, Crashes: 2, Lost: 2}}, two},
		{sought{name: "4 clients, 2 tries", bounds: reports.Bounds{Clients: 4, Tries: 2, Advances: 2, Crashes: 1, Lost: 1}}, two},
		{sought{name: "4 clients, 3 tries", bounds: four}, two},
		{sought{name: "4 clients, 3 tries, all promises", bounds: four}, nil},
	} {
		s, look := c.sought, c.look
		s.scenario, s.lock, s.sale, s.stock = "seckill", "fenced", "fenced", 2
		b.Run(s.name, func(b *testing.B) {
			c := s.config(b)
			c.Look = look
			c.Bounds.TimeMS = 600_000
			var last reports.Exploration
			var transitions int64
			before := cputime.Own()
			for b.Loop() {
				r, err := Run(b.Context(), c)
				if err != nil || r.Verdict != reports.Pass {
					b.Fatal(r.Verdict, r.Why, err)
				}
				transitions += r.Stats.Transitions
				last = r
			}
			b.ReportMetric(float64(transitions)/(cputime.Own()-before).Seconds(), "transitions/cpu-s")
			b.ReportMetric(float64(last.Stats.States), "states")
			b.ReportMetric(last.Stats.BytesPerState, "bytes/state")
		})
	}
}

// BenchmarkCounterexample measures the time that a search needs to find the shortest counterexample.
func BenchmarkCounterexample(b *testing.B) {
	for _, s := range counterexamples {
		if s.scenario != "" && s.look != variant.NoOversell {
			continue
		}
		b.Run(s.name, func(b *testing.B) {
			c := s.config(b)
			for b.Loop() {
				if r, err := Run(b.Context(), c); err != nil || r.Counterexample == nil {
					b.Fatal(r.Why, err)
				}
			}
		})
	}
}

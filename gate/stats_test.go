package gate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSignsAgainstEnumeration compares the test of signed ranks with a count of all ways in which the signs can fall.
func TestSignsAgainstEnumeration(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := &signs{}
	for range 300 {
		n := 1 + random.IntN(9)
		ds := make([]float64, n)
		for i := range ds {
			ds[i] = float64(random.IntN(7) - 3) // many ties, and zeros
			if random.IntN(2) == 0 {
				ds[i] += random.Float64()
			}
		}
		ranks, _ := doubledRanks(ds)
		sum := 0
		for i, d := range ds {
			if d > 0 {
				sum += ranks[i]
			}
		}
		as := 0
		for mask := range 1 << n {
			other := 0
			for i := range n {
				if mask>>i&1 == 1 {
					other += ranks[i]
				}
			}
			if other >= sum {
				as++
			}
		}
		got, _ := s.atLeast(ds)
		if want := float64(as) / float64(int(1)<<n); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v: %v, and counting gives %v", ds, got, want)
		}
	}
}

// TestSignsAgainstTables checks textbook values: 5 positive differences of 5 have probability 1/32; of 10
// differences, a rank sum of 50 or more comes in 10 of 1024 cases.
func TestSignsAgainstTables(t *testing.T) {
	s := &signs{}
	if got, other := s.atLeast([]float64{1, 2, 3, 4, 5}); got != 1.0/32 || other != 1 {
		t.Errorf("five of five: %v", got)
	}
	if _, got := s.atLeast([]float64{-1, -2, -3, -4, 5, -6, -7, -8, -9, -10}); got != 10.0/1024 {
		t.Errorf("a sum of 50 of 55: %v of 1024", got*1024)
	}
	// Differences of the same size share the mean of their ranks.
	if ranks, tied := doubledRanks([]float64{4, -2, 1, 2}); !tied || !slices.Equal(ranks, []int{8, 5, 2, 5}) {
		t.Errorf("doubled ranks: %v", ranks)
	}
	if got, other := s.atLeast([]float64{0, 0, 0, 0}); got != 1 || other != 1 {
		t.Errorf("no difference at all is evidence: %v", got)
	}
}

// TestIntervalIsTheTestTurnedRound checks that the interval holds exactly the shifts that neither one-sided test
// refutes.
func TestIntervalIsTheTestTurnedRound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	s := &signs{}
	for range 50 {
		ds := make([]float64, 8+random.IntN(20))
		for i := range ds {
			ds[i] = random.NormFloat64()
		}
		const miss = 0.005
		low, middle, high := s.interval(ds, miss)
		refuted := func(shift float64) bool {
			shifted := make([]float64, len(ds))
			for i, d := range ds {
				shifted[i] = d - shift
			}
			above, below := s.atLeast(shifted)
			return above <= miss || below <= miss
		}
		if refuted(middle) || refuted(low+1e-9) || refuted(high-1e-9) || !refuted(low-1e-9) || !refuted(high+1e-9) {
			t.Fatalf("%d differences: interval %v to %v round %v", len(ds), low, high, middle)
		}
	}
	if low, _, high := s.interval([]float64{1, 2, 3}, 0.005); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("three differences say nothing at 99 %%, and the interval is %v to %v", low, high)
	}
}

// noises are machines: each returns, run after run, the logarithm of the time that a run takes, whatever is run.
var noises = map[string]func(*rand.Rand) func() float64{
	"even": func(r *rand.Rand) func() float64 {
		return func() float64 { return 0.1 * r.NormFloat64() }
	},
	"heavy-tailed": func(r *rand.Rand) func() float64 {
		return func() float64 { return 0.05 * math.Abs(r.NormFloat64()/r.NormFloat64()) }
	},
	"drifting": func(r *rand.Rand) func() float64 {
		at := 0.0
		return func() float64 { at += 0.05 + 0.1*r.NormFloat64(); return at }
	},
	"every third run is slow": func(r *rand.Rand) func() float64 {
		n := 0
		return func() float64 {
			if n++; n%3 == 0 {
				return 0.7 + 0.02*r.NormFloat64()
			}
			return 0.02 * r.NormFloat64()
		}
	},
	"bursts": func(r *rand.Rand) func() float64 {
		left := 0
		return func() float64 {
			if left--; left < -20 && r.IntN(4) == 0 {
				left = 10
			}
			if left > 0 {
				return 1 + 0.3*r.NormFloat64()
			}
			return 0.05 * r.NormFloat64()
		}
	},
}

// simulated returns the decision of a comparison on a machine when the candidate is slower by a share.
func simulated(s *signs, random *rand.Rand, p procedure, machine func() float64, slower, allowed float64) decision {
	var ds []float64
	for _, look := range p.looks {
		for len(ds) < look {
			var took [inARound]float64
			for _, side := range random.Perm(inARound) {
				took[side] = machine()
			}
			ds = append(ds, took[theCandidate]+math.Log1p(slower)-took[theBaseline])
		}
		if d := p.decide(s, ds, math.Log1p(allowed)); d != undecided {
			return d
		}
	}
	return undecided
}

// TestRates checks with 10,000 made-up comparisons that, on any machine, a candidate that is at most as slow as
// allowed raises an alarm in at most 1 % of all cases, and a slower one passes in at most 5 %.
func TestRates(t *testing.T) {
	names := []string{}
	for name := range noises {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, x := range []struct {
		trials      int
		slower      float64
		alarm, pass float64 // the highest rates allowed
	}{
		{3_000, 0, falseAlarms, 1},
		{6_000, 0.10, falseAlarms, falsePasses},
		{1_000, 0.15, 1, falsePasses},
	} {
		each := x.trials / len(names)
		for _, name := range names {
			t.Run(fmt.Sprintf("%s, %v slower", name, x.slower), func(t *testing.T) {
				t.Parallel()
				random, s := rand.New(rand.NewPCG(5, 6)), &signs{}
				p := newProcedure(defaultRounds, 1)
				count := map[decision]int{}
				for range each {
					count[simulated(s, random, p, noises[name](random), x.slower, 0.10)]++
				}
				// Allows three standard deviations for the number of trials.
				most := func(rate float64) int {
					n := float64(each)
					return int(n*rate + 3*math.Sqrt(n*rate*(1-rate)))
				}
				t.Logf("of %d: %d alarms, %d passes, %d undecided", each, count[tooSlow], count[fastEnough], count[undecided])
				if count[tooSlow] > most(x.alarm) || x.pass < 1 && count[fastEnough] > most(x.pass) {
					t.Errorf("of %d: %d alarms, %d passes", each, count[tooSlow], count[fastEnough])
				}
			})
		}
	}
}

// TestPower checks that, with tolerable noise, a slow-down of 30 % is found, and a candidate without one passes.
func TestPower(t *testing.T) {
	random, s := rand.New(rand.NewPCG(7, 8)), &signs{}
	p := newProcedure(defaultRounds, len(measures))
	alarms, passes := 0, 0
	const trials = 500
	for range trials {
		if simulated(s, random, p, noises["even"](random), 0.30, 0.10) == tooSlow {
			alarms++
		}
		if simulated(s, random, p, noises["even"](random), 0, 0.10) == fastEnough {
			passes++
		}
	}
	if alarms < trials*98/100 || passes < trials*98/100 {
		t.Errorf("of %d each: %d alarms at 30 %%, %d passes at 0 %%", trials, alarms, passes)
	}
}

// TestTolerableNoiseDecides checks that, with runs as long as the gate chooses them, a candidate like the baseline
// passes in nearly every gate without the retry, and that with three times the noise it hardly ever does.
func TestTolerableNoiseDecides(t *testing.T) {
	random, s := rand.New(rand.NewPCG(11, 12)), &signs{}
	p := newProcedure(defaultRounds, len(measures))
	border := math.Log1p(0.10)
	passes := func(noise float64) (n int) {
		for range 300 {
			var slow, twin []float64
			for range defaultRounds {
				baseline := noise / math.Sqrt2 * random.NormFloat64()
				slow = append(slow, noise/math.Sqrt2*random.NormFloat64()-baseline)
				twin = append(twin, noise/math.Sqrt2*random.NormFloat64()-baseline)
			}
			if p.decide(s, slow, border) == fastEnough && p.resolves(s, twin, border) {
				n++
			}
		}
		return n
	}
	tolerable := p.tolerable(defaultRounds, 0.10)
	if n := passes(tolerable); n < 290 {
		t.Errorf("with noise that is tolerable %d of 300 pass", n)
	}
	if n := passes(3 * tolerable); n > 30 {
		t.Errorf("with three times the noise %d of 300 pass", n)
	}
}

// TestTooMuchNoisePassesNothing checks that noise that hides the allowed slow-down leaves nearly everything
// undecided.
func TestTooMuchNoisePassesNothing(t *testing.T) {
	random, s := rand.New(rand.NewPCG(9, 10)), &signs{}
	p := newProcedure(defaultRounds, 1)
	undecideds := 0
	for range 200 {
		if simulated(s, random, p, func() float64 { return 3 * random.NormFloat64() }, 0, 0.10) == undecided {
			undecideds++
		}
	}
	if undecideds < 180 {
		t.Errorf("%d of 200 undecided", undecideds)
	}
}

func TestFewestRounds(t *testing.T) {
	for _, n := range []int{1, 2, 3, 12, 100} {
		least := fewestRounds(n)
		p, s := newProcedure(least, n).halved(), &signs{}
		all := make([]float64, least)
		for i := range all {
			all[i] = float64(i + 1)
		}
		if p.decide(s, all, 0) != tooSlow {
			t.Errorf("%d measures: %d rounds on one side raise no alarm", n, least)
		}
		if p.decide(s, all[1:], 0) == tooSlow {
			t.Errorf("%d measures: %d rounds would have done", n, least-1)
		}
	}
}

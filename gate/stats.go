package gate

import (
	"cmp"
	"math"
	"slices"

	"oversell/internal/stats"
)

// signs computes the exact null distribution of Wilcoxon's signed-rank statistic, for differences whose signs are
// fair coin flips. It caches distributions; it is not safe for concurrent use.
//
// The signs are fair because the runs of every round come in random order. If the two sides were alike, exchanging
// their names would be equally likely, even if noise is heavy-tailed, drifting, or correlated between neighbours.
// The same holds for a candidate that is slower by a constant factor, compared with a limit of this factor. If the
// slow-down varies from round to round and is skewed, the limit applies to its pseudo-median (the median of the
// means of all pairs of rounds).
type signs struct{ tails map[int][]float64 }

// atLeast returns the probability that the sum of positive ranks is at least as large by chance, and the same for
// the negative ranks. A difference of zero counts against both, because it is no evidence. With a NaN, nothing is
// evidence.
func (s *signs) atLeast(differences []float64) (positive, negative float64) {
	if slices.ContainsFunc(differences, math.IsNaN) {
		return 1, 1
	}
	ranks, tied := doubledRanks(differences)
	up, down := 0, 0
	for i, d := range differences {
		switch {
		case d > 0:
			up += ranks[i]
		case d < 0:
			down += ranks[i]
		}
	}
	tails := s.tailsOf(ranks, tied)
	return tails[up], tails[down]
}

// tailsOf returns the probabilities of sums of at least 0, 1, 2, … of these ranks.
func (s *signs) tailsOf(ranks []int, tied bool) []float64 {
	if tied {
		return tails(ranks)
	}
	if known, ok := s.tails[len(ranks)]; ok {
		return known
	}
	if s.tails == nil {
		s.tails = map[int][]float64{}
	}
	t := tails(ranks)
	s.tails[len(ranks)] = t
	return t
}

// tails counts all assignments of signs, by adding one rank after the other.
func tails(ranks []int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	p := make([]float64, total+1)
	p[0] = 1
	reached := 0
	for _, r := range ranks {
		for sum := reached; sum >= 0; sum-- {
			p[sum+r] += p[sum] / 2
			p[sum] /= 2
		}
		reached += r
	}
	for sum := total - 1; sum >= 0; sum-- {
		p[sum] += p[sum+1]
	}
	return p
}

// doubledRanks ranks by absolute value; ties share the mean of their ranks, doubled so that it is an integer.
func doubledRanks(differences []float64) (ranks []int, tied bool) {
	order := make([]int, len(differences))
	for i := range order {
		order[i] = i
	}
	size := func(i int) float64 { return math.Abs(differences[i]) }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(size(a), size(b)) })
	ranks = make([]int, len(differences))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && cmp.Compare(size(order[to]), size(order[from])) == 0 {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // twice the mean of from+1 … to
		}
		tied = tied || to > from+1
		from = to
	}
	return ranks, tied
}

// interval returns the Hodges-Lehmann estimate of the middle of the differences, and an interval that misses it
// with probability 2×miss; its ends are infinite if there are too few differences, or one of them is not finite.
func (s *signs) interval(differences []float64, miss float64) (low, middle, high float64) {
	n := len(differences)
	if n == 0 || slices.ContainsFunc(differences, func(d float64) bool { return math.IsNaN(d - d) }) {
		return math.Inf(-1), 0, math.Inf(1)
	}
	var means []float64
	for i := range differences {
		for j := i; j < n; j++ {
			means = append(means, (differences[i]+differences[j])/2)
		}
	}
	slices.Sort(means)
	m := len(means)
	middle = stats.Middle(means)
	plain := make([]int, n)
	for i := range plain {
		plain[i] = 2 * (i + 1)
	}
	t := s.tailsOf(plain, false)
	// The lowest k means can be left out at either end if a sum of at most k-1, which is as likely as one of at
	// least m-(k-1), has a probability of at most miss.
	k := 0
	for k < m/2 && t[2*(m-k)] <= miss {
		k++
	}
	if k == 0 {
		return math.Inf(-1), middle, math.Inf(1)
	}
	return means[k-1], middle, means[m-k]
}

// Guaranteed error rates.
const (
	// falseAlarms is the maximum probability that a gate raises any alarm although no candidate is slower than
	// allowed.
	falseAlarms = 0.01
	// falsePasses is the maximum probability that a measure that is slower than allowed passes.
	falsePasses = 0.025
)

// procedure determines when to look at the rounds, and the error rate of each look. The rates of all looks add up to
// at most the guaranteed rates.
type procedure struct {
	// looks are numbers of rounds. The last one is the retry of an inconclusive comparison.
	looks []int
	// alarm and pass are the error rates of one look at one measure.
	alarm, pass float64
	// miss is the error rate of one end of a measure's interval: in reports, in recorded measures, and for a pass.
	miss float64
}

// newProcedure divides the guaranteed rates among the measures of a plan.
func newProcedure(rounds, measures int) procedure {
	p := procedure{looks: []int{(rounds + 3) / 4, (rounds + 1) / 2, (3*rounds + 3) / 4, rounds, 2 * rounds}}
	p.alarm = falseAlarms / float64(len(p.looks)*max(measures, 1))
	p.miss = falseAlarms / 2 / float64(max(measures, 1))
	p.pass = min(falsePasses/float64(len(p.looks)), p.miss)
	return p
}

// halved leaves half of the false-alarm rate to the recorded slow-down, which may itself be wrong.
func (p procedure) halved() procedure {
	p.alarm /= 2
	return p
}

// fewestRounds returns the smallest number of rounds in which this many measures can raise an alarm at all: with
// all differences on one side.
func fewestRounds(measures int) int {
	return int(math.Ceil(-math.Log2(newProcedure(1, measures).halved().alarm)))
}

// decision is the result of a look at a measure.
type decision int

const (
	undecided decision = iota
	fastEnough
	tooSlow
)

// decide tests the logarithmic differences between candidate and baseline, one per round, against the allowed
// slow-down.
//
// Two tests share one limit. The candidate is too slow if the hypothesis "at most as slow as allowed" is rejected.
// It is fast enough if "at least as slow as allowed" is rejected and the reported interval ends within the allowed
// slow-down. Otherwise the measurement is not precise enough, and never passes.
func (p procedure) decide(s *signs, differences []float64, allowed float64) decision {
	beyond := make([]float64, len(differences))
	for i, d := range differences {
		beyond[i] = d - allowed
	}
	switch slower, faster := s.atLeast(beyond); {
	case slower <= p.alarm:
		return tooSlow
	case faster <= p.pass:
		if _, _, high := s.interval(differences, p.miss); high <= allowed { // ties may widen it
			return fastEnough
		}
	}
	return undecided
}

// resolves reports whether a slow-down of the allowed size is detectable: whether the interval of the baseline's
// difference from itself lies within the allowed slow-down, in both directions.
func (p procedure) resolves(s *signs, noise []float64, allowed float64) bool {
	low, _, high := s.interval(noise, p.miss)
	return -allowed <= low && high <= allowed
}

// differs reports whether the baseline differs from itself by more than is allowed, in either direction. A false
// alarm here only makes a measure inconclusive, so its rate need not be as low.
func (p procedure) differs(s *signs, differences []float64, allowed float64) bool {
	p.alarm = p.pass
	turned := make([]float64, len(differences))
	for i, d := range differences {
		turned[i] = -d
	}
	return p.decide(s, differences, allowed) == tooSlow || p.decide(s, turned, allowed) == tooSlow
}

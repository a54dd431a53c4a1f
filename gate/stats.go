package gate

import (
	"cmp"
	"math"
	"slices"

	"oversell/internal/stats"
)

// signs is the exact null distribution of Wilcoxon's signed-rank statistic, for differences
// with signs that are fair coins. It remembers the distributions it has worked out; one
// goroutine uses it at a time.
//
// Why fair coins: in every round the runs come in an order drawn by chance. Were the
// two sides alike, the same two numbers would have come out with their names
// exchanged just as often, also where noise is heavy-tailed, drifting, or the same for
// neighbours: the shuffling makes it true. The same goes for a candidate that is slower
// by a constant factor, at the border that is this factor. Of one whose slow-down itself
// varies from round to round and is skewed, it is the pseudo-median of the slow-downs
// (the median of the means of all pairs of rounds) that the border is about.
type signs struct{ tails map[int][]float64 }

// atLeast is the probability that so large a sum of positive ranks, or a larger one,
// comes by chance, and the same of the negative ranks. A difference of
// zero counts against both, for it is no evidence. Where a difference is no number, nothing
// is evidence.
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

// tailsOf are the probabilities of sums of at least 0, 1, 2, … of these ranks.
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

// tails counts every way in which the signs can fall, by adding one rank after the
// other.
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

// doubledRanks ranks by size; those of the same size share the mean of their ranks,
// which is whole once doubled.
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

// interval is the Hodges-Lehmann estimate of the middle of the differences, and the
// interval that holds it but in a share of 2×miss of all cases; the ends are infinite
// when there are too few differences to say, or one of them is not finite.
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
	// The lowest k means may be left out at either end as long as a sum of at most
	// k-1, which is as likely as one of at least m-(k-1), is rarer than miss.
	k := 0
	for k < m/2 && t[2*(m-k)] <= miss {
		k++
	}
	if k == 0 {
		return math.Inf(-1), middle, math.Inf(1)
	}
	return means[k-1], middle, means[m-k]
}

// The rates that the gate promises.
const (
	// falseAlarms is in how many of all gates, at the most, anything alarms though no
	// candidate is slower than allowed.
	falseAlarms = 0.01
	// falsePasses is in how many cases, at the most, a measure that is slower than
	// allowed passes.
	falsePasses = 0.05
)

// procedure says when to look at the rounds made so far, and how sure to be. All looks
// together keep the rates: each has its share, and the shares add up.
type procedure struct {
	// looks are numbers of rounds. The last one is the retry of what would have been
	// inconclusive.
	looks []int
	// alarm and pass are the error rates of one look at one measure.
	alarm, pass float64
	// miss is the error rate of one end of the interval of one measure: in reports, in what
	// is recorded, and in what passes.
	miss float64
}

// newProcedure shares the promised rates among so many measures of a plan.
func newProcedure(rounds, measures int) procedure {
	p := procedure{looks: []int{(rounds + 3) / 4, (rounds + 1) / 2, (3*rounds + 3) / 4, rounds, 2 * rounds}}
	p.alarm = falseAlarms / float64(len(p.looks)*max(measures, 1))
	p.miss = falseAlarms / 2 / float64(max(measures, 1))
	p.pass = min(falsePasses/float64(len(p.looks)), p.miss)
	return p
}

// halved leaves half of the false alarms to what was recorded, which may itself be wrong.
func (p procedure) halved() procedure {
	p.alarm /= 2
	return p
}

// fewestRounds is the smallest number of rounds in which this many measures can raise
// an alarm at all: with all differences on one side.
func fewestRounds(measures int) int {
	return int(math.Ceil(-math.Log2(newProcedure(1, measures).halved().alarm)))
}

// decision is what a look at a measure came to.
type decision int

const (
	undecided decision = iota
	fastEnough
	tooSlow
)

// decide looks at the differences of the logarithms of what the candidate and the
// baseline took, one a round, beyond how much there may be.
//
// Two tests share one border. The candidate is too slow if the hypothesis "at most as slow
// as allowed" is rejected. It is fast enough if "at least as slow as allowed" is rejected
// and the interval in the report ends within the allowed slow-down. Otherwise it has not
// been measured well enough, and never passes.
func (p procedure) decide(s *signs, differences []float64, allowed float64) decision {
	beyond := make([]float64, len(differences))
	for i, d := range differences {
		beyond[i] = d - allowed
	}
	switch slower, faster := s.atLeast(beyond); {
	case slower <= p.alarm:
		return tooSlow
	case faster <= p.pass:
		if _, _, high := s.interval(differences, p.miss); high <= allowed { // ties may make it wider
			return fastEnough
		}
	}
	return undecided
}

// resolves reports whether a slow-down of the allowed size could have been detected:
// whether the interval of the baseline's difference from itself lies within the allowed
// slow-down, upward and downward.
func (p procedure) resolves(s *signs, noise []float64, allowed float64) bool {
	low, _, high := s.interval(noise, p.miss)
	return -allowed <= low && high <= allowed
}

// differs reports whether something is too slow beside itself, one way or the other. A false
// alarm of it only makes a measure inconclusive, so it need not be so rare.
func (p procedure) differs(s *signs, differences []float64, allowed float64) bool {
	p.alarm = p.pass
	turned := make([]float64, len(differences))
	for i, d := range differences {
		turned[i] = -d
	}
	return p.decide(s, differences, allowed) == tooSlow || p.decide(s, turned, allowed) == tooSlow
}

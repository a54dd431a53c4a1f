package compare

import (
	"math"
	"slices"

	"oversell/internal/stats"
	"oversell/reports"
)

// paired returns the throughputs of a cell divided by those of another cell in the same round: effects of the
// machine on both cancel out. It is empty if they share no round.
func paired(of, to []reports.ComparedRun) (ratios []float64) {
	for _, a := range of {
		for _, b := range to {
			if a.Round == b.Round && b.Throughput > 0 && counts(a) && counts(b) {
				ratios = append(ratios, a.Throughput/b.Throughput)
			}
		}
	}
	return ratios
}

// counts reports whether the throughput of a run is compared with others.
func counts(r reports.ComparedRun) bool { return r.Measured && !r.Interrupted }

// typical returns the geometric mean of the throughputs: the ratio of two such means is the geometric mean of the
// ratios. It is 0 without rounds.
func typical(rounds []reports.ComparedRun) float64 {
	var rates []float64
	for _, r := range rounds {
		if counts(r) {
			rates = append(rates, r.Throughput)
		}
	}
	mean, _, _ := stats.GeometricMean(rates)
	return mean
}

// spreadOrNil summarizes ratios; nil if there are none.
func spreadOrNil(ratios []float64) *reports.Spread {
	if ratios == nil {
		return nil
	}
	s := spreadOf(ratios)
	return &s
}

// fewestRounds is the minimum for an interval: with two rounds, a 95 % interval reaches from 0 to thousands.
const fewestRounds = 3

// estimateOf estimates the ratio of two cells from paired rounds: the geometric mean, and the interval for that of
// as many further rounds.
func estimateOf(ratios []float64) *reports.RatioEstimate {
	if ratios == nil {
		return nil
	}
	mean, low, high := stats.GeometricMean(ratios)
	e := reports.RatioEstimate{Ratio: figures(mean), Rounds: len(ratios)}
	if len(ratios) >= fewestRounds && !math.IsInf(high, 0) {
		l, h := figures(low), figures(high)
		e.Low, e.High = &l, &h
	}
	return &e
}

// figures rounds to four significant digits.
func figures(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-3)
	return math.Round(x/unit) * unit
}

// rank numbers the cells without a violation of one configuration, the fastest first. Cells with overlapping
// intervals share a rank, and so does a chain of them. There are no ranks without intervals.
func rank(cells []reports.ComparisonCell) {
	var order []*reports.ComparisonCell
	for i := range cells {
		if x := &cells[i]; x.Outcome == reports.NoViolation && x.Estimate != nil {
			if x.Estimate.Low == nil {
				return
			}
			order = append(order, x)
		}
	}
	slices.SortStableFunc(order, func(a, b *reports.ComparisonCell) int {
		switch {
		case a.Estimate.Ratio > b.Estimate.Ratio:
			return -1
		case a.Estimate.Ratio < b.Estimate.Ratio:
			return 1
		}
		return 0
	})
	for i, x := range order {
		x.Rank = i + 1
		if i > 0 && overlap(order[:i], order[i:]) {
			x.Rank, x.Tied, order[i-1].Tied = order[i-1].Rank, true, true
		}
	}
}

// overlap reports whether an interval of one group overlaps one of the other. Without an overlap all of the first group
// are above the second: intervals contain their ratios, by which the cells are in order.
func overlap(above, below []*reports.ComparisonCell) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for _, x := range above {
		least = min(least, *x.Estimate.Low)
	}
	for _, x := range below {
		most = max(most, *x.Estimate.High)
	}
	return most >= least
}

package compare

import (
	"math"
	"slices"

	"oversell/internal/stats"
	"oversell/reports"
)

// paired are the throughputs of a cell by those of another one in the same round: what the
// machine did to both of them cancels out. None if they share no round.
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

// typical is the geometric mean of the throughputs, of which that of two cells divided by each
// other is the one of their ratios; 0 if there was none.
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

// spreadOrNil sums up ratios; nil if there are none.
func spreadOrNil(ratios []float64) *reports.Spread {
	if ratios == nil {
		return nil
	}
	s := spreadOf(ratios)
	return &s
}

// fewestRounds is how many an interval needs: by two of them, a normal distribution would be
// known so badly that 95 % of it reach from nothing to thousands.
const fewestRounds = 3

// estimateOf is what the ratios of paired rounds tell: their geometric mean, and where that of
// as many more rounds would be.
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

// figures keeps four significant ones.
func figures(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-3)
	return math.Round(x/unit) * unit
}

// rank numbers the cells without a violation of one configuration, the fastest first. Those
// whose intervals overlap have one rank, and so has a whole chain of them: the order in it is
// not told. Nothing has a rank where there are no intervals.
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
	least := math.Inf(1) // the lower end of the chain
	for i, x := range order {
		x.Rank = i + 1
		if i > 0 && *x.Estimate.High >= least {
			x.Rank, x.Tied, order[i-1].Tied = order[i-1].Rank, true, true
		} else {
			least = math.Inf(1)
		}
		least = min(least, *x.Estimate.Low)
	}
}

// Package stats has the statistics that several packages need and the standard library
// lacks.
package stats

import (
	"math"
	"slices"
)

// Median returns the median of xs, which need not be sorted; 0 if xs is empty.
func Median[N ~int64 | ~float64](xs []N) N { return Middle(slices.Sorted(slices.Values(xs))) }

// Middle is Median of a sorted slice.
func Middle[N ~int64 | ~float64](sorted []N) N {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// GeometricMean returns the geometric mean of xs, with the interval that contains the mean of as many further numbers
// of the same kind in 95 of 100 cases: the prediction interval of a mean for logarithms with a normal distribution,
// which is √2 times as wide as the confidence interval by Student's t (G. J. Hahn, W. Q. Meeker, Statistical Intervals,
// 1991, section 4.8). It shows what to expect of a repeated experiment. For fewer than two numbers, or if a number
// is 0, low and high are 0 and infinite.
func GeometricMean(xs []float64) (mean, low, high float64) {
	n := float64(len(xs))
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	if n == 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
		return 0, 0, math.Inf(1)
	}
	middle, squares := sum/n, 0.0
	for _, x := range xs {
		squares += (math.Log(x) - middle) * (math.Log(x) - middle)
	}
	if n < 2 {
		return math.Exp(middle), 0, math.Inf(1)
	}
	half := student(len(xs)-1) * math.Sqrt(squares/(n-1)*(2/n))
	return math.Exp(middle), math.Exp(middle - half), math.Exp(middle + half)
}

// student returns the 97.5th percentile of Student's distribution with so many degrees of freedom; for more than 30
// that of 30, which is conservative.
func student(freedom int) float64 {
	percentiles := [...]float64{
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
		2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	}
	if freedom < 1 {
		return math.Inf(1)
	}
	return percentiles[min(freedom, len(percentiles))-1]
}

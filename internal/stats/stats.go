// Package stats has the statistics that several packages need and the standard library
// lacks.
package stats

import "slices"

// Median is the middle one of xs in any order, or the mean of the two in the middle; 0
// of none.
func Median(xs []float64) float64 { return Middle(slices.Sorted(slices.Values(xs))) }

// Middle is the median of what is sorted.
func Middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

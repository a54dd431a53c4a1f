package stats

import (
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 9, 1, 2}, 3}} {
		before := slices.Clone(c.xs)
		if got := Median(c.xs); got != c.want || !slices.Equal(c.xs, before) {
			t.Errorf("Median(%v) = %v; want %v, and the numbers left as they are", before, got, c.want)
		}
	}
}

package stats

import (
	"math"
	"math/rand/v2"
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

// TestStudent compares the table of Student's distribution with the integral of its density.
func TestStudent(t *testing.T) {
	for freedom := 1; freedom <= 30; freedom++ {
		nu := float64(freedom)
		a, _ := math.Lgamma((nu + 1) / 2)
		b, _ := math.Lgamma(nu / 2)
		density := func(x float64) float64 {
			return math.Exp(a-b) / math.Sqrt(nu*math.Pi) * math.Pow(1+x*x/nu, -(nu+1)/2)
		}
		const steps = 20000
		end, sum := student(freedom), 0.0
		for i := range steps { // the midpoint rule
			sum += density((float64(i)+0.5)*end/steps) * end / steps
		}
		if math.Abs(sum-0.475) > 5e-5 {
			t.Errorf("%d degrees of freedom: below %v are %.5f; want 0.975", freedom, end, 0.5+sum)
		}
	}
	if student(31) != student(30) || !math.IsInf(student(0), 1) {
		t.Error("beyond the table")
	}
}

// TestGeometricMeanIsSeenAgain checks that, for two series of equally many numbers, the mean of the second lies in the
// interval of the first in 95 of 100 cases.
func TestGeometricMeanIsSeenAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 5, 10} {
		series := func() (xs []float64) {
			for range n {
				xs = append(xs, 3*math.Exp(0.2*r.NormFloat64()))
			}
			return xs
		}
		const tries = 4000
		within := 0
		for range tries {
			_, low, high := GeometricMean(series())
			if again, _, _ := GeometricMean(series()); low <= again && again <= high {
				within++
			}
		}
		if share := float64(within) / tries; math.Abs(share-0.95) > 0.015 {
			t.Errorf("%d numbers: the interval held the next one in %.3f of the cases; want 0.95", n, share)
		}
	}
}

func TestGeometricMean(t *testing.T) {
	for _, c := range []struct {
		xs              []float64
		mean, low, high float64
	}{
		{nil, 0, 0, math.Inf(1)}, {[]float64{3}, 3, 0, math.Inf(1)}, {[]float64{4, 4}, 4, 4, 4}, {[]float64{1, 0}, 0, 0, math.Inf(1)},
	} {
		mean, low, high := GeometricMean(c.xs)
		if math.Abs(mean-c.mean) > 1e-9 || math.Abs(low-c.low) > 1e-9 || high != c.high && math.Abs(high-c.high) > 1e-9 {
			t.Errorf("GeometricMean(%v) = %v, %v to %v; want %v, %v to %v", c.xs, mean, low, high, c.mean, c.low, c.high)
		}
	}
}

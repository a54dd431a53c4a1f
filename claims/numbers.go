package claims

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"oversell/internal/stats"
	"oversell/reports"
)

// inTurns times every contender once in each round, and begins each round with another contender, so that other
// load on the machine affects all alike. The durations are by contender, then by round.
func inTurns(ctx context.Context, rounds int, contenders ...func(context.Context) (time.Duration, error)) ([][]float64, error) {
	taken := make([][]float64, len(contenders))
	for round := range rounds {
		for i := range contenders {
			n := (round + i) % len(contenders)
			d, err := contenders[n](ctx)
			if err != nil {
				return nil, err
			}
			taken[n] = append(taken[n], float64(d))
		}
	}
	return taken, nil
}

// timed returns how long f takes.
func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// contest holds the durations of two contenders by round.
type contest struct{ a, b []float64 }

// ratio returns the median over the rounds of a's duration divided by b's. The two run one after the other in each
// round, so that other load slows down both.
func (c contest) ratio() float64 { return stats.Median(ratios(c.a, c.b)) }

// quantity returns the ratio with the range of the middle half of the rounds.
func (c contest) quantity(name string) reports.Quantity {
	rs := slices.Sorted(slices.Values(ratios(c.a, c.b)))
	if len(rs) == 0 {
		return number(name, 0, "")
	}
	return reports.Quantity{Name: name, Value: c.ratio(), Spread: &reports.Spread{Median: stats.Median(rs), Low: rs[len(rs)/4], High: rs[(3*len(rs)-1)/4]}}
}

// wide is the ratio of the upper to the lower end of the middle half above which measurements are too noisy.
const wide = 2.5

// swayed reports whether the rounds leave open on which side of a bound the median of their ratios lies. The 95 %
// interval of a median of n values is about the order statistics n/2 ± √n, so at least n/2 + √n must be on one side. It
// is open, too, if the middle half is wide: what disturbs both measurements that much draws the median towards 1.
func (c contest) swayed(bound float64) bool {
	rs := slices.Sorted(slices.Values(ratios(c.a, c.b)))
	if len(rs) > 0 && rs[(3*len(rs)-1)/4] > wide*rs[len(rs)/4] {
		return true
	}
	over := 0.0
	for _, r := range rs {
		if r >= bound {
			over++
		}
	}
	n := float64(len(rs))
	return math.Abs(over-n/2) < math.Sqrt(n)
}

// ratios returns a divided by b, round by round.
func ratios(a, b []float64) []float64 {
	rs := make([]float64, min(len(a), len(b)))
	for i := range rs {
		rs[i] = a[i] / b[i]
	}
	return rs
}

// spread returns the median, the minimum and the maximum of xs.
func spread(xs []float64) *reports.Spread {
	if len(xs) == 0 {
		return &reports.Spread{}
	}
	return &reports.Spread{Median: stats.Median(xs), Low: slices.Min(xs), High: slices.Max(xs)}
}

// number returns a quantity that was measured once, or counted.
func number[T int | int64 | float64](name string, value T, unit string) reports.Quantity {
	return reports.Quantity{Name: name, Value: float64(value), Unit: unit}
}

// repeated returns a quantity that was measured several times.
func repeated(name string, values []float64, unit string) reports.Quantity {
	s := spread(values)
	return reports.Quantity{Name: name, Value: s.Median, Unit: unit, Spread: s}
}

// seconds converts a duration to the unit of a quantity.
func seconds(d time.Duration) float64 { return d.Seconds() }

// ranged formats "500", or "480 to 510" for different values.
func ranged[T int | int64](ns []T) string {
	if len(ns) == 0 {
		return "none"
	}
	low, high := reports.Thousands(int64(slices.Min(ns))), reports.Thousands(int64(slices.Max(ns)))
	if low == high {
		return low
	}
	return low + " to " + high
}

// times formats a ratio: "1.3 times".
func times(ratio float64) string {
	return strconv.FormatFloat(ratio, 'f', digits(ratio), 64) + " times"
}

func digits(x float64) int {
	if x < 10 {
		return 2
	}
	return 0
}

// percent formats a share.
func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

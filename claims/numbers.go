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

// inTurns takes the time of every contender once in each round, and begins each round with
// another one, so that other load on the machine affects all alike. The times are by
// contender, then by round.
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

// timed is how long f takes.
func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// contest is two ways to do the same, with the time that each took in each round.
type contest struct{ a, b []float64 }

// ratio is the time of a by that of b: the median of the ratios, round by round. The two
// of a round are taken one after the other, so that what else the machine does slows
// down both.
func (c contest) ratio() float64 { return stats.Median(ratios(c.a, c.b)) }

// quantity is the ratio, with between what the ratios of the middle half of the rounds lie.
func (c contest) quantity(name string) reports.Quantity {
	rs := slices.Sorted(slices.Values(ratios(c.a, c.b)))
	if len(rs) == 0 {
		return number(name, 0, "")
	}
	return reports.Quantity{Name: name, Value: c.ratio(), Spread: &reports.Spread{Median: stats.Median(rs), Low: rs[len(rs)/4], High: rs[(3*len(rs)-1)/4]}}
}

// swayed reports whether the rounds leave open on which side of a bound the median of their
// ratios lies: by the order statistics of n rounds, its 95 % interval has half of them
// less and more about √n, so that at least half plus √n must be on one side.
func (c contest) swayed(bound float64) bool {
	rs := ratios(c.a, c.b)
	over := 0.0
	for _, r := range rs {
		if r >= bound {
			over++
		}
	}
	n := float64(len(rs))
	return math.Abs(over-n/2) < math.Sqrt(n)
}

// ratios are a by b, round by round.
func ratios(a, b []float64) []float64 {
	rs := make([]float64, min(len(a), len(b)))
	for i := range rs {
		rs[i] = a[i] / b[i]
	}
	return rs
}

// spread is the median of xs with the least and the greatest.
func spread(xs []float64) *reports.Spread {
	if len(xs) == 0 {
		return &reports.Spread{}
	}
	return &reports.Spread{Median: stats.Median(xs), Low: slices.Min(xs), High: slices.Max(xs)}
}

// number is a quantity that was measured once, or counted.
func number[T int | int64 | float64](name string, value T, unit string) reports.Quantity {
	return reports.Quantity{Name: name, Value: float64(value), Unit: unit}
}

// repeated is a quantity that was measured several times.
func repeated(name string, values []float64, unit string) reports.Quantity {
	s := spread(values)
	return reports.Quantity{Name: name, Value: s.Median, Unit: unit, Spread: s}
}

// seconds and millis are durations as quantities have them.
func seconds(d time.Duration) float64 { return d.Seconds() }
func millis(d time.Duration) float64  { return float64(d) / float64(time.Millisecond) }

// ranged is "500", or "480 to 510" of several that differ.
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

// times is a ratio in words: "1.3 times".
func times(ratio float64) string {
	return strconv.FormatFloat(ratio, 'f', digits(ratio), 64) + " times"
}

func digits(x float64) int {
	if x < 10 {
		return 2
	}
	return 0
}

// percent is a share in words.
func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

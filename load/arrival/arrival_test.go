package arrival

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"500": 500, "20k": 20_000, "2.5/s": 2.5, "1M": 1e6, "0.5k/s": 500, " 7 ": 7, "1e3": 1000, "0.01": 0.01} {
		r, err := ParseRate(text)
		if err != nil || len(r) != 1 || r[0] != (Stage{0, want}) {
			t.Errorf("%q is %v (%v); want %v", text, r, err, want)
		}
		if again, err := ParseRate(r.String()); err != nil || !slices.Equal(again, r) {
			t.Errorf("%q becomes %q and then %v (%v)", text, r.String(), again, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "k", "fast", "1M1", "2M", "NaN", "inf", "1/m", "1,2", "20 k/h"} {
		if r, err := ParseRate(text); err == nil || !strings.HasPrefix(err.Error(), "must be ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %v (%v)", text, r, err)
		}
	}
}

func TestParseStages(t *testing.T) {
	for text, want := range map[string]Rate{
		"0:1k,30s:20k":       {{0, 1000}, {30 * time.Second, 20_000}},
		"0:5":                {{0, 5}},
		"0s:0, 1m:100/s":     {{0, 0}, {time.Minute, 100}},
		"0:1,10s:1,10s:50":   {{0, 1}, {10 * time.Second, 1}, {10 * time.Second, 50}},
		"0:1,1ms:2,1.5s:0.5": {{0, 1}, {time.Millisecond, 2}, {1500 * time.Millisecond, 0.5}},
	} {
		r, err := ParseStages(text)
		if err != nil || !slices.Equal(r, want) {
			t.Errorf("%q is %v (%v); want %v", text, r, err, want)
		}
		if again, err := ParseStages(r.String()); len(r) > 1 && (err != nil || !slices.Equal(again, r)) {
			t.Errorf("%q becomes %q and then %v (%v)", text, r.String(), again, err)
		}
	}
	for text, want := range map[string]string{
		"":                     "must be stages like",
		"1k":                   "must be stages like",
		"0:1k,":                "must be stages like",
		"0:1k,30:2k":           "must be stages like",
		"0:x":                  "must be stages like",
		"0:1,25h:2":            "must be stages like",
		"-1s:1":                "must be stages like",
		"1s:1":                 "must be at 0",
		"0:1,2s:1,1s:1":        "in order of time",
		"0:1,1s:1,1s:2,1s:3":   "a step has two",
		"0:0,1s:0":             "nothing would arrive",
		"0:1k,10s:20000000000": "at most 1M",
	} {
		if r, err := ParseStages(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %v (%v); want %q", text, r, err, want)
		}
	}
}

// integral counts the arrivals until a time by adding up many short pieces. It is slow, and independent of the code
// under test.
func integral(r Rate, until time.Duration) (n float64) {
	const pieces = 200_000
	at := func(t float64) float64 {
		for i := len(r) - 1; i >= 0; i-- {
			if from := r[i].At.Seconds(); t >= from {
				if i == len(r)-1 {
					return r[i].Rate
				}
				return r[i].Rate + (r[i+1].Rate-r[i].Rate)*(t-from)/(r[i+1].At.Seconds()-from)
			}
		}
		return 0
	}
	d := until.Seconds() / pieces
	for i := range pieces {
		n += at((float64(i)+0.5)*d) * d
	}
	return n
}

var shapes = []string{"0:100", "0:100,2s:300", "0:300,2s:100", "0:0,1s:200,3s:0", "0:50,1s:50,1s:500,2s:500", "0:0,1s:0,2s:100", "0:10,5s:1000,6s:1"}

func TestWhenInvertsTheIntegral(t *testing.T) {
	for _, text := range shapes {
		r, err := ParseStages(text)
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		for _, n := range []float64{0.5, 1, 2, 10, 99, 100, 150, 180} {
			at, comes := r.When(n)
			if !comes {
				t.Fatalf("%s: %v arrivals never come", text, n)
			}
			if got := integral(r, at); math.Abs(got-n) > 0.02+n*1e-3 || at < last {
				t.Errorf("%s: %v arrivals by %v; counted, they are %.3f", text, n, at, got)
			}
			last = at
		}
	}
	r, _ := ParseStages("0:0,1s:200,3s:0")
	if at, comes := r.When(301); comes {
		t.Errorf("of 300 arrivals the 301st comes at %v", at)
	}
	if got := r.Highest(500 * time.Millisecond); got != 100 {
		t.Errorf("highest until half a second: %v", got)
	}
	if got := r.Highest(time.Hour); got != 200 {
		t.Errorf("highest at all: %v", got)
	}
}

// TestConstantArrivals checks that arrival i is at i/rate, to the nanosecond.
func TestConstantArrivals(t *testing.T) {
	r, _ := ParseRate("3")
	s := r.Sequence(Constant, 7)
	for i := range 10 {
		want := time.Duration(math.Round(float64(i) * 1e9 / 3))
		if at, ok := s.Next(); at != want || !ok {
			t.Errorf("arrival %d is at %v; want %v", i, at, want)
		}
	}
}

// TestSequencesRepeat checks that the seed determines the arrivals, that their times rise, and that they end where
// the rate does.
func TestSequencesRepeat(t *testing.T) {
	for _, text := range shapes {
		r, _ := ParseStages(text)
		a, b, c := r.Sequence(Poisson, 1), r.Sequence(Poisson, 1), r.Sequence(Poisson, 2)
		last, differ := time.Duration(-1), false
		for range 200 {
			x, any := a.Next()
			y, _ := b.Next()
			z, _ := c.Next()
			if !any {
				break
			}
			if x != y || x < last {
				t.Fatalf("%s: %v and %v after %v", text, x, y, last)
			}
			last, differ = x, differ || x != z
		}
		if !differ {
			t.Errorf("%s: two seeds give the same arrivals", text)
		}
	}
	r, _ := ParseStages("0:100,1s:0")
	n := 0
	for s := r.Sequence(Constant, 0); ; n++ {
		if _, any := s.Next(); !any {
			break
		}
	}
	if n != 51 { // 0 to 50
		t.Errorf("%d arrivals in a ramp from 100 to 0 in a second", n)
	}
}

// TestPoisson checks that the counts of arrivals in the parts of a ramp have the mean and the variance of a Poisson
// process, and that the gaps at a constant rate are exponential.
func TestPoisson(t *testing.T) {
	r, _ := ParseStages("0:0,10s:2000,20s:2000")
	s := r.Sequence(Poisson, 3)
	var parts [200]float64 // of 100 ms each
	var gaps []float64
	for last := time.Duration(0); ; {
		at, _ := s.Next()
		if at >= 20*time.Second {
			break
		}
		parts[at/(100*time.Millisecond)]++
		if last > 10*time.Second {
			gaps = append(gaps, (at-last).Seconds()*2000)
		}
		last = at
	}
	chi := 0.0
	for i, n := range parts {
		from, to := time.Duration(i)*100*time.Millisecond, time.Duration(i+1)*100*time.Millisecond
		mean := integral(r, to) - integral(r, from)
		chi += (n - mean) * (n - mean) / mean
	}
	if chi < 140 || chi > 270 { // 200 degrees of freedom: 99.9 % lie within
		t.Errorf("χ² of the counts is %.0f", chi)
	}
	slices.Sort(gaps)
	worst := 0.0
	for i, g := range gaps {
		worst = max(worst, math.Abs(1-math.Exp(-g)-float64(i)/float64(len(gaps))))
	}
	if limit := 1.95 / math.Sqrt(float64(len(gaps))); worst > limit { // Kolmogorov-Smirnov test, 99.9 %
		t.Errorf("gaps are not exponential: off by %.4f, and %.4f is allowed", worst, limit)
	}
}

const msec = time.Millisecond

// TestBook checks that arrivals are handed out once and in order, and that the causes of lateness are told apart.
func TestBook(t *testing.T) {
	r, _ := ParseRate("100")
	b := NewBook(r, Constant, 0, 50*msec, 0) // arrivals are due at 0, 10, 20, 30, 40 ms
	const zero = time.Second
	b.Open(zero)
	take := func(now time.Duration) Arrival {
		a, ok := b.Take(zero+now, false)
		if !ok {
			t.Fatalf("no arrival at %v", now)
		}
		return a
	}
	first, second := take(0), take(0) // both clients are free
	b.Begin(&first, zero+2*msec)      // the driver is late by 2 ms
	b.Begin(&second, zero+10*msec)
	b.End(first, zero+32*msec)
	third := take(32 * msec) // due at 20 ms, when no client was free
	b.Begin(&third, zero+33*msec)
	if b.Over() || b.Served() {
		t.Error("two arrivals are left")
	}
	fourth := take(34 * msec)
	if fourth.Due != zero+30*msec {
		t.Errorf("the fourth is due at %v", fourth.Due)
	}
	b.Drop(fourth, zero+35*msec)
	for _, a := range []Arrival{second, third} {
		b.End(a, zero+40*msec)
	}
	if b.Over() {
		t.Error("the fifth is left")
	}
	fifth := take(40 * msec)
	if !b.Over() || b.Served() {
		t.Error("none is left, and the fifth has not begun")
	}
	if _, ok := b.Take(zero, false); ok {
		t.Error("an arrival beyond the end")
	}
	if beyond, ok := b.Take(zero, true); !ok || beyond.Due != zero+50*msec {
		t.Errorf("the load goes on with %v", beyond)
	}
	b.Begin(&fifth, zero+40*msec)
	if b.Served() {
		t.Error("the fifth is under way")
	}
	b.End(fifth, zero+41*msec)
	if !b.Served() {
		t.Error("only an arrival beyond the end is left")
	}

	got := b.Close(zero+time.Second, true)
	if got.Begun != 4 || got.Missed != 1 || got.Waited != 1 || got.Offered != 75 || got.Achieved != 75 || got.Highest != 100 {
		t.Errorf("%+v", got)
	}
	near := func(name string, s history.Spans, p50, most time.Duration) {
		if (s.P50-p50).Abs() > 100*time.Microsecond || (s.Max-most).Abs() > 100*time.Microsecond {
			t.Errorf("%s: p50 %v, max %v; want %v and %v", name, s.P50, s.Max, p50, most)
		}
	}
	near("late", got.Late, 0, 13*msec)
	near("for a client", got.ForClient, 0, 12*msec)
	near("driver", got.Driver, 0, 2*msec)
	near("step", got.Step, 7*msec, 30*msec)
}

// TestBookOfARunThatIsStopped checks that, in a stopped run, arrivals that were due and not handed out count as
// missed, and that a run that ended by itself misses none.
func TestBookOfARunThatIsStopped(t *testing.T) {
	r, _ := ParseRate("100")
	for _, c := range []struct {
		stopped bool
		ends    time.Duration
		most    int64
		want    int64
	}{{true, 0, 0, 10}, {true, 55 * msec, 0, 5}, {true, 0, 4, 3}, {false, 0, 0, 0}} {
		b := NewBook(r, Constant, 0, c.ends, c.most)
		a, _ := b.Take(0, false)
		b.Begin(&a, 0)
		b.End(a, 95*msec)
		if got := b.Close(105*msec, c.stopped); got.Missed != c.want || got.Begun != 1 {
			t.Errorf("%+v: %d missed", c, got.Missed)
		}
	}
}

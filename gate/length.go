package gate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"oversell/reports"
	"oversell/variant"
)

// length is the flag that determines how long a run takes, and its value; a duration is in nanoseconds. The zero
// value: the gate cannot choose the length.
type length struct {
	flag  string
	value int64
}

// String formats the length as in a plan.
func (l length) String() string {
	if l.flag == "" {
		return ""
	}
	return l.flag + " " + l.text()
}

func (l length) text() string {
	if l.flag == "duration" {
		return time.Duration(l.value).String()
	}
	return strconv.FormatInt(l.value, 10)
}

func (l length) times(n int64) length { return length{l.flag, l.value * n} }

const (
	// pilotPairs is the number of pairs of baseline runs that measure the noise of one length.
	pilotPairs = 8
	// mostGrowth limits the length of a run, as a multiple of the first.
	mostGrowth = 64
	// shareOfBudget is the share of the budget that the rounds may take, by the pilot's estimate. The rest is for a
	// retry.
	shareOfBudget = 0.6
)

// growing returns the first length of an entry whose runs may become longer: the entry does not set their length
// and has no faults, which fire at fixed times.
func growing(f flags, r *speedEntry) length {
	config := r.candidate.Runs[0]
	switch {
	case len(config.Faults) > 0 || len(r.baseline.Runs[0].Faults) > 0:
		return length{}
	case config.Scenario.EndsByTime && config.Duration == defaultRaceRun && !f.has("duration") && !f.has("ops"):
		return length{"duration", int64(defaultRaceRun / 2)}
	case config.Scenario.Uses(variant.Sale) && config.Stock > 0 && !f.has("stock") && !f.has("ops") && !f.has("duration"):
		return length{"stock", config.Stock}
	}
	return length{}
}

// lengthened returns the entry with runs of another length. It keeps its identity.
func (c *speedEntry) lengthened(ctx context.Context, l length) (*speedEntry, error) {
	longer := *c
	longer.length = l
	for side, f := range c.flags {
		f = f.with(l.flag, l.text())
		plan, err := planOf(ctx, f)
		if err != nil {
			return nil, err
		}
		longer.args[side] = f.args()
		if side == 0 {
			longer.candidate = plan
		} else {
			longer.baseline = plan
		}
	}
	return &longer, nil
}

// settle chooses the length of an entry's runs, and returns the driver of its rounds. The length is the one in the
// baseline file or else one for which the baseline hardly differs from itself. The choice does not depend on the
// candidate, so the error rates are the same as with a given length.
func (t *timing) settle(ctx context.Context, open func(*speedEntry) driver) (driver, error) {
	c := t.race
	if c.length.flag == "" {
		return open(c), nil
	}
	if a := t.running.options.Baseline.recorded(c, t.running.gate.Machine); a != nil && a.Length > 0 {
		l := length{c.length.flag, a.Length}
		return t.chosen(ctx, open, l, fmt.Sprintf("runs of %s, as in the baseline file", l))
	}
	for l := c.length; ; {
		drive, err := t.chosen(ctx, open, l, "")
		if err != nil {
			return nil, err
		}
		p, err := t.pilot(ctx, drive)
		if err != nil || !p.decided || ctx.Err() != nil {
			return drive, err
		}
		grow := p.growth()
		if grow == 1 {
			t.sized = fmt.Sprintf("runs of %s, long enough for the noise of this machine: %s", l, p.say())
			return drive, nil
		}
		for grow > 1 && (l.value*grow > c.length.value*mostGrowth || t.wouldTake(p.each*time.Duration(grow)) > t.affordable()) {
			grow /= 2
		}
		if grow == 1 {
			t.sized = fmt.Sprintf("runs of %s, the longest within a budget of %v, but too short for the noise of this machine: %s", l, c.budget, p.say())
			return drive, nil
		}
		l = l.times(grow)
	}
}

// chosen sets the length of the entry's runs.
func (t *timing) chosen(ctx context.Context, open func(*speedEntry) driver, l length, say string) (driver, error) {
	longer, err := t.race.lengthened(ctx, l)
	if err != nil {
		return nil, err
	}
	t.race, t.sized, t.entry.RunLength = longer, say, l.String()
	t.entry.Length = l.value
	return open(longer), nil
}

// wouldTake returns the duration of all rounds for a given duration of a run.
func (t *timing) wouldTake(each time.Duration) time.Duration {
	return time.Duration(inARound*t.race.rounds) * each
}

// affordable returns how long the rounds may take.
func (t *timing) affordable() time.Duration {
	return time.Duration(shareOfBudget * float64(t.race.budget))
}

// pilot is the measured noise of one length of runs.
type pilot struct {
	decided bool
	each    time.Duration // duration of a run, with server start and judgement
	worst   string        // the measure with the most noise relative to the allowed slow-down
	noise   float64       // its noise: the difference of two runs, as a logarithm
	needed  float64       // the noise that would be small enough
}

// pilot runs the baseline against itself.
func (t *timing) pilot(ctx context.Context, drive driver) (p pilot, err error) {
	var sides []int
	var seeds []uint64
	for i := range pilotPairs {
		sides = append(sides, theBaseline, itsTwin)
		seed := t.running.options.Seed + 2_000_003 + uint64(i)
		seeds = append(seeds, seed, seed)
	}
	started := time.Now()
	runs, err := drive(ctx, sides, seeds)
	if err != nil || len(runs) < len(sides) || slices.ContainsFunc(runs, func(r reports.Run) bool { return r.Verdict == reports.Violated || r.Interrupted }) {
		return p, err // the rounds will show it
	}
	p.each = time.Since(started) / time.Duration(len(runs))
	operation := t.race.operation()
	for _, name := range t.race.measures {
		values := [2][]float64{}
		for i, run := range runs {
			v := measured(run, name, operation)
			if !(v > 0) || math.IsInf(v, 1) {
				return p, nil
			}
			values[i%2] = append(values[i%2], v)
		}
		noise, needed := spread(slowdowns(values[0], values[1], name)), t.race.procedure.tolerable(t.race.rounds, t.race.slower[name])
		if p.worst == "" || noise/needed > p.noise/p.needed {
			p.worst, p.noise, p.needed = name, noise, needed
		}
	}
	p.decided = true
	return p, nil
}

// growth returns the factor by which runs must be longer: 1, 2, 4, or 8 at most. Noise falls with the square root of
// their length.
func (p pilot) growth() int64 {
	n := int64(1)
	for n < 8 && p.noise > p.needed*math.Sqrt(float64(n)) {
		n *= 2
	}
	return n
}

func (p pilot) say() string {
	return fmt.Sprintf("the %s of the baseline varies by %s from run to run, and up to %s is tolerable", p.worst, reports.Percent(math.Expm1(p.noise)), reports.Percent(math.Expm1(p.needed)))
}

// spread estimates the standard deviation of differences around 0 from their mean absolute value, which is less
// sensitive to outliers than their mean square.
func spread(differences []float64) float64 {
	sum := 0.0
	for _, d := range differences {
		sum += math.Abs(d)
	}
	return sum / float64(len(differences)) * math.Sqrt(math.Pi/2)
}

// tolerable returns how much two runs may differ for the interval over this many rounds to reach half of the
// allowed slow-down: a candidate as fast as the baseline can then be distinguished from one at the limit.
func (p procedure) tolerable(rounds int, allowed float64) float64 {
	surely := math.Sqrt2 * math.Erfinv(1-2*min(p.alarm, p.pass))
	return math.Log1p(allowed) / 2 * math.Sqrt(float64(rounds)) / surely
}

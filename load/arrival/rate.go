// Package arrival determines when the steps of an open load begin.
//
// In a closed load a client begins its next step when the previous one has ended, so a slow server gets fewer
// requests. In an open load steps begin when they are due, whatever the server does, like customers of a shop. The
// times are fixed in advance: a [Rate] and a seed give a [Sequence], and a [Book] hands out its arrivals to clients
// that are free. This package neither reads a clock nor waits.
package arrival

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Stage is the rate at one time of the load.
type Stage struct {
	At time.Duration // since the load began
	// Rate is the number of arrivals per second.
	Rate float64
}

// Rate is a rate of arrivals over time: it changes linearly between stages, and is constant after the last. Two
// stages at one time make the rate jump. The first stage is at 0. The nil Rate is a closed load.
type Rate []Stage

// Limits of the input.
const (
	highest = 1e6
	longest = 24 * time.Hour
)

// ParseRate parses a constant rate, such as 500, 20k or 2.5/s.
func ParseRate(text string) (Rate, error) {
	rate, err := number(text)
	if err != nil || rate == 0 {
		return nil, errors.New("must be arrivals a second like 500, 20k or 2.5/s, above 0 and at most 1M")
	}
	return Rate{{0, rate}}, nil
}

// ParseStages parses a changing rate, such as 0:1k,30s:20k.
func ParseStages(text string) (Rate, error) {
	var r Rate
	for part := range strings.SplitSeq(text, ",") {
		s, err := stage(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		r = append(r, s)
	}
	return r, r.check()
}

// stage parses a time and its rate.
func stage(text string) (s Stage, err error) {
	at, rate, two := strings.Cut(text, ":")
	if s.At, err = time.ParseDuration(at); two && err == nil {
		s.Rate, err = number(rate)
	}
	if !two || err != nil || s.At < 0 || s.At > longest {
		return s, fmt.Errorf("%q: must be stages like 0:1k,30s:20k, each a time up to 24h and the arrivals a second at that time, at most 1M", text)
	}
	return s, nil
}

// check returns an error for invalid stages.
func (r Rate) check() error {
	if r[0].At != 0 {
		return fmt.Errorf("the first stage is at %v: it must be at 0, as in 0:1k,30s:20k", r[0].At)
	}
	most := r[0].Rate
	for i := 1; i < len(r); i++ {
		switch before := r[i-1].At; {
		case r[i].At < before:
			return fmt.Errorf("stage %v comes after stage %v: stages must be in order of time", r[i].At, before)
		case i > 1 && r[i].At == r[i-2].At:
			return fmt.Errorf("three stages are at %v: a step has two", r[i].At)
		}
		most = max(most, r[i].Rate)
	}
	if most == 0 {
		return errors.New("all rates are 0: nothing would arrive")
	}
	return nil
}

// number parses arrivals per second.
func number(text string) (float64, error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "/s")
	unit := 1.0
	for suffix, is := range map[string]float64{"k": 1e3, "M": 1e6} {
		if short, found := strings.CutSuffix(text, suffix); found {
			text, unit = short, is
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if n *= unit; err == nil && !(n >= 0 && n <= highest) {
		err = strconv.ErrRange
	}
	return n, err
}

// Changes reports whether the rate changes.
func (r Rate) Changes() bool { return len(r) > 1 }

// String formats the rate for [ParseRate] or, if it changes, [ParseStages].
func (r Rate) String() string {
	if len(r) == 1 {
		return short(r[0].Rate)
	}
	parts := make([]string, len(r))
	for i, s := range r {
		parts[i] = short(float64(s.At)/1e9) + "s:" + short(s.Rate)
	}
	return strings.Join(parts, ",")
}

func short(n float64) string {
	const least = 1e-6 // a smaller number has more zeros than anybody counts
	if n > 0 && n < least {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// Ends returns the time of the last stage.
func (r Rate) Ends() time.Duration { return r[len(r)-1].At }

// Highest returns the highest rate up to a time.
func (r Rate) Highest(until time.Duration) float64 {
	most := r[0].Rate
	for i := 1; i < len(r); i++ {
		if r[i].At > until {
			return max(most, r[i-1].Rate+slope(r[i-1], r[i])*(until-r[i-1].At).Seconds())
		}
		most = max(most, r[i].Rate)
	}
	return most
}

// When returns the time by which n arrivals have come at this rate: the inverse of the integral of the rate. It
// returns false if that many never come.
func (r Rate) When(n float64) (time.Duration, bool) {
	for i := range r {
		if i+1 == len(r) {
			break
		}
		length := (r[i+1].At - r[i].At).Seconds()
		if all := (r[i].Rate + r[i+1].Rate) / 2 * length; n > all {
			n -= all
			continue
		}
		return r[i].At + span(solve(r[i].Rate, slope(r[i], r[i+1]), n)), true
	}
	last := r[len(r)-1]
	if n <= 0 {
		return last.At, true
	}
	if last.Rate == 0 || n/last.Rate > (longest*365).Seconds() {
		return 0, false
	}
	return last.At + span(n/last.Rate), true
}

// slope returns the change of the rate per second between two stages.
func slope(a, b Stage) float64 {
	if a.At == b.At {
		return 0
	}
	return (b.Rate - a.Rate) / (b.At - a.At).Seconds()
}

// solve returns the time in seconds after which n arrivals have come at a changing rate: the smaller root of rate·t
// + slope/2·t² = n, in a form without cancellation.
func solve(rate, slope, n float64) float64 {
	if n <= 0 {
		return 0
	}
	return 2 * n / (rate + math.Sqrt(max(0, rate*rate+2*slope*n)))
}

func span(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

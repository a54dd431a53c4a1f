package campaign

import (
	"fmt"

	"github.com/spf13/pflag"

	"oversell/load/arrival"
)

// bindArrivals defines the flags of an open load.
func (o *Options) bindArrivals(f *pflag.FlagSet) {
	f.Var(rateFlag{&o.Rate, "rate", arrival.ParseRate}, "rate", "open load: steps begun per second, such as 500, 20k or 2.5/s, whether or not earlier ones have ended (default: closed load, a client begins a step when its last one has ended)")
	f.Var(rateFlag{&o.Stages, "stages", arrival.ParseStages}, "stages", "open load whose rate changes linearly from stage to stage, such as 0:1k,30s:20k; two stages at one time make the rate jump")
	f.Var(nameFlag[arrival.Process]{&o.Arrival, arrival.ParseProcess}, "arrival", "how the steps of an open load are spread: constant or poisson (default: constant)")
}

// openLoad returns the chosen rate; nil: the load is closed.
func (o Options) openLoad() (arrival.Rate, error) {
	if o.Rate != nil && o.Stages != nil {
		return nil, fmt.Errorf("give --rate or --stages: --rate %s is --stages 0:%s", o.Rate, o.Rate)
	}
	if o.Stages != nil {
		return o.Stages, nil
	}
	return o.Rate, nil
}

// rateFlag is the value of a flag that takes a rate.
type rateFlag struct {
	to   *arrival.Rate
	kind string
	read func(string) (arrival.Rate, error)
}

// String implements pflag.Value.
func (r rateFlag) String() string {
	if r.to == nil || *r.to == nil {
		return ""
	}
	return r.to.String()
}

// Set implements pflag.Value.
func (r rateFlag) Set(text string) error {
	rate, err := r.read(text)
	if err == nil {
		*r.to = rate
	}
	return err
}

// Type implements pflag.Value.
func (r rateFlag) Type() string { return r.kind }

package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/internal/limits"
	"oversell/internal/printable"
)

// Options are what a user says of a comparison: the options of a run, of which
// several may have more than one value.
//
// Values of a variant's name make contenders, faults and values of a number or a
// duration make configurations. Do not copy one after Bind.
type Options struct {
	campaign.Options
	// Rounds is how many to make, and Time for how long: a round begins only if it
	// is likely to end by then. 0 is no limit; at least one round is made.
	Rounds int
	Time   time.Duration
	// Measure is for how long a contender is measured in each round, after a warm-up; 0: runs
	// are measured as they are.
	Measure time.Duration
	// Quick makes small runs of few contenders, and few rounds.
	Quick bool
	// FaultsOnly leaves out the configuration without faults.
	FaultsOnly bool
	// Plain leaves out the configuration that is added where nobody chose a fault, a lease
	// or how long sections last: one in which a section outlives its lease.
	Plain bool
	// Dir is where everything goes; it is made if need be.
	Dir string

	flags      *pflag.FlagSet
	sales      *several
	queues     *several
	ids        *several
	dispatches *several
	targets    *several
	swept      []*several // in the order of the flags
}

// What a comparison does when nobody says otherwise.
const (
	fullRounds, fullTime   = 10, 5 * time.Minute
	quickRounds, quickTime = 5, 52 * time.Second

	measureTime = time.Second
)

// In the configuration that is added, a section outlives its lease, which is the shortest
// that every lock can express.
const (
	shortLease = time.Second
	outlived   = "slow 1200ms nth 3"
	// outlivedFor is how long clients go on who come for the lock alone: until the
	// section is over, and a lease more.
	outlivedFor = 2500 * time.Millisecond
)

// sweepable are the types of flags of which several values make configurations.
var sweepable = []string{"int", "int64", "float64", "duration"}

// Bind defines the flags by which a comparison is chosen: those of a run, most of
// which take several values, and its own. It measures how much work is done in a time, which
// an open load settles in advance, so it has none of its flags.
func (o *Options) Bind(f *pflag.FlagSet) {
	o.Options.BindClosed(f)
	o.flags = f
	for name, to := range map[string]**several{"sale": &o.sales, "queue": &o.queues, "ids": &o.ids, "dispatch": &o.dispatches, "target": &o.targets} {
		*to = takeSeveral(f.Lookup(name))
	}
	o.targets.split = splitTargets
	f.VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(sweepable, flag.Value.Type()) {
			o.swept = append(o.swept, takeSeveral(flag))
		}
	})
	f.Lookup("lock").Usage = "the lock, or several: a,b (default: every shipped one that is not wrong on purpose)"
	f.Lookup("fault").Usage = "what to break; each --fault is a configuration beside the one without faults, and several sentences in one, separated by ;, fire together"
	f.BoolVar(&o.FaultsOnly, "faults-only", false, "leave out the configuration without faults")
	f.BoolVar(&o.Plain, "plain", false, fmt.Sprintf("leave out the configuration that is added without --fault, --ttl and --hold, in which a section outlives its lease (--ttl %v --fault '%s')", shortLease, outlived))
	f.IntVar(&o.Rounds, "rounds", 0, fmt.Sprintf("how often each contender is run in each configuration (default: as many as fit into --time, at most %d; quick: %d)", fullRounds, quickRounds))
	f.DurationVar(&o.Time, "time", 0, fmt.Sprintf("begin no round that would end after this time (default: %v; quick: %v; none with --rounds)", fullTime, quickTime))
	f.DurationVar(&o.Measure, "measure", measureTime, fmt.Sprintf("for how long each contender is measured in a round, after a warm-up of 1/%d of it; 0: only while it sells out, or whatever else ends a run (configurations with faults: always)", warmUpPart))
	f.BoolVar(&o.Quick, "quick", false, "fewer contenders and rounds: at most a minute for a comparison without other flags")
	limits.Compare.Bind(f)
}

// complete fills in what nobody said, and refuses what makes no sense.
func (o *Options) complete() error {
	set := o.flags.Changed
	if o.FaultsOnly && len(o.Faults) == 0 {
		return errors.New("--faults-only leaves out the configuration without faults, and there is no other: add a --fault")
	}
	if err := campaign.WellNamed(o.Locks, set("lock")); err != nil {
		return err
	}
	rounds, limit := fullRounds, fullTime
	if o.Quick {
		rounds, limit = quickRounds, quickTime
	}
	switch {
	case set("rounds") && !set("time") && !o.Quick:
	case !set("time"):
		o.Time = limit
	}
	if !set("rounds") && !set("time") {
		o.Rounds = rounds
	}
	return nil
}

// faultSets are the faults of each configuration: none, and then what each --fault
// says.
func (o *Options) faultSets() (sets [][]string, err error) {
	if !o.FaultsOnly {
		sets = append(sets, nil)
	}
	for _, text := range o.Faults {
		var set []string
		for sentence := range strings.SplitSeq(text, ";") {
			if strings.TrimSpace(sentence) == "" {
				return nil, fmt.Errorf("--fault %q has an empty sentence: write one, or several separated by ; (see: oversell list faults)", text)
			}
			set = append(set, strings.TrimSpace(sentence))
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// outlives reports whether a configuration is added in which a section outlives its lease.
func (o *Options) outlives() bool {
	return !o.Plain && len(o.Faults) == 0 && !o.flags.Changed("ttl") && !o.flags.Changed("hold")
}

// several is the value of a flag that takes one value, made to take more of them,
// separated by commas or by giving the flag again. Each is checked by the flag's own.
type several struct {
	pflag.Value
	name   string
	values []string
	split  func(string) []string
}

// takeSeveral lets a flag take several values.
func takeSeveral(f *pflag.Flag) *several {
	s := &several{Value: f.Value, name: f.Name, split: func(text string) []string { return strings.Split(text, ",") }}
	f.Value = s
	if f.DefValue == "0s" {
		f.DefValue = "0" // for which no default is shown
	}
	return s
}

// splitTargets leaves an address whole: the commas in one separate its servers.
func splitTargets(text string) []string {
	if strings.Contains(text, "://") {
		return []string{text}
	}
	return strings.Split(text, ",")
}

// Set implements pflag.Value.
func (s *several) Set(text string) error {
	for _, part := range s.split(text) {
		part = strings.TrimSpace(part)
		if part == "" {
			return errors.New("an empty value: give one, or several separated by commas")
		}
		if err := s.Value.Set(part); err != nil {
			if part != text {
				return fmt.Errorf("%s %w", printable.Word(part), err)
			}
			return err
		}
		if part = s.Value.String(); slices.Contains(s.values, part) {
			return fmt.Errorf("%s is given twice", part)
		}
		s.values = append(s.values, part)
	}
	return nil
}

// String implements pflag.Value.
func (s *several) String() string {
	if len(s.values) > 0 {
		return strings.Join(s.values, ",")
	}
	if s.Value == nil {
		return ""
	}
	return s.Value.String()
}

// Type implements pflag.Value.
func (s *several) Type() string { return strings.TrimSuffix(s.Value.Type(), "64") + "s" }

// sweeps reports whether the flag makes configurations.
func (s *several) sweeps() bool { return len(s.values) > 1 }

// setting is one value of a flag, as on a command line.
func (s *several) setting(value string) string { return "--" + s.name + "=" + value }

// names are the values of a flag that names variants; one empty name if there are none.
func (s *several) names() []string {
	if len(s.values) == 0 {
		return []string{""}
	}
	return s.values
}

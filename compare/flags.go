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

// Options are the settings of a comparison: the options of a run, several of which may have more than one value.
//
// Several names of a variant make contenders; several faults, or values of a number or a duration, make
// configurations. Do not copy Options after Bind.
type Options struct {
	campaign.Options
	// Rounds and Time limit the rounds: one begins only if it is likely to end within Time. 0 is no limit; at least
	// one round is made.
	Rounds int
	Time   time.Duration
	// Measure is how long a contender is measured in each round, after a warm-up; 0: whole runs are measured.
	Measure time.Duration
	// Quick makes small runs of few contenders, and few rounds.
	Quick bool
	// FaultsOnly leaves out the configuration without faults.
	FaultsOnly bool
	// Plain leaves out the configuration in which a section outlives its lease. It is added unless a fault, a lease
	// or the length of sections was chosen.
	Plain bool
	// Dir holds all output; it is created if it does not exist.
	Dir string

	flags      *pflag.FlagSet
	sales      *several
	queues     *several
	ids        *several
	dispatches *several
	targets    *several
	swept      []*several // in the order of the flags
}

// Defaults of a comparison.
const (
	fullRounds, fullTime   = 10, 5 * time.Minute
	quickRounds, quickTime = 5, 52 * time.Second

	measureTime = time.Second
)

// The added configuration, in which a section outlives its lease, has the shortest lease that every lock can
// express.
const (
	shortLease = time.Second
	outlived   = "slow 1200ms nth 3"
	// outlivedFor is the duration of its runs in a scenario with only a lock: the long section, one lease more, and 300
	// ms.
	outlivedFor = 2500 * time.Millisecond
)

// sweepable are the types of flags for which several values make configurations.
var sweepable = []string{"int", "int64", "float64", "duration"}

// Bind defines the flags of a comparison: those of a run, most of which take several values, and its own. It leaves
// out the flags of an open load, which fix the throughput that a comparison measures.
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
	f.Lookup("lock").Usage = "the lock, or several: a,b (default: every shipped one that is not a control)"
	f.Lookup("fault").Usage = "what to break; each --fault is a configuration beside the one without faults, and several sentences in one, separated by ;, fire together"
	f.BoolVar(&o.FaultsOnly, "faults-only", false, "leave out the configuration without faults")
	f.BoolVar(&o.Plain, "plain", false, fmt.Sprintf("leave out the configuration in which a section outlives its lease (--ttl %v --fault '%s'); it is added only without --fault, --ttl and --hold", shortLease, outlived))
	f.IntVar(&o.Rounds, "rounds", 0, fmt.Sprintf("how often each contender is run in each configuration (default: as many as fit into --time, at most %d; quick: %d)", fullRounds, quickRounds))
	f.DurationVar(&o.Time, "time", 0, fmt.Sprintf("begin no round that would end after this time (default: %v; quick: %v; none with --rounds)", fullTime, quickTime))
	f.DurationVar(&o.Measure, "measure", measureTime, fmt.Sprintf("how long each contender is measured in a round, after a warm-up of 1/%d of that; 0: whole runs are measured (with faults: always)", warmUpPart))
	f.BoolVar(&o.Quick, "quick", false, "fewer contenders and rounds: at most a minute for a comparison without other flags")
	limits.Compare.Bind(f)
}

// complete fills in defaults, and refuses contradictory settings.
func (o *Options) complete() error {
	set := o.flags.Changed
	if o.FaultsOnly && len(o.Faults) == 0 {
		return errors.New("--faults-only leaves no configuration: add a --fault")
	}
	if err := campaign.CheckLockNames(o.Locks, set("lock")); err != nil {
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

// faultSets returns the faults of each configuration: none, and then those of each --fault.
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

// outlives reports whether the configuration in which a section outlives its lease is added.
func (o *Options) outlives() bool {
	return !o.Plain && len(o.Faults) == 0 && !o.flags.Changed("ttl") && !o.flags.Changed("hold")
}

// several makes a flag that takes one value take several, separated by commas or by repeating the flag. The
// original flag checks each value.
type several struct {
	pflag.Value
	name   string
	values []string
	split  func(string) []string
}

// takeSeveral makes a flag take several values.
func takeSeveral(f *pflag.Flag) *several {
	s := &several{Value: f.Value, name: f.Name, split: func(text string) []string { return strings.Split(text, ",") }}
	f.Value = s
	if f.DefValue == "0s" {
		f.DefValue = "0" // so that the usage shows no default
	}
	return s
}

// splitTargets does not split addresses: their commas separate servers.
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
			return errors.New("empty value: give one, or several separated by commas")
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

// setting returns one value of the flag as on a command line.
func (s *several) setting(value string) string { return "--" + s.name + "=" + value }

// names returns the values of a flag that names variants; one empty name if there are none.
func (s *several) names() []string {
	if len(s.values) == 0 {
		return []string{""}
	}
	return s.values
}

package reports

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// ComparisonSchema identifies the format of a Comparison.
const ComparisonSchema = "oversell-comparison/1"

// Outcomes of a contender in a configuration.
const (
	NoViolation = "no-violation" // in no run
	Broke       = "broke"        // a promise was broken in at least one run
	NotSeen     = "not-seen"     // a flaw declares a violation, but none was seen
	// Undecided, Inconclusive in reports, covers all other cases.
	Undecided = Inconclusive
)

// Comparison compares several variants under the same conditions: every contender in every
// configuration, in turns, so that other load on the machine affects all alike.
type Comparison struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	// Waiting is the strategy for waiting for a busy lock, the same for all.
	Waiting string `json:"waiting"`
	Seed    uint64 `json:"seed"`
	// Rounds is the number of rounds, in which every contender ran in every configuration, and Ended why there were
	// no more.
	Rounds int    `json:"rounds"`
	Ended  string `json:"ended"`
	// Work is a noun for what throughput counts, such as "purchases".
	Work string `json:"work"`
	// MeasuredMS is how long contenders are measured in each round, after a warm-up of WarmUpMS; 0: whole runs are
	// measured, as always in configurations with faults.
	WarmUpMS   float64 `json:"warm_up_ms,omitempty"`
	MeasuredMS float64 `json:"measured_ms,omitempty"`
	// Conditions are the common settings, as flags, such as "--stock=500".
	Conditions []string `json:"conditions"`

	Contenders     []Contender     `json:"contenders"`
	Configurations []Configuration `json:"configurations"`
	// Cells are ordered by configuration, then by contender; a contender that cannot run in a configuration has no
	// cell there.
	Cells []ComparisonCell `json:"cells"`
	// Skipped are sentences about what was left out, and why.
	Skipped []string `json:"skipped,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Recommended are the contenders without a violation in any configuration: those that ran in all of them first,
	// and among these the fastest first.
	Recommended []Recommendation `json:"recommended,omitempty"`

	ElapsedMS float64 `json:"elapsed_ms"`
	// Interrupted means that the comparison was stopped early.
	Interrupted bool `json:"interrupted,omitempty"`
	// Command is the command line that repeats the comparison.
	Command string `json:"command"`
}

// Recommendation is a contender without a violation.
type Recommendation struct {
	Contender int `json:"contender"` // index in Contenders
	// Configurations is the number of configurations in which it ran, all without a violation.
	Configurations int `json:"configurations"`
	// Ratio is its cost: its throughput divided by that of the first configuration's Fastest; nil if it did not run
	// there.
	Ratio *Spread `json:"ratio,omitempty"`
}

// Contender is a combination of variants that is compared with others.
type Contender struct {
	Lock     string `json:"lock,omitempty"`
	Sale     string `json:"sale,omitempty"`
	Queue    string `json:"queue,omitempty"`
	IDs      string `json:"ids,omitempty"`
	Dispatch string `json:"dispatch,omitempty"`
}

// Of returns the name of the variant of an object; empty if there is none.
func (c Contender) Of(o variant.Object) string {
	return map[variant.Object]string{variant.Lock: c.Lock, variant.Sale: c.Sale, variant.Queue: c.Queue, variant.IDs: c.IDs, variant.Dispatch: c.Dispatch}[o]
}

// Configuration is everything but the contender: a target, faults, and the values of swept settings.
type Configuration struct {
	Target        string `json:"target"`
	Topology      string `json:"topology,omitempty"` // empty: what each contender needs
	ServerVersion string `json:"server_version"`
	// Faults are sentences of package faults.
	Faults []string `json:"faults,omitempty"`
	// Swept are the values of swept settings, as flags, such as "--clients=100".
	Swept []string `json:"swept,omitempty"`
	// Control is a variant that is known to break, which this configuration must catch; otherwise the configuration
	// has no power.
	Control Control `json:"control"`
	// Fastest is the index of the contender with the highest throughput (geometric mean over all rounds) among
	// those without a violation, to which Ratio refers in every round; -1: there is none.
	Fastest int `json:"fastest"`
}

// Control is a variant known to break, run to see whether the violation is caught.
type Control struct {
	Contender Contender `json:"contender"`
	// Property of Of is what it is known to break.
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
	// Runs is the number of its runs, and Caught the number in which the violation was seen.
	Runs   int `json:"runs"`
	Caught int `json:"caught"`
	// Why describes a violation that was caught or, if none was, what happened instead.
	Why string `json:"why"`
	// Tried are other candidates that were run.
	Tried []string `json:"tried,omitempty"`
}

// Power reports whether the control was caught in at least half of its runs, so that an equally frequent violation
// would hardly stay hidden in all rounds.
func (c Control) Power() bool { return c.Caught > 0 && 2*c.Caught >= c.Runs }

// ComparisonCell is one contender in one configuration, over all rounds.
type ComparisonCell struct {
	Contender     int `json:"contender"`     // index in Contenders
	Configuration int `json:"configuration"` // index in Configurations

	// Outcome is NoViolation, NotSeen, Broke or Undecided; Why explains Undecided.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
	// Expected is the outcome that promises and flaws declare for each run, Pass or Violated, and ExpectedWhy the
	// flaws that lead to it.
	Expected    string   `json:"expected"`
	ExpectedWhy []string `json:"expected_why,omitempty"`
	// KnownToBreak are conditions under which flaws declare violations, and which are not part of the
	// configuration.
	KnownToBreak []history.Untried `json:"known_to_break,omitempty"`
	// Opportunities is the smallest number of opportunities to break of any promise, over all runs; Promises is the
	// number of promises.
	Opportunities int64 `json:"opportunities"`
	Promises      int   `json:"promises"`
	// AsDeclared means that the outcome is as declared.
	AsDeclared bool `json:"as_declared"`
	// Broken are the broken promises, in the order of variant.Properties.
	Broken []BrokenPromise `json:"broken,omitempty"`

	// Runs is the number of runs, and Unclear how many of them decided nothing. A run that decided nothing is
	// repeated once in its round, and counts as unclear only if the repetition decides nothing, too; Repeated
	// counts repetitions.
	Runs     int `json:"runs"`
	Unclear  int `json:"unclear,omitempty"`
	Repeated int `json:"repeated,omitempty"`
	// Rounds are the individual runs.
	Rounds []ComparedRun `json:"rounds"`
	// Throughput is operations of useful work per second (purchases if there is a sale, otherwise acquisitions,
	// deliveries or numbers), over the rounds.
	Throughput Spread `json:"throughput_per_s"`
	// Ratio is the throughput divided by that of the configuration's Fastest in the same round, over the rounds;
	// nil if there is none.
	Ratio *Spread `json:"ratio,omitempty"`
	// Estimate is the ratio that is printed and sorted by, with an interval.
	Estimate *RatioEstimate `json:"estimate,omitempty"`
	// Rank is the place among the contenders without a violation, from 1; 0: none. Tied contenders share a rank,
	// because their intervals overlap; their order is unknown.
	Rank int  `json:"rank,omitempty"`
	Tied bool `json:"tied,omitempty"`
	// Latency is by kind of operation, over all rounds.
	Latency map[string]Latency `json:"latency"`
	// Uncontended is the same for a single client, without faults.
	Uncontended map[string]Latency `json:"uncontended"`
	// Request is the latency of the work as clients see it: from asking for the lock, if there is one, to the
	// result; nil if no client got a result. RequestAlone is the same for a single client.
	Request      *Latency `json:"request,omitempty"`
	RequestAlone *Latency `json:"request_alone,omitempty"`
	// Curve is the distribution of Request.
	Curve []Quantile `json:"curve,omitempty"`
	// CommandsPerAcquisition is the number of commands of all clients, including waiting ones, divided by the
	// number of grants; 0: there was no grant.
	CommandsPerAcquisition float64 `json:"commands_per_acquisition,omitempty"`
	// CommandsPerWork is the same per piece of work; 0: none was done.
	CommandsPerWork float64 `json:"commands_per_work,omitempty"`
	// Fairness is the median of Jain's index, LongestWaitMS the longest wait for the lock in any round; 0: there is
	// no lock.
	Fairness      float64 `json:"fairness"`
	LongestWaitMS float64 `json:"longest_wait_ms"`
	// Sold are the pieces sold of Stock, over the rounds; nil without a sale.
	Sold  *Spread `json:"sold,omitempty"`
	Stock int64   `json:"stock,omitempty"`
	// Faults are the injections of each fault, summed over the rounds.
	Faults []Fault `json:"faults,omitempty"`
	// Dirs are the run directories, relative to the comparison's.
	Dirs []string `json:"dirs"`
}

// ComparedRun is one run of a contender in a configuration.
type ComparedRun struct {
	Round int `json:"round"` // from 1
	// Verdict is the verdict of the run, and Why the reason if it is inconclusive.
	Verdict    string  `json:"verdict"`
	Why        string  `json:"why,omitempty"`
	Throughput float64 `json:"throughput_per_s"`
	Seed       uint64  `json:"seed"`
	Dir        string  `json:"dir"`
	// Interrupted means that the run was stopped early: its throughput covers only a part of it, and is not
	// compared.
	Interrupted bool `json:"interrupted,omitempty"`
	// Measured means that this run counts for the contender's speed and latency. Other runs only test promises.
	Measured bool `json:"measured,omitempty"`
}

// Quantile is a point of a distribution: this percentage of the values is at most this many milliseconds.
type Quantile struct {
	Percent float64 `json:"percent"`
	MS      float64 `json:"ms"`
}

// BrokenPromise is a promise that a contender broke.
type BrokenPromise struct {
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
	// Runs is the number of runs with a violation, and Count the number of violations in all runs.
	Runs  int `json:"runs"`
	Count int `json:"count"`
	// Unit names what Count counts; see [Property]. It is empty if the runs differ in it.
	Unit string `json:"unit,omitempty"`
	// SoonestMS and MedianMS are when the first violation was seen, since the start of the run: in the run in which
	// that was soonest, and in the median of the runs.
	SoonestMS float64 `json:"soonest_ms"`
	MedianMS  float64 `json:"median_ms"`
	// Why describes the first violation.
	Why string `json:"why"`
	// Alone means that the promise was broken only in the runs for the uncontended latency; Runs then counts those
	// runs.
	Alone bool `json:"alone,omitempty"`
}

// Spread summarizes a measure over several rounds.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// RatioEstimate is an estimate of a ratio from several rounds.
type RatioEstimate struct {
	// Ratio is the geometric mean.
	Ratio float64 `json:"ratio"`
	// Low and High bound the ratio of as many further rounds, in 95 of 100 cases; nil if there are too few rounds
	// to say.
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Rounds int      `json:"rounds"`
}

// bySpeed sorts by the printed ratio, the fastest first; cells without a ratio come last, by throughput.
func bySpeed(a, b ComparisonCell) int {
	speed := func(x ComparisonCell) (ratio, throughput float64) {
		if x.Estimate != nil {
			return x.Estimate.Ratio, 0
		}
		return -1, x.Throughput.Median
	}
	ra, ta := speed(a)
	rb, tb := speed(b)
	return cmp.Or(cmp.Compare(rb, ra), cmp.Compare(tb, ta))
}

// String names the variants of a contender, the lock first.
func (c Contender) String() string {
	var names []string
	for _, name := range []string{c.Lock, c.Queue, c.Sale, c.IDs, c.Dispatch} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " + ")
}

// String describes a configuration in one line: the target, the swept settings, and the faults.
func (f Configuration) String() string {
	s := f.Target
	if f.ServerVersion != "" {
		s += " " + f.ServerVersion
	}
	if f.Topology != "" {
		s += ", " + f.Topology
	}
	for _, v := range f.Swept {
		s += ", " + v
	}
	switch len(f.Faults) {
	case 0:
		return s + ", no fault"
	case 1:
		return s + ", fault: " + f.Faults[0]
	}
	return s + ", faults: " + strings.Join(f.Faults, "; ")
}

// In returns the cells of a configuration, by its index, in the order of a table: those without a violation, then
// those that broke, then undecided ones, each the fastest first.
func (c Comparison) In(configuration int) []ComparisonCell {
	var cells []ComparisonCell
	for _, x := range c.Cells {
		if x.Configuration == configuration {
			cells = append(cells, x)
		}
	}
	rank := []string{NoViolation, NotSeen, Broke, Undecided}
	slices.SortStableFunc(cells, func(a, b ComparisonCell) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.Outcome), slices.Index(rank, b.Outcome)), bySpeed(a, b))
	})
	return cells
}

// Recommend returns the contenders without a violation.
func (c Comparison) Recommend() (all []Recommendation) {
	for i := range c.Contenders {
		r := Recommendation{Contender: i}
		clean := true
		for _, x := range c.Cells {
			if x.Contender != i {
				continue
			}
			clean = clean && x.Outcome == NoViolation
			r.Configurations++
			if x.Configuration == 0 {
				r.Ratio = x.Ratio
			}
		}
		if clean && r.Configurations > 0 {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Recommendation) int {
		return cmp.Or(b.Configurations-a.Configurations, bySpeed(c.first(a.Contender), c.first(b.Contender)))
	})
	return all
}

// first returns the contender's cell in the first configuration; an empty one if it did not run there.
func (c Comparison) first(contender int) (cell ComparisonCell) {
	if i := slices.IndexFunc(c.Cells, func(x ComparisonCell) bool { return x.Configuration == 0 && x.Contender == contender }); i >= 0 {
		cell = c.Cells[i]
	}
	return cell
}

// Surprises returns the cells with a decided outcome other than the declared one.
func (c Comparison) Surprises() (cells []ComparisonCell) {
	for _, x := range c.Cells {
		if x.Outcome != Undecided && !x.AsDeclared {
			cells = append(cells, x)
		}
	}
	return cells
}

// RelativeTo returns the comparison with its run directories relative to a place from which the path away, with slashes,
// leads to the comparison's directory.
func (c Comparison) RelativeTo(away string) Comparison {
	cells := slices.Clone(c.Cells)
	for i := range cells {
		cells[i].Dirs = slices.Clone(cells[i].Dirs)
		for j, dir := range cells[i].Dirs {
			cells[i].Dirs[j] = path.Join(away, dir)
		}
	}
	c.Cells = cells
	return c
}

// ExitCode returns the process's exit code for this comparison: ExitPass if every outcome is as declared and every
// control was caught.
func (c Comparison) ExitCode() int {
	code := ExitPass
	for _, f := range c.Configurations {
		if !f.Control.Power() {
			code = ExitInconclusive
		}
	}
	for _, x := range c.Cells {
		switch {
		case x.AsDeclared:
		case x.Outcome == Undecided:
			code = ExitInconclusive
		default:
			return ExitViolated
		}
	}
	if c.Interrupted || len(c.Cells) == 0 {
		return ExitInconclusive
	}
	return code
}

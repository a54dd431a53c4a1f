package reports

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// ComparisonSchema names the form of a Comparison.
const ComparisonSchema = "oversell-comparison/1"

// The outcomes of a contender in a configuration.
const (
	NoViolation = "no-violation" // none was seen in any run
	Broke       = "broke"        // a promise was broken in at least one run
	NotSeen     = "not-seen"     // a flaw declares that a promise breaks, and none was seen to
	// Undecided, Inconclusive in reports, is everything else.
	Undecided = Inconclusive
)

// Comparison compares several variants under the same conditions: every contender in every
// configuration, in turns, so that other load on the machine affects all alike.
type Comparison struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	// Waiting is how clients wait for a busy lock, the same for all.
	Waiting string `json:"waiting"`
	Seed    uint64 `json:"seed"`
	// Rounds is how often every contender was run in every configuration, and Ended
	// says why there were no more.
	Rounds int    `json:"rounds"`
	Ended  string `json:"ended"`
	// Work is a word for what throughput counts, such as "purchases".
	Work string `json:"work"`
	// MeasuredMS is for how long contenders are measured in each round, after a warm-up of
	// WarmUpMS; 0: runs are measured as they are. Configurations with faults have no such runs.
	WarmUpMS   float64 `json:"warm_up_ms,omitempty"`
	MeasuredMS float64 `json:"measured_ms,omitempty"`
	// Conditions are the settings that all share, as flags, such as "--stock=500".
	Conditions []string `json:"conditions"`

	Contenders     []Contender     `json:"contenders"`
	Configurations []Configuration `json:"configurations"`
	// Cells are in the order of the configurations, and in each in that of the
	// contenders; what cannot run in a configuration has no cell there.
	Cells []ComparisonCell `json:"cells"`
	// Skipped are sentences that tell what was left out, and why.
	Skipped []string `json:"skipped,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Recommended are the contenders without a violation in any configuration, those
	// that ran in all of them first, and of these the fastest first.
	Recommended []Recommendation `json:"recommended,omitempty"`

	ElapsedMS float64 `json:"elapsed_ms"`
	// Interrupted says that the comparison was stopped before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Command is the command line that makes this comparison again.
	Command string `json:"command"`
}

// Recommendation is a contender that broke nothing.
type Recommendation struct {
	Contender int `json:"contender"` // index in Contenders
	// Configurations is in how many no violation was seen: in all in which it ran.
	Configurations int `json:"configurations"`
	// Ratio is what it costs: its throughput by that of the Fastest of the first
	// configuration; nil if it did not run there.
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

// Configuration is what surrounds the contenders: a target, faults, and the values
// of the swept settings.
type Configuration struct {
	Target        string `json:"target"`
	Topology      string `json:"topology,omitempty"` // empty: what each contender needs
	ServerVersion string `json:"server_version"`
	// Faults are sentences of package faults.
	Faults []string `json:"faults,omitempty"`
	// Swept are the swept settings, as flags, such as "--clients=100".
	Swept []string `json:"swept,omitempty"`
	// Control is a run, or several, of something that is known to be broken, which
	// this configuration must catch; if it does not, it has no power.
	Control Control `json:"control"`
	// Fastest is the index of the contender with the highest throughput over all rounds (the
	// geometric mean) of those without a violation, to which Ratio refers in every round; -1:
	// there is none.
	Fastest int `json:"fastest"`
}

// Control is something known to be broken, run to see whether that shows.
type Control struct {
	Contender Contender `json:"contender"`
	// Property of Of is what it is known to break.
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
	// Runs is how often it was run, and Caught in how many of them it showed.
	Runs   int `json:"runs"`
	Caught int `json:"caught"`
	// Why tells of one that was caught or, if none was, what happened instead.
	Why string `json:"why"`
	// Tried are others that were run to find something that is caught more often.
	Tried []string `json:"tried,omitempty"`
}

// Power reports whether the control was caught: in half of its runs at the least, so
// that what breaks as readily would hardly have stayed hidden from all rounds.
func (c Control) Power() bool { return c.Caught > 0 && 2*c.Caught >= c.Runs }

// ComparisonCell is one contender in one configuration, over all rounds.
type ComparisonCell struct {
	Contender     int `json:"contender"`     // index in Contenders
	Configuration int `json:"configuration"` // index in Configurations

	// Outcome is NoViolation, NotSeen, Broke or Undecided; Why says what made it undecided.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
	// Expected is the outcome that promises and flaws declare for each run, Pass or
	// Violated, and ExpectedWhy the flaws that lead there.
	Expected    string   `json:"expected"`
	ExpectedWhy []string `json:"expected_why,omitempty"`
	// KnownToBreak are conditions under which flaws declare that promises break, and
	// which the configuration does not bring.
	KnownToBreak []history.Untried `json:"known_to_break,omitempty"`
	// Opportunities is how often the promise that had the fewest opportunities to break
	// could have broken, over all runs; Promises is how many promises there are.
	Opportunities int64 `json:"opportunities"`
	Promises      int   `json:"promises"`
	// AsDeclared says that the outcome is the declared one.
	AsDeclared bool `json:"as_declared"`
	// Broken are the promises that were broken, in the order of variant.Properties.
	Broken []BrokenPromise `json:"broken,omitempty"`

	// Runs is how many were made, and Unclear how many of them decided nothing. One
	// that decided nothing was made once more in its round, and only then counts as
	// one; Repeated is how often that was.
	Runs     int `json:"runs"`
	Unclear  int `json:"unclear,omitempty"`
	Repeated int `json:"repeated,omitempty"`
	// Rounds are the runs one by one.
	Rounds []ComparedRun `json:"rounds"`
	// Throughput is in operations a second of useful work (purchases where there is
	// a sale, otherwise acquisitions, deliveries or numbers), over the rounds.
	Throughput Spread `json:"throughput_per_s"`
	// Ratio is the throughput by that of the configuration's Fastest in the same round, over
	// the rounds; nil if there is none.
	Ratio *Spread `json:"ratio,omitempty"`
	// Estimate is the same as it is printed and sorted by, with an interval.
	Estimate *RatioEstimate `json:"estimate,omitempty"`
	// Rank is the place among the contenders without a violation, from 1; 0: it has none. Tied
	// ones have the same, because their intervals overlap, and their order is not told.
	Rank int  `json:"rank,omitempty"`
	Tied bool `json:"tied,omitempty"`
	// Latency is per kind of operation, of all rounds together.
	Latency map[string]Latency `json:"latency"`
	// Uncontended is the same for one client alone, without faults.
	Uncontended map[string]Latency `json:"uncontended"`
	// Request is the latency of the work as its client feels it, from when it asked
	// for the lock, if there is one, until it had what it came for; nil if nobody got
	// anything. RequestAlone is the same for one client alone.
	Request      *Latency `json:"request,omitempty"`
	RequestAlone *Latency `json:"request_alone,omitempty"`
	// Curve is the distribution of Request.
	Curve []Quantile `json:"curve,omitempty"`
	// CommandsPerAcquisition counts what all clients sent, those who waited
	// included, by how often the lock was obtained; 0: nobody obtained it.
	CommandsPerAcquisition float64 `json:"commands_per_acquisition,omitempty"`
	// CommandsPerWork is the same by pieces of work; 0: none was done.
	CommandsPerWork float64 `json:"commands_per_work,omitempty"`
	// Fairness is the median of Jain's index, LongestWaitMS the longest that anybody
	// waited for the lock in any round; 0: there is no lock.
	Fairness      float64 `json:"fairness"`
	LongestWaitMS float64 `json:"longest_wait_ms"`
	// Sold are the pieces sold, over the rounds, of a stock of Stock; nil without a sale.
	Sold  *Spread `json:"sold,omitempty"`
	Stock int64   `json:"stock,omitempty"`
	// Faults are what became of the faults, summed over the rounds.
	Faults []Fault `json:"faults,omitempty"`
	// Dirs are the run directories, for a closer look, relative to the comparison's.
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
	// Interrupted says that the run was stopped before its end: its throughput covers only a
	// part of it, and is not compared.
	Interrupted bool `json:"interrupted,omitempty"`
	// Measured says that speed and latency of the contender are those of this run. Another one
	// shows only whether promises are kept.
	Measured bool `json:"measured,omitempty"`
}

// Quantile is a point of a distribution: this share of the values, in percent, is
// this many milliseconds or less.
type Quantile struct {
	Percent float64 `json:"percent"`
	MS      float64 `json:"ms"`
}

// BrokenPromise is a promise that a contender broke.
type BrokenPromise struct {
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
	// Runs is in how many of the runs, and Count how often in all of them.
	Runs  int `json:"runs"`
	Count int `json:"count"`
	// SoonestMS and MedianMS are when it was first seen broken, since the start of
	// the run: in the run in which that was soonest, and in the median of the runs.
	SoonestMS float64 `json:"soonest_ms"`
	MedianMS  float64 `json:"median_ms"`
	// Why tells of the first one in a sentence.
	Why string `json:"why"`
	// Alone says that the promise was broken only in the runs for the uncontended latency;
	// Runs then counts those runs.
	Alone bool `json:"alone,omitempty"`
}

// Spread is a measure over several rounds.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// RatioEstimate is a ratio by several rounds.
type RatioEstimate struct {
	// Ratio is the geometric mean.
	Ratio float64 `json:"ratio"`
	// Low and High are where a comparison of as many further rounds would have it, in 95 of
	// 100 cases; nil if there are too few rounds to say.
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Rounds int      `json:"rounds"`
}

// bySpeed sorts the fastest first, by the printed ratio; those without one, by throughput, last.
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

// String is a configuration in a line: the target, what is swept, and the faults.
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

// In are the cells of a configuration, by its index, in the order of a table: those
// without a violation, then those that broke, then the undecided, the fastest first.
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

// Recommend lists the contenders without a violation.
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
	speed := func(r Recommendation) float64 {
		if r.Ratio == nil {
			return 0
		}
		return r.Ratio.Median
	}
	slices.SortStableFunc(all, func(a, b Recommendation) int {
		return cmp.Or(b.Configurations-a.Configurations, cmp.Compare(speed(b), speed(a)))
	})
	return all
}

// Surprises are the cells with a decided outcome other than the declared one.
func (c Comparison) Surprises() (cells []ComparisonCell) {
	for _, x := range c.Cells {
		if x.Outcome != Undecided && !x.AsDeclared {
			cells = append(cells, x)
		}
	}
	return cells
}

// From is the comparison with its run directories as they are named in a place from which
// this path, with slashes, leads to the comparison's own directory.
func (c Comparison) From(away string) Comparison {
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

// ExitCode is the process's exit code for this comparison: ExitPass when every
// outcome is the declared one and every control was caught.
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

package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String describes a control in one line.
func (c Control) String() string {
	switch {
	case c.Runs == 0:
		return "control: none; " + c.Why + ". So no outcome here has evidence."
	case c.Power():
		return fmt.Sprintf("control: %s broke %s in %d of %s to the end", c.Contender, c.Property, c.Caught, Count(int64(c.Runs), "run"))
	}
	return fmt.Sprintf("control: NOT CAUGHT: %s is known to break %s and did so in %d of %s (%s). So the absence of violations in this configuration is inconclusive.",
		c.Contender, c.Property, c.Caught, Count(int64(c.Runs), "run"), strings.TrimSuffix(c.Why, "."))
}

// OutcomeWords maps outcomes to words.
var OutcomeWords = map[string]string{NoViolation: "no violation", NotSeen: "declared, not seen", Broke: "broke", Undecided: "inconclusive"}

// Words describes the outcome, with the number of opportunities without a violation.
func (x ComparisonCell) Words() string {
	s := OutcomeWords[x.Outcome]
	if x.Outcome == NoViolation && x.Opportunities > 0 {
		s += " in " + Thousands(x.Opportunities)
	}
	return s
}

// Seen describes what an outcome without a violation is based on.
func (x ComparisonCell) Seen() string {
	return seen(x.Opportunities, x.Promises > 1, x.KnownToBreak)
}

// mostRecommended is the maximum number of contenders in a recommendation.
const mostRecommended = 5

// Recommendation names the contenders without a violation in any configuration, and their costs; empty if nothing
// was compared.
func (c Comparison) Recommendation() string {
	if len(c.Cells) == 0 {
		return ""
	}
	s := c.Choice() + "."
	if len(c.Recommended) == 0 {
		return s
	}
	if slices.ContainsFunc(c.fastestFirst(), func(x recommended) bool { return x.cell.Tied }) {
		s += " The rounds are too few to order those marked =."
	}
	return s + " Untried conditions that are known to break them are listed below each table."
}

// Rate formats the throughput. It returns the empty string if there is none: no round was complete. Then Throughput is zero
// though a round has one, or there is no round.
func (x ComparisonCell) Rate() string {
	worked := slices.ContainsFunc(x.Rounds, func(r ComparedRun) bool { return r.Throughput > 0 })
	if x.Throughput.Median == 0 && (worked || len(x.Rounds) == 0) {
		return ""
	}
	return Rate(x.Throughput.Median)
}

// Choice names the contenders to choose from: those without a violation in any configuration, the fastest first,
// with their costs.
func (c Comparison) Choice() string {
	all := c.fastestFirst()
	if len(all) == 0 {
		return "No contender was without a violation in every configuration"
	}
	var names []string
	for i, x := range all {
		if i == mostRecommended {
			names = append(names, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		names = append(names, x.words(c))
	}
	return "No violation seen in any configuration, fastest first: " + strings.Join(names, ", ")
}

// recommended is a contender without a violation, with its cell in the first configuration, if it ran there.
type recommended struct {
	Recommendation
	cell ComparisonCell
}

// fastestFirst returns the contenders without a violation, by their speed in the first configuration.
func (c Comparison) fastestFirst() (all []recommended) {
	for _, r := range c.Recommended {
		all = append(all, recommended{r, c.first(r.Contender)})
	}
	slices.SortStableFunc(all, func(a, b recommended) int { return bySpeed(a.cell, b.cell) })
	return all
}

// words names the contender, with its speed, and in how many configurations it ran if not in all.
func (r recommended) words(c Comparison) string {
	var told []string
	if x := r.cell; x.Estimate != nil {
		mark := ""
		if x.Tied {
			mark = "="
		}
		told = append(told, mark+Figures3(x.Estimate.Ratio)+"×")
	}
	if r.Configurations < len(c.Configurations) {
		told = append(told, fmt.Sprintf("runs in %d of %d configurations", r.Configurations, len(c.Configurations)))
	}
	name := c.Contenders[r.Contender].String()
	if told != nil {
		name += " (" + strings.Join(told, ", ") + ")"
	}
	return name
}

// Place returns the rank of a cell, with = if it is shared; empty: none.
func (x ComparisonCell) Place() string {
	switch {
	case x.Rank == 0:
		return ""
	case x.Tied:
		return fmt.Sprintf("%d=", x.Rank)
	}
	return strconv.Itoa(x.Rank)
}

// Words formats the ratio and its interval: "1.32× (1.21–1.45)".
func (e RatioEstimate) Words() string {
	s := Figures3(e.Ratio) + "×"
	if e.Low != nil && e.High != nil && *e.Low != *e.High {
		s += " (" + Figures3(*e.Low) + "–" + Figures3(*e.High) + ")"
	}
	return s
}

// Explanation explains a figure of a comparison.
type Explanation struct {
	Column string // on a terminal; may be empty
	Name   string // on a page
	Means  string
}

// Explanations returns the explanations of all figures.
func (c Comparison) Explanations() []Explanation {
	return []Explanation{
		{"OUTCOME", "outcome", "no violation in N: each promise had at least N opportunities to break in all runs together, and broke in none; with 95 % confidence, it then breaks in less than 3 in N under these conditions"},
		{"", "known to break under", "conditions under which flaws declare a violation, and which were not part of this configuration"},
		{"#", "rank", "the place by the ratio; = marks intervals that overlap, so that the order is unknown"},
		{"RATIO", "throughput", "throughput relative to the fastest contender without a violation over all rounds, whose ratio is 1: the geometric mean of the ratios in each round, and in parentheses the 95 % prediction interval for as many further rounds; the speed of a contender that broke promises counts for nothing"},
		{"LATENCY", "latency", "from asking for the lock, if there is one, until the client had its result, was refused, gave up, or the time was up; over all clients and rounds"},
		{"ALONE", "alone", "the latency of a single client"},
		{"CMDS", "commands", "commands of all clients, including waiting ones, for each grant of the lock or (each) for each of the " + c.Work},
		{"FAIR", "fairness", "Jain's index over the clients' grants, 1 = all had equally many"},
		{"LONGEST", "longest wait", "the longest wait for the lock"},
	}
}

// Measurement says which part of the runs is measured; empty if all of it is.
func (c Comparison) Measurement() string {
	if c.MeasuredMS == 0 || !slices.ContainsFunc(c.Configurations, func(f Configuration) bool { return len(f.Faults) == 0 }) {
		return ""
	}
	return fmt.Sprintf("Without faults, speed and latency are of %s in each round, after %s of warm-up, in runs of their own. Violations in these runs count, but the control must be caught only in the runs that end by themselves.", Seconds(c.MeasuredMS), Seconds(c.WarmUpMS))
}

// ByWork reports whether commands are counted per piece of work, because some contenders need no lock.
func ByWork(cells []ComparisonCell) bool {
	return slices.ContainsFunc(cells, func(x ComparisonCell) bool { return x.CommandsPerAcquisition == 0 && x.CommandsPerWork > 0 })
}

// Sum summarizes the outcomes.
func (c Comparison) Sum() string {
	n := map[string]int{}
	for _, x := range c.Cells {
		n[x.Outcome]++
	}
	s := fmt.Sprintf("%d without a violation, %d broke, %d inconclusive", n[NoViolation], n[Broke], n[Undecided])
	if n[NotSeen] > 0 {
		s = fmt.Sprintf("%d without a violation, %d broke, %d declared but not seen, %d inconclusive", n[NoViolation], n[Broke], n[NotSeen], n[Undecided])
	}
	blind := 0
	for _, f := range c.Configurations {
		if !f.Control.Power() {
			blind++
		}
	}
	switch surprises := len(c.Surprises()); {
	case surprises > 0:
		s += fmt.Sprintf("; %d not as declared (marked with !)", surprises)
	case n[NoViolation]+n[Broke] > 0:
		s += "; every decided outcome is as promises and flaws declare"
	}
	if c.Interrupted {
		s += "; stopped before its end"
	}
	if blind > 0 {
		s += fmt.Sprintf("; the control was not caught in %d of %s", blind, Count(int64(len(c.Configurations)), "configuration"))
	}
	return s
}

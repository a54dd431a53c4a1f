package reports

import (
	"fmt"
	"slices"
	"strings"
)

// String tells of a control in a line.
func (c Control) String() string {
	switch {
	case c.Runs == 0:
		return "control: none; " + c.Why + ". So no outcome here rests on anything."
	case c.Power():
		return fmt.Sprintf("control: %s broke %s in %d of %s", c.Contender, c.Property, c.Caught, Count(int64(c.Runs), "run"))
	}
	return fmt.Sprintf("control: NOT CAUGHT: %s is known to break %s and did so in %d of %s (%s). This configuration shows too little, and what broke nothing in it is inconclusive.",
		c.Contender, c.Property, c.Caught, Count(int64(c.Runs), "run"), strings.TrimSuffix(c.Why, "."))
}

// OutcomeWords are outcomes in words.
var OutcomeWords = map[string]string{NoViolation: "no violation", NotSeen: "declared, not seen", Broke: "broke", Undecided: "inconclusive"}

// Words are the outcome, and in how many opportunities nothing broke.
func (x ComparisonCell) Words() string {
	s := OutcomeWords[x.Outcome]
	if x.Outcome == NoViolation && x.Opportunities > 0 {
		s += " in " + Thousands(x.Opportunities)
	}
	return s
}

// Seen is what an outcome without a violation rests on.
func (x ComparisonCell) Seen() string {
	return seen(x.Opportunities, x.Promises > 1, x.KnownToBreak)
}

// mostRecommended is how many contenders a recommendation names.
const mostRecommended = 5

// Recommendation says which contenders had no violation in any configuration, and what
// they cost; empty if nothing was compared.
func (c Comparison) Recommendation() string {
	if len(c.Cells) == 0 {
		return ""
	}
	whole, part := c.recommended(func(r Recommendation) bool { return r.Configurations == len(c.Configurations) }), c.recommended(func(r Recommendation) bool { return r.Configurations < len(c.Configurations) })
	s := "No contender was without a violation in every configuration."
	if whole != "" {
		s = fmt.Sprintf("No violation in any configuration (%d of %d): %s.", len(c.Configurations), len(c.Configurations), whole)
	}
	if part != "" {
		s += " No violation, but not run in every configuration: " + part + "."
	}
	if whole+part == "" {
		return s
	}
	return s + " What is known to break them and was not tried stands beside them."
}

// recommended names those that fit, with what they cost.
func (c Comparison) recommended(fits func(Recommendation) bool) string {
	var names []string
	more := 0
	for _, r := range c.Recommended {
		if !fits(r) {
			continue
		}
		if len(names) == mostRecommended {
			more++
			continue
		}
		name := c.Contenders[r.Contender].String()
		if r.Ratio != nil {
			name += " (" + Figures3(r.Ratio.Median) + " of the fastest)"
		}
		names = append(names, name)
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Explanation is what a figure of a comparison means.
type Explanation struct {
	Column string // on a terminal
	Name   string // on a page
	Means  string
}

// Explanations are those of all figures.
func (c Comparison) Explanations() []Explanation {
	return []Explanation{
		{"OUTCOME", "outcome", "no violation in N: of each promise at least N opportunities to break were seen in all runs together, and it broke in none; below 3 in N is then, to 95 %, how often it breaks under these conditions"},
		{"KNOWN TO BREAK UNDER", "known to break under", "what flaws declare to break a promise here and this configuration did not bring"},
		{"RATIO", "throughput", "throughput by that of the fastest without a violation in the same round, the median and the range over the rounds; where promises were broken it is speed without what it is for"},
		{"LATENCY", "latency", "from asking for the lock, if there is one, until the client had what it came for or was refused it, over all requests that ended in all rounds"},
		{"ALONE", "alone", "the latency of one client that has everything to itself"},
		{"CMDS", "commands", "what all clients sent, those who waited included, for each turn that one of them got, or (each) for each of the " + c.Work},
		{"FAIR", "fairness", "Jain's index of who got how many turns, 1 = all equally many"},
		{"LONGEST", "longest wait", "the longest that anybody waited for the lock"},
	}
}

// ByWork tells whether commands are counted by pieces of work: where some contenders
// need no acquisition.
func ByWork(cells []ComparisonCell) bool {
	return slices.ContainsFunc(cells, func(x ComparisonCell) bool { return x.CommandsPerAcquisition == 0 && x.CommandsPerWork > 0 })
}

// Sum counts the outcomes.
func (c Comparison) Sum() string {
	n := map[string]int{}
	for _, x := range c.Cells {
		n[x.Outcome]++
	}
	s := fmt.Sprintf("%d without a violation, %d broke, %d inconclusive", n[NoViolation], n[Broke], n[Undecided])
	if n[NotSeen] > 0 {
		s = fmt.Sprintf("%d without a violation, %d broke, %d declared to and not seen to, %d inconclusive", n[NoViolation], n[Broke], n[NotSeen], n[Undecided])
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
		s += "; every decided outcome is the one that promises and flaws declare"
	}
	if c.Interrupted {
		s += "; stopped before its end"
	}
	if blind > 0 {
		s += fmt.Sprintf("; the control was not caught in %d of %s", blind, Count(int64(len(c.Configurations)), "configuration"))
	}
	return s
}

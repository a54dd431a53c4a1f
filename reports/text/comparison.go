package text

import (
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/reports"
)

// Comparison writes a table for each configuration, with violations and their reasons, and a summary.
func (t Terminal) Comparison(c reports.Comparison) error {
	c = printable.Of(c)
	s := t.sheet()
	s.linef("%s", comparisonTitle(c))
	for i := range c.Configurations {
		configuration(s, c, i)
	}
	s.linef("\n%s", legend(c))
	s.list("Left out", c.Skipped)
	s.list("Notes", c.Notes)
	if r := c.Recommendation(); r != "" {
		s.linef("\n%s", r)
	}
	s.linef("\n%s", c.Sum())
	return t.show(s)
}

// comparisonTitle describes what was compared, and how.
func comparisonTitle(c reports.Comparison) string {
	s := fmt.Sprintf("%s: %s", c.Scenario, reports.Count(int64(len(c.Contenders)), "contender"))
	if n := len(c.Configurations); n != 1 {
		s += fmt.Sprintf(" in %d configurations", n)
	}
	return fmt.Sprintf("%s; %s in %.0f s (%s). All wait by %s; %s; seed %d. %s",
		s, reports.Count(int64(c.Rounds), "round"), c.ElapsedMS/1e3, c.Ended, c.Waiting, strings.Join(c.Conditions, " "), c.Seed, c.Measurement())
}

// configuration writes one table, and what its numbers do not show.
func configuration(s *sheet, c reports.Comparison, i int) {
	f := c.Configurations[i]
	cells := c.In(i)
	if !slices.ContainsFunc(cells, func(x reports.ComparisonCell) bool { return x.Runs > 0 || x.RequestAlone != nil }) {
		s.linef("\n%s\n  No run was completed here before the comparison was stopped.", f)
		return
	}
	s.linef("\n%s\n  %s\n", f, f.Control)
	table[reports.ComparisonCell]{columns: comparedColumns(c, cells)}.write(s, cells)
	notTried(s, c, cells)
	explainBroken(s, c, cells)
	explainUndecided(s, c, cells)
	if len(f.Faults) > 0 {
		s.linef("")
	}
	for _, line := range firedIn(f.Faults, cells) {
		s.linef("  %s", line)
	}
}

// outcomeTone returns the colour of an outcome.
func outcomeTone(x reports.ComparisonCell) tone {
	switch x.Outcome {
	case reports.NoViolation:
		return good
	case reports.Broke:
		return bad
	}
	return unclear
}

// comparedColumns returns all columns of a comparison. If they do not fit, they are left out in this order: the
// commands, the longest wait, the fairness, the latency of a single client, the throughput, the latency, and the
// place.
func comparedColumns(c reports.Comparison, cells []reports.ComparisonCell) []column[reports.ComparisonCell] {
	commands := commandsColumn(cells)
	commands.rank = 7
	return []column[reports.ComparisonCell]{
		{title: "#", rank: 1, blank: true, cell: reports.ComparisonCell.Place},
		{title: "CONTENDER", prose: true, cell: func(x reports.ComparisonCell) string { return c.Contenders[x.Contender].String() }},
		{title: "OUTCOME", prose: true, cell: outcomeCell, tone: outcomeTone},
		{title: "RATIO", unit: "(95 %)", prose: true, cell: ratioCell},
		{title: strings.ToUpper(c.Work), unit: "/s", rank: 3, cell: rateCell},
		{title: "LATENCY ms", unit: "p50/p99/p99.9", rank: 2, cell: func(x reports.ComparisonCell) string { return reports.PercentilesOf(x.Request) }},
		{title: "ALONE", unit: "p50", rank: 4, cell: func(x reports.ComparisonCell) string {
			if x.RequestAlone == nil {
				return ""
			}
			return reports.Short(x.RequestAlone.Call.P50)
		}},
		commands,
		{title: "FAIR", unit: "Jain", rank: 5, cell: func(x reports.ComparisonCell) string { return reports.Positive(x.Fairness, "%.2f") }},
		{title: "LONGEST", unit: "wait ms", rank: 6, cell: func(x reports.ComparisonCell) string {
			if x.LongestWaitMS == 0 {
				return ""
			}
			return reports.Short(x.LongestWaitMS)
		}},
	}
}

func rateCell(x reports.ComparisonCell) string { return x.Rate() }

// commandsColumn returns the commands per acquisition or, if some contenders need none, per piece of work.
func commandsColumn(cells []reports.ComparisonCell) column[reports.ComparisonCell] {
	if reports.ByWork(cells) {
		return column[reports.ComparisonCell]{title: "CMDS", unit: "each", cell: func(x reports.ComparisonCell) string { return reports.Positive(x.CommandsPerWork, "%.1f") }}
	}
	return column[reports.ComparisonCell]{title: "CMDS", unit: "/grant", cell: func(x reports.ComparisonCell) string { return reports.Positive(x.CommandsPerAcquisition, "%.1f") }}
}

// outcomeCell describes the outcome, with the number of runs with a violation; marked if it is not the declared
// one.
func outcomeCell(x reports.ComparisonCell) string {
	s := x.Words()
	if x.Outcome == reports.Broke {
		s = fmt.Sprintf("BROKE %d/%d", violatedRuns(x), x.Runs)
	}
	if x.Outcome != reports.Undecided && !x.AsDeclared {
		s += "!"
	}
	return s
}

// violatedRuns returns the number of runs with a violation.
func violatedRuns(x reports.ComparisonCell) (n int) {
	for _, r := range x.Rounds {
		if r.Verdict == reports.Violated {
			n++
		}
	}
	return n
}

// ratioCell formats the throughput relative to the fastest contender without a violation; in brackets if promises
// were broken.
func ratioCell(x reports.ComparisonCell) string {
	switch {
	case x.Estimate == nil:
		return ""
	case x.Outcome == reports.Broke:
		return "[" + x.Estimate.Words() + "]"
	}
	return x.Estimate.Words()
}

// notTried writes the untried conditions that are known to break contenders without a violation.
func notTried(s *sheet, c reports.Comparison, cells []reports.ComparisonCell) {
	var names []string
	var untried [][]history.Untried
	for _, x := range cells {
		if x.Outcome != reports.Broke {
			names, untried = append(names, c.Contenders[x.Contender].String()), append(untried, x.KnownToBreak)
		}
	}
	s.untried(names, untried)
}

// explainBroken describes the violations: which promises, how often and how soon, and the first one in a sentence.
func explainBroken(s *sheet, c reports.Comparison, cells []reports.ComparisonCell) {
	for _, x := range cells {
		if x.Outcome != reports.Broke {
			continue
		}
		head := c.Contenders[x.Contender].String() + " broke"
		if !x.AsDeclared {
			head += ", THOUGH NO DECLARED FLAW explains it"
		}
		s.linef("\n%s", head)
		for _, p := range x.Broken {
			in := fmt.Sprintf("in %d of %s", p.Runs, reports.Count(int64(x.Runs), "run"))
			if p.Alone {
				in = "in " + reports.Count(int64(p.Runs), "run") + " with the fewest possible clients"
			}
			text := fmt.Sprintf("%s of the %s %s, %s; first after %s ms", p.Property, p.Of, in, strings.TrimPrefix(p.Extent(), ", "), reports.Short(p.SoonestMS))
			if p.Runs > 1 {
				text += fmt.Sprintf(" (median %s)", reports.Short(p.MedianMS))
			}
			s.linef("  %s", text)
		}
		s.linef("    %s.", strings.TrimSuffix(x.Broken[0].Why, "."))
		if x.Why != "" {
			s.linef("  Not as declared: %s.", x.Why)
		}
	}
}

// explainUndecided explains why cells were not decided.
func explainUndecided(s *sheet, c reports.Comparison, cells []reports.ComparisonCell) {
	said := map[string][]string{} // by reason
	var reasons []string
	for _, x := range cells {
		if x.Outcome != reports.Undecided {
			continue
		}
		why := x.Why
		for _, flaw := range x.ExpectedWhy {
			why += "\n  " + flaw
		}
		if said[why] == nil {
			reasons = append(reasons, why)
		}
		said[why] = append(said[why], c.Contenders[x.Contender].String())
	}
	for _, why := range reasons {
		s.linef("\n%s: inconclusive\n  %s", strings.Join(said[why], ", "), why)
	}
}

// firedIn describes how often the faults fired, over all cells of a configuration.
func firedIn(sentences []string, cells []reports.ComparisonCell) (lines []string) {
	for i, sentence := range sentences {
		none, runs := int64(0), 0
		sum := reports.Fault{Holders: &none, Waiters: &none}
		for _, x := range cells {
			runs += x.Runs
			if i < len(x.Faults) {
				sum.Add(x.Faults[i])
			}
		}
		line := fmt.Sprintf("the fault %q fired %s in %s", sentence, reports.Count(sum.Fired, "time"), reports.Count(int64(runs), "run"))
		if n := sum.Holders; n != nil {
			line += fmt.Sprintf(", %s of them at a holder", reports.Thousands(*n))
		}
		lines = append(lines, line)
	}
	return lines
}

// legend explains the columns on a terminal.
func legend(c reports.Comparison) string {
	var sentences []string
	for _, e := range c.Explanations() {
		if e.Column != "" {
			sentences = append(sentences, e.Column+": "+e.Means+".")
		}
	}
	sentences = append(sentences, "[In brackets]: promises were broken.")
	if len(c.Surprises()) > 0 {
		sentences = append(sentences, "!: not the declared outcome.")
	}
	return strings.Join(sentences, " ")
}

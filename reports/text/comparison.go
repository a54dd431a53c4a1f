package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
)

// Comparison writes a table for each configuration, with what broke and why, and the
// sum of it all.
func (t Terminal) Comparison(c reports.Comparison) error {
	c = printable.Of(c)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", comparisonTitle(c))
	for i := range c.Configurations {
		t.configuration(&b, c, i)
	}
	fmt.Fprintf(&b, "\n%s\n", paragraph("", legend(c)))
	list(&b, "Left out", c.Skipped)
	list(&b, "Notes", c.Notes)
	if s := c.Recommendation(); s != "" {
		fmt.Fprintf(&b, "\n%s\n", paragraph("", s))
	}
	fmt.Fprintf(&b, "\n%s\n", paragraph("", c.Sum()))
	_, err := io.WriteString(t.W, b.String())
	return err
}

// comparisonTitle says what was compared, and how.
func comparisonTitle(c reports.Comparison) string {
	s := fmt.Sprintf("%s: %s", c.Scenario, reports.Count(int64(len(c.Contenders)), "contender"))
	if n := len(c.Configurations); n != 1 {
		s += fmt.Sprintf(" in %d configurations", n)
	}
	return paragraph("", fmt.Sprintf("%s; %s in %.0f s (%s). All wait by %s; %s; seed %d.",
		s, reports.Count(int64(c.Rounds), "round"), c.ElapsedMS/1e3, c.Ended, c.Waiting, strings.Join(c.Conditions, " "), c.Seed))
}

// configuration writes one table, and what the numbers in it do not tell.
func (t Terminal) configuration(b *strings.Builder, c reports.Comparison, i int) {
	f := c.Configurations[i]
	cells := c.In(i)
	fmt.Fprintf(b, "\n%s\n", paragraph("", f.String()))
	fmt.Fprintf(b, "%s\n\n", paragraph("  ", f.Control.String()))
	table(t, b, comparedColumns(c, cells), cells, paintOutcome)
	explainBroken(b, c, cells)
	explainUndecided(b, c, cells)
	if len(f.Faults) > 0 {
		fmt.Fprintln(b)
	}
	for _, line := range struckIn(f.Faults, cells) {
		fmt.Fprintf(b, "%s\n", paragraph("  ", line))
	}
}

// paintOutcome colours the outcome in a line of the table.
func paintOutcome(line string) string {
	for _, c := range []struct{ word, color string }{{" no violation", "32"}, {" declared, not seen", "33"}, {" BROKE", "31"}, {" " + reports.Undecided, "33"}} {
		if before, after, ok := strings.Cut(line, c.word); ok && (after == "" || strings.ContainsRune(" !", rune(after[0]))) {
			return before + "\x1b[" + c.color + "m" + c.word + "\x1b[0m" + after
		}
	}
	return line
}

// comparedColumns are those that say something about at least one cell.
func comparedColumns(c reports.Comparison, cells []reports.ComparisonCell) []column[reports.ComparisonCell] {
	all := []column[reports.ComparisonCell]{
		{"CONTENDER", "", func(x reports.ComparisonCell) string { return c.Contenders[x.Contender].String() }},
		{"OUTCOME", "", outcomeCell},
		{strings.ToUpper(c.Work), "/s", rateCell},
		{"RATIO", "(low-high)", ratioCell},
		{"LATENCY ms", "p50/p99/p99.9", func(x reports.ComparisonCell) string { return reports.PercentilesOf(x.Request) }},
		{"ALONE", "p50", func(x reports.ComparisonCell) string {
			if x.RequestAlone == nil {
				return ""
			}
			return reports.Short(x.RequestAlone.Call.P50)
		}},
		commandsColumn(cells),
		{"FAIR", "Jain", func(x reports.ComparisonCell) string { return reports.Positive(x.Fairness, "%.2f") }},
		{"LONGEST", "wait ms", func(x reports.ComparisonCell) string {
			if x.LongestWaitMS == 0 {
				return ""
			}
			return reports.Short(x.LongestWaitMS)
		}},
		{"KNOWN TO BREAK UNDER", "not tried", func(x reports.ComparisonCell) string {
			if x.Outcome == reports.Broke {
				return ""
			}
			return reports.Conditions(x.KnownToBreak)
		}},
	}
	return slices.DeleteFunc(all, func(col column[reports.ComparisonCell]) bool {
		return !slices.ContainsFunc(cells, func(x reports.ComparisonCell) bool { return col.cell(x) != "" })
	})
}

// rateCell is the throughput, a small one to the tenth.
func rateCell(x reports.ComparisonCell) string {
	if r := x.Throughput.Median; r < 9.95 {
		return fmt.Sprintf("%.1f", r)
	}
	return reports.Thousands(int64(x.Throughput.Median + 0.5))
}

// commandsColumn are the commands by acquisitions or, where some need none, by pieces
// of work.
func commandsColumn(cells []reports.ComparisonCell) column[reports.ComparisonCell] {
	if reports.ByWork(cells) {
		return column[reports.ComparisonCell]{"CMDS", "each", func(x reports.ComparisonCell) string { return reports.Positive(x.CommandsPerWork, "%.1f") }}
	}
	return column[reports.ComparisonCell]{"CMDS", "/turn", func(x reports.ComparisonCell) string { return reports.Positive(x.CommandsPerAcquisition, "%.1f") }}
}

// outcomeCell is the outcome in words, and in how many runs it broke; marked when it is not
// the declared one.
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

// violatedRuns is in how many runs a promise was broken.
func violatedRuns(x reports.ComparisonCell) (n int) {
	for _, r := range x.Rounds {
		if r.Verdict == reports.Violated {
			n++
		}
	}
	return n
}

// ratioCell is the throughput by that of the fastest without a violation; in brackets where the
// work was not done as promised.
func ratioCell(x reports.ComparisonCell) string {
	if x.Ratio == nil {
		return ""
	}
	median, spread := reports.Figures3(x.Ratio.Median), ""
	if x.Ratio.Low != x.Ratio.High {
		spread = reports.Figures3(x.Ratio.Low) + "-" + reports.Figures3(x.Ratio.High)
	}
	switch {
	case x.Outcome == reports.Broke:
		return "[" + reports.Joined(" ", median, spread) + "]"
	case spread != "":
		return median + " (" + spread + ")"
	}
	return median
}

// explainBroken tells of what broke: which promises, how often and how soon, and the first
// of them in a sentence.
func explainBroken(b *strings.Builder, c reports.Comparison, cells []reports.ComparisonCell) {
	for _, x := range cells {
		if x.Outcome != reports.Broke {
			continue
		}
		head := c.Contenders[x.Contender].String() + " broke"
		if !x.AsDeclared {
			head += ", THOUGH NO FLAW IS DECLARED that explains it"
		}
		fmt.Fprintf(b, "\n%s\n", head)
		for _, p := range x.Broken {
			in := fmt.Sprintf("in %d of %s", p.Runs, reports.Count(int64(x.Runs), "run"))
			if p.Alone {
				in = "in " + reports.Count(int64(p.Runs), "run") + " with as few clients as can be"
			}
			text := fmt.Sprintf("%s of the %s %s, %s; first after %s ms", p.Property, p.Of, in, strings.TrimPrefix(reports.Extent(p.Count, p.Property), ", "), reports.Short(p.SoonestMS))
			if p.Runs > 1 {
				text += fmt.Sprintf(" (median %s)", reports.Short(p.MedianMS))
			}
			fmt.Fprintf(b, "%s\n", paragraph("  ", text))
		}
		fmt.Fprintf(b, "%s\n", paragraph("    ", strings.TrimSuffix(x.Broken[0].Why, ".")+"."))
		if x.Why != "" {
			fmt.Fprintf(b, "%s\n", paragraph("  ", "Not as declared: "+x.Why+"."))
		}
	}
}

// explainUndecided tells why cells were not decided.
func explainUndecided(b *strings.Builder, c reports.Comparison, cells []reports.ComparisonCell) {
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
		fmt.Fprintf(b, "\n%s\n", paragraph("", strings.Join(said[why], ", ")+": inconclusive"))
		for line := range strings.Lines(why) {
			fmt.Fprintf(b, "%s\n", paragraph("  ", strings.TrimSpace(line)))
		}
	}
}

// struckIn says how often the faults struck, over all cells of a configuration.
func struckIn(sentences []string, cells []reports.ComparisonCell) (lines []string) {
	for i, sentence := range sentences {
		fired, holders, runs := int64(0), int64(0), 0
		for _, x := range cells {
			runs += x.Runs
			if i < len(x.Faults) {
				fired, holders = fired+x.Faults[i].Fired, holders+x.Faults[i].Holders
			}
		}
		lines = append(lines, fmt.Sprintf("the fault %q struck %s in %s, %s of them somebody who held the lock", sentence, reports.Count(fired, "time"), reports.Count(int64(runs), "run"), reports.Thousands(holders)))
	}
	return lines
}

// legend explains the columns on a terminal.
func legend(c reports.Comparison) string {
	var sentences []string
	for _, e := range c.Explanations() {
		sentences = append(sentences, e.Column+": "+e.Means+".")
	}
	sentences = append(sentences, "[In brackets]: promises were broken.")
	if len(c.Surprises()) > 0 {
		sentences = append(sentences, "!: not the declared outcome.")
	}
	return strings.Join(sentences, " ")
}

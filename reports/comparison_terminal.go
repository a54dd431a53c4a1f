package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"oversell/internal/printable"
)

// Comparison writes a table for each configuration, with what broke and why, and the
// sum of it all.
func (t Terminal) Comparison(c Comparison) error {
	c = printable.Of(c)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.title())
	for i := range c.Configurations {
		t.configuration(&b, c, i)
	}
	fmt.Fprintf(&b, "\n%s\n", paragraph("", c.legend()))
	list(&b, "Left out", c.Skipped)
	list(&b, "Notes", c.Notes)
	if s := c.Recommendation(); s != "" {
		fmt.Fprintf(&b, "\n%s\n", paragraph("", s))
	}
	fmt.Fprintf(&b, "\n%s\n", paragraph("", c.Sum()))
	_, err := io.WriteString(t.W, b.String())
	return err
}

// title says what was compared, and how.
func (c Comparison) title() string {
	s := fmt.Sprintf("%s: %s", c.Scenario, Count(int64(len(c.Contenders)), "contender"))
	if n := len(c.Configurations); n != 1 {
		s += fmt.Sprintf(" in %d configurations", n)
	}
	return paragraph("", fmt.Sprintf("%s; %s in %.0f s (%s). All wait by %s; %s; seed %d.",
		s, Count(int64(c.Rounds), "round"), c.ElapsedMS/1e3, c.Ended, c.Waiting, strings.Join(c.Conditions, " "), c.Seed))
}

// configuration writes one table, and what the numbers in it do not tell.
func (t Terminal) configuration(b *strings.Builder, c Comparison, i int) {
	f := c.Configurations[i]
	cells := c.In(i)
	fmt.Fprintf(b, "\n%s\n", paragraph("", f.String()))
	fmt.Fprintf(b, "%s\n\n", paragraph("  ", f.Control.String()))
	t.compared(b, c, cells)
	c.broken(b, cells)
	c.undecided(b, cells)
	if len(f.Faults) > 0 {
		fmt.Fprintln(b)
	}
	for _, line := range struckIn(f.Faults, cells) {
		fmt.Fprintf(b, "%s\n", paragraph("  ", line))
	}
}

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

// comparedColumn is a column of a comparison's table.
type comparedColumn struct {
	title, unit string
	cell        func(ComparisonCell) string
}

// compared writes the table.
func (t Terminal) compared(b *strings.Builder, c Comparison, cells []ComparisonCell) {
	columns := c.comparedColumns(cells)
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(cell func(comparedColumn) string) {
		for _, col := range columns {
			fmt.Fprintf(w, "%s\t", cell(col))
		}
		fmt.Fprintln(w)
	}
	row(func(col comparedColumn) string { return col.title })
	row(func(col comparedColumn) string { return col.unit })
	for _, x := range cells {
		row(func(col comparedColumn) string { return cmp.Or(col.cell(x), "-") })
	}
	w.Flush() // to memory
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if t.Color {
			line = paintOutcome(line)
		}
		fmt.Fprintln(b, line)
	}
}

// paintOutcome colours the outcome in a line of the table.
func paintOutcome(line string) string {
	for _, c := range []struct{ word, color string }{{" no violation", "32"}, {" declared, not seen", "33"}, {" BROKE", "31"}, {" " + Undecided, "33"}} {
		if before, after, ok := strings.Cut(line, c.word); ok && (after == "" || strings.ContainsRune(" !", rune(after[0]))) {
			return before + "\x1b[" + c.color + "m" + c.word + "\x1b[0m" + after
		}
	}
	return line
}

// comparedColumns are those that say something about at least one cell.
func (c Comparison) comparedColumns(cells []ComparisonCell) []comparedColumn {
	all := []comparedColumn{
		{"CONTENDER", "", func(x ComparisonCell) string { return c.Contenders[x.Contender].String() }},
		{"OUTCOME", "", ComparisonCell.outcome},
		{strings.ToUpper(c.Work), "/s", ComparisonCell.rate},
		{"RATIO", "(low-high)", ComparisonCell.ratio},
		{"LATENCY ms", "p50/p99/p99.9", func(x ComparisonCell) string { return PercentilesOf(x.Request) }},
		{"ALONE", "p50", func(x ComparisonCell) string {
			if x.RequestAlone == nil {
				return ""
			}
			return Short(x.RequestAlone.Call.P50)
		}},
		commandsColumn(cells),
		{"FAIR", "Jain", func(x ComparisonCell) string { return Positive(x.Fairness, "%.2f") }},
		{"LONGEST", "wait ms", func(x ComparisonCell) string {
			if x.LongestWaitMS == 0 {
				return ""
			}
			return Short(x.LongestWaitMS)
		}},
		{"KNOWN TO BREAK UNDER", "not tried", func(x ComparisonCell) string {
			if x.Outcome == Broke {
				return ""
			}
			return Conditions(x.KnownToBreak)
		}},
	}
	return slices.DeleteFunc(all, func(col comparedColumn) bool {
		return !slices.ContainsFunc(cells, func(x ComparisonCell) bool { return col.cell(x) != "" })
	})
}

// rate is the throughput, a small one to the tenth.
func (x ComparisonCell) rate() string {
	if r := x.Throughput.Median; r < 9.95 {
		return fmt.Sprintf("%.1f", r)
	}
	return Thousands(int64(x.Throughput.Median + 0.5))
}

// commandsColumn are the commands by acquisitions or, where some need none, by pieces
// of work.
func commandsColumn(cells []ComparisonCell) comparedColumn {
	if ByWork(cells) {
		return comparedColumn{"CMDS", "each", func(x ComparisonCell) string { return Positive(x.CommandsPerWork, "%.1f") }}
	}
	return comparedColumn{"CMDS", "/turn", func(x ComparisonCell) string { return Positive(x.CommandsPerAcquisition, "%.1f") }}
}

func Positive(x float64, format string) string {
	if x <= 0 {
		return ""
	}
	return fmt.Sprintf(format, x)
}

func PercentilesOf(l *Latency) string {
	if l == nil {
		return ""
	}
	return Short(l.Call.P50) + "/" + Short(l.Call.P99) + "/" + Short(l.Call.P999)
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

// outcome is the outcome in words, and in how many runs it broke; marked when it is not
// the declared one.
func (x ComparisonCell) outcome() string {
	s := x.Words()
	if x.Outcome == Broke {
		s = fmt.Sprintf("BROKE %d/%d", x.violated(), x.Runs)
	}
	if x.Outcome != Undecided && !x.AsDeclared {
		s += "!"
	}
	return s
}

// violated is in how many runs a promise was broken.
func (x ComparisonCell) violated() (n int) {
	for _, r := range x.Rounds {
		if r.Verdict == Violated {
			n++
		}
	}
	return n
}

// ratio is the throughput by that of the fastest without a violation; in brackets where the
// work was not done as promised.
func (x ComparisonCell) ratio() string {
	if x.Ratio == nil {
		return ""
	}
	median, spread := Figures3(x.Ratio.Median), ""
	if x.Ratio.Low != x.Ratio.High {
		spread = Figures3(x.Ratio.Low) + "-" + Figures3(x.Ratio.High)
	}
	switch {
	case x.Outcome == Broke:
		return "[" + Joined(" ", median, spread) + "]"
	case spread != "":
		return median + " (" + spread + ")"
	}
	return median
}

// Figures3 shows a ratio in at most three figures, unless it is 1,000 or more.
func Figures3(x float64) string {
	switch {
	case x < 0.095:
		return fmt.Sprintf("%.3f", x)
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// broken tells of what broke: which promises, how often and how soon, and the first
// of them in a sentence.
func (c Comparison) broken(b *strings.Builder, cells []ComparisonCell) {
	for _, x := range cells {
		if x.Outcome != Broke {
			continue
		}
		head := c.Contenders[x.Contender].String() + " broke"
		if !x.AsDeclared {
			head += ", THOUGH NO FLAW IS DECLARED that explains it"
		}
		fmt.Fprintf(b, "\n%s\n", head)
		for _, p := range x.Broken {
			in := fmt.Sprintf("in %d of %s", p.Runs, Count(int64(x.Runs), "run"))
			if p.Alone {
				in = "in " + Count(int64(p.Runs), "run") + " with as few clients as can be"
			}
			text := fmt.Sprintf("%s of the %s %s, %s; first after %s ms", p.Property, p.Of, in, strings.TrimPrefix(Extent(p.Count, p.Property), ", "), Short(p.SoonestMS))
			if p.Runs > 1 {
				text += fmt.Sprintf(" (median %s)", Short(p.MedianMS))
			}
			fmt.Fprintf(b, "%s\n", paragraph("  ", text))
		}
		fmt.Fprintf(b, "%s\n", paragraph("    ", strings.TrimSuffix(x.Broken[0].Why, ".")+"."))
		if x.Why != "" {
			fmt.Fprintf(b, "%s\n", paragraph("  ", "Not as declared: "+x.Why+"."))
		}
	}
}

// undecided tells why cells were not decided.
func (c Comparison) undecided(b *strings.Builder, cells []ComparisonCell) {
	said := map[string][]string{} // by reason
	var reasons []string
	for _, x := range cells {
		if x.Outcome != Undecided {
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
func struckIn(sentences []string, cells []ComparisonCell) (lines []string) {
	for i, sentence := range sentences {
		fired, holders, runs := int64(0), int64(0), 0
		for _, x := range cells {
			runs += x.Runs
			if i < len(x.Faults) {
				fired, holders = fired+x.Faults[i].Fired, holders+x.Faults[i].Holders
			}
		}
		lines = append(lines, fmt.Sprintf("the fault %q struck %s in %s, %s of them somebody who held the lock", sentence, Count(fired, "time"), Count(int64(runs), "run"), Thousands(holders)))
	}
	return lines
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
	column string // on a terminal
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

// legend explains the columns on a terminal.
func (c Comparison) legend() string {
	var sentences []string
	for _, e := range c.Explanations() {
		sentences = append(sentences, e.column+": "+e.Means+".")
	}
	sentences = append(sentences, "[In brackets]: promises were broken.")
	if len(c.Surprises()) > 0 {
		sentences = append(sentences, "!: not the declared outcome.")
	}
	return strings.Join(sentences, " ")
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

// paragraph breaks a text into lines that are no wider than a table, with an indent.
func paragraph(indent, text string) string {
	return indent + strings.Join(Folded(text, tableWidth-len(indent)), "\n"+indent)
}

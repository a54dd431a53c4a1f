package page

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
)

// comparison adds the methods of the page to a comparison.
type comparison struct{ reports.Comparison }

// Comparison writes the self-contained page of a comparison. Its links to the run directories are those in the
// comparison, relative to the page.
func Comparison(w io.Writer, c reports.Comparison) error {
	p := comparison{c}.page()
	return writeFramed(w, "comparison.html.tmpl", p.Headline, &p.Frame, &p)
}

// comparisonPage is the data of the template.
type comparisonPage struct {
	Frame                 frame
	Class, Icon, Headline string
	Lead                  string
	Facts                 []fact
	Columns               []string
	Rows                  []matrixRow
	Swept                 []sweptSection
	Sections              []comparedSection
	Skipped, Notes        []string
	Command               string
	Legend                []reports.Explanation
}

// matrixRow is a contender in all configurations.
type matrixRow struct {
	Name  string
	Cells []matrixCell
	// Untried are conditions that are known to break it and that no configuration included.
	Untried string
}

// matrixCell is an outcome with a link to its details; the zero value is for a contender that could not run.
type matrixCell struct {
	Link, Icon, Class, Outcome, Note, Column string
}

// comparedSection is a configuration.
type comparedSection struct {
	ID, Name, Control string
	ControlClass      string
	Ratios            []ratioBar
	Latencies         []panels
	Rows              []comparedRow
	Work              string
	Commands          string // title of the commands column
	Cells             []comparedDetail
}

// ratioBar is a throughput relative to the fastest contender without a violation.
type ratioBar struct {
	Place, Name, Class, Text, Label string
	// W, Low and High are in percent of the widest bar.
	W, Low, Long string
	// One is the position of ratio 1.
	One string
}

// comparedRow is a contender in the table of numbers.
type comparedRow struct {
	Place, Name, Class, Icon, Outcome     string
	Ratio                                 string
	Rate, Spread, Latency, Alone, Longest string
	Commands, Fairness                    string
}

// comparedDetail is the unfolded description of a cell.
type comparedDetail struct {
	ID, Name, Icon, Class, Outcome string
	Open                           bool
	Sentences                      []string
	Runs                           []comparedLink
}

type comparedLink struct {
	Address, Name, Verdict string
}

// outcomeLooks maps outcomes to their CSS classes and icons.
var outcomeLooks = map[string]struct{ class, icon string }{reports.NoViolation: {"holds", "✓"}, reports.NotSeen: {"unknown", "–"}, reports.Broke: {"violated", "✗"}, reports.Undecided: {"unknown", "?"}}

// cellID returns the ID of a cell's description in the page.
func cellID(x reports.ComparisonCell) string {
	return fmt.Sprintf("c%d-%d", x.Configuration, x.Contender)
}

func (c comparison) page() comparisonPage {
	p := comparisonPage{Skipped: c.Skipped, Notes: c.Notes, Command: c.Command, Legend: c.Explanations()}
	p.Class, p.Headline, p.Lead = c.answer()
	p.Icon = icons[p.Class]
	p.Facts = []fact{
		{Name: "Compared", Text: fmt.Sprintf("%s: %s in %s, %s each, in turns", c.Scenario, reports.Count(int64(len(c.Contenders)), "contender"), reports.Count(int64(len(c.Configurations)), "configuration"), reports.Count(int64(c.Rounds), "round"))},
		{Name: "Under", Text: strings.Join(append([]string{"all wait by " + c.Waiting}, append(slices.Clone(c.Conditions), fmt.Sprintf("seed %d", c.Seed))...), ", ")},
		{Name: "Took", Text: strings.TrimSuffix(fmt.Sprintf("%s in %s; %s", reports.Count(int64(c.Rounds), "round"), reports.Seconds(c.ElapsedMS), c.Ended), "; ")},
	}
	if s := c.Measurement(); s != "" {
		p.Facts = append(p.Facts, fact{Name: "Measured", Text: s})
	}
	for i, s := range c.sweeps() {
		p.Swept = append(p.Swept, c.swept(i, s))
	}
	for i, f := range c.Configurations {
		p.Columns = append(p.Columns, c.column(i))
		p.Sections = append(p.Sections, c.section(i, f))
	}
	for _, i := range c.bestFirst() {
		row := matrixRow{Name: c.Contenders[i].String(), Untried: c.untriedWords(i)}
		for j := range c.Configurations {
			row.Cells = append(row.Cells, c.matrixCell(i, j))
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

// untriedWords formats the conditions of untried, or explains why there are none.
func (c comparison) untriedWords(contender int) string {
	switch all := c.untried(contender); {
	case len(all) > 0:
		return reports.Conditions(all)
	case slices.ContainsFunc(c.Cells, func(x reports.ComparisonCell) bool { return x.Contender == contender && x.Outcome == reports.Broke }):
		return "it broke under the tried conditions"
	}
	return "nothing is known"
}

// untried returns, for a contender without a violation, the conditions that are known to break it and that no
// configuration of its runs included.
func (c comparison) untried(contender int) (all []history.Untried) {
	first := true
	for _, x := range c.Cells {
		switch {
		case x.Contender != contender:
			continue
		case x.Outcome == reports.Broke:
			return nil
		case first:
			all, first = slices.Clone(x.KnownToBreak), false
		}
		all = slices.DeleteFunc(all, func(u history.Untried) bool {
			return !slices.ContainsFunc(x.KnownToBreak, func(v history.Untried) bool { return v.Under == u.Under })
		})
	}
	return all
}

// bestFirst returns all contenders: first those without a violation, then the others, each group sorted by speed in
// the first configuration in which they ran.
func (c comparison) bestFirst() (all []int) {
	for _, recommended := range []bool{true, false} {
		for i := range c.Configurations {
			for _, x := range c.In(i) {
				is := slices.ContainsFunc(c.Recommended, func(r reports.Recommendation) bool { return r.Contender == x.Contender })
				if is == recommended && !slices.Contains(all, x.Contender) {
					all = append(all, x.Contender)
				}
			}
		}
	}
	return all
}

// answer returns the headline, which helps to choose a variant, and the lead: whether the outcomes are as the
// variants declare.
func (c comparison) answer() (class, headline, lead string) {
	class, verdict := c.verdict()
	if len(c.Cells) == 0 {
		return class, verdict, c.Sum() + "."
	}
	if class == reports.Pass && len(c.Recommended) == 0 {
		class = reports.Inconclusive
	}
	return class, c.Choice(), verdict + ": " + c.Sum() + "."
}

// verdict returns the outcome of a comparison, for the maintainers of the variants.
func (c comparison) verdict() (class, headline string) {
	surprises, undecided, powerless := len(c.Surprises()), 0, 0
	for _, x := range c.Cells {
		if x.Outcome == reports.Undecided {
			undecided++
		}
	}
	for _, f := range c.Configurations {
		if !f.Control.Power() {
			powerless++
		}
	}
	switch {
	case surprises > 0:
		return reports.Violated, fmt.Sprintf("%d of %s not as declared", surprises, reports.Count(int64(len(c.Cells)), "outcome")+" "+isOrAre(surprises))
	case c.Interrupted:
		return reports.Inconclusive, "Inconclusive: the comparison was stopped before its end"
	case powerless > 0:
		return reports.Inconclusive, fmt.Sprintf("Inconclusive: the control was not caught in %s", reports.Count(int64(powerless), "configuration"))
	case undecided > 0:
		return reports.Inconclusive, fmt.Sprintf("Inconclusive: %s of %d undecided", reports.Count(int64(undecided), "outcome"), len(c.Cells))
	case len(c.Cells) == 0:
		return reports.Inconclusive, "Inconclusive: nothing was compared"
	}
	if len(c.Cells) == 1 {
		return reports.Pass, "The outcome is as promises and flaws declare"
	}
	return reports.Pass, fmt.Sprintf("All %s are as promises and flaws declare", reports.Count(int64(len(c.Cells)), "outcome"))
}

// column returns a configuration's name, without what all configurations share.
func (c comparison) column(i int) string {
	f := c.Configurations[i]
	parts := slices.Clone(f.Swept)
	if slices.ContainsFunc(c.Configurations, func(g reports.Configuration) bool { return g.Target != f.Target || g.Topology != f.Topology }) {
		parts = append(parts, strings.TrimSpace(f.Target+" "+f.Topology))
	}
	if len(f.Faults) == 0 {
		parts = append(parts, "no fault")
	}
	return strings.Join(append(parts, f.Faults...), ", ")
}

func (c comparison) cell(contender, configuration int) (reports.ComparisonCell, bool) {
	i := slices.IndexFunc(c.Cells, func(x reports.ComparisonCell) bool {
		return x.Contender == contender && x.Configuration == configuration
	})
	if i < 0 {
		return reports.ComparisonCell{}, false
	}
	return c.Cells[i], true
}

func (c comparison) matrixCell(contender, configuration int) matrixCell {
	x, ran := c.cell(contender, configuration)
	if !ran {
		return matrixCell{Outcome: "–", Note: "cannot run here", Column: c.column(configuration)}
	}
	look := outcomeLooks[x.Outcome]
	m := matrixCell{Link: cellID(x), Icon: look.icon, Class: look.class, Outcome: x.Words(), Column: c.column(configuration)}
	if x.Outcome == reports.Broke && len(x.Broken) > 0 {
		m.Note = string(x.Broken[0].Property) + " after " + reports.Short(x.Broken[0].SoonestMS) + " ms"
	}
	if x.Outcome == reports.NoViolation && x.Estimate != nil {
		m.Note = reports.Figures3(x.Estimate.Ratio) + "×"
	}
	if x.Outcome != reports.Undecided && !x.AsDeclared {
		m.Note = strings.TrimSuffix("not as declared; "+m.Note, "; ")
	}
	return m
}

// section describes a configuration.
func (c comparison) section(i int, f reports.Configuration) comparedSection {
	s := comparedSection{ID: fmt.Sprintf("f%d", i), Name: f.String(), Control: f.Control.String(), ControlClass: "holds", Work: c.Work}
	if !f.Control.Power() {
		s.ControlClass = "unknown"
	}
	cells := c.In(i)
	s.Commands = "commands per acquisition"
	if reports.ByWork(cells) {
		s.Commands = "commands each"
	}
	s.Ratios = c.ratios(cells)
	s.Latencies = c.latencies(i, cells)
	for _, x := range cells {
		s.Rows = append(s.Rows, c.comparedRow(x, reports.ByWork(cells)))
		s.Cells = append(s.Cells, c.detail(x))
	}
	return s
}

// ratios returns the bars of a configuration on one scale. An interval beyond the scale is cut, because after few
// rounds it may be very wide.
func (c comparison) ratios(cells []reports.ComparisonCell) (bars []ratioBar) {
	widest := 1.0
	for _, x := range cells {
		if x.Estimate != nil {
			widest = max(widest, 1.25*x.Estimate.Ratio)
		}
	}
	share := func(v float64) string { return chart.Percent(100 * min(v/widest, 1)) }
	for _, x := range cells {
		if x.Estimate == nil {
			continue
		}
		e, name := *x.Estimate, c.Contenders[x.Contender].String()
		low, high := e.Ratio, e.Ratio
		if e.Low != nil && e.High != nil {
			low, high = *e.Low, min(*e.High, widest)
		}
		bars = append(bars, ratioBar{Place: x.Place(), Name: name, Class: outcomeLooks[x.Outcome].class, Text: e.Words(), W: share(e.Ratio), Low: share(low), Long: share(high - low), One: share(1),
			Label: name + ", " + x.Words() + ": " + e.Words() + " the throughput of the fastest without a violation"})
	}
	return bars
}

// orPercentiles returns a distribution or, if there is none, its known percentiles.
func orPercentiles(curve []reports.Quantile, l *reports.Latency) []reports.Quantile {
	if len(curve) > 0 {
		return curve
	}
	p := l.Call
	return []reports.Quantile{
		{Percent: 0, MS: p.P50}, {Percent: 50, MS: p.P50}, {Percent: 90, MS: p.P90},
		{Percent: 99, MS: p.P99}, {Percent: 99.9, MS: p.P999}, {Percent: 100, MS: p.Max},
	}
}

func (c comparison) comparedRow(x reports.ComparisonCell, byWork bool) comparedRow {
	look := outcomeLooks[x.Outcome]
	r := comparedRow{Place: x.Place(), Name: c.Contenders[x.Contender].String(), Class: look.class, Icon: look.icon, Outcome: x.Words(), Rate: x.Rate(), Latency: reports.PercentilesOf(x.Request)}
	if r.Rate != "" {
		r.Spread = reports.Rate(x.Throughput.Low) + "–" + reports.Rate(x.Throughput.High)
	}
	if x.Estimate != nil {
		r.Ratio = x.Estimate.Words()
	}
	if x.RequestAlone != nil {
		r.Alone = reports.PercentilesOf(x.RequestAlone)
	}
	if x.LongestWaitMS > 0 {
		r.Longest = reports.Short(x.LongestWaitMS)
	}
	r.Commands = reports.Positive(x.CommandsPerAcquisition, "%.1f")
	if byWork {
		r.Commands = reports.Positive(x.CommandsPerWork, "%.1f")
	}
	if x.Fairness > 0 {
		r.Fairness = strconv.FormatFloat(x.Fairness, 'f', 2, 64)
	}
	return r
}

// detail describes a cell in full.
func (c comparison) detail(x reports.ComparisonCell) comparedDetail {
	look := outcomeLooks[x.Outcome]
	d := comparedDetail{ID: cellID(x), Name: c.Contenders[x.Contender].String(), Icon: look.icon, Class: look.class, Outcome: x.Words()}
	declared := "as promises and flaws declare"
	switch {
	case x.Outcome == reports.Undecided:
		declared = x.Why
	case !x.AsDeclared:
		declared = "NOT as promises and flaws declare: expected is " + x.Expected
		d.Open = true
	}
	d.Sentences = append(d.Sentences, fmt.Sprintf("%s, in %s: %s", reports.OutcomeWords[x.Outcome], reports.Count(int64(x.Runs), "run"), declared))
	if x.Outcome == reports.NoViolation {
		d.Sentences = append(d.Sentences, x.Seen())
	}
	for _, p := range x.Broken {
		d.Sentences = append(d.Sentences, fmt.Sprintf("%s of the %s, in %d of %s%s; first after %s ms: %s", p.Property, p.Of, p.Runs, reports.Count(int64(x.Runs), "run"), p.Extent(), reports.Short(p.SoonestMS), p.Why))
	}
	if x.Sold != nil {
		d.Sentences = append(d.Sentences, fmt.Sprintf("sold %s (%s to %s) of %s", amount(x.Sold.Median), amount(x.Sold.Low), amount(x.Sold.High), reports.Thousands(x.Stock)))
	}
	for _, f := range x.Faults {
		d.Sentences = append(d.Sentences, fmt.Sprintf("fault %q: %s", f.Name, f.Story()))
	}
	for _, why := range x.ExpectedWhy {
		d.Sentences = append(d.Sentences, "declared: "+why)
	}
	for _, u := range x.KnownToBreak {
		d.Sentences = append(d.Sentences, "not tried: "+untriedSentence(u))
	}
	verdicts := map[string]string{}
	for _, r := range x.Rounds {
		verdicts[r.Dir] = fmt.Sprintf("round %d, %s, %s a second", r.Round, r.Verdict, amount(r.Throughput))
	}
	for _, dir := range x.Dirs {
		d.Runs = append(d.Runs, comparedLink{Address: (&url.URL{Path: dir + "/report.html"}).String(), Name: dir, Verdict: verdicts[dir]})
	}
	return d
}

package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/variant"
)

// Terminal writes documents for people.
type Terminal struct {
	W io.Writer
	// Color marks verdicts with ANSI colours.
	Color bool
}

// latencyColumns are the kinds of operation whose latency has a column, in order,
// where they occur.
var latencyColumns = []string{"acquire", "enqueue", "pop", "take", "submit", "buy", "next-id", "release"}

// Table writes one row per run.
func (t Terminal) Table(d Document) error {
	d = printable.Of(d)
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	columns := d.columns()
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c.title)
	}
	fmt.Fprintln(w)
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c.unit)
	}
	fmt.Fprintln(w)
	for _, r := range d.Runs {
		for _, c := range columns {
			fmt.Fprintf(w, "%s\t", cmp.Or(c.cell(r), "-"))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if t.Color {
			line = paint(line)
		}
		if _, err := fmt.Fprintln(t.W, line); err != nil {
			return err
		}
	}
	return nil
}

// column is one column of the table.
type column struct {
	title, unit string
	cell        func(Run) string
}

// columns are those that say something about at least one run.
func (d Document) columns() []column {
	all := []column{
		{"LOCK", "", func(r Run) string { return r.Lock }},
		{"SALE", "", func(r Run) string { return r.Sale }},
		{"QUEUE", "", func(r Run) string { return r.Queue }},
		{"DISPATCH", "", func(r Run) string { return r.Dispatch }},
		{"IDS", "", func(r Run) string { return r.IDs }},
		{"VERDICT", "", Run.verdictWord},
		{"NO VIOLATION IN", "opportunities", Run.Without},
		{"SOLD", "of stock", Run.SoldText},
		{"OPS/S", "", func(r Run) string { return Thousands(int64(r.Throughput)) }},
	}
	for _, kind := range latencyColumns {
		all = append(all, column{strings.ToUpper(kind), "p50 / p99 / p99.9 ms", func(r Run) string { return r.LatencyText(kind) }})
	}
	all = append(all, column{"FAULTS", "struck", Run.FaultsText})
	all = append(all, column{"BROKE", "", Run.BrokeWord})
	return slices.DeleteFunc(all, func(c column) bool {
		return !slices.ContainsFunc(d.Runs, func(r Run) bool { return c.cell(r) != "" }) && c.title != "BROKE"
	})
}

// verdictWord is the verdict, marked when no flaw declares what broke.
func (r Run) verdictWord() string {
	if r.Surprise() {
		return r.Verdict + "!"
	}
	return r.Verdict
}

// Without is in how many opportunities nothing broke, of the promise that had the fewest.
func (r Run) Without() string {
	n, several := r.Fewest()
	switch {
	case r.Verdict != Pass || n == 0:
		return ""
	case several:
		return "≥ " + Thousands(n)
	}
	return Thousands(n)
}

// BrokeWord is what broke or, where nothing did, what flaws declare to break.
func (r Run) BrokeWord() string {
	return Joined("; ", Joined(", ", r.Broke()...), NotSeenText(r.NotSeen()), r.NotTried())
}

func (r Run) SoldText() string {
	if r.Sold == nil || r.Stock == nil {
		return ""
	}
	s := fmt.Sprintf("%d/%d", *r.Sold, *r.Stock)
	if *r.Unknown > 0 {
		s += fmt.Sprintf(" +%d?", *r.Unknown)
	}
	return s
}

func (r Run) LatencyText(kind string) string {
	l, ok := r.Latency[kind]
	if !ok {
		return ""
	}
	return Short(l.Call.P50) + " / " + Short(l.Call.P99) + " / " + Short(l.Call.P999)
}

// Short shows milliseconds with three significant digits.
func Short(ms float64) string {
	switch {
	case ms >= 100:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 2, 64)
}

// Broke names the promised properties that were broken or, when none was, the
// others that were, in brackets.
func (r Run) Broke() []string {
	var promised, others []string
	for _, p := range r.Properties {
		switch {
		case p.Result == Broken:
			promised = append(promised, p.label(r))
		case p.Result == NotClaimed && p.Measured == Broken && r.PromisesOf(p.Of):
			others = append(others, "("+p.label(r)+")")
		}
	}
	if len(promised) > 0 {
		return promised
	}
	return others
}

// PromisesOf tells whether anything at all was promised about an object. Of one
// that promises nothing, such as no lock, it goes without saying what it broke.
func (r Run) PromisesOf(o variant.Object) bool {
	return slices.ContainsFunc(r.Properties, func(p Property) bool { return p.Of == o && p.Result != NotClaimed })
}

// label is the property's name, with the object where two objects share it.
func (p Property) label(r Run) string {
	for _, q := range r.Properties {
		if q.Name == p.Name && q.Of != p.Of {
			return fmt.Sprintf("%s (%s)", p.Name, p.Of)
		}
	}
	return string(p.Name)
}

// Explain writes a paragraph for a single run, for every run that did not pass, or that
// broke what nobody promised, and then the sum of it all.
func (t Terminal) Explain(d Document) error {
	d = printable.Of(d)
	var b strings.Builder
	for _, r := range d.Runs {
		if len(d.Runs) == 1 || r.Verdict != Pass || len(r.Broke()) > 0 || len(r.Notes)+len(r.Faults) > 0 {
			r.explain(&b)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", d.Sum())
	_, err := io.WriteString(t.W, b.String())
	return err
}

func (r Run) explain(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: %s%s\n", r.Title(), r.Verdict, r.DeclaredText())
	switch {
	case r.Verdict == Pass:
		fmt.Fprintf(b, "  %s\n", r.Seen())
	case r.Why != "":
		fmt.Fprintf(b, "  %s\n", Joined("; ", r.Why, r.NotTried()))
	}
	var others []Property
	for _, p := range r.Properties {
		switch {
		case p.Result == Broken:
			fmt.Fprintf(b, "  %s%s\n    %s.\n", p.label(r), Extent(p.Count, p.Name), p.Why)
		case p.Result == Unknown:
			fmt.Fprintf(b, "  %s: unknown\n    %s.\n", p.label(r), p.Why)
		case p.Result == Holds && r.Verdict != Violated:
			fmt.Fprintf(b, "  %s\n    %s.\n", Joined(": ", p.label(r), p.seen()), p.Why)
		case p.Result == NotClaimed && p.Measured == Broken && r.PromisesOf(p.Of):
			others = append(others, p)
		}
	}
	r.explainOthers(b, others)
	r.explainFaults(b)
	if r.Overruns > 0 {
		fmt.Fprintf(b, "  overruns: %s outlived the lease\n    %s.\n", CriticalSections(r.Overruns), r.FirstOverrun)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
}

// explainOthers tells what was broken that nobody had promised: in full where
// that is all that broke, and briefly beside broken promises.
func (r Run) explainOthers(b *strings.Builder, others []Property) {
	if r.Verdict != Violated {
		for _, p := range others {
			fmt.Fprintf(b, "  (%s)%s; nobody promised it here\n    %s.\n", p.label(r), Extent(p.Count, p.Name), p.Why)
		}
		return
	}
	var brief []string
	for _, p := range others {
		brief = append(brief, p.label(r)+Extent(p.Count, p.Name))
	}
	if len(brief) > 0 {
		fmt.Fprintf(b, "  not promised, and not kept: %s\n", strings.Join(brief, "; "))
	}
}

func CriticalSections(n int) string {
	if n == 1 {
		return "1 section"
	}
	return Thousands(int64(n)) + " sections"
}

// Sum counts the runs by outcome.
func (d Document) Sum() string {
	count := map[string]int{}
	declared, surprises, unseen := 0, 0, 0
	for _, r := range d.Runs {
		count[r.Verdict]++
		if r.Verdict != Inconclusive && r.Expected != "" {
			declared++
		}
		if r.Surprise() {
			surprises++
		}
		if len(r.NotSeen()) > 0 {
			unseen++
		}
	}
	s := fmt.Sprintf("%d passed, %d violated, %d inconclusive", count[Pass], count[Violated], count[Inconclusive])
	switch {
	case declared == 0:
		return s
	case surprises > 0:
		return s + fmt.Sprintf("; %d not as declared (marked with !)", surprises)
	case unseen > 0:
		return s + fmt.Sprintf("; nothing broke that no flaw declares, and in %s a declared flaw was not seen", phrase.Count(unseen, "run"))
	}
	s += "; every decided outcome is the one that promises and flaws declare"
	if declared < count[Pass]+count[Violated] {
		s += ", where they declare one"
	}
	return s
}

// Title says what ran.
func (r Run) Title() string {
	s := r.Scenario
	for _, part := range []struct{ what, name string }{{"lock", r.Lock}, {"sale", r.Sale}, {"queue", r.Queue}, {"ids", r.IDs}, {"dispatch", r.Dispatch}, {"on", r.SQL}} {
		if part.name != "" {
			s += fmt.Sprintf(", %s %s", part.what, part.name)
		}
	}
	return s
}

// Summary is the outcome in a few words.
func (r Run) Summary() string {
	s := r.Verdict
	if r.Sold != nil {
		s += ", sold " + r.SoldText()
	}
	if n := r.Without(); n != "" {
		s += ", no violation in " + n + " opportunities"
	}
	if broke := r.Broke(); len(broke) > 0 {
		s += ", broke " + strings.Join(broke, ", ")
	}
	return Joined(", ", s, NotSeenText(r.NotSeen()))
}

func (r Run) DeclaredText() string {
	switch {
	case r.Surprise():
		return ", and no flaw declares that"
	case NotSeenText(r.NotSeen()) != "":
		return "; " + NotSeenText(r.NotSeen())
	case r.Verdict == Inconclusive || r.Expected == "":
		return ""
	case r.Verdict == Pass:
		return ", as declared"
	}
	return ", as its flaws declare"
}

// Extent is how often a property was broken, or by how much.
func Extent(n int, p variant.Property) string {
	if unit := p.Unit(); unit != "" {
		return ", by " + Count(int64(n), unit)
	}
	return times(n)
}

func times(n int) string {
	if n == 1 {
		return ", once"
	}
	return fmt.Sprintf(", %s times", Thousands(int64(n)))
}

// Thousands writes a number with separators.
func Thousands(n int64) string { return humanize.Comma(n) }

// paint colours the verdict words of a line; done after the layout, because
// colours have no width.
func paint(line string) string {
	for _, c := range []struct{ word, color string }{
		{" " + Violated, "31"}, {" " + Inconclusive, "33"}, {" " + Pass, "32"},
	} {
		if i := strings.Index(line, c.word+" "); i >= 0 || strings.Contains(line, c.word+"!") {
			i = strings.Index(line, c.word)
			return line[:i] + "\x1b[" + c.color + "m" + c.word + "\x1b[0m" + line[i+len(c.word):]
		}
	}
	return line
}

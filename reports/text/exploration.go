package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"oversell/internal/printable"
	"oversell/reports"
)

const (
	// tableWidth is what the table of a counterexample is kept to, if its columns
	// need not be narrower than narrowest for that.
	tableWidth = 120
	narrowest  = 24
	// between separates columns.
	between = " | "
)

// Exploration writes what a search found: the verdict, the schedule that breaks
// the promise, if there is one, and what was searched.
func (t Terminal) Exploration(e reports.Exploration) error {
	e = printable.Of(e)
	var b strings.Builder
	fmt.Fprintln(&b, t.emphasize(e.Headline(), e.Verdict))
	if e.Verdict == reports.Pass && e.Why != "" {
		fmt.Fprintln(&b, e.Why)
	}
	if c := e.Counterexample; c != nil {
		fmt.Fprintf(&b, "\n%s\n%s\n", scheduleTable(*c, e.Masters), fmt.Sprintf("%s violated: %s", c.Property, c.Sentence))
	}
	fmt.Fprintf(&b, "\n%s\n", searched(e))
	t.properties(&b, e.Properties)
	writeBounds(&b, e)
	if e.Verdict != reports.Violated {
		list(&b, "Not checked", e.NotChecked)
	}
	if e.Command != "" {
		fmt.Fprintf(&b, "\nAgain: %s\n", e.Command)
	}
	_, err := io.WriteString(t.W, b.String())
	return err
}

// emphasize colours the start of a headline, up to the colon.
func (t Terminal) emphasize(headline, verdict string) string {
	color, ok := map[string]string{reports.Pass: "32", reports.Violated: "31", reports.Inconclusive: "33"}[verdict]
	if !t.Color || !ok {
		return headline
	}
	word, rest, _ := strings.Cut(headline, ":")
	return "\x1b[" + color + "m" + word + "\x1b[0m" + headline[len(headline)-len(rest)-min(len(rest), 1):]
}

// searched says what was searched and what was to be expected of it.
func searched(e reports.Exploration) string {
	s := "Searched: " + e.Title()
	if d := e.Declared(); d != "" {
		s += "; the outcome is " + e.Verdict + ", " + d
	}
	for _, why := range e.ExpectedWhy {
		s += "\n  declared: " + why
	}
	return s
}

// properties writes a line for each property.
func (t Terminal) properties(b *strings.Builder, ps []reports.Property) {
	if len(ps) == 0 {
		return
	}
	t.align(b, paintResult, func(w io.Writer) {
		for _, p := range ps {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", p.Of, p.Name, p.Result, p.Why)
		}
	})
}

// paintResult colours the result of a property.
func paintResult(line string) string {
	for _, c := range []struct{ word, color string }{{" " + reports.Holds, "32"}, {" " + reports.Broken, "31"}, {" " + reports.Unknown, "33"}} {
		if before, after, ok := strings.Cut(line, c.word); ok && (after == "" || after[0] == ' ') {
			return before + "\x1b[" + c.color + "m" + c.word + "\x1b[0m" + after
		}
	}
	return line
}

// writeBounds writes the limits of the search and what it did within them.
func writeBounds(b *strings.Builder, e reports.Exploration) {
	fmt.Fprintf(b, "\nBounds: %s\n", strings.Join(e.Limits(), ", "))
	list(b, "Effort", effort(e))
}

// scheduleTable is the schedule: a column per client, and what the server held.
func scheduleTable(c reports.Counterexample, masters int) string {
	g := gridOf(c, masters)
	g.fit(tableWidth)
	var b strings.Builder
	g.row(&b, g.titles)
	for _, r := range g.rows {
		if r.across != "" {
			g.band(&b, r)
			continue
		}
		for _, line := range g.lines(r) {
			g.row(&b, line)
		}
	}
	return b.String()
}

// grid is a table before it is laid out. Its columns are the number, the time,
// one per client, and the server's.
type grid struct {
	titles []string
	widths []int
	rows   []gridRow
}

// gridRow is one step: in a client's column, or across all of them.
type gridRow struct {
	number, at, redis string
	column            int
	command, outcome  string
	across            string
}

// gridOf makes a table of the steps. The values on the server are shown where they changed.
func gridOf(c reports.Counterexample, masters int) *grid {
	g := &grid{titles: append(append([]string{"#", "t(ms)"}, c.Clients...), "redis")}
	before := ""
	for i, s := range c.Steps {
		r := gridRow{number: fmt.Sprint(i + 1), at: reports.MillisFigure(s.AtMS), column: s.Client + 2}
		if s.Redis != before || i == 0 {
			r.redis = s.Holds()
		}
		before = s.Redis
		t := s.Words(masters)
		r.command, r.outcome = t.Command, reports.Joined("  ", outcomeOf(t), stars(s))
		if s.Kind == reports.StepAdvance || c.By(s) == "" {
			r.across = reports.Joined(" ", r.command, r.outcome)
		}
		g.rows = append(g.rows, r)
	}
	g.natural()
	return g
}

// natural gives every column the width of what stands in it.
func (g *grid) natural() {
	g.widths = make([]int, len(g.titles))
	widen := func(i int, text string) { g.widths[i] = max(g.widths[i], utf8.RuneCountInString(text)) }
	for i, title := range g.titles {
		widen(i, title)
	}
	for _, r := range g.rows {
		widen(0, r.number)
		widen(1, r.at)
		widen(len(g.widths)-1, r.redis)
		if r.across == "" {
			widen(r.column, reports.Joined(" ", r.command, r.outcome))
		}
	}
}

// fit narrows the widest columns until the table has the width it may have.
func (g *grid) fit(width int) {
	total := len(between) * (len(g.widths) - 1)
	for _, w := range g.widths {
		total += w
	}
	for total > width {
		widest := 2
		for i := range g.widths[2:] {
			if g.widths[i+2] > g.widths[widest] {
				widest = i + 2
			}
		}
		if g.widths[widest] <= narrowest {
			return
		}
		g.widths[widest]--
		total--
	}
}

// lines are the cells of a step, which takes several lines where its outcome does
// not fit beside the command, or what the server holds beside both.
func (g *grid) lines(r gridRow) [][]string {
	last := len(g.widths) - 1
	step, redis := g.stepLines(r), reports.Folded(r.redis, g.widths[last])
	var out [][]string
	for i := range max(len(step), len(redis)) {
		line := make([]string, last+1)
		if i == 0 {
			line[0], line[1] = r.number, r.at
		}
		if i < len(step) {
			line[r.column] = step[i]
		}
		if i < len(redis) {
			line[last] = redis[i]
		}
		out = append(out, line)
	}
	return out
}

// stepLines are the lines of a step in its client's column.
func (g *grid) stepLines(r gridRow) []string {
	width := g.widths[r.column]
	if whole := reports.Joined(" ", r.command, r.outcome); utf8.RuneCountInString(whole) <= width || r.outcome == "" {
		return []string{whole}
	}
	lines := []string{r.command}
	for _, part := range reports.Folded(r.outcome, width-2) {
		lines = append(lines, "  "+part)
	}
	return lines
}

// row writes cells, cut to their columns.
func (g *grid) row(b *strings.Builder, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(between)
		}
		line.WriteString(pad(reports.Cut(cell, g.widths[i]), g.widths[i]))
	}
	fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
}

// band writes a step that belongs to no client across their columns: a line that
// is drawn through, and more lines if its text needs them.
func (g *grid) band(b *strings.Builder, r gridRow) {
	last := len(g.widths) - 1
	width := len(between) * (last - 3)
	for _, w := range g.widths[2:last] {
		width += w
	}
	text, redis := reports.Folded(r.across, width-6), reports.Folded(r.redis, g.widths[last])
	for i := range max(len(text), len(redis)) {
		cells := []string{pad("", g.widths[0]), pad("", g.widths[1]), "", ""}
		if i == 0 {
			cells[0], cells[1] = pad(r.number, g.widths[0]), pad(r.at, g.widths[1])
		}
		if i < len(text) {
			cells[2] = "   " + reports.Cut(text[i], width-6)
		}
		if i == 0 {
			cells[2] = "── " + reports.Cut(text[0], width-6) + " "
			cells[2] += strings.Repeat("─", max(0, width-utf8.RuneCountInString(cells[2])))
		}
		if i < len(redis) {
			cells[3] = reports.Cut(redis[i], g.widths[last])
		}
		cells[2] = pad(cells[2], width)
		fmt.Fprintln(b, strings.TrimRight(strings.Join(cells, between), " "))
	}
}

// outcomeOf returns the answer and the marks that follow a command.
func outcomeOf(t reports.StepWords) string {
	var parts []string
	if t.Answer != "" {
		parts = append(parts, "-> "+t.Answer)
	}
	if t.Note != "" {
		parts = append(parts, "("+t.Note+")")
	}
	return strings.Join(parts, " ")
}

// stars are the marks as the text shows them.
func stars(s reports.Step) string {
	var marks []string
	for _, m := range s.Marks {
		marks = append(marks, "*"+m+"*")
	}
	return strings.Join(marks, " ")
}

// effort are sentences that say what the search did.
func effort(e reports.Exploration) []string {
	s := e.Stats
	done := fmt.Sprintf("%s and %s in %s", reports.Count(s.States, "state"), reports.Count(s.Transitions, "transition"), reports.Seconds(s.ElapsedMS))
	if s.ElapsedMS > 0 {
		done += ", which is " + reports.PerSecond(s) + " transitions a second"
	}
	lines := []string{
		done + "; the longest schedule has " + reports.Count(int64(s.Depth), "step"),
		fmt.Sprintf("the real code was run %s, and saw %s", reports.Count(s.Executions, "time"), reports.Count(s.Observed, "different thing")),
		"along the way: " + strings.Join(happened(e), ", "),
	}
	if s.Collision > 0 {
		lines = append(lines, "two different states were taken for one with a probability of at most "+reports.Chance(s.Collision))
	}
	if s.BytesPerState > 0 {
		lines = append(lines, reports.Size(s.BytesPerState)+" of memory a state")
	}
	if s.Random != nil {
		lines = append(lines, s.Random.String())
	}
	return lines
}

// happened counts what the search brought about. What it did not is said as well:
// a promise about crashes means little when nothing crashed.
func happened(e reports.Exploration) []string {
	s := e.Stats
	list := []string{reports.Count(s.Entered, e.Entries())}
	return append(list, reports.Count(s.Advances, "advance")+" of the clock", reports.Count(s.Expiries, "expiry"), reports.Count(s.Lapses, "lease")+" run out", reports.Count(s.Crashes, "crash"),
		reports.Count(s.Lost, "lost message"), reports.Count(s.Late, "late request"), reports.Count(s.Ends, "end state")+" judged")
}

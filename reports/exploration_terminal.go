package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"oversell/internal/printable"
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
func (t Terminal) Exploration(e Exploration) error {
	e = printable.Of(e)
	var b strings.Builder
	fmt.Fprintln(&b, t.emphasize(e.Headline(), e.Verdict))
	if e.Verdict == Pass && e.Why != "" {
		fmt.Fprintln(&b, e.Why)
	}
	if c := e.Counterexample; c != nil {
		fmt.Fprintf(&b, "\n%s\n%s\n", c.table(e.Masters), c.sentence())
	}
	fmt.Fprintf(&b, "\n%s\n", e.searched())
	t.properties(&b, e.Properties)
	e.bounds(&b)
	if e.Verdict != Violated {
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
	color, ok := map[string]string{Pass: "32", Violated: "31", Inconclusive: "33"}[verdict]
	if !t.Color || !ok {
		return headline
	}
	word, rest, _ := strings.Cut(headline, ":")
	return "\x1b[" + color + "m" + word + "\x1b[0m" + headline[len(headline)-len(rest)-min(len(rest), 1):]
}

// searched says what was searched and what was to be expected of it.
func (e Exploration) searched() string {
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
func (t Terminal) properties(b *strings.Builder, ps []Property) {
	if len(ps) == 0 {
		return
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, p := range ps {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", p.Of, p.Name, p.Result, p.Why)
	}
	w.Flush() // to memory
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if t.Color {
			line = paintResult(line)
		}
		fmt.Fprintln(b, line)
	}
}

// paintResult colours the result of a property.
func paintResult(line string) string {
	for _, c := range []struct{ word, color string }{{" " + Holds, "32"}, {" " + Broken, "31"}, {" " + Unknown, "33"}} {
		if before, after, ok := strings.Cut(line, c.word); ok && (after == "" || after[0] == ' ') {
			return before + "\x1b[" + c.color + "m" + c.word + "\x1b[0m" + after
		}
	}
	return line
}

// bounds writes the limits of the search and what it did within them.
func (e Exploration) bounds(b *strings.Builder) {
	fmt.Fprintf(b, "\nBounds: %s\n", e.within())
	list(b, "Effort", e.effort())
}

// list writes a headed list, unless it is empty.
func list(b *strings.Builder, head string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", head)
	for _, item := range items {
		fmt.Fprintf(b, "  - %s\n", item)
	}
}

// table is the schedule: a column per client, and what the server held.
func (c Counterexample) table(masters int) string {
	g := c.grid(masters)
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

// grid words the steps. What the server holds is said where it changed.
func (c Counterexample) grid(masters int) *grid {
	g := &grid{titles: append(append([]string{"#", "t(ms)"}, c.Clients...), "redis")}
	before := ""
	for i, s := range c.Steps {
		r := gridRow{number: fmt.Sprint(i + 1), at: plainMillis(s.AtMS), column: s.Client + 2}
		if s.Redis != before || i == 0 {
			r.redis = s.Holds()
		}
		before = s.Redis
		t := s.Told(masters)
		r.command, r.outcome = t.Command, Joined("  ", t.outcome(), s.stars())
		if s.Kind == StepAdvance || c.By(s) == "" {
			r.across = Joined(" ", r.command, r.outcome)
		}
		g.rows = append(g.rows, r)
	}
	g.natural()
	return g
}

// Joined joins the parts that are not empty.
func Joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), by)
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
			widen(r.column, Joined(" ", r.command, r.outcome))
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
	step, redis := g.stepLines(r), Folded(r.redis, g.widths[last])
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
	if whole := Joined(" ", r.command, r.outcome); utf8.RuneCountInString(whole) <= width || r.outcome == "" {
		return []string{whole}
	}
	lines := []string{r.command}
	for _, part := range Folded(r.outcome, width-2) {
		lines = append(lines, "  "+part)
	}
	return lines
}

// Folded breaks text at blanks into lines of at most width, where that can be.
func Folded(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = Joined(" ", line, word)
	}
	return append(lines, line)
}

// row writes cells, cut to their columns.
func (g *grid) row(b *strings.Builder, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(between)
		}
		line.WriteString(pad(Cut(cell, g.widths[i]), g.widths[i]))
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
	text, redis := Folded(r.across, width-6), Folded(r.redis, g.widths[last])
	for i := range max(len(text), len(redis)) {
		cells := []string{pad("", g.widths[0]), pad("", g.widths[1]), "", ""}
		if i == 0 {
			cells[0], cells[1] = pad(r.number, g.widths[0]), pad(r.at, g.widths[1])
		}
		if i < len(text) {
			cells[2] = "   " + Cut(text[i], width-6)
		}
		if i == 0 {
			cells[2] = "── " + Cut(text[0], width-6) + " "
			cells[2] += strings.Repeat("─", max(0, width-utf8.RuneCountInString(cells[2])))
		}
		if i < len(redis) {
			cells[3] = Cut(redis[i], g.widths[last])
		}
		cells[2] = pad(cells[2], width)
		fmt.Fprintln(b, strings.TrimRight(strings.Join(cells, between), " "))
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
